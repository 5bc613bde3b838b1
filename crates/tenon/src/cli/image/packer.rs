//! `tenon image packer`: a template that builds the image with Tenon.

use clap::ValueEnum;
use tenon_core::image::packer;

use super::wanted::WantedArgs;
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon image packer --config image.yaml --format hcl > image.pkr.hcl
  tenon image packer --family al2023 --format json > image.json

The template takes the plan from a file: make it with the same flags and
`tenon image plan --output json > plan.json`.")]
pub struct Args {
    #[command(flatten)]
    wanted: WantedArgs,
    /// Notation: json is the legacy template, hcl needs Packer 1.7
    #[arg(long, value_enum, value_name = "json|hcl")]
    format: Notation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Notation {
    Json,
    Hcl,
}

pub fn run(args: &Args) -> Outcome {
    let (plan, config) = args.wanted.plan(None)?;
    match args.format {
        Notation::Json => output::answer_json(&packer::json(&plan, &config.packer)),
        Notation::Hcl => output::answer(&packer::hcl(&plan, &config.packer)),
    }
}
