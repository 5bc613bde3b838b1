//! Rules about Bottlerocket's settings.

use serde_json::Value;

use super::super::node::Kind;
use super::{Case, at};
use crate::codes::inspect::{U001, U019};
use crate::problem::Place;

/// Settings under `settings.kubernetes` and the type of their values.
const TYPES: &[(&str, &str)] = &[
    ("max-pods", "integer"),
    ("api-server", "string"),
    ("cluster-name", "string"),
    ("cluster-certificate", "string"),
    ("registry-qps", "integer"),
    ("registry-burst", "integer"),
    ("event-qps", "integer"),
    ("event-burst", "integer"),
    ("kube-api-qps", "integer"),
    ("kube-api-burst", "integer"),
    ("container-log-max-size", "string"),
    ("container-log-max-files", "integer"),
    ("pod-pids-limit", "integer"),
    ("seccomp-default", "boolean"),
    ("cpu-cfs-quota-enforced", "boolean"),
    ("image-gc-high-threshold-percent", "string"),
    ("image-gc-low-threshold-percent", "string"),
    ("allowed-unsafe-sysctls", "array"),
];

/// Tables from names to values, where a name with dots must be quoted.
const FLAT: &[&str] = &[
    "node-labels",
    "node-taints",
    "eviction-hard",
    "eviction-soft",
    "eviction-soft-grace-period",
    "kube-reserved",
    "system-reserved",
];

pub(super) fn check(case: &mut Case<'_>) {
    for (trail, node) in case.nodes.clone() {
        if node.kind != Kind::Settings {
            continue;
        }
        if let Some(problem) = &node.problem {
            case.error(&U001, problem.what.clone(), at(node, &trail, 0));
        }
        let kubernetes = node.document.as_ref().and_then(|d| d.pointer("/settings/kubernetes"));
        for (name, value) in kubernetes.and_then(Value::as_object).into_iter().flatten() {
            let place = |path: String| Place { path, ..node.place.clone() };
            for key in split_keys(name, value) {
                let what = "a dotted key without quotes has become a table";
                case.warn(&U019, what, place(format!("settings.kubernetes.{name}.{key}")));
            }
            if let Some(wanted) = wrong_type(name, value) {
                let what = format!("the setting takes {wanted}, not {}", type_name(value));
                case.warn(&U019, what, place(format!("settings.kubernetes.{name}")));
            }
        }
    }
}

fn split_keys<'a>(name: &str, value: &'a Value) -> Vec<&'a str> {
    let table = value.as_object().filter(|_| FLAT.contains(&name));
    let split = table.into_iter().flatten().filter(|(_, value)| value.is_object());
    split.map(|(key, _)| key.as_str()).collect()
}

fn wrong_type(name: &str, value: &Value) -> Option<&'static str> {
    let (_, wanted) = TYPES.iter().find(|(known, _)| *known == name)?;
    (type_name(value) != *wanted).then_some(*wanted)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::Bool(_) => "boolean",
        Value::Array(_) => "array",
        Value::Object(_) => "table",
        Value::Null => "nothing",
    }
}
