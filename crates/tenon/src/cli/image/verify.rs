//! `tenon image verify`: checks a root or the running machine against its plan.

use std::path::{Path, PathBuf};

use tenon_core::image::check::{self, Check, Half, State};
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
    }
    match args.output {
        Format::Json => output::answer_json(&check::to_json(&checks, &plan.hash()))?,
        Format::Junit => output::answer(&check::junit(&checks))?,
        _ => output::answer(&text(&checks, args.all))?,
    }
    match check::count(&checks, State::Fail) {
        0 => Ok(()),
        _ => Err(Failure::Answer(1)),
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
