//! `tenon harden`: the benchmark, and what can be mended without a decision.

use std::time::Duration;

use tenon_core::checks::mend::Mending;
use tenon_core::checks::report::Report;
use tenon_core::codes;
use tenon_core::problem::Problem;
use tenon_host::apply::{self, Lock};
use tenon_host::checks::{Examination, Eyes, Known};
use tenon_host::root::Root;
use tenon_host::stop;

use super::check_args::CheckArgs;
use super::{Global, node_args};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "--fix sets modes and owners, and kubelet settings in a drop-in of its own
(99-tenon-harden.conf). The kubelet reads them when it is started again.

Examples:
  tenon harden
  tenon harden --profile k8s-1.11 --fix --dry-run
  tenon harden --profile k8s-1.11 --fix --restart")]
pub struct Args {
    #[command(flatten)]
    check: CheckArgs,
    /// Mend what needs no decision, then judge again
    #[arg(long)]
    fix: bool,
    /// With --fix: show what would change, and change nothing
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// With --fix: restart the kubelet if its settings changed
    #[arg(long, requires = "fix")]
    restart: bool,
    /// Longest wait for another run of Tenon to end
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = node_args::duration)]
    wait_lock: Duration,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    // A wrong command line is told before a wrong node.
    args.check.profile()?;
    let eyes = args.check.eyes(global)?;
    let known = args.check.known(&eyes, global)?;
    let mut examination = Examination::begin(&eyes)?;
    let mut report = judge(args, &eyes, &mut examination)?;
    if args.fix {
        let root = eyes.root().ok_or_else(|| {
            Problem::new(&codes::checks::NOT_FIXABLE_HERE, "--fix does not go with --bundle")
        })?;
        let mending = examination.mending(&known, &report.findings);
        show(&mending);
        if !args.dry_run && !mending.is_empty() {
            fix(args, root, &mending)?;
            report = again(args, &eyes, &known)?;
        }
        report.mending = Some(mending);
    }
    args.check.tell(&report, false)?;
    match report.exit() {
        0 => Ok(()),
        code => Err(Failure::Answer(code)),
    }
}

fn judge(args: &Args, eyes: &Eyes, node: &mut Examination<'_>) -> Result<Report, Problem> {
    let profile = args.check.profile()?;
    let mut report = Report {
        tool: "tenon harden",
        source: eyes.name().to_owned(),
        node: node.instance_id(),
        profile: profile.name,
        findings: node.cis(profile),
        ..Report::default()
    };
    args.check.excuse(&mut report)?;
    Ok(report)
}

/// The node as it is after the fix, with what can still be mended, which should be nothing.
fn again(args: &Args, eyes: &Eyes, known: &Known) -> Result<Report, Problem> {
    let mut examination = Examination::begin(eyes)?;
    let report = judge(args, eyes, &mut examination)?;
    let left = examination.mending(known, &report.findings);
    for line in left.lines() {
        tracing::warn!(line, "not mended");
    }
    Ok(report)
}

/// Tells the plan before it is carried out: on standard error, so that the answer stays one.
fn show(mending: &Mending) {
    let mut text = String::new();
    for line in mending.lines() {
        text.push_str(&format!("  {line}\n"));
    }
    for why in &mending.refused {
        text.push_str(&format!("  ? {why}\n"));
    }
    if mending.is_empty() {
        text.push_str("  nothing to mend\n");
    }
    output::tell(&text);
}

fn fix(args: &Args, root: &Root, mending: &Mending) -> Outcome {
    stop::listen().map_err(|error| {
        Problem::new(&codes::usage::BUG, "installing signal handlers").cause(error)
    })?;
    let lock = Lock::take(root, args.wait_lock)?;
    apply::mend(root, &lock, mending)?;
    match (mending.needs_restart(), args.restart) {
        (true, true) => apply::restart_kubelet(root, &lock)?,
        (true, false) => tracing::warn!(
            "the kubelet reads its new settings when it is started again: \
             systemctl restart kubelet.service, or harden --fix --restart"
        ),
        (false, _) => {}
    }
    Ok(())
}
