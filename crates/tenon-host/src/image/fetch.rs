//! Fills the cache with what a plan needs: files, container images, packages. With `download` and
//! `registry` the only rooms here that use the network.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use tenon_core::codes::image::FETCH_STOPPED;
use tenon_core::image::cached;
use tenon_core::image::item::Act;
use tenon_core::image::packages::Places;
use tenon_core::image::plan::ImagePlan;
use tenon_core::problem::Problem;

use super::cache::Cache;
use super::download::{Limits, Source, download};
use super::place::Pinned;
use super::site::{Site, hash};
use super::unpack::holds_image;
use super::{facts, packages, registry, sources};
use crate::apply::files::write_problem;
use crate::command;
use crate::gather::environment::Environment;
use crate::root::Root;
use crate::stop;

const PACKAGES_TIME: Duration = Duration::from_secs(3600);
/// For another fetch into the same cache.
const TURN_TIME: Duration = Duration::from_secs(3600);

/// What a fetch did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fetched {
    /// Addresses of new files.
    pub files: Vec<String>,
    /// Files that the cache had.
    pub had: usize,
    pub bytes: u64,
    /// Names of packages that were asked for, with all that they need.
    pub packages: Vec<String>,
}

/// Fetches what the plan needs; `root` says which packages are missing, None leaves them out.
pub fn fetch(plan: &ImagePlan, root: Option<&Root>, cache: &Cache) -> Result<Fetched, Problem> {
    let _turn = cache.turn(TURN_TIME)?;
    let mut fetched = Fetched::default();
    let environment = Environment::of_process();
    for act in plan.downloads() {
        let Some(path) = cache.path(act) else { continue };
        match act {
            _ if is_held(act, &path)? => fetched.had += 1,
            Act::Download { url, sha256, .. } => {
                let source = Source { pinned: Pinned { sha256, name: url }, headers: &[] };
                fetched.bytes += download(source, &path, &environment, Limits::default())?;
                fetched.files.push(url.clone());
            }
            Act::CachedImage { reference, digest, .. } => {
                let architecture = &plan.architecture;
                fetched.bytes +=
                    registry::pull(reference, digest, architecture, &path, &environment)?;
                fetched.files.push(format!("{reference}@{digest}"));
            }
            _ => {}
        }
    }
    if let Some(root) = root {
        fetched.packages = fetch_packages(plan, root, cache)?;
    }
    Ok(fetched)
}

/// True if the cache has it whole; what is damaged there is removed, and so fetched again.
fn is_held(act: &Act, path: &Path) -> Result<bool, Problem> {
    let Ok(file) = File::open(path) else { return Ok(false) };
    let whole = match act {
        Act::Download { sha256, .. } => hash(file.into()).is_ok_and(|actual| actual == *sha256),
        Act::CachedImage { digest, .. } => {
            holds_image(file, cached::digits(digest).unwrap_or_default()).unwrap_or(false)
        }
        _ => true,
    };
    if !whole {
        let name = path.display().to_string();
        tracing::warn!(entry = name, "damaged in the cache, fetched again");
        fs::remove_file(path).map_err(|error| write_problem("removing", &name, error))?;
    }
    Ok(whole)
}

fn fetch_packages(plan: &ImagePlan, root: &Root, cache: &Cache) -> Result<Vec<String>, Problem> {
    let facts = facts::gather(root)?;
    if let Some(problem) = facts.refuses(plan) {
        return Err(problem.fix("give the root of the image, or --downloads-only"));
    }
    let site = Site::new(root, plan, facts, &|_| stop::check())?;
    let wishes = packages::work(&site).install;
    if wishes.is_empty() {
        return Ok(Vec::new());
    }
    let real = root.path().canonicalize().unwrap_or_else(|_| root.path().to_owned());
    let sources = sources::copy(plan, root, &real, cache)?.display().to_string();
    let (real, directory) = (real.display().to_string(), cache.directory().display().to_string());
    let places = Places {
        root: real.trim_end_matches('/'),
        cache: &directory,
        sources: &sources,
        architecture: &plan.architecture,
    };
    tracing::info!(packages = wishes.len(), "downloading packages and what they need");
    let environment = packages::environment(root, plan.family.manager, cache)?;
    for argv in plan.family.manager.download(places, &wishes) {
        let output = command::run(&argv, PACKAGES_TIME, &environment)?;
        if !output.status.success() {
            let what = format!("`{}` ended with {}", argv.join(" "), output.status);
            return Err(Problem::new(&FETCH_STOPPED, what).details(output.tail));
        }
    }
    Ok(wishes.iter().map(|(name, _)| (*name).to_owned()).collect())
}
