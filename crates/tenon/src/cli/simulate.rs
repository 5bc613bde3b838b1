//! `tenon simulate fleet`: what a large scale-out does to a cloud API, and it to the fleet.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tenon_core::codes;
use tenon_core::fleet::{self, Fleet};
use tenon_core::problem::Problem;

use super::{Global, node_args};
use crate::output::{self, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Simulate the throttling and delay of a large scale-out
    #[command(
        after_help = "The bucket is EC2's for Describe calls. Equal seeds give equal answers.

Examples:
  tenon simulate fleet --nodes 10000 --ramp 60s
  tenon simulate fleet --nodes 5000 --calls 2 --background 10 --svg joins.svg
  tenon plan -c node.yaml --output json > plan.json
  tenon simulate fleet --nodes 10000 --from plan.json"
    )]
    Fleet(Args),
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many nodes are launched
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,
    /// Over which time, at most a day
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = within_a_day)]
    ramp: Duration,
    /// Calls of each node [default: 1, what other bootstraps make]
    #[arg(long, value_name = "N", conflicts_with = "from")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=20))]
    calls: Option<u32>,
    /// Count the calls that a saved plan needed
    #[arg(long, value_name = "PLAN.JSON")]
    from: Option<PathBuf>,
    /// Calls that the API takes at once
    #[arg(long, value_name = "N", default_value_t = 100)]
    bucket: u32,
    /// Calls that it takes each second after that
    #[arg(long, value_name = "N", default_value_t = 20)]
    refill: u32,
    /// Calls that others in the account make each second
    #[arg(long, value_name = "N", default_value_t = 0)]
    background: u32,
    /// When a node gives up, at most 1h
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = within_an_hour)]
    timeout: Duration,
    /// API servers of the cluster
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    servers: u32,
    /// How long one request takes an API server
    #[arg(long, value_name = "TIME", default_value = "8ms", value_parser = node_args::duration)]
    latency: Duration,
    /// Decides what is left to chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw joins over time into FILE, - for standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

fn within_an_hour(text: &str) -> Result<Duration, String> {
    within(text, 3600)
}

fn within_a_day(text: &str) -> Result<Duration, String> {
    within(text, 86_400)
}

fn within(text: &str, most_s: u64) -> Result<Duration, String> {
    let time = node_args::duration(text)?;
    let fits = time <= Duration::from_secs(most_s);
    fits.then_some(time).ok_or_else(|| format!("at most {most_s}s"))
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    let Command::Fleet(args) = command;
    let fleet = args.fleet()?;
    let outcome = fleet::simulate(&fleet);
    if let Some(path) = &args.svg {
        let picture = fleet::svg(&fleet, &outcome);
        if path == Path::new("-") {
            return output::answer(&picture);
        }
        std::fs::write(path, picture).map_err(|error| {
            let what = format!("writing {}", path.display());
            Problem::new(&codes::host::FILE_WRITE, what).cause(error)
        })?;
    }
    match global.json() {
        true => output::answer_json(&fleet::to_json(&fleet, &outcome)),
        false => output::answer(&fleet::text(&fleet, &outcome)),
    }
}

impl Args {
    fn fleet(&self) -> Result<Fleet, Problem> {
        let calls = match &self.from {
            Some(path) => calls_of(path)?,
            None => self.calls.unwrap_or(1),
        };
        Ok(Fleet {
            nodes: self.nodes,
            ramp: self.ramp,
            calls,
            bucket: self.bucket,
            refill: self.refill,
            background: self.background,
            timeout: self.timeout,
            servers: self.servers,
            latency: self.latency,
            seed: self.seed,
        })
    }
}

/// Facts that only a call to AWS brings, one call each.
const CALLED_FOR: [&str; 3] =
    ["/facts/cluster", "/facts/instance/privateDnsName", "/facts/instance/limits"];

/// The calls that a plan needed, seen by the facts that they brought.
fn calls_of(path: &Path) -> Result<u32, Problem> {
    let plan: Value = serde_json::from_slice(&node_args::read_file(path)?).unwrap_or_default();
    if plan["schema"] != "tenon.plan/1" {
        let what = format!("{} is not a plan", path.display());
        return Err(Problem::new(&codes::usage::BAD_USAGE, what)
            .fix("save one with `tenon plan --output json > plan.json`"));
    }
    let brought = CALLED_FOR.iter().filter(|pointer| plan.pointer(pointer).is_some());
    Ok(u32::try_from(brought.count()).unwrap_or(u32::MAX))
}
