//! `tenon schema`: the JSON Schemas of machine-readable answers.

use clap::ValueEnum;
use tenon_core::checks::report;
use tenon_core::{doctor, max_pods};

use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenon schema max-pods > max-pods.schema.json")]
pub struct Args {
    /// Whose answer
    answer: Answer,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Answer {
    Doctor,
    MaxPods,
    Validate,
}

pub fn run(args: &Args) -> Outcome {
    match args.answer {
        Answer::Doctor => output::answer(doctor::SCHEMA),
        Answer::MaxPods => output::answer(max_pods::SCHEMA),
        Answer::Validate => output::answer(report::SCHEMA),
    }
}
