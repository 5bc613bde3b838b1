//! `lint`: what is wrong with user data, for the family that is to read it.
//!
//! Each rule has a number that never changes. Rules stand in files by what they look at; all of
//! them see the same [`Case`].

mod cloud_config;
mod cluster;
mod framing;
mod ignition;
mod kubelet;
mod node_config;
mod sarif;
mod scripts;
mod settings;
mod windows;

use serde_json::{Value, json};

use super::node::Node;
use super::settings::{Settings, collect};
use crate::codes::Page;
use crate::problem::{Place, Problem};
use crate::userdata::{Cluster, Family, Kind, Mode};

pub(super) use kubelet::insert;
pub use sarif::sarif;

/// What the user data is for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Target {
    pub family: Family,
    pub kind: Kind,
    /// Who joins the node, when it is known.
    pub mode: Option<Mode>,
    pub version: Option<(u32, u32)>,
    pub instance_type: Option<String>,
    /// Facts to compare with.
    pub cluster: Option<Cluster>,
    /// Seconds since 1970, to tell what has expired.
    pub now: Option<u64>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warning,
    Note,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }
}

/// One finding. The rule's name is the slug of its page.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub level: Level,
    pub problem: Problem,
}

impl Finding {
    pub fn rule(&self) -> &'static str {
        self.problem.page.slug
    }

    pub fn to_json(&self) -> Value {
        let mut json = self.problem.to_json();
        json["rule"] = json!(self.rule());
        json["level"] = json!(self.level.name());
        json
    }
}

/// Checks every user data in a source.
pub fn lint(root: &Node, target: &Target) -> Vec<Finding> {
    let mut findings = Vec::new();
    let documents = root.documents();
    let mut all = Vec::new();
    for document in &documents {
        let settings = collect(document);
        let mut case = Case::new(document, &settings, target);
        framing::check(&mut case);
        cluster::check(&mut case);
        kubelet::check(&mut case);
        node_config::check(&mut case);
        cloud_config::check(&mut case);
        scripts::check(&mut case);
        settings::check(&mut case);
        windows::check(&mut case);
        ignition::check(&mut case);
        findings.extend(case.findings);
        all.push(settings);
    }
    findings.extend(framing::signals(root, &all));
    findings.sort_by(|a, b| order(a).cmp(&order(b)));
    findings.dedup();
    findings
}

fn order(finding: &Finding) -> (Level, &'static str, Option<&Place>, &str) {
    (finding.level, finding.rule(), finding.problem.place.as_ref(), &finding.problem.what)
}

/// One user data and what the rules have found in it.
pub(super) struct Case<'a> {
    document: &'a Node,
    /// Every node with its trail.
    nodes: Vec<(String, &'a Node)>,
    settings: &'a Settings,
    target: &'a Target,
    findings: Vec<Finding>,
}

impl<'a> Case<'a> {
    fn new(document: &'a Node, settings: &'a Settings, target: &'a Target) -> Self {
        Case { document, nodes: document.walk(), settings, target, findings: Vec::new() }
    }

    fn error(&mut self, page: &'static Page, what: impl Into<String>, place: Place) {
        self.add(Level::Error, Problem::new(page, what).at(place));
    }

    fn warn(&mut self, page: &'static Page, what: impl Into<String>, place: Place) {
        self.add(Level::Warning, Problem::new(page, what).at(place));
    }

    fn note(&mut self, page: &'static Page, what: impl Into<String>, place: Place) {
        self.add(Level::Note, Problem::new(page, what).at(place));
    }

    fn add(&mut self, level: Level, problem: Problem) {
        self.findings.push(Finding { level, problem });
    }

    /// The place of the whole user data.
    fn place(&self) -> Place {
        at(self.document, &self.document.name, 0)
    }
}

/// A place in a node: its trail is the path, its line counts in its own text.
fn at(node: &Node, trail: &str, line: u32) -> Place {
    let path = match &node.path {
        Some(path) if !path.is_empty() => path.clone(),
        _ => trail.to_owned(),
    };
    Place { line, column: u32::from(line > 0), path, ..node.place.clone() }
}

#[cfg(test)]
mod tests;
