//! All findings of a run: counts, exit code, and the forms in which they are printed.

mod junit;
mod sarif;
mod text;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::mend::Mending;
use super::{Family, Finding, State};

/// The JSON Schema of the answer.
pub static SCHEMA: &str = include_str!("schema.json");

/// From which state on findings make the answer "no".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailOn {
    Warn,
    #[default]
    Fail,
}

/// The answer of `validate` or `harden`.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// `tenon validate`
    pub tool: &'static str,
    /// What was examined: `/`, a directory, a bundle.
    pub source: String,
    /// The instance of the record; empty when there is none.
    pub node: String,
    /// Empty when no benchmark was asked for.
    pub profile: &'static str,
    pub findings: Vec<Finding>,
    /// Findings that the baseline has.
    pub accepted: usize,
    pub fail_on: FailOn,
    /// What `harden --fix` changes, or would change.
    pub mending: Option<Mending>,
}

impl Report {
    pub fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }

    /// True for a finding that makes the answer "no".
    fn counts_against(&self, finding: &Finding) -> bool {
        match finding.state {
            State::Fail => true,
            State::Warn => self.fail_on == FailOn::Warn,
            _ => false,
        }
    }

    /// 3 for a config that is not acceptable, 1 for other findings, else 0.
    pub fn exit(&self) -> u8 {
        let refused =
            |finding: &Finding| finding.family == Family::Config && finding.state == State::Fail;
        match self.findings.iter().any(refused) {
            true => 3,
            false => u8::from(self.findings.iter().any(|finding| self.counts_against(finding))),
        }
    }

    /// `12 pass, 1 fail, …`, every state named.
    pub fn counts_line(&self) -> String {
        let mut words: Vec<String> = State::ALL
            .iter()
            .rev()
            .map(|state| format!("{} {}", self.count(*state), state.name()))
            .collect();
        if self.accepted > 0 {
            words.push(format!("{} in the baseline", self.accepted));
        }
        words.join(", ")
    }

    fn counts(&self) -> Map<String, Value> {
        State::ALL
            .iter()
            .map(|state| (state.name().to_owned(), self.count(*state).into()))
            .collect()
    }

    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "schema": "tenon.validate/1",
            "source": self.source,
            "instanceId": self.node,
            "profile": self.profile,
            "counts": self.counts(),
            "inBaseline": self.accepted,
            "exit": self.exit(),
            "findings": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        });
        if let Some(mending) = &self.mending {
            json["mending"] = mending.to_json();
        }
        json
    }

    /// For people; passed and not applicable checks only on request.
    pub fn text(&self, all: bool) -> String {
        text::render(self, all)
    }

    pub fn junit(&self) -> String {
        junit::render(self)
    }

    pub fn sarif(&self) -> Value {
        sarif::render(self)
    }

    /// Counts by family and state, in the text format of Prometheus.
    pub fn prometheus(&self, unix_seconds: u64) -> String {
        let mut counts: BTreeMap<(Family, State), usize> = BTreeMap::new();
        for family in Family::ALL {
            for state in State::ALL {
                counts.insert((family, state), 0);
            }
        }
        for finding in &self.findings {
            *counts.entry((finding.family, finding.state)).or_default() += 1;
        }
        let mut text = "# HELP tenon_validate_findings Checks of this node by how they ended.\n\
                        # TYPE tenon_validate_findings gauge\n"
            .to_owned();
        for ((family, state), count) in counts {
            let labels = format!("family=\"{}\",state=\"{}\"", family.name(), state.name());
            text.push_str(&format!("tenon_validate_findings{{{labels}}} {count}\n"));
        }
        text.push_str(&format!(
            "# HELP tenon_validate_time_seconds When the checks were last run.\n\
             # TYPE tenon_validate_time_seconds gauge\n\
             tenon_validate_time_seconds {unix_seconds}\n"
        ));
        text
    }
}

#[cfg(test)]
mod tests;
