//! `tenon stage status` and `tenon stage reset`: looking at the stages, and reopening one.

use serde_json::Value;
use tenon_core::codes::stages as pages;
use tenon_core::problem::Problem;
use tenon_core::stages::machine::{Machine, Role};
use tenon_core::stages::paths;
use tenon_core::stages::state::State;
use tenon_core::stages::status::{self, Sight};

use super::record::{begin_anew, inputs, lock};
use super::{disk, read_state, update};
use crate::apply;
use crate::root::Root;
use crate::systemd::{self, Manager};

/// Every stage that can be reset.
pub const STAGES: [&str; 5] = ["assets", "prepare", "bootstrap", "addons", "cleanup"];
const TIMELINE_CAP: u64 = 16 << 20;

/// The stages of a machine as they are now.
#[derive(Debug)]
pub struct Report {
    pub state: State,
    pub sight: Sight,
    pub role: Role,
    assets: bool,
}

impl Report {
    /// Looks at state, markers and the kubelet.
    pub fn look(root: &Root, machine: &Machine, text: &str) -> Result<Self, Problem> {
        let state = read_state(root)?;
        let host = root.read_text("/proc/sys/kernel/hostname").ok().flatten().unwrap_or_default();
        let sight = Sight {
            node: machine.node_name(&host).to_owned(),
            kubelet: kubelet(root),
            gate: root.exists(paths::KUBELET_ENV),
            drifted: drifted(&state, text),
        };
        Ok(Report { state, sight, role: machine.role, assets: machine.assets.source != "none" })
    }

    pub fn is_done(&self) -> bool {
        status::is_done(&self.state, self.role, self.assets)
    }

    pub fn text(&self) -> String {
        status::text(&self.state, &self.sight, self.role, self.assets)
    }

    pub fn to_json(&self) -> Value {
        status::to_json(&self.state, &self.sight, self.role, self.assets)
    }
}

fn kubelet(root: &Root) -> Option<(String, u32, String)> {
    if !systemd::is_running(root) {
        return None;
    }
    let unit = Manager::connect(root).ok()?.state("kubelet.service").ok()?;
    let seconds = i64::try_from(unit.active_since_us / 1_000_000).ok()?;
    let since = time::OffsetDateTime::from_unix_timestamp(seconds).ok()?.time();
    let since = format!("{:02}:{:02}:{:02}", since.hour(), since.minute(), since.second());
    Some((unit.active, unit.restarts, since))
}

/// Stages that are done with other inputs than those of now. Flags of the command line are not
/// known here, so a stage that was forced is not compared.
fn drifted(state: &State, text: &str) -> Vec<String> {
    let now = inputs(text, &[]);
    let differs = |stage: &&str| {
        let plain = state.output(stage, "forced").is_none();
        let before = state.field(stage, "inputs").and_then(Value::as_str);
        plain && state.status(stage).is_final() && before.is_some_and(|before| before != now)
    };
    STAGES.into_iter().filter(differs).map(str::to_owned).collect()
}

