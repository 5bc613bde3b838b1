//! A check asks one question of a node and gives evidence.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::view::View;

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    pub origin: Origin,
    pub time_us: u64,
    pub text: String,
    /// How often it was seen.
    pub count: u32,
    pub fields: BTreeMap<&'static str, String>,
    /// The exact remedy, where this evidence gives one.
    pub fix: Option<String>,
    /// What it does for its cause; set when the cause is judged.
    pub weight: Weight,
}

/// Where evidence comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The log's name.
    Journal(&'static str),
    /// A path on the node.
    File(String),
    /// The probe's name.
    Probe(&'static str),
    Metadata,
    Unit(String),
}

impl Origin {
    pub fn kind(&self) -> &'static str {
        match self {
            Origin::Journal(_) => "journal",
            Origin::File(_) => "file",
            Origin::Probe(_) => "probe",
            Origin::Metadata => "metadata",
            Origin::Unit(_) => "unit",
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Origin::Journal(name) | Origin::Probe(name) => name,
            Origin::File(name) | Origin::Unit(name) => name,
            Origin::Metadata => "metadata",
        }
    }
}

/// What a failing check, or a matching signal, does for its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    Proves,
    Signal,
    Supports,
    Excludes,
}

impl Weight {
    pub fn name(self) -> &'static str {
        match self {
            Weight::Proves => "proof",
            Weight::Signal => "signal",
            Weight::Supports => "support",
            Weight::Excludes => "against",
        }
    }
}

impl Evidence {
    fn new(origin: Origin, text: impl Display) -> Self {
        let (text, fields) = (text.to_string(), BTreeMap::new());
        let weight = Weight::Supports;
        Evidence { origin, time_us: 0, text, count: 1, fields, fix: None, weight }
    }

    pub fn file(path: impl Into<String>, text: impl Display) -> Self {
        Evidence::new(Origin::File(path.into()), text)
    }

    pub fn probe(name: &'static str, text: impl Display) -> Self {
        Evidence::new(Origin::Probe(name), text)
    }

    pub fn metadata(text: impl Display) -> Self {
        Evidence::new(Origin::Metadata, text)
    }

    pub fn unit(name: impl Into<String>, text: impl Display) -> Self {
        Evidence::new(Origin::Unit(name.into()), text)
    }

    pub fn journal(log: &'static str, time_us: u64, count: u32, text: impl Display) -> Self {
        let mut evidence = Evidence::new(Origin::Journal(log), text);
        (evidence.time_us, evidence.count) = (time_us, count);
        evidence
    }

    /// Adds the exact remedy.
    pub fn fix(mut self, fix: impl Display) -> Self {
        self.fix = Some(fix.to_string());
        self
    }

    /// Adds a field for programs.
    pub fn field(mut self, name: &'static str, value: impl Display) -> Self {
        self.fields.insert(name, value.to_string());
        self
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Pass,
    Fail(Vec<Evidence>),
    /// Could not be checked, which is never a failure.
    Unknown(&'static str),
    NotApplicable,
}

impl Found {
    pub fn fail(evidence: Evidence) -> Self {
        Found::Fail(vec![evidence])
    }

    /// Fails with the evidence if there is any.
    pub fn of(evidence: Vec<Evidence>) -> Self {
        if evidence.is_empty() { Found::Pass } else { Found::Fail(evidence) }
    }

    /// Fails with the evidence if there is any.
    pub fn maybe(evidence: Option<Evidence>) -> Self {
        Found::of(evidence.into_iter().collect())
    }

    pub fn name(&self) -> &'static str {
        match self {
            Found::Pass => "pass",
            Found::Fail(_) => "fail",
            Found::Unknown(_) => "unknown",
            Found::NotApplicable => "not-applicable",
        }
    }
}

/// One question.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    pub name: &'static str,
    pub weight: Weight,
    pub run: fn(&View) -> Found,
}

impl Check {
    pub const fn proves(name: &'static str, run: fn(&View) -> Found) -> Self {
        Check { name, weight: Weight::Proves, run }
    }

    pub const fn supports(name: &'static str, run: fn(&View) -> Found) -> Self {
        Check { name, weight: Weight::Supports, run }
    }

    pub const fn excludes(name: &'static str, run: fn(&View) -> Found) -> Self {
        Check { name, weight: Weight::Excludes, run }
    }
}
