//! How far the stages have come, in words.

use serde_json::{Value, json};

use super::machine::Role;
use super::state::{MOST_ATTEMPTS, State, Status};

/// What the machine adds to its state.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    pub node: String,
    /// The kubelet's unit in systemd's words: active state, restarts, since when (`HH:MM:SS`).
    pub kubelet: Option<(String, u32, String)>,
    /// The gate is open.
    pub gate: bool,
    /// Stages whose inputs changed after they were done.
    pub drifted: Vec<String>,
}

/// One line of the answer, and what belongs below it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    name: &'static str,
    status: &'static str,
    at: String,
    detail: String,
    more: Vec<(&'static str, String)>,
}

/// The stages that a role goes through.
pub fn stages(role: Role, assets: bool) -> Vec<&'static str> {
    let mut list = Vec::new();
    if assets || role == Role::FirstMaster {
        list.push("assets");
    }
    list.push("prepare");
    if role == Role::FirstMaster {
        list.extend(["bootstrap", "addons", "cleanup"]);
    }
    list
}

/// True when every stage of the role has ended well.
pub fn is_done(state: &State, role: Role, assets: bool) -> bool {
    stages(role, assets).iter().all(|stage| state.status(stage).is_final())
}

/// The answer for people.
pub fn text(state: &State, sight: &Sight, role: Role, assets: bool) -> String {
    let node = if sight.node.is_empty() { "(no name yet)" } else { &sight.node };
    let boot = state.boots().max(1);
    let mut text = format!("node {node}  role {}  boot {boot} of this bootstrap\n", role.word());
    for row in rows(state, sight, role, assets) {
        let line = format!("{:<10} {:<9} {:<9} {}", row.name, row.status, row.at, row.detail);
        text.push_str(line.trim_end());
        text.push('\n');
        for (name, words) in row.more {
            text.push_str(&format!("             {name}: {words}\n"));
        }
    }
    text
}

/// The same for programs.
pub fn to_json(state: &State, sight: &Sight, role: Role, assets: bool) -> Value {
    let row = |row: Row| {
        let more: serde_json::Map<String, Value> =
            row.more.into_iter().map(|(name, words)| (name.to_owned(), words.into())).collect();
        json!({
            "name": row.name, "status": row.status, "at": row.at, "detail": row.detail,
            "more": more, "outputs": state.field(row.name, "outputs"),
        })
    };
    json!({
        "schema": "tenon.stage-status/1",
        "node": sight.node,
        "role": role.word(),
        "boot": state.boots(),
        "reboots": state.reboots(),
        "done": is_done(state, role, assets),
        "stages": rows(state, sight, role, assets).into_iter().map(row).collect::<Vec<_>>(),
    })
}

fn rows(state: &State, sight: &Sight, role: Role, assets: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for stage in stages(role, assets) {
        rows.push(row(state, sight, stage));
        if stage == "prepare" {
            rows.push(kubelet(sight));
        }
    }
    rows
}

