//! Which plan a command works with: a file, or profiles resolved for the root at hand.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenon_core::codes::host::FILE_READ;
use tenon_core::codes::image::BAD_PLAN;
use tenon_core::image::plan::{self, ImagePlan, Wanted};
use tenon_core::problem::Problem;
use tenon_host::image::facts;
use tenon_host::root::Root;

use super::findings;
use crate::output::Failure;

#[derive(Debug, Clone, clap::Args)]
pub struct Choice {
    /// The plan that `tenon image plan --output json` printed
    #[arg(long, value_name = "FILE", required_unless_present = "profile")]
    plan: Option<PathBuf>,
    /// Profiles to plan for this root, instead of a plan
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "plan")]
    profile: Vec<String>,
    /// Version of Kubernetes that the profiles are resolved for
    #[arg(long, value_name = "VERSION", default_value = "1.34.2", conflicts_with = "plan")]
    kubernetes: String,
}

impl Choice {
    /// The plan that was chosen.
    pub fn plan(&self, root: &Root) -> Result<ImagePlan, Failure> {
        if let Some(path) = &self.plan {
            return read(path);
        }
        let facts = facts::gather(root)?;
        let wanted = Wanted {
            name: format!("{}-{}", facts.family.name, facts.architecture),
            family: facts.family,
            release: facts.release,
            architecture: facts.architecture,
            kubernetes: self.kubernetes.clone(),
            profiles: self.profile.clone(),
            own_profiles: Vec::new(),
            wishes: Vec::new(),
            exceptions: Vec::new(),
        };
        plan::resolve(&wanted).map_err(findings)
    }
}

/// Reads a plan from a file.
pub fn read(path: &Path) -> Result<ImagePlan, Failure> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Problem::new(&FILE_READ, format!("reading {shown}")).cause(error))?;
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| Problem::new(&BAD_PLAN, format!("{shown} is no JSON")).cause(error))?;
    ImagePlan::from_json(&value).map_err(findings)
}
