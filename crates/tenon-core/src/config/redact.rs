//! A document with its secrets replaced by a constant.

use serde_json::{Map, Value, json};

use super::fields;
use super::flags;
use super::grammar::Grammar;
use super::schema::{Field, Shape};
use crate::secret::NAME_PARTS;
use crate::tree::{Tree, Written};
use crate::yaml;

/// What stands in for a secret.
pub const REDACTED: &str = "[redacted]";

/// The document with every sensitive value replaced.
pub fn redact(document: &Value) -> Value {
    fields_of(document, fields::DOCUMENT)
}

/// The values of every secret field of the documents in a text, for those who must not show
/// them elsewhere. A text that is none has none.
pub fn secrets_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for tree in yaml::parse(text).unwrap_or_default() {
        let document = plain(&tree);
        differing(&document, &redact(&document), &mut found);
    }
    found
}

/// A document without its places; every scalar is a text.
fn plain(tree: &Tree) -> Value {
    match &tree.value {
        Written::Scalar(scalar) => json!(scalar.text),
        Written::List(items) => items.iter().map(plain).collect(),
        Written::Map(entries) => {
            Value::Object(entries.iter().map(|it| (it.key.clone(), plain(&it.value))).collect())
        }
    }
}

fn differing(original: &Value, redacted: &Value, found: &mut Vec<String>) {
    match (original, redacted) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                differing(value, right.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            left.iter().zip(right).for_each(|(left, right)| differing(left, right, found));
        }
        (Value::String(text), right) if right != original => found.push(text.clone()),
        _ => {}
    }
}

fn fields_of(value: &Value, fields: &'static [Field]) -> Value {
    let Value::Object(map) = value else { return value.clone() };
    let pairs = map.iter().map(|(name, value)| {
        let field = fields.iter().find(|field| field.name == name);
        let value = field.map_or_else(|| hide(value), |field| redact_field(value, field));
        (name.clone(), value)
    });
    Value::Object(pairs.collect())
}

fn redact_field(value: &Value, field: &'static Field) -> Value {
    match (field.shape, value) {
        _ if field.sensitive => hide(value),
        (Shape::Object(fields), _) => fields_of(value, fields),
        (Shape::Items(fields), Value::Array(items)) => {
            items.iter().map(|item| fields_of(item, fields)).collect()
        }
        (Shape::Free(_), _) => by_name(value),
        (Shape::Texts(Grammar::Flag), Value::Array(items)) => {
            items.iter().map(redact_flag).collect()
        }
        (Shape::Texts(Grammar::Argument), Value::Array(items)) => {
            items.iter().map(redact_argument).collect()
        }
        (Shape::Text(Grammar::Toml), Value::String(text)) => redact_toml(text),
        _ => value.clone(),
    }
}

/// Replaces every leaf; keys stay.
fn hide(value: &Value) -> Value {
    match value {
        Value::Object(map) => map_values(map, |_, value| hide(value)),
        Value::Array(items) => items.iter().map(hide).collect(),
        _ => json!(REDACTED),
    }
}

/// Replaces texts whose key names a secret.
fn by_name(value: &Value) -> Value {
    match value {
        Value::Object(map) => map_values(map, |key, value| match value {
            Value::String(_) if names_a_secret(key) => json!(REDACTED),
            value => by_name(value),
        }),
        Value::Array(items) => items.iter().map(by_name).collect(),
        value => value.clone(),
    }
}

fn map_values(map: &Map<String, Value>, change: impl Fn(&str, &Value) -> Value) -> Value {
    Value::Object(map.iter().map(|(key, value)| (key.clone(), change(key, value))).collect())
}

fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAME_PARTS.iter().any(|part| name.contains(part))
}

/// A flag whose name tells of a secret keeps its name only.
fn redact_flag(flag: &Value) -> Value {
    let text = flag.as_str().unwrap_or_default();
    match flags::name(text) {
        Some(name) if !names_a_secret(name) && !text.contains(char::is_whitespace) => flag.clone(),
        Some(name) => json!(format!("--{name}={REDACTED}")),
        None => json!(REDACTED),
    }
}

/// An argument of a hook: a flag that tells of a secret keeps its name only.
pub fn argument(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) if names_a_secret(name) => format!("{name}={REDACTED}"),
        _ => text.to_owned(),
    }
}

fn redact_argument(value: &Value) -> Value {
    value.as_str().map_or_else(|| value.clone(), |text| json!(argument(text)))
}

/// TOML as a tree without the texts whose key names a secret.
fn redact_toml(text: &str) -> Value {
    let table = text.parse::<toml::Table>().ok();
    let value = table.and_then(|table| serde_json::to_value(table).ok());
    value.map_or_else(|| json!(REDACTED), |value| by_name(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_fields_of_a_document_are_known_by_value() {
        let text = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  hybrid:\n    ssm:\n      activationCode: canary-code\n  cluster: {name: prod}\n";
        let found = secrets_of(text);
        assert!(found.contains(&"canary-code".to_owned()), "{found:?}");
        assert!(!found.contains(&"prod".to_owned()), "{found:?}");
        assert!(secrets_of("#!/bin/sh\necho: [").is_empty());
    }
}
