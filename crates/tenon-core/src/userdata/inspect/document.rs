//! Texts as documents, and the user data that documents embed.

use serde_json::Value;

use crate::tree::Dialect;
use crate::yaml::{self, Syntax};

/// Keys under which tools keep user data. A map with `Value` inside is EC2's form.
const USER_DATA_KEYS: &[&str] =
    &["UserData", "user_data", "user_data_base64", "user_data_raw", "custom_data"];

/// Reads YAML or JSON as the tools of the node read it. CloudFormation's short tags are read as
/// the functions they stand for.
pub(super) fn parse(text: &str) -> Result<Vec<Value>, Syntax> {
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        return Ok(vec![value]);
    }
    let trees = yaml::parse(text).or_else(|syntax| {
        let tagged = syntax.page == &crate::codes::decode::BAD_TAG;
        if tagged { yaml::parse_template(text) } else { Err(syntax) }
    })?;
    Ok(trees.iter().map(|tree| tree.to_json(Dialect::Yaml11)).collect())
}

/// Reads TOML. The message names the position and no value.
pub(super) fn parse_toml(text: &str) -> Result<Value, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            let end = span.start.min(text.len());
            1 + text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count()
        });
        format!("line {line} is not TOML")
    })?;
    serde_json::to_value(table).map_err(|_| "the table holds a value that JSON has not".to_owned())
}

/// Every value that a document keeps under a key for user data, with its path.
pub(super) fn user_data(document: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    search(document, "", &mut found);
    found
}

fn search<'a>(value: &'a Value, path: &str, found: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match value {
                    _ if !USER_DATA_KEYS.contains(&key.as_str()) => search(value, &path, found),
                    Value::Null => {}
                    Value::Object(inner) if inner.contains_key("Value") => {
                        found.push((path, &inner["Value"]));
                    }
                    _ => found.push((path, value)),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                search(item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn embedded_user_data_is_found_wherever_it_stands() {
        let document = json!({
            "LaunchTemplateVersions": [{"LaunchTemplateData": {"UserData": "a"}}],
            "planned_values": {"root_module": {"resources": [{"values": {"user_data": null}},
                {"values": {"user_data_base64": "b"}}]}},
            "UserData": {"Value": "c"},
        });
        let found: Vec<_> = user_data(&document);
        let expected = [
            ("LaunchTemplateVersions[0].LaunchTemplateData.UserData", "a"),
            ("UserData", "c"),
            ("planned_values.root_module.resources[1].values.user_data_base64", "b"),
        ];
        let found: Vec<_> =
            found.iter().map(|(path, value)| (path.as_str(), value.as_str().unwrap())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn yaml_json_and_tags_are_read() {
        for (text, expected) in [
            ("a: yes", json!([{"a": true}])),
            ("{\"a\": 1}", json!([{"a": 1}])),
            ("a: !Ref b", json!([{"a": {"Ref": "b"}}])),
            ("a: 1\n---\nb: 2", json!([{"a": 1}, {"b": 2}])),
        ] {
            assert_eq!(Value::Array(parse(text).unwrap()), expected, "{text}");
        }
        assert!(parse("a: [").is_err());
        assert_eq!(parse_toml("[settings]\na = 1").unwrap(), json!({"settings": {"a": 1}}));
        assert_eq!(parse_toml("a = 1\nb = secret").unwrap_err(), "line 2 is not TOML");
    }
}
