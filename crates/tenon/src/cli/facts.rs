//! `tenon facts`: what this machine is, as the plan sees it.

use std::time::Duration;

use tenon_core::codes;
use tenon_core::facts::Facts;
use tenon_core::problem::Problem;
use tenon_host::gather::environment::Environment;
use tenon_host::gather::imds::{Imds, Options};
use tenon_host::gather::{self, Wants};
use tenon_host::job;
use tenon_host::stop;

use super::{Global, node_args};
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon facts > facts.json
  tenon plan --facts facts.json -c node.yaml")]
pub struct Args {
    /// Longest wait for the metadata service
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = node_args::duration)]
    imds_timeout: Duration,
    /// Ask without a token where the metadata service knows none
    #[arg(long)]
    allow_imdsv1: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let facts = match &global.facts {
        Some(path) => node_args::read_facts(path)?,
        None => gathered(args, global)?,
    };
    let value = serde_json::to_value(&facts).map_err(|error| {
        Problem::new(&codes::usage::BUG, "writing the facts as JSON").cause(error)
    })?;
    output::answer_json(&value)
}

fn gathered(args: &Args, global: &Global) -> Result<Facts, Problem> {
    stop::listen()
        .map_err(|error| Problem::new(&codes::usage::BUG, "listening for signals").cause(error))?;
    let root = node_args::open_root(global)?;
    let environment = Environment::of_process();
    let mut options = Options::new(&environment)?;
    options.patience.whole = args.imds_timeout;
    options.allow_version_1 = args.allow_imdsv1;
    let mut imds = Imds::new(options);
    let mut instance = imds.first_round(false)?.instance;
    let wants = Wants::everything();
    imds.second_round(&mut instance, wants.metadata)?;
    let mut facts = gather::facts(&root, instance, wants, &environment)?;
    job::look_back(&root, &mut facts)?;
    Ok(facts)
}
