//! EC2's answers as values: one reader for every call, with the member names of the other AWS
//! formats, so that XML and saved JSON read alike.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Map, Value};
use tenon_core::codes::facts::CLOUD_ANSWER;
use tenon_core::problem::Problem;

/// How deep answers nest at most.
const DEPTH: usize = 32;

/// An element that is being read.
#[derive(Default)]
struct Open {
    name: String,
    text: String,
    fields: Map<String, Value>,
    items: Vec<Value>,
    list: bool,
}

impl Open {
    fn close(self) -> Value {
        match self {
            Open { list: true, items, .. } => Value::Array(items),
            Open { fields, text, .. } if fields.is_empty() => scalar(&text),
            Open { fields, .. } => Value::Object(fields),
        }
    }
}

/// Reads a document. `<item>` children make a list (`<member>` in newer parts of the API), other
/// children an object; names begin with a capital letter. Attributes are namespaces only and are left out.
pub fn parse(text: &str) -> Result<Value, Problem> {
    let bad = |what: &str| Problem::new(&CLOUD_ANSWER, format!("the answer is not {what}"));
    let mut reader = Reader::from_str(text);
    let mut open = vec![Open::default()];
    loop {
        let Some(top) = open.last_mut() else { return Err(bad("well-formed XML")) };
        match reader.read_event().map_err(|error| bad("XML").cause(error))? {
            Event::Start(tag) => {
                let name = tag.local_name().as_ref().to_owned();
                open.push(Open { name, ..Open::default() });
                if open.len() > DEPTH {
                    return Err(bad("an EC2 document: it nests too deeply"));
                }
            }
            Event::Text(bytes) => {
                top.text.push_str(&bytes);
            }
            Event::GeneralRef(entity) => {
                top.text.push_str(
                    resolve(&entity).ok_or_else(|| bad("an EC2 document: it defines entities"))?,
                );
            }
            Event::Empty(tag) => {
                let name = tag.local_name().as_ref().to_owned();
                add(top, name, Value::Null);
            }
            Event::End(_) => {
                let Some(closed) = open.pop() else { return Err(bad("well-formed XML")) };
                let name = closed.name.clone();
                let Some(parent) = open.last_mut() else { return Err(bad("well-formed XML")) };
                add(parent, name, closed.close());
            }
            Event::Eof if open.len() == 1 => {
                return Ok(open.pop().map(Open::close).unwrap_or_default());
            }
            Event::Eof => return Err(bad("whole")),
            _ => {}
        }
    }
}

fn add(parent: &mut Open, name: String, value: Value) {
    if matches!(name.as_str(), "item" | "member") {
        parent.list = true;
        parent.items.push(value);
    } else {
        parent.fields.insert(capital(&name), value);
    }
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The five entities that XML itself has.
fn resolve(name: &str) -> Option<&'static str> {
    let rows = [("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'")];
    rows.iter().find(|row| row.0 == name).map(|row| row.1)
}

fn scalar(text: &str) -> Value {
    match text.trim() {
        "" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_make_lists_and_names_get_capitals() {
        let text = r#"<?xml version="1.0"?>
            <Response xmlns="http://ec2"><aSet>
              <item><vCpuInfo><n>2</n></vCpuInfo><ok>true</ok><name>a &amp; b</name><none/></item>
            </aSet><empty></empty></Response>"#;
        let expected = json!({"Response": {
            "ASet": [{"VCpuInfo": {"N": 2}, "Ok": true, "Name": "a & b", "None": null}],
            "Empty": null,
        }});
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn broken_documents_and_entity_tricks_are_refused() {
        for text in ["<a>", "<a></b>", "<a>&boom;</a>", &"<a>".repeat(100)] {
            let problem = parse(text).unwrap_err();
            assert_eq!((problem.page.code, problem.exit()), ("TN10003", 10), "{text}");
        }
    }
}
