//! `tenon status`: in which state this node is.

use std::time::Duration;

use clap::ValueEnum;
use tenon_core::codes;
use tenon_core::problem::Problem;
use tenon_core::status::State;
use tenon_host::{status, stop};

use super::{Global, node_args};
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "States: no-config, configuring, configured, starting, running, failed.
Whether the cluster sees the node is not asked: that needs the API server.

Examples:
  tenon status
  tenon status --wait running --timeout 5m")]
pub struct Args {
    /// Wait until the node has come this far
    #[arg(long, value_enum, value_name = "STATE", num_args = 0..=1,
          default_missing_value = "running")]
    wait: Option<Goal>,
    /// Longest wait
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = node_args::duration)]
    timeout: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Goal {
    Configured,
    Running,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let sight = match args.wait {
        None => status::look(&root)?,
        Some(goal) => {
            stop::listen().map_err(|error| {
                Problem::new(&codes::usage::BUG, "installing signal handlers").cause(error)
            })?;
            let goal = match goal {
                Goal::Configured => State::Configured,
                Goal::Running => State::Running,
            };
            status::wait(&root, goal, args.timeout)?
        }
    };
    match global.json() {
        true => output::answer_json(&sight.to_json()),
        false => output::answer(&sight.text()),
    }
}
