//! Which image is wanted: profiles, configs and settings of the command line.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenon_core::codes::host::FILE_READ;
use tenon_core::codes::image::BAD_PROFILE;
use tenon_core::image::component::FEATURE;
use tenon_core::image::config::{self, ImageConfig, Text};
use tenon_core::image::exception::CONFIG;
use tenon_core::image::plan::{self, ImagePlan};
use tenon_core::image::profile::{self, Profile};
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
        let setting = |flag: &str, text: String| Text { name: flag.to_owned(), text };
        let mut settings: Vec<Text> =
            self.set.iter().map(|text| setting("--set", text.clone())).collect();
        // As JSON, so that a version stays text whatever it looks like.
        let mut add = |flag: &str, path: &str, value: Value| {
            settings.push(setting(flag, format!("{path}={value}")));
        };
        if let Some(family) = &self.family {
            add("--family", "spec.family", json!(family));
        }
        if let Some(version) = &self.kubernetes {
            add("--kubernetes", "spec.kubernetes", json!(version));
        }
        if !self.profile.is_empty() {
            add("--profile", "spec.profiles", json!(self.profile));
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

/// Reads the profiles that are files; from then on they go by the name of the file. Paths in a
/// config start at the config, so that it means the same from every directory.
fn own_profiles(config: &mut ImageConfig) -> Result<Vec<Profile>, Failure> {
    let mut own = Vec::new();
    let start = Path::new(&config.profiles_from).parent().unwrap_or(Path::new(""));
    for name in config.profiles.iter_mut().flatten() {
        if let Some(profile) = own_profile(start, name)? {
            name.clone_from(&profile.name);
            own.push(profile);
        }
    }
    Ok(own)
}

/// The profile of a file; None if the name is no path.
pub fn own_profile(start: &Path, name: &str) -> Result<Option<Profile>, Failure> {
    let path = start.join(name);
    if !name.contains('/') && path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(None);
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if profile::names().chain([CONFIG, FEATURE]).any(|taken| taken == stem) {
        let what = format!("a profile of your own cannot be called `{stem}`");
        let why = "reasons and exceptions name profiles, and that name is taken";
        return Err(Problem::new(&BAD_PROFILE, what).why(why).fix("rename the file").into());
    }
    Profile::read(&stem, &read(&path)?).map(Some).map_err(findings)
}

/// Reads a text file of the user.
pub fn read(path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path).map_err(|error| {
        Problem::new(&FILE_READ, format!("reading {}", path.display())).cause(error)
    })
}
