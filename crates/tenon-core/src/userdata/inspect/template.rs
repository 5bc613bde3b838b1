//! Templates that embed user data: CloudFormation, launch templates, Terraform.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document;
use super::node::Node;
use super::read::{Filled, Reader};

/// Opens a CloudFormation template, or the answer of `get-template` around one.
pub(super) fn open(reader: &mut Reader<'_>, mut node: Node, depth: usize) -> Filled {
    let document = node.document.clone().unwrap_or_default();
    match document.get("TemplateBody") {
        Some(Value::String(text)) => {
            let inner = Node {
                name: "TemplateBody".into(),
                bytes: text.clone().into_bytes(),
                place: node.place.clone(),
                ..Node::default()
            };
            node.children = vec![reader.fill(inner, depth + 1)?];
            Ok(node)
        }
        Some(body) => resources(reader, node, body, "TemplateBody.", depth),
        None => resources(reader, node, &document, "", depth),
    }
}

fn resources(
    reader: &mut Reader<'_>,
    mut node: Node,
    template: &Value,
    prefix: &str,
    depth: usize,
) -> Filled {
    let resources = template.get("Resources").cloned().unwrap_or_default();
    for (path, value) in document::user_data(&resources) {
        let text = resolve(value, &reader.options.parameters);
        let child = Node {
            name: format!("{prefix}Resources.{path}"),
            bytes: text.into_bytes(),
            place: node.place.clone(),
            ..Node::default()
        };
        node.children.push(reader.fill(child, depth + 1)?);
    }
    Ok(node)
}

/// Opens a launch template, an EC2 answer, or a Terraform plan or state.
pub(super) fn open_embedded(reader: &mut Reader<'_>, mut node: Node, depth: usize) -> Filled {
    let document = node.document.clone().unwrap_or_default();
    for (path, value) in document::user_data(&document) {
        let child = Node {
            name: path,
            bytes: resolve(value, &reader.options.parameters).into_bytes(),
            place: node.place.clone(),
            ..Node::default()
        };
        node.children.push(reader.fill(child, depth + 1)?);
    }
    Ok(node)
}

/// The text that a value becomes, as far as the template alone decides it. What the stack
/// decides stays as `${Name}`.
///
/// `Fn::Base64` gives its argument as it is: the node reads it decoded.
pub(super) fn resolve(value: &Value, parameters: &BTreeMap<String, String>) -> String {
    let open = |name: &str| parameters.get(name).cloned().unwrap_or_else(|| format!("${{{name}}}"));
    let Some(function) = single_key(value) else {
        return match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
    };
    match function {
        ("Fn::Base64", argument) => resolve(argument, parameters),
        ("Ref", name) => open(name.as_str().unwrap_or("Ref")),
        ("Fn::GetAtt", Value::String(name)) => open(name),
        ("Fn::GetAtt", Value::Array(names)) => {
            open(&names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("."))
        }
        ("Fn::Join", Value::Array(arguments)) => join(arguments, parameters),
        ("Fn::Sub", Value::String(text)) => substitute(text, &BTreeMap::new(), parameters),
        ("Fn::Sub", Value::Array(arguments)) => substitute_with(arguments, parameters),
        (name, _) => format!("${{{name}}}"),
    }
}

/// A map of one key is a function call.
fn single_key(value: &Value) -> Option<(&str, &Value)> {
    let map = value.as_object().filter(|map| map.len() == 1)?;
    let (key, argument) = map.iter().next()?;
    (key == "Ref" || key.starts_with("Fn::")).then_some((key.as_str(), argument))
}

fn join(arguments: &[Value], parameters: &BTreeMap<String, String>) -> String {
    let [Value::String(separator), Value::Array(items)] = arguments else {
        return "${Fn::Join}".into();
    };
    let items: Vec<String> = items.iter().map(|item| resolve(item, parameters)).collect();
    items.join(separator)
}

fn substitute_with(arguments: &[Value], parameters: &BTreeMap<String, String>) -> String {
    let [Value::String(text), Value::Object(map)] = arguments else {
        return "${Fn::Sub}".into();
    };
    let local = map.iter().map(|(key, value)| (key.clone(), resolve(value, parameters)));
    substitute(text, &local.collect(), parameters)
}

/// Replaces `${Name}`; `${!Name}` is the literal `${Name}`.
fn substitute(
    text: &str,
    local: &BTreeMap<String, String>,
    parameters: &BTreeMap<String, String>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, inner) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = inner.find('}') else {
            out.push_str(inner);
            return out;
        };
        let name = &inner[2..end];
        match name.strip_prefix('!') {
            Some(literal) => out.push_str(&format!("${{{literal}}}")),
            None => match local.get(name.trim()).or_else(|| parameters.get(name.trim())) {
                Some(value) => out.push_str(value),
                None => out.push_str(&inner[..=end]),
            },
        }
        rest = &inner[end + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn functions_are_resolved_as_far_as_the_template_decides() {
        let parameters = BTreeMap::from([
            ("Name".to_owned(), "prod".to_owned()),
            ("N.Arn".into(), "arn".into()),
        ]);
        for (value, expected) in [
            (json!("text"), "text"),
            (json!({"Ref": "Name"}), "prod"),
            (json!({"Ref": "Other"}), "${Other}"),
            (
                json!({"Fn::Base64": {"Fn::Sub": "a ${Name} ${AWS::Region} ${!X}"}}),
                "a prod ${AWS::Region} ${X}",
            ),
            (json!({"Fn::Sub": ["${a}-${Name}", {"a": {"Ref": "Name"}}]}), "prod-prod"),
            (json!({"Fn::Join": ["\n", ["a", {"Ref": "Name"}, "c"]]}), "a\nprod\nc"),
            (json!({"Fn::GetAtt": ["N", "Arn"]}), "arn"),
            (json!({"Fn::GetAtt": "N.Other"}), "${N.Other}"),
            (json!({"Fn::If": ["C", "a", "b"]}), "${Fn::If}"),
            (json!({"Fn::Sub": "open ${Name"}), "open ${Name"),
            (json!({"Fn::Sub": 3}), "${Fn::Sub}"),
            (json!(null), ""),
        ] {
            assert_eq!(resolve(&value, &parameters), expected, "{value}");
        }
    }
}
