//! Arguments and steps that `validate` and `harden` share.

use std::path::PathBuf;

use tenon_core::checks::cis::{PROFILES, Profile};
use tenon_core::checks::report::Report;
use tenon_core::checks::waivers;
use tenon_core::problem::Problem;
use tenon_host::checks::{Eyes, Known, Wanted, known, today};

use super::{Global, node_args};
use crate::output::{self, Format, Outcome};

/// What is examined, by which benchmark, and how it is told.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Examine a bundle of `tenon logs collect`
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    pub bundle: Option<PathBuf>,
    /// Benchmark: eks-1.8 or k8s-1.11
    #[arg(long, value_name = "NAME", default_value = PROFILES[0].name)]
    profile: String,
    /// Findings that may stay, each with reason and expiry
    #[arg(long, value_name = "FILE")]
    exceptions: Option<PathBuf>,
    /// Report only what is not in this earlier JSON answer
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Show what passed and what does not apply, too
    #[arg(long)]
    all: bool,
    /// The node's config, if the node does not keep it; repeatable
    #[arg(short = 'c', long = "config-source", value_name = "SOURCE")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    config_source: Vec<String>,
    /// Where the node keeps its config
    #[arg(long, value_name = "PATH")]
    config_cache: Option<String>,
    /// How to print the answer
    #[arg(long, value_name = "text|json|junit|sarif", default_value = "text")]
    #[arg(value_parser = Format::checks)]
    pub output: Format,
}

impl CheckArgs {
    pub fn profile(&self) -> Result<&'static Profile, Problem> {
        Profile::find(&self.profile)
    }

    pub fn eyes(&self, global: &Global) -> Result<Eyes, Problem> {
        match &self.bundle {
            Some(file) => Eyes::on_bundle(file),
            None => Eyes::on_root(&global.root),
        }
    }

    /// Config, facts and plan of the node, as far as they can be had.
    pub fn known(&self, eyes: &Eyes, global: &Global) -> Result<Known, Problem> {
        let wanted = Wanted {
            sources: self.config_source.clone(),
            facts: global.facts.as_deref().map(node_args::read_facts).transpose()?,
            cache: self.config_cache.as_deref().map(|path| node_args::node_path(path, global)),
        };
        known(eyes.root(), wanted)
    }

    /// Applies exceptions and baseline.
    pub fn excuse(&self, report: &mut Report) -> Result<(), Problem> {
        let read = |path: &PathBuf| -> Result<(String, String), Problem> {
            let bytes = node_args::read_file(path)?;
            Ok((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()))
        };
        if let Some(path) = &self.exceptions {
            let (source, text) = read(path)?;
            let list = waivers::exceptions(&source, &text)?;
            waivers::excuse(&mut report.findings, &list, &today());
        }
        if let Some(path) = &self.baseline {
            let (source, text) = read(path)?;
            let known = waivers::baseline(&source, &text)?;
            report.accepted = waivers::without_known(&mut report.findings, &known);
        }
        Ok(())
    }

    /// Prints the report, and one line of counts for the journal. `all`: also what passed.
    pub fn tell(&self, report: &Report, all: bool) -> Outcome {
        tracing::info!(counts = report.counts_line(), profile = report.profile, "{}", report.tool);
        match self.output {
            Format::Json => output::answer_json(&report.to_json()),
            Format::Sarif => output::answer_json(&report.sarif()),
            Format::Junit => output::answer(&report.junit()),
            _ => output::answer(&report.text(self.all || all)),
        }
    }
}
