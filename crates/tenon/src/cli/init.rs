//! `tenon init`: make this machine a node.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use tenon_core::codes;
use tenon_core::plan::diff::Edited;
use tenon_core::plan::hash_public;
use tenon_core::problem::Problem;
use tenon_core::timeline::PhaseRecord;
use tenon_host::apply::{self, Lock, Report};
use tenon_host::job::{Job, Order, Prepared};
use tenon_host::root::Root;
use tenon_host::stop;

use super::Global;
use super::node_args::{self, NodeArgs, PhaseName};
use crate::output::{self, Format, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon init
  tenon init -c imds://user-data -c file:///etc/eks/nodeadm.d/
  tenon init --root /mnt/image --facts facts.json -c node.yaml --skip run")]
pub struct Args {
    #[command(flatten)]
    node: NodeArgs,
    /// Leave a phase out
    #[arg(short, long, value_enum, value_name = "PHASE")]
    skip: Vec<PhaseName>,
    /// Write the files but start nothing (the same as --skip run)
    #[arg(long)]
    no_start: bool,
    /// Longest wait for one unit, in place of its own
    #[arg(long, value_name = "TIME", value_parser = node_args::duration)]
    unit_timeout: Option<Duration>,
    /// Wait this long for another run to end
    #[arg(long, value_name = "TIME", value_parser = node_args::duration)]
    wait_lock: Option<Duration>,
    /// What to do with an owned file that was edited by hand
    #[arg(long, value_enum, value_name = "POLICY", default_value = "overwrite")]
    edited: EditedName,
    /// On an image baked from a used node: remove the kubelet's old identity
    #[arg(long)]
    reset_identity: bool,
    /// Threads that sync files; 1 makes every run's system calls the same
    #[arg(long, hide = true, value_name = "N", default_value_t = apply::MOST_THREADS)]
    fsync_threads: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EditedName {
    Overwrite,
    Keep,
    Backup,
}

/// What a run is to do besides its order.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    skip_config: bool,
    skip_run: bool,
    wait_lock: Duration,
    options: apply::Options,
}

impl Args {
    fn choices(&self) -> Choices {
        let edited = match self.edited {
            EditedName::Overwrite => Edited::Overwrite,
            EditedName::Keep => Edited::Keep,
            EditedName::Backup => Edited::Backup,
        };
        Choices {
            skip_config: self.skip.contains(&PhaseName::Config),
            skip_run: self.skip.contains(&PhaseName::Run) || self.no_start,
            wait_lock: self.wait_lock.unwrap_or_default(),
            options: apply::Options {
                edited,
                unplanned: self.node.unplanned(),
                unit_timeout: self.unit_timeout,
                sync_threads: self.fsync_threads.max(1),
                ..apply::Options::default()
            },
        }
    }
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let choices = args.choices();
    prepare_host(&choices, &root)?;
    let order = Order { reset_identity: args.reset_identity, ..args.node.order(global)? };
    let job = Job::new(&root, order);
    make_node(global, job, &root, &choices)
}

/// Checks that this process may do the work, and listens for a stop.
pub fn prepare_host(choices: &Choices, root: &Root) -> Result<(), Problem> {
    // Units and owners need root; a tree elsewhere can be prepared by anyone.
    let tree_only = !root.is_host() && choices.skip_run;
    if !tree_only && !rustix::process::geteuid().is_root() {
        let problem = Problem::new(&codes::host::NOT_ROOT, "making a node needs root");
        return Err(
            problem.fix("run it as root, or use --root DIR with --skip run to prepare a tree")
        );
    }
    stop::listen().map_err(|error| {
        Problem::new(&codes::usage::BUG, "installing signal handlers").cause(error)
    })
}

/// The whole run; then, however it ended, where its time went.
pub fn make_node(global: &Global, mut job: Job<'_>, root: &Root, choices: &Choices) -> Outcome {
    let mut record = PhaseRecord::default();
    let outcome = carry_out(global, &mut job, root, choices, &mut record);
    job.timeline.tell(record);
    outcome
}

/// The steps in the order of the contract.
fn carry_out(
    global: &Global,
    job: &mut Job<'_>,
    root: &Root,
    choices: &Choices,
    record: &mut PhaseRecord,
) -> Outcome {
    let lock = Lock::take(root, choices.wait_lock)?;
    let loaded = job.config()?;
    let mut options = choices.options.clone();
    options.hook_environment = job.hook_environment(&loaded.config);
    let mut report = Report::default();
    if !choices.skip_config && !loaded.config.hooks.pre_bootstrap.is_empty() {
        let instance_id = job.instance_id()?;
        let hooks = &loaded.config.hooks.pre_bootstrap;
        report.merge(apply::pre_bootstrap(root, &lock, hooks, &instance_id, &options)?);
    }
    let prepared = job.prepare(loaded)?;
    report.plan_hash = hash_public(&prepared.plan);
    record.node.clone_from(&prepared.plan.summary.node_name);
    record.instance_type.clone_from(&prepared.plan.summary.instance_type);
    record.launched.clone_from(&prepared.facts.instance.launched);
    node_args::tell_warnings(&prepared);
    if !choices.skip_config || prepared.config_is_new {
        report.merge(
            job.timeline.span("write files", || {
                apply::config_phase(root, &lock, &prepared.plan, &options)
            })?,
        );
        job.save_cache(&lock, &prepared);
    }
    if !choices.skip_run {
        report.merge(
            job.timeline.span("start daemons", || {
                apply::run_phase(root, &lock, &prepared.plan, &options)
            })?,
        );
    }
    let started = report.changes.iter().filter(|change| change.kind == "unit");
    record.started = started.map(|change| change.path.clone()).collect();
    answer(global.output, job, &prepared, &report)
}

fn answer(format: Format, job: &Job<'_>, prepared: &Prepared, report: &Report) -> Outcome {
    output::tell_findings(&report.warnings, true);
    if format == Format::Json {
        let mut json = report.to_json();
        let found = prepared.findings().chain(&report.warnings);
        let findings: Vec<_> = found.map(|finding| finding.to_json(true)).collect();
        json["schema"] = json!("tenon.init/1");
        json["findings"] = json!(findings);
        json["node"] = json!(prepared.plan.summary);
        json["timeline"] = job.timeline.to_json();
        return output::answer_json(&json);
    }
    let summary = &prepared.plan.summary;
    let result = match report.changes.len() {
        0 => "0 changes".to_owned(),
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    };
    output::answer(&format!(
        "{} ({}, kubelet {}): {result}, {} files as planned before, plan {}\n",
        summary.node_name,
        summary.instance_type,
        summary.kubelet_version,
        report.unchanged,
        output::short_hash(&report.plan_hash),
    ))
}
