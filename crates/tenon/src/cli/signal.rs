//! `tenon signal`: tells the stack how this node's bootstrap ended.

use std::time::Duration;

use serde_json::json;
use tenon_core::codes;
use tenon_core::problem::Problem;
use tenon_host::gather::aws::Cloud;
use tenon_host::gather::aws::cloudformation::Status;
use tenon_host::gather::environment::Environment;
use tenon_host::gather::imds::{Imds, Options};
use tenon_host::root::Root;
use tenon_host::signal::{self, Wish};

use super::Global;
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name or id of the stack
    #[arg(long, value_name = "NAME")]
    stack: String,
    /// Logical id of the resource that waits
    #[arg(long, value_name = "ID", default_value = "NodeGroup")]
    resource: String,
    /// Region of the stack [default: the instance's own]
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// How the bootstrap ended; 0 also waits for the kubelet
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    exit_code: u8,
    /// How long the kubelet may take to become healthy, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 840)]
    timeout: u64,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let environment = Environment::of_process();
    let mut imds = Imds::new(Options::new(&environment)?);
    let mut instance = imds.first_round(false)?.instance;
    if let Some(region) = &args.region {
        instance.region.clone_from(region);
    }
    let id = instance.id.clone();
    let root = Root::open(&global.root).map_err(|error| {
        Problem::new(&codes::host::FILE_READ, format!("opening {}", global.root.display()))
            .cause(error)
    })?;
    let mut cloud = Cloud::new(&instance, environment, Some(&mut imds));
    let patience = Duration::from_secs(args.timeout);
    let wish = Wish::new(args.stack.clone(), args.resource.clone(), args.exit_code, patience);
    let sent = signal::send(&root, &mut cloud, &id, &wish)?;
    let answer =
        json!({"status": sent.status.name(), "reason": sent.reason, "before": sent.before});
    match global.json() {
        true => output::answer_json(&answer)?,
        false => output::answer(&format!("{}: {}\n", sent.status.name(), sent.reason))?,
    }
    match sent.status {
        Status::Success => Ok(()),
        Status::Failure => Err(Failure::Answer(args.exit_code.max(1))),
    }
}
