//! `tenon image plan`: the whole description, or what a root lacks of it.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tenon_core::codes::usage::BAD_USAGE;
use tenon_core::image::check::{self, Check};
use tenon_core::image::plan::ImagePlan;
use tenon_core::image::{describe, exception, manifest};
use tenon_core::problem::{Finding, Problem};
use tenon_host::image::{facts, verify};
use tenon_host::stop;

use super::wanted::WantedArgs;
use super::{findings, open};
use crate::cli::Global;
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon image plan --family al2023 --profile base,cis
  tenon image plan --config image.yaml --output json > plan.json
  tenon image plan --config image.yaml --root /mnt/image --exit-code
  tenon image plan --family debian --explain sysctl/net.ipv4.ip_forward

Without --root no file system is needed. With it, the answer is the difference;
`--against /` means this machine.
Exit 2 with --exit-code: changes are pending; 3: profiles or config cannot be
accepted, a conflict has no exception, or a checksum is missing.")]
pub struct Args {
    #[command(flatten)]
    wanted: WantedArgs,
    /// Show what this root lacks, / included; --root does the same
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Say who wants it and why: KIND/KEY, rule/ID or exception/NAME
    #[arg(long, value_name = "RESOURCE")]
    explain: Option<String>,
    /// Refuse exceptions that have expired, instead of a warning
    #[arg(long)]
    strict: bool,
    /// Exit with 2 when there is something to change
    #[arg(long)]
    exit_code: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    // Without the handlers a signal ends the process; nothing is changed here.
    let _ = stop::listen();
    // Every command has a root, and `/` unless told otherwise; a plan needs none.
    let other = Some(&global.root).filter(|root| root.as_path() != Path::new("/"));
    let root = args.against.as_ref().or(other).map(|root| open(root)).transpose()?;
    let facts = root.as_ref().map(facts::gather).transpose()?;
    let (plan, _) = args.wanted.plan(facts.as_ref())?;
    expired(&plan, args.strict)?;
    if let Some(name) = &args.explain {
        return explain(&plan, name, global);
    }
    let Some(root) = root else {
        if args.exit_code {
            let what = "--exit-code has nothing to compare the plan with";
            return Err(Problem::new(&BAD_USAGE, what).fix("name a root: --root DIR").into());
        }
        return match global.json() {
            true => output::answer_json(&plan.to_json()),
            false => output::answer(&describe::plan(&plan)),
        };
    };
    let checks = verify::verify(&plan, &root, None)?;
    match global.json() {
        true => output::answer_json(&changes(&plan, &checks))?,
        false => output::answer(&describe::changes(&plan, &checks))?,
    }
    match args.exit_code && !check::holds(&checks) {
        true => Err(Failure::Answer(2)),
        false => Ok(()),
    }
}

/// Tells which exceptions have outlived their day.
fn expired(plan: &ImagePlan, strict: bool) -> Outcome {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = manifest::date(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let problems = exception::expired(&plan.exceptions, now.get(..10).unwrap_or_default());
    if strict && !problems.is_empty() {
        return Err(findings(problems));
    }
    let findings: Vec<_> = problems.into_iter().map(Finding::warning).collect();
    output::tell_findings(&findings, false);
    Ok(())
}

fn explain(plan: &ImagePlan, name: &str, global: &Global) -> Outcome {
    let told = describe::explain(plan, name)?;
    match global.json() {
        true => output::answer_json(&told.value),
        false => output::answer(&told.text),
    }
}

fn changes(plan: &ImagePlan, checks: &[Check]) -> serde_json::Value {
    let pending = checks.iter().filter(|check| !check::holds(std::slice::from_ref(*check)));
    json!({
        "schema": "tenon.image-changes/1",
        "planHash": plan.hash(),
        "changes": pending.map(Check::to_json).collect::<Vec<_>>(),
    })
}
