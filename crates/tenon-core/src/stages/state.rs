//! `state.json`: what each stage has done. The truth; markers are derived from it.
//!
//! Kept as the tree that was read, so that fields of a later version survive a rewrite. Secrets
//! never come here: tokens and keys are named by file or digest.

use serde_json::{Map, Value, json};

use crate::codes::host::STATE_TOO_NEW;
use crate::codes::stages::STATE_CORRUPT;
use crate::problem::Problem;

/// The schema that this version writes.
const SCHEMA: u64 = 1;
/// How often a step may be tried.
pub const MOST_ATTEMPTS: u64 = 20;
/// How often one reboot is asked for before a person must act.
pub const MOST_REQUESTS: u64 = 3;
/// How many reboots one bootstrap may cause.
pub const MOST_REBOOTS: u64 = 2;

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Pending,
    Running,
    /// For files that somebody else brings.
    Waiting,
    Rebooting,
    Done,
    /// A person must act.
    Blocked,
    /// Not for this cluster: it is bootstrapped already.
    Skipped,
}

impl Status {
    const ALL: [Status; 7] = [
        Status::Pending,
        Status::Running,
        Status::Waiting,
        Status::Rebooting,
        Status::Done,
        Status::Blocked,
        Status::Skipped,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Rebooting => "rebooting",
            Status::Done => "done",
            Status::Blocked => "blocked",
            Status::Skipped => "skipped",
        }
    }

    /// True when the stage has nothing more to do.
    pub fn is_final(self) -> bool {
        matches!(self, Status::Done | Status::Skipped)
    }
}

/// A reboot that was asked for and not yet accounted for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reboot {
    pub id: String,
    /// The boot in which it was asked for.
    pub requested_in: String,
    pub reasons: Vec<String>,
    /// What the next boot must show: `osVersion`, `containerd`.
    pub expect: Vec<(String, String)>,
    /// How often it was asked for.
    pub attempt: u64,
}

/// What a start of the stage finds about a reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebootFinding {
    /// None is on record.
    None,
    /// The machine is still in the boot that asked: ask again.
    AskAgain,
    /// Asked for often enough.
    Refused,
    /// A new boot that shows what was expected.
    Held,
    /// A new boot that does not, and another reboot is allowed.
    RunAgain,
    /// A new boot that does not, and none is allowed any more.
    Missed,
}

/// The state of all stages.
#[derive(Debug, Clone, PartialEq)]
pub struct State(Map<String, Value>);

impl Default for State {
    fn default() -> Self {
        let mut map = Map::new();
        map.insert("schema".into(), SCHEMA.into());
        State(map)
    }
}

impl State {
    pub fn decode(bytes: &[u8]) -> Result<State, Problem> {
        let corrupt = |why: &str| Problem::new(&STATE_CORRUPT, "state.json is damaged").cause(why);
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| corrupt(&format!("line {}", error.line())))?;
        let Value::Object(map) = value else { return Err(corrupt("it is no object")) };
        match map.get("schema").and_then(Value::as_u64) {
            Some(SCHEMA) => Ok(State(map)),
            Some(schema) if schema > SCHEMA => {
                let what = format!("state.json has schema {schema}, this version knows {SCHEMA}");
                Err(Problem::new(&STATE_TOO_NEW, what))
            }
            _ => Err(corrupt("it has no schema")),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        format!("{:#}\n", Value::Object(self.0.clone())).into_bytes()
    }

    pub fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// A text at the top or one level below, such as `node.machineId`; empty if not set.
    pub fn text(&self, path: &str) -> &str {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let value = self.0.get(first);
        let value = if rest.is_empty() { value } else { value.and_then(|value| value.get(rest)) };
        value.and_then(Value::as_str).unwrap_or_default()
    }

    pub fn set_node(&mut self, key: &str, value: &str) {
        self.below("node").insert(key.into(), value.into());
    }

