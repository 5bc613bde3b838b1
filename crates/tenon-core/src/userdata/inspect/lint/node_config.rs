//! Rules about the fields of a NodeConfig.

use serde_json::Value;

use super::super::node::Kind;
use super::{Case, Level, at};
use crate::codes::inspect::U009;
use crate::config::Kind as Group;
use crate::config::fields::DOCUMENT;
use crate::config::schema::{Field, Shape};
use crate::nearest::nearest;
use crate::problem::Problem;

pub(super) fn check(case: &mut Case<'_>) {
    for (trail, node) in case.nodes.clone() {
        let group = match node.kind {
            Kind::NodeConfig => Group::Eks,
            Kind::TenonConfig => Group::Tenon,
            _ => continue,
        };
        if let Some(problem) = &node.problem {
            let problem = Problem::new(&U009, problem.what.clone()).at(at(node, &trail, 0));
            case.add(Level::Error, problem);
        }
        let Some(document) = &node.document else { continue };
        let mut unknown = Vec::new();
        walk(document, DOCUMENT, group, "", &mut unknown);
        for (path, near) in unknown {
            let mut place = at(node, &trail, 0);
            place.path.clone_from(&path);
            let problem = Problem::new(&U009, format!("unknown field `{path}`")).at(place);
            case.add(
                Level::Error,
                match near {
                    Some(near) => problem.fix(format!("did you mean `{near}`?")),
                    None => problem,
                },
            );
        }
    }
}

type Unknown = Vec<(String, Option<String>)>;

/// Finds fields that the schema does not have. Recursion ends with the schema.
fn walk(value: &Value, fields: &[Field], group: Group, path: &str, unknown: &mut Unknown) {
    let Some(map) = value.as_object() else { return };
    let known = || fields.iter().filter(|field| !field.tenon_only || group == Group::Tenon);
    for (name, value) in map {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match known().find(|field| field.name == name) {
            Some(field) => below(value, &field.shape, group, &path, unknown),
            None => {
                let near = nearest(name, known().map(|field| field.name)).map(str::to_owned);
                unknown.push((path, near));
            }
        }
    }
}

fn below(value: &Value, shape: &Shape, group: Group, path: &str, unknown: &mut Unknown) {
    match (shape, value) {
        (Shape::Object(fields), value) => walk(value, fields, group, path, unknown),
        (Shape::Items(fields), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, fields, group, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}
