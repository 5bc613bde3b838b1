//! In which state a node is, judged from what the host saw. Pure.

use serde_json::{Value, json};

use crate::plan::record::{LastingWarning, Record};

/// How far this machine has come. Later states include the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No run has ended here yet.
    NoConfig,
    /// A run is under way.
    Configuring,
    /// The files are in place, the daemons were not started.
    Configured,
    /// The daemons are coming up.
    Starting,
    /// Every daemon is active.
    Running,
    /// A daemon failed.
    Failed,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::NoConfig => "no-config",
            State::Configuring => "configuring",
            State::Configured => "configured",
            State::Starting => "starting",
            State::Running => "running",
            State::Failed => "failed",
        }
    }

    /// What is expected to happen next.
    pub fn next(self) -> &'static str {
        match self {
            State::NoConfig => "`tenon init` makes this machine a node",
            State::Configuring => "the run under way writes the files and starts the daemons",
            State::Configured => "`tenon init` starts the daemons",
            State::Starting => "the daemons become active",
            State::Running => "the kubelet registers the node",
            State::Failed => "mend the unit named above, then run `tenon init` again",
        }
    }
}

/// A daemon as the service manager sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    pub unit: String,
    /// `active`, `activating`, `failed`, …
    pub active: String,
    /// The same with reasons, for people.
    pub words: String,
    /// When it became active, in microseconds since 1970; 0 if it never did.
    pub since_us: u64,
}

/// What the host saw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sight {
    pub record: Option<Record>,
    /// Process that holds the lock.
    pub busy: Option<u32>,
    pub daemons: Vec<Daemon>,
    /// Recorded files whose content, mode or existence is not what the record says.
    pub drifted: Vec<String>,
}

impl Sight {
    /// Judges the state.
    pub fn state(&self) -> State {
        let any = |word: &str| self.daemons.iter().any(|daemon| daemon.active == word);
        let all_active = self.daemons.iter().all(|daemon| daemon.active == "active");
        match (&self.record, self.busy) {
            (_, Some(_)) => State::Configuring,
            (None, None) => State::NoConfig,
            (Some(_), None) if any("failed") => State::Failed,
            (Some(_), None) if self.daemons.is_empty() => State::Configured,
            (Some(_), None) if all_active => State::Running,
            (Some(_), None) if any("activating") || any("reloading") => State::Starting,
            (Some(_), None) => State::Configured,
        }
    }

    /// What the node runs with although it should not.
    fn warnings(&self) -> &[LastingWarning] {
        self.record.as_ref().map_or(&[], |record| &record.warnings)
    }

    /// One line that says it all, and one per daemon, per file that differs and per warning.
    pub fn text(&self) -> String {
        let state = self.state();
        let hash = self.record.as_ref().map_or("none", |record| &record.config_hash);
        let drift = if self.drifted.is_empty() { "" } else { ", drifted" };
        let short = hash.get(..8).unwrap_or(hash);
        let mut text =
            format!("{}{drift}   config {short}   next: {}\n", state.name(), state.next());
        for daemon in &self.daemons {
            text.push_str(&format!("  {} {}\n", daemon.unit, daemon.words));
        }
        for path in &self.drifted {
            text.push_str(&format!("  ~ {path} is not as written\n"));
        }
        for warning in self.warnings() {
            let LastingWarning { code, what, fix } = warning;
            text.push_str(&format!("  ! {code} {what}; {fix}\n"));
        }
        text
    }

    pub fn to_json(&self) -> Value {
        let state = self.state();
        let daemons: Vec<_> = self
            .daemons
            .iter()
            .map(|daemon| {
                json!({"unit": daemon.unit, "active": daemon.active, "sinceUs": daemon.since_us})
            })
            .collect();
        let record = self.record.as_ref();
        json!({
            "schema": "tenon.status/1",
            "state": state.name(),
            "next": state.next(),
            "drifted": self.drifted,
            "warnings": self.warnings(),
            "instanceId": record.map(|record| &record.instance_id),
            "configHash": record.map(|record| &record.config_hash),
            "generation": record.map(|record| record.generation),
            "version": record.map(|record| &record.version),
            "runningProcess": self.busy,
            "daemons": daemons,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(record: bool, busy: Option<u32>, daemons: &[&str]) -> Sight {
        let daemon = |active: &&str| Daemon {
            unit: "kubelet.service".into(),
            active: (*active).into(),
            words: (*active).into(),
            since_us: 0,
        };
        Sight {
            record: record.then(Record::default),
            busy,
            daemons: daemons.iter().map(daemon).collect(),
            drifted: Vec::new(),
        }
    }

    #[test]
    fn the_state_follows_from_what_was_seen() {
        for (record, busy, daemons, expected) in [
            (false, None, &[][..], State::NoConfig),
            (false, Some(7), &[], State::Configuring),
            (true, Some(7), &["active"], State::Configuring),
            (true, None, &[], State::Configured),
            (true, None, &["inactive", "inactive"], State::Configured),
            (true, None, &["active", "activating"], State::Starting),
            (true, None, &["active", "active"], State::Running),
            (true, None, &["active", "failed"], State::Failed),
        ] {
            assert_eq!(sight(record, busy, daemons).state(), expected, "{daemons:?}");
        }
    }

    #[test]
    fn a_lasting_warning_stays_in_sight() {
        let mut sight = sight(true, None, &["active"]);
        let warning = LastingWarning {
            code: "TN03401".into(),
            what: "unknown instance type zz9.large".into(),
            fix: "set a limit".into(),
        };
        sight.record.as_mut().unwrap().warnings.push(warning);
        let text = sight.text();
        assert!(
            text.contains("  ! TN03401 unknown instance type zz9.large; set a limit\n"),
            "{text}"
        );
        assert_eq!(sight.to_json()["warnings"][0]["code"], "TN03401");
    }

    #[test]
    fn drift_is_told_whatever_the_state() {
        let mut sight = sight(true, None, &["active"]);
        sight.drifted.push("/etc/kubernetes/kubelet/config.json".into());
        assert!(sight.text().starts_with("running, drifted"));
        assert_eq!(sight.to_json()["drifted"][0], "/etc/kubernetes/kubelet/config.json");
    }
}
