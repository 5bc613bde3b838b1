//! `tenon image diff`: what changed from one image to another.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenon_core::codes::image::BAD_MANIFEST;
use tenon_core::image::manifest::{self, Change};
use tenon_core::problem::Problem;

use super::wanted;
use crate::cli::Global;
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenon image diff old.json new.json

Both are what `tenon image manifest` printed. Times of builds do not count.")]
pub struct Args {
    /// Manifest of the earlier image
    before: PathBuf,
    /// Manifest of the later image
    after: PathBuf,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let changes = manifest::diff(&read(&args.before)?, &read(&args.after)?)?;
    if global.json() {
        return output::answer_json(&manifest::diff_json(&changes));
    }
    let lines: String = changes.iter().map(Change::line).collect();
    output::answer(&format!("{lines}{} differences\n", changes.len()))
}

fn read(path: &Path) -> Result<Value, Problem> {
    serde_json::from_str(&wanted::read(path)?).map_err(|error| {
        Problem::new(&BAD_MANIFEST, format!("{} is no JSON", path.display())).cause(error)
    })
}