/// The lines of the timeline.
pub fn timeline(root: &Root) -> Result<Vec<Value>, Problem> {
    let bytes = disk::read(root, paths::TIMELINE, TIMELINE_CAP)?.unwrap_or_default();
    // A line that a power cut tore is left out; the next one is whole.
    let lines = String::from_utf8_lossy(&bytes).into_owned();
    Ok(lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// What a run of a stage would meet, from the state and the timeline alone: each step and how it
/// ended last. Nothing is asked, nothing is written.
pub fn preview(root: &Root, stage: &str, steps: &[&str]) -> Result<Vec<(String, String)>, Problem> {
    let state = read_state(root)?;
    if state.status(stage).is_final() {
        return Ok(vec![(stage.to_owned(), "done before; nothing would run".to_owned())]);
    }
    let lines = timeline(root)?;
    let last = |step: &str| {
        let of_step = |line: &&Value| line["stage"] == stage && line["step"] == step;
        let line = lines.iter().rfind(of_step)?;
        let detail = line["detail"].as_str().unwrap_or_default();
        let text = format!("{} {detail}", line["outcome"].as_str().unwrap_or_default());
        Some(format!("last time: {}", text.trim_end()))
    };
    let row = |step: &&str| {
        let words = last(step).unwrap_or_else(|| "not run yet".to_owned());
        ((*step).to_owned(), words)
    };
    Ok(steps.iter().map(row).collect())
}

/// What a reset takes away besides the state.
#[derive(Debug, Clone, Copy)]
pub struct Wipe {
    /// Also what the stage wrote.
    pub files: bool,
    pub etcd: bool,
}

/// Files that a stage wrote, removed by `--wipe`.
const WRITTEN: &[(&str, &[&str])] = &[
    ("assets", &[paths::ASSETS]),
    (
        "prepare",
        &[
            paths::KUBELET_ENV,
            tenon_core::stages::kubelet::CONFIG,
            tenon_core::stages::kubelet::BOOTSTRAP_KUBECONFIG,
        ],
    ),
    (
        "bootstrap",
        &[
            "/etc/kubernetes/manifests/etcd.yaml",
            "/etc/kubernetes/manifests/kube-apiserver.yaml",
            "/etc/kubernetes/manifests/kube-controller-manager.yaml",
            "/etc/kubernetes/manifests/kube-scheduler.yaml",
            "/etc/kubernetes/manifests/bootstrap-kube-apiserver.yaml",
            "/etc/kubernetes/manifests/bootstrap-kube-controller-manager.yaml",
            "/etc/kubernetes/bootstrap-secrets",
        ],
    ),
];

/// Reopens a stage: the state before what the stage wrote, so that a crash in between leaves a
/// stage that runs again, never one that counts as done without its files.
pub fn reset(
    root: &Root,
    machine: &Machine,
    stage: &str,
    wipe: Wipe,
) -> Result<Vec<String>, Problem> {
    if wipe.files
        && stage == "bootstrap"
        && root.exists(&machine.control_plane.etcd_data_dir)
        && !wipe.etcd
    {
        let what = "the machine holds etcd data, which --wipe alone does not remove";
        let fix = "add --delete-etcd-data if the cluster's content may be lost";
        return Err(Problem::new(&pages::BLOCKED, what).fix(fix));
    }
    let _lock = lock(root, stage)?;
    begin_anew(root)?;
    let mut removed = Vec::new();
    let mut remove = |path: &str| -> Result<(), Problem> {
        if apply::discard(root, path)? {
            removed.push(path.to_owned());
        }
        Ok(())
    };
    remove(&paths::done(stage))?;
    if stage == "assets" {
        remove(paths::REJECTED)?;
    }
    remove(paths::ISSUE)?;
    update(root, |state| {
        // The claim on a cluster outlives the reset: with it, what stands there is still ours.
        let claim = state.field(stage, "outputs").cloned();
        let claim = claim.filter(|_| stage == "bootstrap" && !wipe.files);
        state.forget(stage);
        if let Some(claim) = claim {
            state.set(stage, "outputs", claim);
        }
        if stage == "prepare" {
            state.set_reboot(None);
            state.set_reboots(0);
        }
    })?;
    if wipe.files {
        for path in WRITTEN.iter().filter(|(name, _)| *name == stage).flat_map(|(_, list)| *list) {
            remove(path)?;
        }
        if stage == "bootstrap" && wipe.etcd {
            remove(&machine.control_plane.etcd_data_dir)?;
        }
    }
    let triggers: &[&str] = match stage {
        "bootstrap" => &["bootstrap", "addons"],
        "addons" => &["addons"],
        _ => &[],
    };
    for stage in triggers.iter().filter(|_| machine.role == Role::FirstMaster) {
        apply::put(root, &paths::trigger(stage), 0o600, b"")?;
    }
    Ok(removed)
}
