//! `tenon validate`: is this node what it was meant to be?

use std::path::PathBuf;

use tenon_core::checks::cis::{PROFILES, Profile};
use tenon_core::checks::report::{FailOn, Report};
use tenon_core::checks::{Family, Finding};
use tenon_core::codes;
use tenon_core::config::Options;
use tenon_core::problem::Problem;
use tenon_host::checks::{Examination, Eyes, Known, Wanted, known, now, replace_text};
use tenon_host::collect::Source;

use super::check_args::CheckArgs;
use super::sources::SourceArgs;
use super::{Global, config};
use crate::output::{Failure, Format, Outcome};

/// What is judged when nothing is named: everything that asks nothing of the network.
const USUAL: [Family; 4] = [Family::Config, Family::Drift, Family::Cis, Family::Image];

#[derive(Debug, clap::Args)]
#[command(after_help = "Families: config, drift (files against record and plan), cis, runtime
(the running node; asks the kubelet), image (files and settings against the
plan of its image). All but runtime without --only.

Examples:
  tenon validate node.yaml
  tenon validate --profile k8s-1.11
  tenon validate --root /mnt --only drift,cis --output junit")]
pub struct Args {
    /// Check these config files alone; no machine is needed
    #[arg(value_name = "FILE", conflicts_with_all = ["running", "bundle", "only"])]
    files: Vec<String>,
    /// Examine this machine (what happens without --root and --bundle)
    #[arg(long, conflicts_with = "bundle")]
    running: bool,
    /// Judge these families only
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    check: CheckArgs,
    /// From which state on the answer is no
    #[arg(long, value_name = "warn|fail", default_value = "fail", value_parser = fail_on)]
    fail_on: FailOn,
    /// Write the counts for Prometheus to this file
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
}

fn fail_on(text: &str) -> Result<FailOn, String> {
    match text {
        "warn" => Ok(FailOn::Warn),
        "fail" => Ok(FailOn::Fail),
        _ => Err("it is warn or fail".to_owned()),
    }
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    if !args.files.is_empty() {
        return check_files(args, global);
    }
    let report = examine(args, global)?;
    // Whoever asks for the image alone is told why there is no answer.
    args.check.tell(&report, args.only == ["image"])?;
    if let Some(path) = &args.prometheus {
        replace_text(path, &report.prometheus(now()))?;
    }
    answer(&report)
}

fn answer(report: &Report) -> Outcome {
    match report.exit() {
        0 => Ok(()),
        code => Err(Failure::Answer(code)),
    }
}

fn examine(args: &Args, global: &Global) -> Result<Report, Problem> {
    let (profile, families) = (args.check.profile()?, args.families()?);
    if args.running && global.root != std::path::Path::new("/") {
        let what = "--running does not go with --root";
        return Err(Problem::new(&codes::usage::BAD_USAGE, what).fix("leave one of them out"));
    }
    let eyes = args.check.eyes(global)?;
    let known = args.check.known(&eyes, global)?;
    let mut report = judge(&eyes, &known, profile, &families)?;
    report.fail_on = args.fail_on;
    args.check.excuse(&mut report)?;
    Ok(report)
}

fn judge(
    eyes: &Eyes,
    known: &Known,
    profile: &'static Profile,
    families: &[Family],
) -> Result<Report, Problem> {
    let mut examination = Examination::begin(eyes)?;
    let mut report = Report {
        tool: "tenon validate",
        source: eyes.name().to_owned(),
        node: examination.instance_id(),
        profile: if families.contains(&Family::Cis) { profile.name } else { "" },
        ..Report::default()
    };
    for family in families {
        report.findings.extend(match family {
            Family::Config => known.findings(),
            Family::Drift => examination.drift(known),
            Family::Cis => examination.cis(profile),
            Family::Runtime => examination.runtime(known),
            Family::Image => examination.image(),
        });
    }
    Ok(report)
}

/// The answer as an item of a log bundle; None when there is no node to examine.
pub fn verdict(source: &Source) -> Option<Vec<u8>> {
    let eyes = Eyes::on_root(source.root_handle()?.path()).ok()?;
    let known = known(eyes.root(), Wanted::default()).ok()?;
    let report = judge(&eyes, &known, &PROFILES[0], &USUAL).ok()?;
    Some(format!("{:#}\n", report.to_json()).into_bytes())
}

impl Args {
    fn families(&self) -> Result<Vec<Family>, Problem> {
        if self.only.is_empty() {
            return Ok(USUAL.to_vec());
        }
        let parse = |name: &String| {
            let unknown = || Problem::new(&codes::checks::UNKNOWN_FAMILY, "unknown family");
            Family::parse(name).ok_or_else(unknown)
        };
        self.only.iter().map(parse).collect()
    }
}

/// The files as `config check` sees them; the formats that it does not have are made here.
fn check_files(args: &Args, global: &Global) -> Outcome {
    let sources = SourceArgs { config_source: args.files.clone() };
    if !matches!(args.check.output, Format::Junit | Format::Sarif) {
        return config::check_sources(&sources, false, global);
    }
    let found = match sources.load(global, Options::default()) {
        Ok(loaded) => loaded.findings,
        Err(Failure::Findings { findings, .. }) => findings,
        Err(other) => return Err(other),
    };
    let told = found.iter().map(|one| Finding::of_config(&one.problem, one.stops(false)));
    let mut findings: Vec<Finding> = told.collect();
    if findings.is_empty() {
        findings.push(
            Finding::new(Family::Config, "config", "the config")
                .at(args.files.join(", "))
                .values("acceptable", "acceptable"),
        );
    }
    let source = args.files.join(", ");
    let report = Report { tool: "tenon validate", source, findings, ..Report::default() };
    args.check.tell(&report, false)?;
    answer(&report)
}
