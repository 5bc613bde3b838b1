//! `tenon image verify`: checks a root or the running machine against its plan.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tenon_core::codes::image::NOTHING_TO_CHECK;
use tenon_core::image::check::{self, Check, Half, State};
use tenon_core::image::plan::ImagePlan;
use tenon_core::nearest::nearest;
use tenon_core::problem::Problem;
use tenon_host::image::verify;
use tenon_host::stop;

use super::{choice, findings, open};
use crate::output::{self, Failure, Format, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon image verify --root /mnt/image
  tenon image verify --running --only cis --output junit > verify.xml

Without --plan the plan is the one that apply left in the root. --running also
asks the kernel: settings, modules, mounts, arguments and units. Exit 1: the
check ran to its end and something does not hold.")]
pub struct Args {
    /// Root file system to check
    #[arg(long, value_name = "DIR", required_unless_present = "running")]
    root: Option<PathBuf>,
    /// Check this machine: its files, and what its kernel says
    #[arg(long, conflicts_with = "root")]
    running: bool,
    /// The plan to check against
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Only checks of this kind or of this feature
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// How to print the answer
    #[arg(long, value_name = "text|json|junit", default_value = "text")]
    #[arg(value_parser = Format::image_checks)]
    output: Format,
    /// Show what holds, too
    #[arg(long)]
    all: bool,
}

pub fn run(args: &Args) -> Outcome {
    // Without the handlers a signal ends the process; nothing is changed here.
    let _ = stop::listen();
    let root = open(args.root.as_deref().unwrap_or_else(|| Path::new("/")))?;
    let plan = match &args.plan {
        Some(path) => choice::read(path)?,
        None => verify::plan_of(&root).map_err(findings)?,
    };
    let mut checks = verify::verify(&plan, &root, args.running.then_some(&root))?;
    if let Some(only) = &args.only {
        checks.retain(|check| verify::concerns(&plan, check, only));
        if checks.is_empty() {
            return Err(nothing(&plan, only).into());
        }
    }
    match args.output {
        Format::Json => output::answer_json(&check::to_json(&checks, &plan.hash()))?,
        Format::Junit => output::answer(&check::junit(&checks))?,
        _ => output::answer(&text(&checks, args.all))?,
    }
    match check::holds(&checks) {
        true => Ok(()),
        false => Err(Failure::Answer(1)),
    }
}

/// Nothing of the plan goes by that name.
fn nothing(plan: &ImagePlan, only: &str) -> Problem {
    let kinds = plan.resources.iter().map(|one| one.kind.name);
    let reasons = plan.resources.iter().flat_map(|one| &one.reasons);
    let features = reasons.map(|reason| reason.feature.as_str());
    let names: BTreeSet<&str> = kinds.chain(features).collect();
    let problem = Problem::new(&NOTHING_TO_CHECK, format!("no check concerns `{only}`"));
    match nearest(only, names.iter().copied()) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => {
            let names: Vec<_> = names.into_iter().collect();
            problem.fix(format!("the plan has {}", names.join(", ")))
        }
    }
}

/// What does not hold, then the figures of each half.
fn text(checks: &[Check], all: bool) -> String {
    let shown = checks.iter().filter(|check| all || check.state != State::Pass);
    let mut text: String = shown.map(Check::line).collect();
    for half in [Half::Files, Half::Running] {
        let of_half: Vec<Check> =
            checks.iter().filter(|check| check.half == half).cloned().collect();
        if of_half.is_empty() {
            continue;
        }
        let count = |state| check::count(&of_half, state);
        text.push_str(&format!(
            "{}: {} hold, {} do not, {} manual, {} unknown\n",
            half.name(),
            count(State::Pass),
            count(State::Fail),
            count(State::Manual),
            count(State::Unknown)
        ));
    }
    text
}
