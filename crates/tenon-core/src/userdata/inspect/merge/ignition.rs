//! Ignition configs: files by path, units by name, everything else by key.

use serde_json::{Map, Value};

use super::super::node::{Kind, Node};
use super::{Merged, not_mergeable};
use crate::codes::inspect::MERGE_CONFLICT;
use crate::problem::{Place, Problem};

/// Lists whose entries have an identity.
const KEYED: &[(&str, &str)] = &[
    ("storage.files", "path"),
    ("storage.directories", "path"),
    ("storage.links", "path"),
    ("systemd.units", "name"),
    ("systemd.units.dropins", "name"),
    ("passwd.users", "name"),
    ("passwd.groups", "name"),
];

pub(super) fn merge(custom: &Node, ours: &Node, force: bool) -> Result<Merged, Vec<Problem>> {
    let mut document = config(custom).map_err(|problem| vec![problem])?;
    let ours = config(ours).map_err(|problem| vec![problem])?;
    let place = &custom.place;
    let mut merger = Merger { force, replaced: Vec::new(), conflicts: Vec::new(), place };
    merger.maps(&mut document, &ours, "", "");
    if !merger.conflicts.is_empty() {
        return Err(merger.conflicts);
    }
    let bytes = format!("{}\n", Value::Object(document)).into_bytes();
    Ok(Merged { bytes, replaced: merger.replaced, notes: Vec::new() })
}

fn config(node: &Node) -> Result<Map<String, Value>, Problem> {
    match (node.kind, &node.document) {
        (Kind::Ignition, Some(Value::Object(map))) => Ok(map.clone()),
        (Kind::Empty, _) => Ok(Map::new()),
        (kind, _) => Err(not_mergeable(node, format!("{} is not an Ignition config", kind.name()))),
    }
}

struct Merger<'a> {
    force: bool,
    replaced: Vec<String>,
    conflicts: Vec<Problem>,
    place: &'a Place,
}

impl Merger<'_> {
    /// `kind` is the path without identities, as [`KEYED`] has it; `path` is for people.
    fn maps(
        &mut self,
        theirs: &mut Map<String, Value>,
        ours: &Map<String, Value>,
        kind: &str,
        path: &str,
    ) {
        for (name, value) in ours {
            let (kind, path) = (joined(kind, name), joined(path, name));
            match theirs.get_mut(name) {
                None => drop(theirs.insert(name.clone(), value.clone())),
                Some(found) => self.values(found, value, &kind, &path),
            }
        }
    }

    fn values(&mut self, theirs: &mut Value, ours: &Value, kind: &str, path: &str) {
        match (&mut *theirs, ours) {
            (Value::Object(theirs), Value::Object(ours)) => self.maps(theirs, ours, kind, path),
            (Value::Array(theirs), Value::Array(ours)) => self.lists(theirs, ours, kind, path),
            (theirs, ours) if theirs == ours => {}
            (Value::String(theirs), Value::String(ours)) if kind == "ignition.version" => {
                // Each 3.x reads what the ones before it wrote.
                if theirs.starts_with("3.") && ours.starts_with("3.") && &*theirs < ours {
                    theirs.clone_from(ours);
                }
            }
            (theirs, ours) => {
                let ours = ours.clone();
                self.clash(theirs, ours, path);
            }
        }
    }

    fn lists(&mut self, theirs: &mut Vec<Value>, ours: &[Value], kind: &str, path: &str) {
        let identity = KEYED.iter().find(|(list, _)| *list == kind).map(|(_, key)| *key);
        for item in ours {
            let wanted = identity.and_then(|key| item.get(key)?.as_str());
            let found = match (identity, wanted) {
                (Some(key), Some(wanted)) => theirs
                    .iter_mut()
                    .find(|their| their.get(key).and_then(Value::as_str) == Some(wanted)),
                _ => theirs.iter_mut().find(|their| *their == item),
            };
            match (found, item) {
                (None, _) => theirs.push(item.clone()),
                (Some(found), item) if found == item => {}
                (Some(Value::Object(found)), Value::Object(item)) if kind == "systemd.units" => {
                    let path = format!("{path}[{}]", wanted.unwrap_or_default());
                    self.maps(found, item, kind, &path);
                }
                (Some(found), item) => {
                    let path = format!("{path}[{}]", wanted.unwrap_or_default());
                    self.clash(found, item.clone(), &path);
                }
            }
        }
    }

    fn clash(&mut self, theirs: &mut Value, ours: Value, path: &str) {
        if self.force {
            self.replaced.push(path.to_owned());
            *theirs = ours;
            return;
        }
        let what = format!("both configs write `{path}`, with different content");
        let place = Place { path: path.to_owned(), ..self.place.clone() };
        let fix = "remove it from your config, or let ours win with --force";
        self.conflicts.push(Problem::new(&MERGE_CONFLICT, what).at(place).fix(fix));
    }
}

fn joined(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}
