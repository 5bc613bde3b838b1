//! What must hold inside one list of objects: required fields, unique identities, and that a
//! hook has exactly one thing to do.

use std::collections::BTreeSet;

use super::grammar::Fault;
use super::node::Node;
use super::read::Reader;
use super::schema::{Field, Merge, Shape};
use crate::codes::config as pages;

/// Checks the items of a list of objects; other fields pass.
pub fn check(reader: &mut Reader<'_>, field: &Field, list: &Node, path: &str) {
    let Shape::Items(fields) = field.shape else { return };
    let mut seen = BTreeSet::new();
    for (index, item) in list.list().iter().enumerate() {
        let path = format!("{path}[{index}]");
        required(reader, fields, item, &path);
        if fields.iter().any(|field| field.name == "argv") {
            hook(reader, item, &path);
        }
        if let Merge::Identity(keys) = field.merge
            && let Some(identity) = identity(item, keys)
            && !seen.insert(identity)
        {
            let what = format!("repeats the {} of an earlier entry", keys.join(" and "));
            reader.report(&Fault::error(&pages::DUPLICATE_ITEM, what), item.origin.span, &path);
        }
    }
}

/// The texts that tell one item from another; None while one of them is missing.
pub fn identity(item: &Node, keys: &[&str]) -> Option<Vec<String>> {
    keys.iter().map(|key| item.at(key)?.text().map(str::to_owned)).collect()
}

fn required(reader: &mut Reader<'_>, fields: &'static [Field], item: &Node, path: &str) {
    for field in fields.iter().filter(|field| field.required) {
        let missing = item.at(field.name).is_none_or(|node| node.text() == Some(""));
        // An entry that was refused already has its finding.
        let refused = reader.findings.iter().any(|finding| {
            let place = finding.problem.place.as_ref();
            place.is_some_and(|place| place.path == format!("{path}.{}", field.name))
        });
        if missing && !refused {
            let what = format!("lacks `{}`", field.name);
            let fault = Fault::error(&pages::MISSING_FIELD, what);
            reader.report(&fault.fix(format!("add `{}`", field.example)), item.origin.span, path);
        }
    }
}

fn hook(reader: &mut Reader<'_>, item: &Node, path: &str) {
    let argv = item.at("argv").map(Node::list).filter(|words| !words.is_empty());
    let script = item.at("script").and_then(Node::text).filter(|text| !text.is_empty());
    let refuse = |reader: &mut Reader<'_>, what: &str, node: &Node| {
        reader.report(&Fault::error(&pages::BAD_HOOK, what), node.origin.span, path);
    };
    match (argv, script) {
        (None, None) => refuse(reader, "has neither argv nor script", item),
        (Some(_), Some(_)) => refuse(reader, "has both argv and script", item),
        (Some([program, ..]), None)
            if !program.text().is_some_and(|text| text.starts_with('/')) =>
        {
            refuse(reader, "has an argv that does not begin with an absolute path", program);
        }
        _ => {}
    }
}
