//! `tenon plan`: what `init` would change, and why.

use serde_json::{Value, json};
use tenon_core::plan::Plan;
use tenon_core::plan::diff::{Changes, FileChange, Kind, Unplanned};
use tenon_core::plan::hash_public;
use tenon_core::plan::step::{Action, Phase};
use tenon_host::apply;
use tenon_host::job::{Job, Prepared};

use super::Global;
use super::node_args::{self, NodeArgs, PhaseName};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon plan
  tenon plan --root DIR --facts facts.json -c file://config.yaml --diff
  tenon plan --facts facts.json -c node.yaml --output json > plan.json")]
pub struct Args {
    #[command(flatten)]
    node: NodeArgs,
    /// Leave a phase out, as `init` would
    #[arg(short, long, value_enum, value_name = "PHASE")]
    skip: Vec<PhaseName>,
    /// Show the lines that change
    #[arg(long)]
    diff: bool,
    /// Exit with 2 when there is something to change
    #[arg(long)]
    exit_code: bool,
    /// Print secret values too
    #[arg(long)]
    show_secrets: bool,
}

impl Args {
    fn phases(&self) -> Vec<Phase> {
        let both = [(PhaseName::Config, Phase::Config), (PhaseName::Run, Phase::Run)];
        both.iter().filter(|(name, _)| !self.skip.contains(name)).map(|(_, phase)| *phase).collect()
    }

    /// What is no longer wanted is removed by the config phase alone.
    fn unplanned(&self) -> Unplanned {
        match self.skip.contains(&PhaseName::Config) {
            true => Unplanned::Keep,
            false => self.node.unplanned(),
        }
    }
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let mut job = Job::new(&root, args.node.order(global)?);
    let loaded = job.config()?;
    let prepared = job.prepare(loaded)?;
    let options = apply::Options { unplanned: args.unplanned(), ..apply::Options::default() };
    let changes = apply::preview(&root, &prepared.plan, &args.phases(), &options)?
        .map_err(|findings| Failure::Findings { findings, lenient: true })?;
    match global.json() {
        true => output::answer_json(&to_json(args, &prepared, &changes))?,
        false => {
            node_args::tell_warnings(&prepared);
            output::answer(&text(args, &prepared.plan, &changes))?;
        }
    }
    match args.exit_code && pending(&changes) {
        true => Err(Failure::Answer(2)),
        false => Ok(()),
    }
}

/// True when a run would do something.
fn pending(changes: &Changes) -> bool {
    !changes.is_empty() || changes.units.iter().any(|unit| unit.stale.is_some())
}

/// The head line that names the node.
pub fn head(plan: &Plan) -> String {
    let summary = &plan.summary;
    format!(
        "node  {} ({}, kubelet {}, containerd {})   config {}   plan {}\n",
        summary.instance_id,
        summary.instance_type,
        summary.kubelet_version,
        summary.containerd_version,
        output::short_hash(&summary.config_hash),
        output::short_hash(&hash_public(plan)),
    )
}

fn text(args: &Args, plan: &Plan, changes: &Changes) -> String {
    let mut text = head(plan);
    let width = changes.files.iter().map(|file| file.path.len()).max().unwrap_or(0);
    for file in &changes.files {
        text.push_str(&file_line(file, width));
        if args.diff {
            let lines = file.diff(args.show_secrets);
            lines.iter().for_each(|line| text.push_str(&format!("      {line}\n")));
        }
    }
    for removal in &changes.removals {
        text.push_str(&format!("  - {}   {}\n", removal.path, removal.because));
    }
    if let Some(why) = &changes.reload {
        text.push_str(&format!("  > daemon-reload: {why}\n"));
    }
    for unit in &changes.units {
        if let Some(why) = &unit.stale {
            text.push_str(&format!("  > {}: {why}\n", unit.unit));
        }
    }
    text.push_str(&later_steps(plan, &args.phases()));
    text.push_str(&counts_line(changes));
    text
}

/// One file: `+ /etc/…   0600   1,204 B`.
pub fn file_line(file: &FileChange, width: usize) -> String {
    let mark = match file.kind() {
        Kind::Create => '+',
        Kind::Change | Kind::Mode => '~',
    };
    format!(
        "  {mark} {:<width$}   {:04o}   {:>7} B\n",
        file.path,
        file.mode,
        thousands(file.body.len())
    )
}

/// Disks, programs and hooks: what they do to the machine is known only there.
fn later_steps(plan: &Plan, phases: &[Phase]) -> String {
    let mut text = String::new();
    for step in plan.steps.iter().filter(|step| phases.contains(&step.phase)) {
        let line = match &step.action {
            Action::Program(program) => program.argv.join(" "),
            Action::Bind(bind) => format!("bind {} from {}", bind.at, bind.source),
            Action::Hook { hook, .. } => format!("hook {}", hook.name),
            _ => continue,
        };
        text.push_str(&format!("  ? {line}   {}\n", step.because));
    }
    text
}

fn counts_line(changes: &Changes) -> String {
    let [created, changed, removed] = changes.counts();
    let restarts = changes.units.iter().filter(|unit| unit.stale.is_some()).count();
    let reloads = usize::from(changes.reload.is_some());
    format!(
        "{} unchanged, {created} to create, {changed} to change, {removed} to remove, \
         {restarts} to start or restart, {reloads} reloads\n",
        changes.unchanged
    )
}

/// `1204` as `1,204`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn to_json(args: &Args, prepared: &Prepared, changes: &Changes) -> Value {
    let plan = &prepared.plan;
    let [created, changed, removed] = changes.counts();
    let files = changes.files.iter().map(|file| {
        let action = match file.kind() {
            Kind::Create => "create",
            Kind::Change => "change",
            Kind::Mode => "mode",
        };
        json!({
            "path": file.path,
            "action": action,
            "diff": file.diff(args.show_secrets),
            "because": [file.because],
        })
    });
    let removals = changes.removals.iter().map(
        |removal| json!({"path": removal.path, "action": "remove", "because": [removal.because]}),
    );
    let units = changes.units.iter().map(|unit| json!({"unit": unit.unit, "because": unit.stale}));
    json!({
        "schema": "tenon.plan/1",
        "configHash": plan.summary.config_hash,
        "planHash": hash_public(plan),
        "node": plan.summary,
        "facts": prepared.facts,
        "steps": plan.steps.iter().map(|step| step.to_json(args.show_secrets)).collect::<Vec<_>>(),
        "changes": files.chain(removals).collect::<Vec<_>>(),
        "units": units.collect::<Vec<_>>(),
        "counts": {
            "unchanged": changes.unchanged,
            "create": created,
            "change": changed,
            "remove": removed,
        },
        "reasons": plan.reasons,
        "warnings": prepared.findings().map(|finding| finding.to_json(true)).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1204, "1,204"), (1_000_000, "1,000,000")] {
            assert_eq!(thousands(number), text);
        }
    }
}
