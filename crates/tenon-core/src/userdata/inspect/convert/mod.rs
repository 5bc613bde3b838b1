//! User data of one family into that of another, with an account of what happened to each
//! setting.
//!
//! The settings become a group and a cluster; the renderer writes them. What it has no place for
//! is taken out, counted as lost, and the rest is written again.

mod draft;
mod lost;

use serde_json::{Value, json};

use super::node::Node;
use super::settings::collect;
use crate::codes::inspect::BAD_TARGET;
use crate::problem::{Finding, Problem};
use crate::userdata::{self as room, Cluster, Family, Kind, Mode, Rendered};
use draft::Draft;

/// What the result is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    pub family: Family,
    pub kind: Kind,
    pub mode: Mode,
}

impl Target {
    /// Reads `FAMILY[/KIND][:MODE]`.
    pub fn parse(text: &str) -> Result<Target, Problem> {
        let (rest, mode) = match text.split_once(':') {
            Some((rest, mode)) => (rest, Some(mode)),
            None => (text, None),
        };
        let (family, kind) = match rest.split_once('/') {
            Some((family, kind)) => (family, Some(kind)),
            None => (rest, None),
        };
        let family = Family::parse(family)?;
        let wrong = |what: &str| Problem::new(&BAD_TARGET, what);
        let kind = kind.map_or(Some(Kind::SelfManaged), Kind::parse);
        let kind = kind.ok_or_else(|| wrong("unknown kind of group"))?;
        let mode = mode.map_or(Some(family.default_mode()), Mode::parse);
        let mode = mode.ok_or_else(|| wrong("unknown mode"))?;
        Ok(Target { family, kind, mode })
    }
}

/// What became of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    Carried,
    /// Said in other words.
    Mapped,
    /// Carried, but somebody must look whether it still fits.
    NeedsReview,
    Lost,
}

impl Fate {
    pub fn name(self) -> &'static str {
        match self {
            Fate::Carried => "carried",
            Fate::Mapped => "mapped",
            Fate::NeedsReview => "needs review",
            Fate::Lost => "lost",
        }
    }
}

/// One line of the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub setting: String,
    pub fate: Fate,
    pub reason: String,
}

impl Entry {
    pub fn to_json(&self) -> Value {
        json!({"setting": self.setting, "fate": self.fate.name(), "reason": self.reason})
    }
}

/// The result and its account.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    pub rendered: Rendered,
    pub account: Vec<Entry>,
}

impl Converted {
    pub fn is_lossless(&self) -> bool {
        self.account.iter().all(|entry| entry.fate != Fate::Lost)
    }
}

/// Writes one user data for another family. `facts` fill in what the source leaves out.
pub fn convert(node: &Node, target: Target, facts: &Cluster) -> Result<Converted, Vec<Finding>> {
    let mut draft = Draft::new(&collect(node), target, facts);
    // Secrets in the source are not new; `lint` speaks about them.
    let options = room::Options { allow_secrets: true, ..room::Options::default() };
    loop {
        match room::render(&draft.cluster, &draft.group, target.mode, &options) {
            Ok(rendered) => return Ok(Converted { rendered, account: draft.account() }),
            // Each round takes something out of the group, so the rounds come to an end.
            Err(findings) if lost::take_out(&mut draft, &findings) => {}
            Err(findings) => return Err(findings),
        }
    }
}

#[cfg(test)]
mod tests;