    /// Notes the boot that this run is in, and counts boots.
    pub fn enter_boot(&mut self, boot_id: &str) {
        if self.text("bootId") != boot_id {
            let count = self.boots() + 1;
            self.0.insert("bootId".into(), boot_id.into());
            self.0.insert("boots".into(), count.into());
        }
    }

    /// How many boots this bootstrap has seen.
    pub fn boots(&self) -> u64 {
        self.0.get("boots").and_then(Value::as_u64).unwrap_or_default()
    }

    pub fn stage(&self, stage: &str) -> Option<&Map<String, Value>> {
        self.0.get("stages")?.get(stage)?.as_object()
    }

    pub fn status(&self, stage: &str) -> Status {
        let word = self.field(stage, "status").and_then(Value::as_str).unwrap_or_default();
        Status::ALL.into_iter().find(|status| status.word() == word).unwrap_or(Status::Pending)
    }

    pub fn set_status(&mut self, stage: &str, status: Status) {
        self.set(stage, "status", status.word().into());
    }

    /// True when a stage waits for a person.
    pub fn any_blocked(&self) -> bool {
        let stages = self.0.get("stages").and_then(Value::as_object);
        stages.is_some_and(|map| map.keys().any(|stage| self.status(stage) == Status::Blocked))
    }

    pub fn field(&self, stage: &str, key: &str) -> Option<&Value> {
        self.stage(stage)?.get(key)
    }

    pub fn set(&mut self, stage: &str, key: &str, value: Value) {
        self.stage_mut(stage).insert(key.into(), value);
    }

    /// Forgets a stage, as `stage reset` does.
    pub fn forget(&mut self, stage: &str) {
        self.below("stages").remove(stage);
    }

    pub fn attempts(&self, stage: &str, step: &str) -> u64 {
        let attempts = self.field(stage, "attempts");
        attempts.and_then(|map| map.get(step)).and_then(Value::as_u64).unwrap_or_default()
    }

    pub fn set_attempts(&mut self, stage: &str, step: &str, count: u64) {
        let stage = self.stage_mut(stage);
        let attempts = stage.entry("attempts").or_insert_with(|| json!({}));
        if let Value::Object(map) = attempts {
            map.insert(step.into(), count.into());
        }
    }

    /// What a stage found out, such as `kubernetesVersion`.
    pub fn output(&self, stage: &str, key: &str) -> Option<&str> {
        self.field(stage, "outputs")?.get(key)?.as_str()
    }

    pub fn set_output(&mut self, stage: &str, key: &str, value: &str) {
        let stage = self.stage_mut(stage);
        let outputs = stage.entry("outputs").or_insert_with(|| json!({}));
        if let Value::Object(map) = outputs {
            map.insert(key.into(), value.into());
        }
    }

    /// How many reboots this bootstrap has caused.
    pub fn reboots(&self) -> u64 {
        self.0.get("reboots").and_then(Value::as_u64).unwrap_or_default()
    }

    pub fn set_reboots(&mut self, count: u64) {
        self.0.insert("reboots".into(), count.into());
    }

