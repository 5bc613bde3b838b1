//! `tenon stage bootstrap`: an empty machine becomes the first master of a cluster.

use std::time::Duration;

use serde_json::json;
use tenon_core::codes;
use tenon_core::problem::Problem;
use tenon_core::stages::paths;
use tenon_host::control_plane;
use tenon_host::root::Root;
use tenon_host::stages::{self, Opened, Order, Run};
use tenon_host::stop;

use super::{Global, node_args};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon stage bootstrap
  tenon stage bootstrap --phase etcd --phase bootstrap-plane")]
pub struct Args {
    /// Config of the machine
    #[arg(long, value_name = "PATH", default_value = paths::CONFIG)]
    config: String,
    /// Run this step alone, and those named besides
    #[arg(long, value_name = "STEP", value_parser = step)]
    phase: Vec<String>,
    /// Longest time of one attempt
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = node_args::duration)]
    timeout: Duration,
}

fn step(text: &str) -> Result<String, String> {
    let names = control_plane::step_names();
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("the steps are {}", names.join(", "))),
    }
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let names: Vec<&str> = args.phase.iter().map(String::as_str).collect();
    with_stage(&root, control_plane::STAGE, &args.config, global, |run| match names.is_empty() {
        true => control_plane::bootstrap(run, args.timeout),
        false => control_plane::some_steps(run, args.timeout, &names),
    })
}

/// Opens a stage, does its work and says how it ended.
pub fn with_stage(
    root: &Root,
    stage: &'static str,
    config: &str,
    global: &Global,
    work: impl FnOnce(Box<Run<'_>>) -> Result<(), Problem>,
) -> Outcome {
    stop::listen()
        .map_err(|error| Problem::new(&codes::usage::BUG, "listening for signals").cause(error))?;
    let order = Order { stage, config: config.to_owned(), forced: Vec::new() };
    let opened = Run::open(root, &order).map_err(|failure| match failure {
        stages::Failure::Problem(problem) => Failure::Problem(problem),
        stages::Failure::Findings(findings) => Failure::Findings { findings, lenient: false },
    })?;
    let (changed, drift) = match opened {
        Opened::Run(run) => {
            work(run)?;
            (true, false)
        }
        Opened::Done { drift } => (false, drift),
    };
    if global.json() {
        let schema = "tenon.stage/1";
        return output::answer_json(
            &json!({"schema": schema, "stage": stage, "changed": changed, "drift": drift}),
        );
    }
    output::answer(match (changed, drift) {
        (true, _) => "done\n",
        (false, false) => "done before; nothing to do\n",
        (false, true) => "done before; the config has changed since, see `tenon stage status`\n",
    })
}
