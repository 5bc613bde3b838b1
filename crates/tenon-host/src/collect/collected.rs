//! A bundle that answers as the node would have.

use std::collections::BTreeMap;

use serde_json::Value;
use tenon_core::collect::journal::{self as lines, Entry};
use tenon_core::collect::manifest::Status;

use super::bundle::Bundle;
use super::journal::Query;
use super::source::{Answer, Node, Unit};
use crate::systemd::UnitState;

/// The item with the states of all units.
const UNITS: &str = "system/units.json";

/// A bundle, indexed by the paths of the node.
#[derive(Debug)]
pub struct Collected {
    pub bundle: Bundle,
    /// Path on the node → what it was, and the member with its content.
    nodes: BTreeMap<String, (Option<Node>, Option<String>)>,
    /// Paths that were looked for, with how that ended.
    tried: BTreeMap<String, (Status, String)>,
}

impl Collected {
    pub fn new(bundle: Bundle) -> Self {
        let mut nodes: BTreeMap<String, (Option<Node>, Option<String>)> = BTreeMap::new();
        let mut tried = BTreeMap::new();
        for listed in &bundle.manifest.listed {
            nodes.entry(listed.source.clone()).or_default().0 = Some(listed.node.clone());
        }
        for item in &bundle.manifest.items {
            if item.status.has_content() && bundle.size(&item.path).is_some() {
                let place = nodes.entry(item.source.clone()).or_default();
                place.0 = place.0.take().or_else(|| item.node.clone());
                place.1 = Some(item.path.clone());
            }
            tried.insert(item.source.clone(), (item.status, item.note.clone()));
        }
        Collected { bundle, nodes, tried }
    }

    pub fn read(&self, path: &str, cap: u64) -> Answer<Vec<u8>> {
        let Some((_, Some(member))) = self.nodes.get(path) else { return self.missing(path) };
        match self.bundle.read(member, cap + 1) {
            Some(Ok(bytes)) if bytes.len() as u64 <= cap => Answer::Known(bytes),
            Some(Ok(_)) => Answer::Unknown(format!("{path} is larger than {cap} bytes")),
            Some(Err(error)) => Answer::Unknown(error.to_string()),
            None => self.missing(path),
        }
    }

    pub fn list(&self, path: &str) -> Answer<Vec<String>> {
        let directory = path.trim_end_matches('/');
        let known =
            matches!(self.nodes.get(directory), Some((Some(node), _)) if node.kind == "directory");
        if !known {
            return self.missing(directory);
        }
        let begin = format!("{directory}/");
        let below =
            self.nodes.range(begin.clone()..).map_while(|(path, _)| path.strip_prefix(&begin));
        let mut names: Vec<String> =
            below.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
        names.dedup();
        Answer::Known(names)
    }

    pub fn stat(&self, path: &str) -> Answer<Node> {
        match self.nodes.get(path) {
            Some((Some(node), _)) => Answer::Known(node.clone()),
            _ => self.missing(path),
        }
    }

    /// Absent if the collector looked and found none; else nobody knows.
    fn missing<T>(&self, path: &str) -> Answer<T> {
        match self.tried.get(path) {
            Some((Status::Absent, _)) => Answer::Absent,
            Some((status, note)) => {
                Answer::Unknown(format!("{path} was not collected ({}) {note}", status.name()))
            }
            // A name that is not in a directory whose names are all known does not exist.
            None if self.listed_parent(path) => Answer::Absent,
            None => Answer::Unknown(format!("{path} is not part of the bundle")),
        }
    }

    fn listed_parent(&self, path: &str) -> bool {
        path.rsplit_once('/').is_some_and(|(parent, _)| {
            matches!(self.nodes.get(parent), Some((Some(node), _)) if node.kind == "directory")
                || matches!(self.tried.get(parent), Some((Status::Absent, _)))
        })
    }

    pub fn journal(&self, query: &Query) -> Answer<Vec<Entry>> {
        let source = format!("journal:{}", query.of.key());
        let text = self.read(&source, u64::MAX - 1);
        text.map(|bytes| {
            let mut entries = lines::read(&String::from_utf8_lossy(&bytes));
            entries.retain(|entry| query.since_us.is_none_or(|since| entry.time_us >= since));
            entries
        })
    }

    pub fn unit(&self, name: &str) -> Answer<Unit> {
        let Some(Ok(bytes)) = self.bundle.read(UNITS, 16 << 20) else {
            return Answer::Unknown("the bundle has no list of units".into());
        };
        let list: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut units = list["units"].as_array().into_iter().flatten();
        match units.find(|unit| unit["name"] == name) {
            Some(unit) => Answer::Known(unit_from_json(unit)),
            None if list["complete"] == true => Answer::Absent,
            None => Answer::Unknown("the bundle's list of units is not complete".into()),
        }
    }
}

fn unit_from_json(unit: &Value) -> Unit {
    let text = |name: &str| unit[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| unit[name].as_u64().unwrap_or_default();
    let state = unit["active"].is_string().then(|| UnitState {
        load: text("load"),
        active: text("active"),
        sub: text("sub"),
        result: text("result"),
        exit_status: i32::try_from(unit["exitStatus"].as_i64().unwrap_or_default())
            .unwrap_or_default(),
        restarts: u32::try_from(number("restarts")).unwrap_or(u32::MAX),
        needs_reload: unit["needsReload"] == true,
        active_since_us: number("activeSinceUs"),
    });
    Unit {
        state,
        enabled: unit["enabled"] == true,
        masked: unit["masked"] == true,
        file: unit["file"].as_str().map(str::to_owned),
    }
}

/// A unit as the bundle's list has it.
pub fn unit_to_json(name: &str, unit: &Unit) -> Value {
    let mut json = serde_json::json!({
        "name": name, "enabled": unit.enabled, "masked": unit.masked, "file": unit.file,
    });
    if let Some(state) = &unit.state {
        json["load"] = state.load.as_str().into();
        json["active"] = state.active.as_str().into();
        json["sub"] = state.sub.as_str().into();
        json["result"] = state.result.as_str().into();
        json["exitStatus"] = state.exit_status.into();
        json["restarts"] = state.restarts.into();
        json["needsReload"] = state.needs_reload.into();
        json["activeSinceUs"] = state.active_since_us.into();
    }
    json
}
