//! `tenon bootstrap`: the arguments of the old `bootstrap.sh`, converted and run.

use tenon_core::config::legacy;
use tenon_core::yaml;
use tenon_host::job::Job;

use super::node_args::{self, NodeArgs};
use super::{Global, init};
use crate::output::{self, Failure, Outcome};

/// Shows the converted config and stops.
const PRINT_CONFIG: &str = "--print-config";

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon bootstrap my-cluster --kubelet-extra-args '--node-labels=a=b'
  tenon --facts facts.json bootstrap my-cluster --print-config")]
pub struct Args {
    /// CLUSTER_NAME and the options of bootstrap.sh; with --print-config the
    /// converted config is shown and nothing is done
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let mut arguments = args.arguments.clone();
    let print = arguments.iter().any(|argument| argument == PRINT_CONFIG);
    arguments.retain(|argument| argument != PRINT_CONFIG);
    let legacy = legacy::convert(&arguments)
        .map_err(|findings| Failure::Findings { findings, lenient: true })?;
    output::tell_findings(&legacy.findings, true);
    let root = node_args::open_root(global)?;
    let mut order = NodeArgs::default().order(global)?;
    order.api_attempts = legacy.api_attempts;
    order.mount_bpf = legacy.mount_bpf == Some(true);
    let mut job = Job::new(&root, order);
    if print {
        let document = job.take_legacy(legacy)?;
        return match global.json() {
            true => output::answer_json(&document),
            false => output::answer(&yaml::emit(&document)),
        };
    }
    let choices = init::Choices::default();
    init::prepare_host(&choices, &root)?;
    job.take_legacy(legacy)?;
    init::make_node(global, job, &root, &choices)
}
