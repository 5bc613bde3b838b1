//! Settings for Bottlerocket: a tree merge that keeps the user's comments, order and every key
//! that Tenon does not know.

use std::collections::BTreeSet;

use toml_edit::{Array, DocumentMut, InlineTable, Item, TableLike, Value};

use super::super::node::{Kind, Node};
use super::{Merged, not_mergeable};
use crate::codes::inspect::MERGE_CONFLICT;
use crate::problem::{Place, Problem};

/// What the cluster is; two documents must agree about it.
const IDENTITY: [&str; 3] = [
    "settings.kubernetes.api-server",
    "settings.kubernetes.cluster-certificate",
    "settings.kubernetes.cluster-name",
];
const TAINTS: &str = "settings.kubernetes.node-taints";

pub(super) fn merge(custom: &Node, ours: &Node) -> Result<Merged, Vec<Problem>> {
    let mut document = parse(custom).map_err(|problem| vec![problem])?;
    let ours = parse(ours).map_err(|problem| vec![problem])?;
    let mut merger = Merger { replaced: Vec::new(), conflicts: Vec::new(), place: &custom.place };
    merger.tables(document.as_table_mut(), ours.as_table(), "");
    if !merger.conflicts.is_empty() {
        return Err(merger.conflicts);
    }
    let notes = merger.replaced.iter().map(|key| format!("{key} is replaced by ours")).collect();
    Ok(Merged { bytes: document.to_string().into_bytes(), replaced: merger.replaced, notes })
}

fn parse(node: &Node) -> Result<DocumentMut, Problem> {
    if node.kind == Kind::Empty {
        return Ok(DocumentMut::new());
    }
    if node.kind != Kind::Settings {
        let what = format!("{} is not Bottlerocket's settings", node.kind.name());
        return Err(not_mergeable(node, what));
    }
    if let Some(problem) = &node.problem {
        return Err(problem.clone());
    }
    node.text().parse().map_err(|_| not_mergeable(node, "the settings are not TOML"))
}

struct Merger<'a> {
    replaced: Vec<String>,
    conflicts: Vec<Problem>,
    place: &'a Place,
}

impl Merger<'_> {
    /// Puts every key of `ours` into `theirs`. Recursion is bounded by the TOML reader.
    fn tables(&mut self, theirs: &mut dyn TableLike, ours: &dyn TableLike, above: &str) {
        for (name, item) in ours.iter() {
            let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
            match theirs.get_mut(name) {
                None => drop(theirs.insert(name, item.clone())),
                Some(found) => self.items(found, item, &path),
            }
        }
    }

    fn items(&mut self, theirs: &mut Item, ours: &Item, path: &str) {
        if above_is(path, TAINTS) {
            return merge_taints(theirs, ours);
        }
        if let (Some(theirs), Some(ours)) = (theirs.as_table_like_mut(), ours.as_table_like()) {
            return self.tables(theirs, ours, path);
        }
        if same(theirs, ours) {
            return;
        }
        if IDENTITY.contains(&path) {
            let what = format!("`{path}` differs from the cluster's own");
            let place = Place { path: path.to_owned(), ..self.place.clone() };
            self.conflicts.push(Problem::new(&MERGE_CONFLICT, what).at(place));
            return;
        }
        self.replaced.push(path.to_owned());
        replace(theirs, ours);
    }
}

/// True for a direct child of a table.
fn above_is(path: &str, table: &str) -> bool {
    path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

/// Equal in meaning, whatever the writing.
fn same(left: &Item, right: &Item) -> bool {
    meaning(left) == meaning(right)
}

/// A value without its decoration.
fn meaning(item: &Item) -> Option<String> {
    let value = item.clone().into_value().ok()?;
    Some(plain(&value))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{:?}", text.value()),
        Value::Integer(number) => number.value().to_string(),
        Value::Float(number) => format!("f{}", number.value()),
        Value::Boolean(state) => state.value().to_string(),
        Value::Datetime(time) => time.value().to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(","))
        }
        Value::InlineTable(table) => plain_table(table),
    }
}

fn plain_table(table: &InlineTable) -> String {
    let mut entries: Vec<String> =
        table.iter().map(|(key, value)| format!("{key:?}:{}", plain(value))).collect();
    entries.sort();
    format!("{{{}}}", entries.join(","))
}

/// Takes our value and keeps the user's blanks and comment around it.
fn replace(theirs: &mut Item, ours: &Item) {
    match (theirs.as_value_mut(), ours.as_value()) {
        (Some(old), Some(new)) => {
            let decoration = old.decor().clone();
            *old = new.clone();
            *old.decor_mut() = decoration;
        }
        _ => *theirs = ours.clone(),
    }
}

/// The taints of one key: those of both, each effect once. Ours comes last and wins.
fn merge_taints(theirs: &mut Item, ours: &Item) {
    let wanted = taints(ours);
    let effects: BTreeSet<String> = wanted.iter().map(|taint| effect(taint)).collect();
    let before = taints(theirs);
    let kept: Vec<String> =
        before.iter().filter(|taint| !effects.contains(&effect(taint))).cloned().collect();
    let all: Vec<String> = kept.into_iter().chain(wanted).collect();
    let sorted = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    if sorted(&all) == sorted(&before) {
        return;
    }
    let value = match &all[..] {
        [one] => Value::from(one.as_str()),
        more => Value::Array(more.iter().map(String::as_str).collect::<Array>()),
    };
    replace(theirs, &Item::Value(value));
}

/// `value:Effect`, once or in a list.
fn taints(item: &Item) -> Vec<String> {
    match item.as_value() {
        Some(Value::String(text)) => vec![text.value().clone()],
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

fn effect(taint: &str) -> String {
    taint.rsplit(':').next().unwrap_or_default().to_owned()
}
