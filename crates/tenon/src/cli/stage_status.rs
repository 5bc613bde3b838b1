//! `tenon stage status` and `tenon stage reset`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_core::codes::stages::STAGES_NOT_DONE;
use tenon_core::codes::usage::BAD_USAGE;
use tenon_core::problem::Problem;
use tenon_core::stages::paths;
use tenon_host::root::Root;
use tenon_host::stages::report::{self, Report, STAGES, Wipe};
use tenon_host::stop;

use super::{Global, node_args, stage};
use crate::output::{self, Failure, Outcome};

/// Pause between two looks of `--wait` and `--watch`.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit 0: all stages of this machine are done; 1: they are not.

Examples:
  tenon stage status
  tenon stage status --wait 30m
  tenon stage status --timeline")]
pub struct Args {
    /// Config of the machine
    #[arg(long, value_name = "PATH", default_value = paths::CONFIG)]
    config: String,
    /// Print every step that was run, in order
    #[arg(long, conflicts_with_all = ["wait", "watch"])]
    timeline: bool,
    /// Print again whenever something changes, until all is done
    #[arg(long)]
    watch: bool,
    /// Wait until all is done, at most this long
    #[arg(long, value_name = "TIME", value_parser = node_args::duration)]
    wait: Option<Duration>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenon stage reset bootstrap --yes")]
pub struct ResetArgs {
    /// assets, prepare, bootstrap, addons, join or cleanup
    #[arg(value_name = "STAGE", value_parser = stage_name)]
    stage: String,
    /// Config of the machine
    #[arg(long, value_name = "PATH", default_value = paths::CONFIG)]
    config: String,
    /// Do it; without, only say what would happen
    #[arg(long)]
    yes: bool,
    /// Also remove what the stage wrote
    #[arg(long)]
    wipe: bool,
    /// With --wipe of bootstrap: also the cluster's data
    #[arg(long, requires = "wipe")]
    delete_etcd_data: bool,
}

fn stage_name(text: &str) -> Result<String, String> {
    match STAGES.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("the stages are {}", STAGES.join(", "))),
    }
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    if args.timeline {
        return timeline(&root, global);
    }
    stage::listen()?;
    let report = match (args.wait, args.watch) {
        (None, false) => look(&root, args)?,
        (limit, watch) => wait(&root, args, limit, watch)?,
    };
    match global.json() {
        true => output::answer_json(&report.to_json())?,
        false if !args.watch => output::answer(&report.text())?,
        false => {}
    }
    match report.is_done() {
        true => Ok(()),
        false => Err(Failure::Answer(1)),
    }
}

fn look(root: &Root, args: &Args) -> Result<Report, Failure> {
    let (machine, text) = stage::machine(root, &args.config)?;
    Ok(Report::look(root, &machine, &text)?)
}

fn wait(root: &Root, args: &Args, limit: Option<Duration>, watch: bool) -> Result<Report, Failure> {
    let end = limit.map(|limit| Instant::now() + limit);
    let mut told = String::new();
    loop {
        let report = look(root, args)?;
        let text = report.text();
        if watch && text != told {
            output::answer(&text)?;
            told = text;
        }
        if report.is_done() {
            return Ok(report);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            let what = "the stages of this machine are not done";
            let problem = Problem::new(&STAGES_NOT_DONE, what);
            return Err(problem.details(report.text().lines().map(str::to_owned)).into());
        }
        stop::sleep(PAUSE)?;
    }
}

fn timeline(root: &Root, global: &Global) -> Outcome {
    let lines = report::timeline(root)?;
    if global.json() {
        return output::answer_json(&json!({"schema": "tenon.stage-timeline/1", "steps": lines}));
    }
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let row = |line: &Value| {
        let boot = text(line, "boot");
        let row = format!(
            "{} {} {:<9} {:<16} {:<9} {:>7} ms  {}",
            text(line, "time"),
            boot.get(..8).unwrap_or(&boot),
            text(line, "stage"),
            text(line, "step"),
            text(line, "outcome"),
            line["elapsedMs"],
            text(line, "detail"),
        );
        format!("{}\n", row.trim_end())
    };
    output::answer(&lines.iter().map(row).collect::<String>())
}

pub fn reset(args: &ResetArgs, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let (machine, _) = stage::machine(&root, &args.config)?;
    if !args.yes {
        let what = format!("the stage {} would run again from its first step", args.stage);
        let fix = "add --yes; `tenon stage status` says what is done now";
        return Err(Problem::new(&BAD_USAGE, what).fix(fix).into());
    }
    let wipe = Wipe { files: args.wipe, etcd: args.delete_etcd_data };
    let removed = report::reset(&root, &machine, &args.stage, wipe)?;
    match global.json() {
        true => output::answer_json(&json!({
            "schema": "tenon.stage-reset/1", "stage": args.stage, "removed": removed,
        })),
        false => output::answer(&format!("stage {} is open again\n", args.stage)),
    }
}
