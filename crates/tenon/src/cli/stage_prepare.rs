//! `tenon stage prepare` and `tenon stage runtime-reset`.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use tenon_core::stages::paths;
use tenon_host::gather::environment::Environment;
use tenon_host::stages::prepare::{self, Prepare, RebootWhen, step_names};
use tenon_host::stages::{Order, runtime};

use super::{Global, node_args, stage};
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon stage prepare
  tenon stage prepare --force-kubernetes-version v1.34.2 --reboot never")]
pub struct Args {
    /// Config of the machine
    #[arg(long, value_name = "PATH", default_value = paths::CONFIG)]
    config: String,
    /// Kubernetes version, whatever the API server or the installer says
    #[arg(long, value_name = "VERSION", value_parser = version)]
    force_kubernetes_version: Option<String>,
    /// RuntimeMappings that win over the cluster's and the machine's
    #[arg(long, value_name = "PATH")]
    runtime_mappings: Option<String>,
    /// Who updates the OS, instead of spec.os.update.provider
    #[arg(long, value_enum, value_name = "PROVIDER")]
    os_update: Option<Provider>,
    /// When the machine may be rebooted
    #[arg(long, value_enum, value_name = "WHEN", default_value = "when-needed")]
    reboot: RebootArg,
    /// Run only this step
    #[arg(long, value_name = "STEP", value_parser = step)]
    only: Option<String>,
    /// Say which steps would run, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// How long one run waits for files that somebody sends
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = node_args::duration)]
    input_wait: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Provider {
    None,
    UpdateEngine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RebootArg {
    WhenNeeded,
    Never,
    Always,
}

fn version(text: &str) -> Result<String, String> {
    match tenon_core::kube_version::Version::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("a version such as v1.34.2".into()),
    }
}

fn step(text: &str) -> Result<String, String> {
    match step_names().contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("the steps are {}", step_names().join(", "))),
    }
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let mut work = Prepare::new(Environment::of_process());
    work.force_version.clone_from(&args.force_kubernetes_version);
    work.mappings.clone_from(&args.runtime_mappings);
    work.os_update = args.os_update.map(|provider| provider == Provider::UpdateEngine);
    work.input_wait = args.input_wait;
    work.reboot = match args.reboot {
        RebootArg::WhenNeeded => RebootWhen::Needed,
        RebootArg::Never => RebootWhen::Never,
        RebootArg::Always => RebootWhen::Always,
    };
    let order = Order { stage: "prepare", config: args.config.clone(), forced: forced(args) };
    if args.dry_run {
        return stage::preview(&root, &order, &step_names(), global);
    }
    stage::carry_out(&root, &order, global, |mut stage| match &args.only {
        None => prepare::run(stage, &mut work),
        Some(name) => {
            let steps = prepare::STEPS.iter().position(|step| step.name == name.as_str());
            let steps = steps.map_or(prepare::STEPS, |at| &prepare::STEPS[at..=at]);
            stage.steps(steps, &mut work)
        }
    })
}

fn forced(args: &Args) -> Vec<String> {
    let version = args.force_kubernetes_version.iter().map(|text| format!("version={text}"));
    let mappings = args.runtime_mappings.iter().map(|text| format!("mappings={text}"));
    let update = args.os_update.iter().map(|provider| format!("os-update={provider:?}"));
    version.chain(mappings).chain(update).collect()
}

pub fn runtime_reset(global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let emptied = runtime::reset(&root)?;
    match global.json() {
        true => {
            output::answer_json(&json!({"schema": "tenon.runtime-reset/1", "emptied": emptied}))
        }
        false if emptied.is_empty() => output::answer("nothing to empty\n"),
        false => output::answer(&format!("emptied {}\n", emptied.join(", "))),
    }
}
