//! `tenon csr`: requests for certificates.

use serde_json::json;
use tenon_core::problem::Problem;
use tenon_host::cluster::approve::{self, Verdict};

use super::Global;
use super::cluster_args::ClusterArgs;
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Approve requests by name, or kubelets' serving certificates by rule
    Approve(Args),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "With --serving a request is approved when a node asks for itself, under
addresses that its Node object has, for a server certificate and nothing
else. Any other is left pending with the reason, and the exit code is 1.

Examples:
  tenon csr approve --serving
  tenon csr approve csr-8kxwm")]
pub struct Args {
    /// Names of requests
    #[arg(value_name = "NAME", required_unless_present = "serving")]
    names: Vec<String>,
    /// Approve pending serving certificates for which every rule holds
    #[arg(long)]
    serving: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    let Command::Approve(args) = command;
    let client = args.cluster.client(global)?;
    let verdicts = match args.serving {
        true => approve::serving(&client, &args.names),
        false => approve::named(&client, &args.names),
    };
    let verdicts = verdicts.map_err(Problem::from)?;
    match global.json() {
        true => {
            let list: Vec<_> = verdicts.iter().map(Verdict::to_json).collect();
            output::answer_json(&json!({"schema": "tenon.csr/1", "requests": list}))?;
        }
        false => {
            let approved = verdicts.iter().filter(|verdict| verdict.reason.is_none());
            let lines = approved.map(|verdict| format!("approved {}\n", verdict.name));
            output::answer(&lines.collect::<String>())?;
            for finding in verdicts.iter().filter_map(Verdict::finding) {
                output::tell(&finding.render("warning"));
            }
        }
    }
    match verdicts.iter().any(|verdict| verdict.reason.is_some()) {
        true => Err(Failure::Answer(1)),
        false => Ok(()),
    }
}
