//! Which image is wanted: profiles, configs and settings of the command line.

use std::path::{Path, PathBuf};

use tenon_core::codes::host::FILE_READ;
use tenon_core::image::config::{self, ImageConfig, Text};
use tenon_core::image::plan::{self, ImagePlan};
use tenon_core::image::profile::Profile;
use tenon_core::image::root_facts::RootFacts;
use tenon_core::problem::Problem;

use super::findings;
use crate::output::Failure;

#[derive(Debug, Clone, clap::Args)]
pub struct WantedArgs {
    /// Profiles; a path names a file of your own [default: base,cis]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Config of kind NodeImage; repeatable, later ones win
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// One field of the config: spec.kubernetes=1.34.2
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Distribution: al2023, debian or ubuntu [default: that of the root]
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Version of Kubernetes
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
}

impl WantedArgs {
    /// The config that files and flags make together.
    pub fn config(&self) -> Result<ImageConfig, Failure> {
        let mut files = Vec::new();
        for path in &self.config {
            files.push(Text { name: path.display().to_string(), text: read(path)? });
        }
        let mut settings = self.set.clone();
        let mut add = |path: &str, value: &str| settings.push(format!("{path}={value}"));
        for (path, value) in [("spec.family", &self.family), ("spec.kubernetes", &self.kubernetes)]
        {
            if let Some(value) = value {
                // Quoted, so that a version stays text whatever it looks like.
                add(path, &serde_json::Value::from(value.as_str()).to_string());
            }
        }
        if !self.profile.is_empty() {
            add("spec.profiles", &serde_json::Value::from(self.profile.clone()).to_string());
        }
        config::read(&files, &settings).map_err(findings)
    }

    /// The plan, for a root if there is one.
    pub fn plan(&self, root: Option<&RootFacts>) -> Result<(ImagePlan, ImageConfig), Failure> {
        let mut config = self.config()?;
        let own = own_profiles(&mut config)?;
        let wanted = config.wanted(root, own).map_err(findings)?;
        Ok((plan::resolve(&wanted).map_err(findings)?, config))
    }
}

/// Reads the profiles that are files; from then on they go by the name of the file.
fn own_profiles(config: &mut ImageConfig) -> Result<Vec<Profile>, Failure> {
    let mut own = Vec::new();
    for name in config.profiles.iter_mut().flatten() {
        if let Some(profile) = own_profile(name)? {
            name.clone_from(&profile.name);
            own.push(profile);
        }
    }
    Ok(own)
}

/// The profile of a file; None if the name is no path.
pub fn own_profile(name: &str) -> Result<Option<Profile>, Failure> {
    let path = Path::new(name);
    if !name.contains('/') && path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(None);
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Profile::read(&stem, &read(path)?).map(Some).map_err(findings)
}

/// Reads a text file of the user.
pub fn read(path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path).map_err(|error| {
        Problem::new(&FILE_READ, format!("reading {}", path.display())).cause(error)
    })
}
