//! `tenon userdata lint`: what is wrong with user data for a family.

use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::json;
use tenon_core::codes::inspect::BAD_TARGET;
use tenon_core::problem::Problem;
use tenon_core::userdata::inspect::lint::{Finding, Level, Target, lint, sarif};
use tenon_core::userdata::{Family, Kind, Mode, input};

use super::userdata_source::{SourceArgs, cluster};
use crate::output::{self, Failure, Format, Outcome};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Operating system line of the image, such as AmazonLinux2023
    #[arg(long, value_name = "FAMILY")]
    family: String,
    /// self-managed, managed or custom (managed with an image of your own)
    #[arg(long, value_name = "KIND", default_value = "self-managed")]
    kind: String,
    /// native, self-contained or tenon
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Version such as 1.33
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
    /// Instance type that the pod limit is compared with
    #[arg(long, value_name = "TYPE")]
    instance_type: Option<String>,
    /// Answer of DescribeCluster to compare with
    #[arg(long, value_name = "FILE")]
    cluster_json: Option<PathBuf>,
    /// Warnings count as errors
    #[arg(long)]
    strict: bool,
    /// How to print the findings
    #[arg(long, value_name = "text|json|sarif", default_value = "text")]
    #[arg(value_parser = Format::findings)]
    output: Format,
}

pub fn run(args: &Args) -> Outcome {
    let target = args.target()?;
    let findings = lint(&args.source.read()?, &target);
    match args.output {
        Format::Sarif => output::answer_json(&sarif(&findings))?,
        Format::Json => {
            let list: Vec<_> = findings.iter().map(Finding::to_json).collect();
            output::answer_json(&json!({"findings": list}))?;
        }
        _ => output::answer(&text(&findings))?,
    }
    let worst = if args.strict { Level::Warning } else { Level::Error };
    match findings.iter().any(|finding| finding.level <= worst) {
        true => Err(Failure::Answer(1)),
        false => Ok(()),
    }
}

fn text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "no findings\n".into();
    }
    let block = |finding: &Finding| {
        finding.problem.render(&format!("{} {}", finding.level.name(), finding.rule()))
    };
    findings.iter().map(block).collect()
}

impl Args {
    fn target(&self) -> Result<Target, Failure> {
        let wrong = |what: &str| Problem::new(&BAD_TARGET, what);
        let mode = self.mode.as_deref().map(|mode| Mode::parse(mode).ok_or(mode));
        let version = self.kubernetes_version.as_deref();
        let version = version.map(|text| input::version(text).ok_or(text));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Target {
            family: Family::parse(&self.family)?,
            kind: Kind::parse(&self.kind).ok_or_else(|| wrong("unknown kind of group"))?,
            mode: mode.transpose().map_err(|_| wrong("unknown mode"))?,
            version: version.transpose().map_err(|_| wrong("the version is not like 1.33"))?,
            instance_type: self.instance_type.clone(),
            cluster: cluster(self.cluster_json.as_deref())?,
            now: now.ok().map(|time| time.as_secs()),
        })
    }
}