    pub fn reboot(&self) -> Option<Reboot> {
        let map = self.0.get("reboot")?.as_object()?;
        let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let reasons = map.get("reasons").and_then(Value::as_array);
        let expect = map.get("expect").and_then(Value::as_object);
        Some(Reboot {
            id: text("id"),
            requested_in: text("requestedInBoot"),
            reasons: reasons.into_iter().flatten().filter_map(owned).collect(),
            expect: expect
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| Some((key.clone(), owned(value)?)))
                .collect(),
            attempt: map.get("attempt").and_then(Value::as_u64).unwrap_or_default(),
        })
    }

    pub fn set_reboot(&mut self, reboot: Option<&Reboot>) {
        let Some(reboot) = reboot else {
            self.0.remove("reboot");
            return;
        };
        let expect: Map<String, Value> = reboot
            .expect
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect();
        let value = json!({
            "id": reboot.id,
            "requestedInBoot": reboot.requested_in,
            "reasons": reboot.reasons,
            "expect": expect,
            "attempt": reboot.attempt,
        });
        self.0.insert("reboot".into(), value);
    }

    /// What the reboot on record means in this boot. `holds`: this boot shows what was expected.
    pub fn judge_reboot(&self, boot_id: &str, holds: bool) -> RebootFinding {
        let Some(reboot) = self.reboot() else { return RebootFinding::None };
        if reboot.requested_in == boot_id {
            return match reboot.attempt < MOST_REQUESTS {
                true => RebootFinding::AskAgain,
                false => RebootFinding::Refused,
            };
        }
        match (holds, self.reboots() < MOST_REBOOTS) {
            (true, _) => RebootFinding::Held,
            (false, true) => RebootFinding::RunAgain,
            (false, false) => RebootFinding::Missed,
        }
    }

    fn stage_mut(&mut self, stage: &str) -> &mut Map<String, Value> {
        object(self.below("stages").entry(stage))
    }

    fn below(&mut self, key: &str) -> &mut Map<String, Value> {
        object(self.0.entry(key))
    }
}

/// The object at an entry; whatever else stands there is replaced.
fn object<'a>(entry: serde_json::map::Entry<'a>) -> &'a mut Map<String, Value> {
    let value = entry.or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("an object was put there"),
    }
}

fn owned(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_survive_a_rewrite() {
        let text =
            r#"{"schema":1,"later":{"x":[1]},"stages":{"prepare":{"status":"running","new":7}}}"#;
        let mut state = State::decode(text.as_bytes()).unwrap();
        state.set_status("prepare", Status::Done);
        state.set_output("prepare", "kubernetesVersion", "v1.34.2");
        let again = State::decode(&state.encode()).unwrap();
        assert_eq!(again, state);
        assert_eq!(again.to_json()["later"]["x"][0], 1);
        assert_eq!(again.field("prepare", "new").unwrap(), 7);
        assert_eq!(again.status("prepare"), Status::Done);
    }

    #[test]
    fn a_damaged_or_later_state_is_refused() {
        for (text, exit_code) in [
            ("", "stage-state-corrupt"),
            ("[]", "stage-state-corrupt"),
            ("{}", "stage-state-corrupt"),
            (r#"{"schema":2}"#, "state-too-new"),
        ] {
            let problem = State::decode(text.as_bytes()).unwrap_err();
            assert_eq!((problem.page.slug, problem.exit()), (exit_code, 12), "{text}");
        }
    }

    #[test]
    fn a_reboot_is_asked_for_thrice_and_done_twice() {
        let mut state = State::default();
        assert_eq!(state.judge_reboot("b", true), RebootFinding::None);
        let mut reboot = Reboot { requested_in: "a".into(), attempt: 1, ..Reboot::default() };
        state.set_reboot(Some(&reboot));
        assert_eq!(state.judge_reboot("a", true), RebootFinding::AskAgain);
        reboot.attempt = MOST_REQUESTS;
        state.set_reboot(Some(&reboot));
        assert_eq!(state.judge_reboot("a", true), RebootFinding::Refused);
        for (reboots, holds, expected) in [
            (1, true, RebootFinding::Held),
            (1, false, RebootFinding::RunAgain),
            (2, true, RebootFinding::Held),
            (2, false, RebootFinding::Missed),
        ] {
            state.set_reboots(reboots);
            assert_eq!(state.judge_reboot("b", holds), expected, "{reboots} {holds}");
        }
        assert_eq!(state.reboot().unwrap(), reboot);
    }

    #[test]
    fn boots_are_counted_once_each() {
        let mut state = State::default();
        for (boot, count) in [("a", 1), ("a", 1), ("b", 2)] {
            state.enter_boot(boot);
            assert_eq!(state.boots(), count);
        }
    }
}