fn row(state: &State, sight: &Sight, stage: &'static str) -> Row {
    let status = state.status(stage);
    let text = |key: &str| state.field(stage, key).and_then(Value::as_str).unwrap_or_default();
    let error = state.field(stage, "lastError").filter(|error| !error.is_null());
    let told = |key: &str| {
        error
            .and_then(|error| error.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let at = [text("finishedAt"), &told("at"), text("startedAt")]
        .into_iter()
        .find(|text| !text.is_empty())
        .map(clock)
        .unwrap_or_default();
    let mut more = Vec::new();
    let detail = match (status, error) {
        (Status::Done, _) => outputs(state, stage),
        (Status::Skipped, _) => state.output(stage, "why").unwrap_or_default().to_owned(),
        (_, Some(error)) => {
            let causes = error.get("causes").and_then(Value::as_array).into_iter().flatten();
            more.extend(causes.filter_map(Value::as_str).map(|cause| ("hint", cause.to_owned())));
            if status == Status::Blocked {
                more.push(("next", format!("{}, then `tenon stage reset {stage}`", told("fix"))));
            }
            let step = text("step");
            let attempts = state.attempts(stage, step);
            format!("step {step}: {} (attempt {attempts} of {MOST_ATTEMPTS})", told("what"))
        }
        (Status::Pending, None) => String::new(),
        (_, None) => format!("step {}", text("step")),
    };
    if sight.drifted.iter().any(|drifted| drifted == stage) {
        more.push((
            "drift",
            format!("the inputs have changed; `tenon stage reset {stage}` runs it again"),
        ));
    }
    Row { name: stage, status: status.word(), at, detail, more }
}

/// What a stage that is done has found out.
fn outputs(state: &State, stage: &str) -> String {
    let output = |key: &str| state.output(stage, key).filter(|value| !value.is_empty());
    let mut words = Vec::new();
    if stage == "prepare" {
        let version = output("kubernetesVersion").unwrap_or_default();
        words.push(format!("{version} (from {})", output("versionSource").unwrap_or_default()));
        words.extend(output("containerd").map(|version| format!("containerd {version}")));
        words.push(format!("reboots {}", state.reboots()));
    }
    words.extend(output("source").map(str::to_owned));
    words.extend(output("digest").map(|digest| digest.get(..19).unwrap_or(digest).to_owned()));
    words.join("  ")
}

fn kubelet(sight: &Sight) -> Row {
    let (status, at, detail) = match (&sight.kubelet, sight.gate) {
        (Some((active, restarts, since)), true) => {
            let word = if active == "active" { "running" } else { "starting" };
            (word, since.clone(), format!("restarts {restarts}"))
        }
        (_, false) => ("waiting", String::new(), "kubelet.env is not written yet".to_owned()),
        (None, true) => ("unknown", String::new(), "no service manager answers".to_owned()),
    };
    Row { name: "kubelet", status, at, detail, more: Vec::new() }
}

/// The time of day in `2026-11-15T18:04:11Z`.
fn clock(text: &str) -> String {
    text.get(11..19).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let mut state = State::default();
        state.enter_boot("a");
        state.enter_boot("b");
        state.set_status("prepare", Status::Done);
        state.set("prepare", "finishedAt", "2026-11-15T18:06:02Z".into());
        state.set_output("prepare", "kubernetesVersion", "v1.36.4");
        state.set_output("prepare", "versionSource", "api");
        state.set_output("prepare", "containerd", "2.1.9");
        state.set_reboots(1);
        state.set_status("bootstrap", Status::Blocked);
        state.set("bootstrap", "step", "final-plane".into());
        state.set_attempts("bootstrap", "final-plane", 20);
        let error = json!({"what": "/readyz refused", "causes": ["x509"], "fix": "fix the address", "at": "2026-11-15T18:09:40Z"});
        state.set("bootstrap", "lastError", error);
        state
    }

    #[test]
    fn a_blocked_stage_names_cause_and_next_step() {
        let sight = Sight {
            node: "cp-1".into(),
            gate: true,
            kubelet: Some(("active".into(), 0, "18:06:03".into())),
            ..Sight::default()
        };
        let text = text(&state(), &sight, Role::FirstMaster, true);
        let expected = "node cp-1  role first-master  boot 2 of this bootstrap
assets     pending
prepare    done      18:06:02  v1.36.4 (from api)  containerd 2.1.9  reboots 1
kubelet    running   18:06:03  restarts 0
bootstrap  blocked   18:09:40  step final-plane: /readyz refused (attempt 20 of 20)
             hint: x509
             next: fix the address, then `tenon stage reset bootstrap`
addons     pending
cleanup    pending
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_worker_is_done_when_it_is_prepared() {
        let state = state();
        assert!(is_done(&state, Role::Worker, false));
        assert!(!is_done(&state, Role::Worker, true), "its bundle has not arrived");
        assert!(!is_done(&state, Role::FirstMaster, false));
        let sight = Sight { drifted: vec!["prepare".into()], ..Sight::default() };
        let json = to_json(&state, &sight, Role::Worker, false);
        assert_eq!(json["done"], true);
        assert!(json["stages"][0]["more"]["drift"].as_str().unwrap().contains("reset prepare"));
        assert_eq!(json["stages"][1]["status"], "waiting");
    }
}
