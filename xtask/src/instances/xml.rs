//! An EC2 answer as JSON with the member names of the API.
//!
//! The wire names differ from the member names in the first letter only, and lists are made of
//! `item` (or `member`) elements, so one rule reads every answer.

use anyhow::{Context, bail};
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Map, Value};

/// Reads a whole answer; the value is the content of the outermost element.
pub(crate) fn to_json(text: &str) -> anyhow::Result<Value> {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event().context("reading the XML answer")? {
            Event::Start(_) => return element(&mut reader, 0),
            Event::Eof => bail!("the answer holds no XML element"),
            _ => {}
        }
    }
}

/// The content of an element whose start has been read.
fn element(reader: &mut Reader<&[u8]>, depth: usize) -> anyhow::Result<Value> {
    if depth > 32 {
        bail!("the XML answer is nested deeper than any EC2 answer");
    }
    let mut fields = Map::new();
    let mut items = Vec::new();
    let mut text = String::new();
    loop {
        match reader.read_event().context("reading the XML answer")? {
            Event::Start(start) => {
                let name = start.local_name().as_ref().to_owned();
                let value = element(reader, depth + 1)?;
                insert(&mut fields, &mut items, &name, value);
            }
            Event::Empty(start) => {
                let name = start.local_name().as_ref().to_owned();
                insert(&mut fields, &mut items, &name, Value::Null);
            }
            Event::Text(part) => text.push_str(&part),
            Event::GeneralRef(name) => text.push_str(entity(&name)?),
            Event::End(_) => break,
            Event::Eof => bail!("the XML answer ends too early"),
            _ => {}
        }
    }
    Ok(if !items.is_empty() {
        Value::Array(items)
    } else if !fields.is_empty() {
        Value::Object(fields)
    } else {
        scalar(text.trim())
    })
}

fn insert(fields: &mut Map<String, Value>, items: &mut Vec<Value>, name: &str, value: Value) {
    match name {
        "item" | "member" => items.push(value),
        _ => {
            let mut letters = name.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            fields.insert(first.into_iter().chain(letters).collect(), value);
        }
    }
}

fn entity(name: &str) -> anyhow::Result<&'static str> {
    match name {
        "amp" => Ok("&"),
        "lt" => Ok("<"),
        "gt" => Ok(">"),
        "quot" => Ok("\""),
        "apos" => Ok("'"),
        _ => bail!("an entity that EC2 does not use"),
    }
}

/// Text on the wire; numbers and booleans have no marks of their own.
fn scalar(text: &str) -> Value {
    match text {
        "" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => text.parse::<u64>().map_or_else(|_| Value::String(text.to_owned()), Value::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_names_and_scalars() {
        let text = "<?xml version=\"1.0\"?><R xmlns=\"x\"><nextToken>a&amp;b</nextToken>\
            <vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo><set><item>x86_64</item></set>\
            <on>true</on><empty/></R>";
        let expected = json!({"NextToken": "a&b", "VCpuInfo": {"DefaultVCpus": 2},
            "Set": ["x86_64"], "On": true, "Empty": null});
        assert_eq!(to_json(text).unwrap(), expected);
    }

    #[test]
    fn a_broken_answer_is_an_error() {
        for text in ["", "<a><b></a>", "<a>", "<a>&xxe;</a>"] {
            assert!(to_json(text).is_err(), "{text}");
        }
    }
}
