//! Rules about Ignition configs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::node::Kind;
use super::Case;
use crate::codes::inspect::U021;
use crate::problem::Place;

pub(super) fn check(case: &mut Case<'_>) {
    for (_, node) in case.nodes.clone() {
        let Some(document) = node.document.as_ref().filter(|_| node.kind == Kind::Ignition) else {
            continue;
        };
        let mut report = |what: &str, path: String| {
            case.error(&U021, what, Place { path, ..node.place.clone() });
        };
        let version = document.pointer("/ignition/version").and_then(Value::as_str);
        if !version.is_some_and(|version| version.starts_with("3.")) {
            report("the version is not 3.x", "ignition.version".into());
        }
        let files = document.pointer("/storage/files").and_then(Value::as_array);
        let mut seen = BTreeSet::new();
        for (index, file) in files.into_iter().flatten().enumerate() {
            let at = |field: &str| format!("storage.files[{index}].{field}");
            let path = file.get("path").and_then(Value::as_str).unwrap_or_default();
            if !path.starts_with('/') {
                report("the path is not absolute", at("path"));
            }
            if !seen.insert(path) {
                report("the path is written twice", at("path"));
            }
            if file.get("mode").is_some_and(|mode| mode.as_u64().is_none_or(|mode| mode > 0o7777)) {
                report("the mode is not a decimal number such as 420", at("mode"));
            }
        }
    }
}
