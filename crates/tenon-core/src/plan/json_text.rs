//! JSON with keys in the order they were put in.
//!
//! serde_json sorts its maps; the kubelet's own file has an order that people know from other
//! nodes. Escapes follow the encoder of the Kubernetes world (`<`, `>`, `&` as `\u…`), so that
//! files which must be equal to the last byte are.

use serde_json::Value;

/// A JSON document whose objects keep their order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Scalar(Value),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) => Json::List(items.into_iter().map(Json::from).collect()),
            Value::Object(map) => {
                Json::Object(map.into_iter().map(|(key, value)| (key, value.into())).collect())
            }
            scalar => Json::Scalar(scalar),
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Json::Scalar(text.into())
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Json::Scalar(value.into())
    }
}

/// An object from pairs, in their order.
pub(crate) fn object<const N: usize>(pairs: [(&str, Json); N]) -> Json {
    Json::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// A list of strings.
pub(crate) fn strings(items: &[&str]) -> Json {
    Json::List(items.iter().map(|item| Json::from(*item)).collect())
}

/// Writes a document with `indent` spaces per level and no final newline.
pub(crate) fn pretty(json: &Json, indent: usize) -> String {
    let mut text = String::new();
    write(json, indent, 0, &mut text);
    text
}

fn write(json: &Json, indent: usize, depth: usize, text: &mut String) {
    match json {
        Json::Scalar(Value::String(string)) => text.push_str(&quoted(string)),
        Json::Scalar(value) => text.push_str(&value.to_string()),
        Json::List(items) => {
            let entries = items.iter().map(|item| (None, item));
            write_entries(('[', ']'), entries, indent, depth, text);
        }
        Json::Object(pairs) => {
            let entries = pairs.iter().map(|(key, value)| (Some(key.as_str()), value));
            write_entries(('{', '}'), entries, indent, depth, text);
        }
    }
}

fn write_entries<'a>(
    brackets: (char, char),
    entries: impl ExactSizeIterator<Item = (Option<&'a str>, &'a Json)>,
    indent: usize,
    depth: usize,
    text: &mut String,
) {
    text.push(brackets.0);
    let count = entries.len();
    for (index, (key, value)) in entries.enumerate() {
        new_line(indent * (depth + 1), text);
        if let Some(key) = key {
            text.push_str(&quoted(key));
            text.push_str(": ");
        }
        write(value, indent, depth + 1, text);
        if index + 1 < count {
            text.push(',');
        }
    }
    if count > 0 {
        new_line(indent * depth, text);
    }
    text.push(brackets.1);
}

fn new_line(spaces: usize, text: &mut String) {
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', spaces));
}

/// A JSON string, which is a YAML double-quoted string as well.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text)
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_the_order_and_indents() {
        let json = object([
            ("z", Json::from(true)),
            ("a", Json::List(vec![])),
            ("m", object([("k", strings(&["x", "y"]))])),
        ]);
        let expected = "{\n  \"z\": true,\n  \"a\": [],\n  \"m\": {\n    \"k\": [\n      \"x\",\n      \"y\"\n    ]\n  }\n}";
        assert_eq!(pretty(&json, 2), expected);
    }

    #[test]
    fn any_text_reads_back() {
        let odd = json!({"<&>\u{2028}": ["\"\\\n\u{7}é", 1.5, -3, null, {}]});
        let text = pretty(&Json::from(odd.clone()), 4);
        assert!(text.contains("\\u003c\\u0026\\u003e\\u2028"));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), odd);
    }
}
