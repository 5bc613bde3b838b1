//! What a run did, for people and for `--output json`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_core::plan::diff::{Changes, Kind};
use tenon_core::problem::Finding;

/// The outcome of a phase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    pub changes: Vec<Change>,
    /// Files that were as planned.
    pub unchanged: usize,
    /// How long each part took.
    pub timings: BTreeMap<&'static str, Duration>,
    /// Hash of the plan without its secrets.
    pub plan_hash: String,
    pub warnings: Vec<Finding>,
}

/// One thing that was made true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// `directory`, `file`, `reload`, `unit`, `program`, `copy`, `hook`
    pub kind: &'static str,
    /// Path, unit name, program or hook name.
    pub path: String,
    /// `create`, `change`, `mode`, `remove`, `start`, `restart`, `stop`, `run`
    pub action: &'static str,
    /// Of the new content, unless that is secret.
    pub sha256: Option<String>,
}

impl Change {
    pub fn new(kind: &'static str, path: impl Into<String>, action: &'static str) -> Self {
        Change { kind, path: path.into(), action, sha256: None }
    }
}

impl Report {
    pub fn changed(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Tells a change that was made and remembers it.
    pub fn add(&mut self, change: Change, elapsed: Duration) {
        let Change { kind, path, action, .. } = &change;
        match *kind {
            "unit" => tracing::info!(unit = %path, ?elapsed, "{action}"),
            _ => tracing::info!(%path, ?elapsed, "{action} {kind}"),
        }
        self.changes.push(change);
    }

    /// Adds the time since `start` to a part.
    pub fn time(&mut self, part: &'static str, elapsed: Duration) {
        *self.timings.entry(part).or_default() += elapsed;
    }

    /// One report of two phases; the plan is that of the later one.
    pub fn merge(&mut self, other: Report) {
        self.plan_hash = other.plan_hash;
        self.changes.extend(other.changes);
        self.unchanged += other.unchanged;
        self.warnings.extend(other.warnings);
        for (part, elapsed) in other.timings {
            self.time(part, elapsed);
        }
    }

    pub fn to_json(&self) -> Value {
        let millis = |elapsed: &Duration| elapsed.as_secs_f64() * 1000.0;
        let changes: Vec<_> = self.changes.iter().map(Change::to_json).collect();
        let timing = |(part, elapsed)| json!({"part": part, "elapsedMs": millis(elapsed)});
        let timings: Vec<_> = self.timings.iter().map(timing).collect();
        let findings: Vec<_> = self.warnings.iter().map(|finding| finding.to_json(true)).collect();
        json!({
            "schema": "tenon.report/1",
            "result": if self.changed() { "changed" } else { "unchanged" },
            "changed": self.changed(),
            "changes": changes,
            "unchanged": self.unchanged,
            "findings": findings,
            "timings": timings,
            "planHash": self.plan_hash,
        })
    }
}

impl Change {
    pub fn to_json(&self) -> Value {
        let mut json = json!({"kind": self.kind, "path": self.path, "action": self.action});
        if let Some(sha256) = &self.sha256 {
            json["sha256"] = json!(sha256);
        }
        json
    }
}

/// The file changes of a comparison, in the order in which they are made.
pub fn file_changes(changes: &Changes) -> Vec<Change> {
    let made = changes.directories.iter().map(|directory| {
        let action = if directory.exists { "mode" } else { "create" };
        Change::new("directory", &directory.path, action)
    });
    let written = changes.files.iter().map(|file| {
        let action = match file.kind() {
            Kind::Create => "create",
            Kind::Change => "change",
            Kind::Mode => "mode",
        };
        let sha256 = (!file.secret).then(|| file.sha256());
        Change { sha256, ..Change::new("file", &file.path, action) }
    });
    let removed = changes.removals.iter().map(|it| Change::new("file", &it.path, "remove"));
    made.chain(written).chain(removed).collect()
}
