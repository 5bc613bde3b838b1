//! `tenon image diff`: what changed from one image to another.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenon_core::codes::image::BAD_MANIFEST;
use tenon_core::image::manifest::{self, Change};
use tenon_core::problem::Problem;

use super::wanted;
use crate::cli::Global;
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon image diff old.json new.json
  tenon image diff old.json new.json --exit-code > changes.txt

Both are what `tenon image manifest` printed. Times of builds do not count.")]
pub struct Args {
    /// Manifest of the earlier image
    before: PathBuf,
    /// Manifest of the later image
    after: PathBuf,
    /// Exit with 2 when something changed
    #[arg(long)]
    exit_code: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let changes = manifest::diff(&read(&args.before)?, &read(&args.after)?)?;
    if global.json() {
        output::answer_json(&manifest::diff_json(&changes))?;
    } else {
        let lines: String = changes.iter().map(Change::line).collect();
        let word = if changes.len() == 1 { "difference" } else { "differences" };
        output::answer(&format!("{lines}{} {word}\n", changes.len()))?;
    }
    match args.exit_code && !changes.is_empty() {
        true => Err(Failure::Answer(2)),
        false => Ok(()),
    }
}

fn read(path: &Path) -> Result<Value, Problem> {
    serde_json::from_str(&wanted::read(path)?).map_err(|error| {
        Problem::new(&BAD_MANIFEST, format!("{} is no JSON", path.display())).cause(error)
    })
}
