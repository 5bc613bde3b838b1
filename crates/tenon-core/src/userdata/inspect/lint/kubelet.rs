//! Rules about labels, taints, and the kubelet's fields and flags.

use serde_json::{Map, Value};

use super::super::settings::{key, shown};
use super::{Case, Level};
use crate::codes::inspect::{U013, U017};
use crate::config::grammar::{kubelet_may_set, label_key, label_value};
use crate::config::kubelet_table;
use crate::nearest::nearest;
use crate::problem::{Place, Problem};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) fn check(case: &mut Case<'_>) {
    labels(case);
    taints(case);
    flags(case);
    fields(case);
}

fn named(case: &Case<'_>, names: &[&str]) -> Place {
    Place { path: shown(&key(names)), ..case.place() }
}

/// A value with `${Name}` in it is not known yet.
fn is_open(text: &str) -> bool {
    text.contains("${")
}

fn labels(case: &mut Case<'_>) {
    for (name, setting) in case.settings.below(&["labels"]) {
        let [name] = name else { continue };
        let value = setting.value.as_str().unwrap_or_default();
        let what = if is_open(name) || is_open(value) {
            continue;
        } else if !label_key(name) {
            "the label's key is outside the grammar of labels"
        } else if !label_value(value) {
            "the label's value is outside the grammar of labels"
        } else if !kubelet_may_set(name) {
            "the label is reserved for the control plane; the kubelet does not start with it"
        } else {
            continue;
        };
        case.error(&U013, what, named(case, &["labels", name]));
    }
}

fn taints(case: &mut Case<'_>) {
    for (names, setting) in case.settings.below(&["taints"]) {
        let [name, effect] = names else { continue };
        let value = setting.value.as_str().unwrap_or_default();
        let what = if [name, effect].into_iter().any(|text| is_open(text)) || is_open(value) {
            continue;
        } else if !label_key(name) {
            "the taint's key is outside the grammar"
        } else if !label_value(value) {
            "the taint's value is outside the grammar"
        } else if !EFFECTS.contains(&effect.as_str()) {
            "the taint's effect is none of NoSchedule, PreferNoSchedule and NoExecute"
        } else {
            continue;
        };
        case.error(&U013, what, named(case, &["taints", name, effect]));
    }
}

fn flags(case: &mut Case<'_>) {
    for (names, _) in case.settings.below(&["kubelet", "flags"]) {
        let Some(name) = names.first().filter(|name| !is_open(name)) else { continue };
        let place = named(case, &["kubelet", "flags", name]);
        let Some(info) = kubelet_table::flag(name) else {
            let mut problem = Problem::new(&U017, "the kubelet has no such flag").at(place);
            if let Some(near) = nearest(name, kubelet_table::flag_names()) {
                problem = problem.fix(format!("did you mean `--{near}`?"));
            }
            case.add(Level::Error, problem);
            continue;
        };
        let instead = info.field.map(|field| format!("set `{field}` in the kubelet's config"));
        let fix = instead.unwrap_or_else(|| "remove the flag".into());
        if !info.known_to(case.target.version) {
            let what = "the kubelet of this version has no such flag";
            case.add(Level::Error, Problem::new(&U017, what).at(place).fix(fix));
        } else if info.deprecated_since.is_some_and(|since| case.target.version >= Some(since)) {
            let what = "the flag is deprecated in this version";
            case.add(Level::Warning, Problem::new(&U017, what).at(place).fix(fix));
        }
    }
}

fn fields(case: &mut Case<'_>) {
    let mut config = Map::new();
    for (names, setting) in case.settings.below(&["kubelet", "config"]) {
        insert(&mut config, names, setting.value.clone());
    }
    for issue in kubelet_table::check_config(&config, case.target.version) {
        let path: Vec<&str> = ["kubelet", "config"]
            .into_iter()
            .chain(issue.path.iter().map(String::as_str))
            .collect();
        let mut problem = Problem::new(&U017, issue.message).at(named(case, &path));
        if let Some(near) = issue.suggestion {
            problem = problem.fix(format!("did you mean `{near}`?"));
        }
        case.add(Level::Error, problem);
    }
}

/// Puts a leaf back into its tree.
pub(in super::super) fn insert(map: &mut Map<String, Value>, names: &[String], value: Value) {
    match names {
        [] => {}
        [name] => drop(map.insert(name.clone(), value)),
        [name, rest @ ..] => {
            let inner = map.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}
