//! `tenon stage bootstrap`: an empty machine becomes the first master of a cluster.

use std::time::Duration;

use tenon_core::stages::paths;
use tenon_host::control_plane::{self, STAGE};
use tenon_host::stages::Order;

use super::stage::carry_out;
use super::{Global, node_args};
use crate::output::Outcome;

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
    let order = Order { stage: STAGE, config: args.config.clone(), forced: Vec::new() };
    carry_out(&root, &order, global, |run| match names.is_empty() {
        true => control_plane::bootstrap(run, args.timeout),
        false => control_plane::some_steps(run, args.timeout, &names),
    })
}
