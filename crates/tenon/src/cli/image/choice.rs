//! Which plan a command works with: a file, or what is wanted, resolved for the root at hand.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenon_core::codes::image::BAD_PLAN;
use tenon_core::image::plan::ImagePlan;
use tenon_core::problem::Problem;
use tenon_host::image::facts;
use tenon_host::root::Root;

use super::findings;
use super::wanted::{self, WantedArgs};
use crate::output::Failure;

#[derive(Debug, Clone, clap::Args)]
pub struct Choice {
    /// The plan that `tenon image plan --output json` printed
    #[arg(long, value_name = "FILE", required_unless_present_any = ["profile", "config"])]
    #[arg(conflicts_with_all = ["profile", "config", "set", "family", "kubernetes"])]
    plan: Option<PathBuf>,
    #[command(flatten)]
    wanted: WantedArgs,
}

impl Choice {
    /// The plan that was chosen.
    pub fn plan(&self, root: &Root) -> Result<ImagePlan, Failure> {
        match &self.plan {
            Some(path) => read(path),
            None => Ok(self.wanted.plan(Some(&facts::gather(root)?))?.0),
        }
    }
}

/// Reads a plan from a file.
pub fn read(path: &Path) -> Result<ImagePlan, Failure> {
    let value: Value = serde_json::from_str(&wanted::read(path)?).map_err(|error| {
        Problem::new(&BAD_PLAN, format!("{} is no JSON", path.display())).cause(error)
    })?;
    ImagePlan::from_json(&value).map_err(findings)
}
