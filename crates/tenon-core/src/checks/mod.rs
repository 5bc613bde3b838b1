//! Whether a node is what it was meant to be.
//!
//! ```text
//! snapshot    what the host saw: files, directories, processes
//! unit_file   directives of a unit over its fragment and drop-ins
//! kubelet     the effective setting: flag over drop-in over file over compiled default
//! cis         benchmark items as a table, and the rules they are judged by
//! drift       the node against its record and its plan
//! image       the node against the plan of its image
//! proxy       a proxy that catches the API server
//! runtime     the running node against its files
//! waivers     exceptions with reason and expiry, and the baseline of known findings
//! mend        what `harden --fix` may change
//! report      counts and exit code; text, JSON, JUnit, SARIF, Prometheus
//! ```
//!
//! Pure. A check asks the [`snapshot::Snapshot`] for paths; what it has not seen yet is looked
//! at by the host, and the check is judged again. Could not see is `unknown`, never a pass.

pub mod cis;
pub mod drift;
pub mod image;
pub mod kubelet;
pub mod mend;
pub mod proxy;
pub mod report;
pub mod runtime;
pub mod snapshot;
pub mod unit_file;
pub mod waivers;

use serde_json::{Value, json};

use crate::hex::sha256;
use crate::problem::{self, Problem};
use mend::Mend;

/// Which question a finding answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Config,
    Drift,
    Cis,
    Runtime,
    Image,
}

impl Family {
    pub const ALL: [Family; 5] =
        [Family::Config, Family::Drift, Family::Cis, Family::Runtime, Family::Image];

    pub fn name(self) -> &'static str {
        match self {
            Family::Config => "config",
            Family::Drift => "drift",
            Family::Cis => "cis",
            Family::Runtime => "runtime",
            Family::Image => "image",
        }
    }

    pub fn parse(name: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.name() == name)
    }
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Fail,
    Warn,
    /// It could not be seen. Never counted as a pass.
    Unknown,
    /// Not as expected, for a stated reason.
    Exception,
    /// A person has to judge it.
    Manual,
    NotApplicable,
    Pass,
}

impl State {
    pub const ALL: [State; 7] = [
        State::Fail,
        State::Warn,
        State::Unknown,
        State::Exception,
        State::Manual,
        State::NotApplicable,
        State::Pass,
    ];

    pub fn name(self) -> &'static str {
        match self {
            State::Fail => "fail",
            State::Warn => "warn",
            State::Unknown => "unknown",
            State::Exception => "exception",
            State::Manual => "manual",
            State::NotApplicable => "not-applicable",
            State::Pass => "pass",
        }
    }
}

/// How much a failure matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    High,
    Medium,
    Low,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        }
    }
}

/// Why something may stay as it is, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    pub reason: String,
    /// `2027-01-31`; None for a reason that lasts.
    pub expires: Option<String>,
}

/// One answer of one check.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// `eks-3.2.1`, `drift-changed`, `TN03014`
    pub id: String,
    pub family: Family,
    pub state: State,
    pub severity: Severity,
    pub what: String,
    /// Path, setting or unit.
    pub place: String,
    pub expected: String,
    pub actual: String,
    /// Where the actual value was set.
    pub origin: String,
    pub remedy: String,
    pub exception: Option<Exception>,
    /// What `harden --fix` would do about it.
    pub mend: Option<Mend>,
}

impl Finding {
    pub fn new(family: Family, id: impl Into<String>, what: impl Into<String>) -> Self {
        Finding {
            id: id.into(),
            family,
            state: State::Pass,
            severity: Severity::Medium,
            what: what.into(),
            place: String::new(),
            expected: String::new(),
            actual: String::new(),
            origin: String::new(),
            remedy: String::new(),
            exception: None,
            mend: None,
        }
    }

    pub fn state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    /// Expected and actual value.
    pub fn values(mut self, expected: impl Into<String>, actual: impl Into<String>) -> Self {
        (self.expected, self.actual) = (expected.into(), actual.into());
        self
    }

    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = origin.into();
        self
    }

    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    pub fn mend(mut self, mend: Mend) -> Self {
        self.mend = Some(mend);
        self
    }

    /// Says that it could not be judged, and why.
    pub fn unknown(self, why: impl Into<String>) -> Self {
        self.state(State::Unknown).actual(why)
    }

    /// Says that the question does not arise, and why.
    pub fn not_applicable(self, why: impl Into<String>) -> Self {
        self.state(State::NotApplicable).actual(why)
    }

    /// Lets it stay as it is for a lasting reason.
    pub fn excused(mut self, reason: impl Into<String>) -> Self {
        self.exception = Some(Exception { reason: reason.into(), expires: None });
        self.state(State::Exception)
    }

    pub fn actual(mut self, actual: impl Into<String>) -> Self {
        self.actual = actual.into();
        self
    }

    /// A finding of the config's own checks.
    pub fn of_config(problem: &Problem, stops: bool) -> Self {
        let state = if stops { State::Fail } else { State::Warn };
        Finding::new(Family::Config, problem.page.code, problem.what.as_str())
            .state(state)
            .severity(if stops { Severity::High } else { Severity::Low })
            .at(problem.where_text())
            .values("a config that can become this node", problem.why_text())
            .remedy(problem.fix_text())
    }

    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "id": self.id,
            "family": self.family.name(),
            "state": self.state.name(),
            "severity": self.severity.name(),
            "what": self.what,
            "where": self.place,
            "expected": self.expected,
            "actual": self.actual,
            "origin": self.origin,
            "remedy": self.remedy,
            "fixable": self.mend.is_some(),
        });
        if let Some(Exception { reason, expires }) = &self.exception {
            json["exception"] = json!({"reason": reason, "expires": expires});
        }
        json
    }
}

/// A value as hash and length, for what must not be shown.
pub fn veiled(bytes: &[u8]) -> String {
    let hash = sha256(bytes);
    format!("sha256:{} ({} bytes)", hash.get(..12).unwrap_or(&hash), bytes.len())
}

/// Words of Kubernetes that may be shown; any other text could be a secret in a wrong place.
const SHOWN: [&str; 4] = ["AlwaysAllow", "Webhook", "VersionTLS", "TLS_"];

/// A setting as far as it may be shown: numbers, truth values, durations, paths and known words
/// in full, any other text as hash and length.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => shown_text(text),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(map) => format!("{} settings", map.len()),
        Value::Null => "not set".to_owned(),
        plain => plain.to_string(),
    }
}

/// The same for one text, such as a path that a flag names.
pub fn shown_text(text: &str) -> String {
    let known = SHOWN.iter().any(|word| text.starts_with(word)) && text.len() < 64;
    let path = text.starts_with('/') && text.len() < 256;
    match known || path || kubelet::duration_ms(text).is_some() {
        true => problem::visible(text),
        false => veiled(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests;
