//! `tenon stage`: the stages of a first boot.

use serde_json::json;
use tenon_core::codes;
use tenon_core::problem::Problem;
use tenon_core::stages::Machine;
use tenon_host::root::Root;
use tenon_host::stages::{self, Opened, Order, Run, report};
use tenon_host::stop;

use super::{Global, stage_addons, stage_assets, stage_bootstrap, stage_prepare, stage_status};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Fetch, verify and publish the bundle of cluster assets
    Assets(stage_assets::Args),
    /// Bring OS, runtime and kubelet to the cluster's version, then open the gate
    Prepare(stage_prepare::Args),
    /// Empty the runtime's directory if the last boot asked for it
    ///
    /// Called by tenon-runtime-reset.service. Example: tenon stage runtime-reset
    RuntimeReset,
    /// Start the control plane of a new cluster on this machine
    Bootstrap(stage_bootstrap::Args),
    /// Apply the cluster's add-ons and wait for them
    Addons(stage_addons::Args),
    /// Say how far the stages have come
    Status(stage_status::Args),
    /// Reopen a stage that is done or blocked
    Reset(stage_status::ResetArgs),
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Assets(args) => stage_assets::run(args, global),
        Command::Prepare(args) => stage_prepare::run(args, global),
        Command::RuntimeReset => stage_prepare::runtime_reset(global),
        Command::Bootstrap(args) => stage_bootstrap::run(args, global),
        Command::Addons(args) => stage_addons::run(args, global),
        Command::Status(args) => stage_status::run(args, global),
        Command::Reset(args) => stage_status::reset(args, global),
    }
}

impl From<stages::Failure> for Failure {
    fn from(failure: stages::Failure) -> Self {
        match failure {
            stages::Failure::Problem(problem) => Failure::Problem(problem),
            stages::Failure::Findings(findings) => Failure::Findings { findings, lenient: false },
        }
    }
}

/// Watches for SIGINT and SIGTERM.
pub fn listen() -> Result<(), Problem> {
    stop::listen().map_err(|error| {
        Problem::new(&codes::usage::BUG, "installing signal handlers").cause(error)
    })
}

/// The machine's config as it lies under the root, and its text.
pub fn machine(root: &Root, path: &str) -> Result<(Machine, String), Failure> {
    Ok(stages::read_machine(root, path)?)
}

/// Says what a run would meet, without running anything. A config that would be refused is.
pub fn preview(root: &Root, order: &Order, steps: &[&str], global: &Global) -> Outcome {
    machine(root, &order.config)?;
    let rows = report::preview(root, order.stage, steps)?;
    if global.json() {
        let list = rows.iter().map(|(step, words)| json!({"step": step, "last": words}));
        let list: Vec<_> = list.collect();
        return output::answer_json(&json!({
            "schema": "tenon.stage-preview/1", "stage": order.stage, "steps": list,
        }));
    }
    let lines = rows.iter().map(|(step, words)| format!("{step:<17} {words}\n"));
    output::answer(&lines.collect::<String>())
}

/// Opens a stage, does its work and says how it ended.
pub fn carry_out(
    root: &Root,
    order: &Order,
    global: &Global,
    work: impl FnOnce(Box<Run<'_>>) -> Result<(), Problem>,
) -> Outcome {
    listen()?;
    let (changed, drift) = match Run::open(root, order)? {
        Opened::Run(run) => {
            work(run)?;
            (true, false)
        }
        Opened::Done { drift } => (false, drift),
    };
    if global.json() {
        return output::answer_json(&json!({
            "schema": "tenon.stage/1", "stage": order.stage, "changed": changed, "drift": drift,
        }));
    }
    output::answer(match (changed, drift) {
        (true, _) => "done\n",
        (false, false) => "done before; nothing to do\n",
        (false, true) => "done before; the config has changed since, see `tenon stage status`\n",
    })
}
