//! The field table as JSON Schema, for editors and pipelines.

use serde_json::{Map, Value, json};

use super::fields;
use super::grammar::Grammar;
use super::schema::{Field, Kind, Shape, Words};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of one kind, or of both together.
pub fn json_schema(kind: Option<Kind>) -> Value {
    match kind {
        Some(kind) => {
            let mut schema = document(kind);
            schema["$schema"] = json!(DRAFT);
            schema
        }
        None => {
            let pointer = |kind: Kind| json!({"$ref": format!("#/$defs/{}", kind.group())});
            let definition = |kind: Kind| (kind.group().to_owned(), document(kind));
            json!({
                "$schema": DRAFT,
                "title": "NodeConfig",
                "oneOf": Kind::ALL.map(pointer),
                "$defs": Kind::ALL.map(definition).into_iter().collect::<Map<_, _>>(),
            })
        }
    }
}

/// The schema of a machine's config.
pub fn machine_schema() -> Value {
    let mut schema = object(crate::stages::fields::DOCUMENT, Kind::Tenon);
    schema["$schema"] = json!(DRAFT);
    schema["title"] = json!(format!("{} MachineConfig", Kind::Tenon.api_version()));
    schema["required"] = json!(["apiVersion", "kind", "spec"]);
    schema
}

fn document(kind: Kind) -> Value {
    let mut schema = object(fields::DOCUMENT, kind);
    schema["title"] = json!(format!("{} NodeConfig", kind.api_version()));
    schema["required"] = json!(["apiVersion", "kind"]);
    schema["properties"]["apiVersion"]["enum"] = json!([kind.api_version()]);
    schema
}

fn object(fields: &'static [Field], kind: Kind) -> Value {
    let known = fields.iter().filter(|field| field.in_kind(kind));
    let properties: Map<String, Value> =
        known.clone().map(|field| (field.name.to_owned(), property(field, kind))).collect();
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    let required: Vec<_> = known.filter(|field| field.required).map(|field| field.name).collect();
    // The cluster's name may stand in another document of the chain.
    if !required.is_empty() && fields.iter().all(|field| field.tenon_only) {
        schema["required"] = json!(required);
    }
    schema
}

fn property(field: &'static Field, kind: Kind) -> Value {
    let mut schema = shape(&field.shape, kind);
    schema["description"] = json!(field.doc);
    if !field.default.is_empty() {
        schema["$comment"] = json!(format!("default: {}", field.default));
    }
    // A null is a value everywhere: it clears in tenon.dev and means nothing in node.eks.aws.
    or_null(schema)
}

fn or_null(mut schema: Value) -> Value {
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.push(json!({"type": "null"}));
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
    }
    if let Some(name) = schema.get_mut("type") {
        *name = json!([name, "null"]);
    }
    schema
}

fn shape(shape: &Shape, kind: Kind) -> Value {
    match shape {
        Shape::Object(fields) => object(fields, kind),
        Shape::Text(grammar) => text(*grammar),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int(low, high) => json!({"type": "integer", "minimum": low, "maximum": high}),
        Shape::Choice(words) => choice(words, kind),
        Shape::ChoiceOrInt(words) => {
            json!({"anyOf": [choice(words, kind), {"type": "integer", "minimum": 1}]})
        }
        Shape::Texts(grammar) => json!({"type": "array", "items": text(*grammar)}),
        Shape::Choices(words) => json!({"type": "array", "items": choice(words, kind)}),
        Shape::Items(fields) => json!({"type": "array", "items": object(fields, kind)}),
        Shape::Map(_, value) => map(value, kind),
        Shape::Free(_) => json!({"type": "object"}),
    }
}

fn map(value: &Shape, kind: Kind) -> Value {
    json!({"type": "object", "additionalProperties": or_null(shape(value, kind))})
}

fn text(grammar: Grammar) -> Value {
    match grammar.pattern() {
        Some(pattern) => json!({"type": "string", "pattern": pattern}),
        None => json!({"type": "string"}),
    }
}

/// Words in any letter case cannot be an `enum`; they become a pattern.
fn choice(words: &Words, kind: Kind) -> Value {
    let list: Vec<_> = words.of(kind).collect();
    if !words.any_case {
        return json!({"type": "string", "enum": list});
    }
    let fold = |word: &str| -> String {
        word.chars()
            .map(|c| match c.is_ascii_alphabetic() {
                true => format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase()),
                false => c.to_string(),
            })
            .collect()
    };
    let pattern = list.iter().map(|word| fold(word)).collect::<Vec<_>>().join("|");
    json!({"type": "string", "pattern": format!("^({pattern}|)$")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_and_every_field_are_there() {
        let schema = json_schema(None);
        assert_eq!(schema["$schema"], DRAFT);
        for kind in Kind::ALL {
            let definition = &schema["$defs"][kind.group()];
            for (path, field) in fields::all() {
                let found = at(definition, &path);
                assert_eq!(found.is_some(), field.in_kind(kind), "{path} in {}", kind.group());
                if let Some(found) = found {
                    assert_eq!(found["description"], field.doc, "{path}");
                }
            }
        }
    }

    /// The schema of a path, through objects and lists.
    fn at<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
        path.split('.').try_fold(schema, |schema, name| {
            let schema = schema.get("items").unwrap_or(schema);
            schema.get("properties")?.get(name)
        })
    }

    #[test]
    fn unknown_fields_are_refused_and_words_listed() {
        let schema = json_schema(Some(Kind::Tenon));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(at(&schema, "spec.kubelet").unwrap()["additionalProperties"], false);
        let mode = at(&schema, "spec.kubelet.maxPods.mode").unwrap();
        assert_eq!(mode["enum"], json!(["eni", "fixed", "expression", "min", null]));
        let strategy = at(&schema, "spec.instance.localStorage.strategy").unwrap();
        assert!(strategy["pattern"].as_str().unwrap().contains("[Rr][Aa][Ii][Dd]0"));
        let hook = at(&schema, "spec.hooks.postJoin").unwrap();
        assert_eq!(hook["items"]["required"], json!(["name"]));
    }
}
