//! Installs what is missing and removes what must not be there, with the root's own package
//! manager, from the cache and without the network. No service is started by it.

use std::time::Duration;

use tenon_core::codes::image::PACKAGES_MISSING;
use tenon_core::image::family::Manager;
use tenon_core::image::item::Act;
use tenon_core::image::packages::{DPKG_STATUS, Wish, dpkg_torn, fits};
use tenon_core::problem::Problem;

use super::cache::Cache;
use super::site::{Dress, Site};
use super::{facts, inside};
use crate::apply::directories::unreadable;
use crate::apply::discard::discard;
use crate::root::Root;

const TIME: Duration = Duration::from_secs(3600);
/// Asked by Debian's packages before they start a service; 101 says no.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_TEXT: &str =
    "#!/bin/sh\n# tenon image: no service starts while an image is built\nexit 101\n";

/// The packages that an apply must install and remove.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Work<'p> {
    pub install: Vec<Wish<'p>>,
    pub remove: Vec<&'p str>,
}

impl Work<'_> {
    pub fn is_empty(&self) -> bool {
        self.install.is_empty() && self.remove.is_empty()
    }
}

/// What is to be done, as the package database has it.
pub fn work<'p>(site: &Site<'p>) -> Work<'p> {
    let mut work = Work::default();
    let installed = &site.facts.packages;
    let plan = site.plan;
    for item in &plan.items {
        match &item.act {
            Act::Package { name, version, .. } => {
                let held = installed.get(name).map(|package| package.version.as_str());
                let right = |held| version.as_deref().is_none_or(|wanted| fits(held, wanted));
                if !held.is_some_and(right) {
                    work.install.push((name, version.as_deref()));
                }
            }
            Act::NoPackage { name } if installed.contains_key(name) => work.remove.push(name),
            _ => {}
        }
    }
    work
}

/// Does the work, and reads the database again.
pub fn change(site: &mut Site<'_>, cache: Option<&Cache>) -> Result<bool, Problem> {
    forget_policy(site.root)?;
    let manager = site.facts.family.manager;
    let (work, torn) = (work(site), manager == Manager::Apt && is_torn(site)?);
    if work.is_empty() && !torn {
        return Ok(false);
    }
    (site.probe)("packages")?;
    if manager == Manager::Apt {
        let dress = Dress { mode: 0o755, owner: site.keeper };
        site.write_file(POLICY, POLICY_TEXT.as_bytes(), dress)?;
    }
    let finished = match torn {
        true => inside::run(site.root, None, &manager.finish(), TIME).map(|_| ()),
        false => Ok(()),
    };
    let changed = finished.and_then(|()| run(site, manager, &work, cache));
    forget_policy(site.root)?;
    changed?;
    site.facts.packages = facts::installed(site.root, manager)?;
    Ok(true)
}

/// True if an earlier run was stopped while dpkg worked.
fn is_torn(site: &Site<'_>) -> Result<bool, Problem> {
    let updates = "/var/lib/dpkg/updates";
    let names = site.root.list(updates).map_err(|error| unreadable(updates, error))?;
    Ok(dpkg_torn(&site.text(DPKG_STATUS)?, &names))
}

fn run(
    site: &Site<'_>,
    manager: Manager,
    work: &Work<'_>,
    cache: Option<&Cache>,
) -> Result<(), Problem> {
    let directory = cache.map(Cache::directory);
    if !work.remove.is_empty() {
        tracing::info!(packages = work.remove.join(" "), "removing packages");
        inside::run(site.root, directory, &manager.remove(&work.remove), TIME)?;
    }
    if work.install.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = work.install.iter().map(|(name, _)| *name).collect();
    let Some(cache) = cache else {
        let what = format!("without a cache, {} cannot be installed", names.join(", "));
        return Err(Problem::new(&PACKAGES_MISSING, what));
    };
    tracing::info!(packages = names.join(" "), "installing packages from the cache");
    let argv = manager.install(&work.install, &cache.rpms());
    inside::run(site.root, directory, &argv, TIME).map_err(not_there)?;
    Ok(())
}

/// A package manager that lacks packages says so in its own words.
fn not_there(problem: Problem) -> Problem {
    const WORDS: &[&str] = &[
        "Unable to fetch",
        "Unable to locate",
        "no installation candidate",
        "Unable to find a match",
    ];
    let says = |line: &String| WORDS.iter().any(|word| line.contains(word));
    match problem.details.iter().any(says) {
        true => Problem::new(&PACKAGES_MISSING, "the cache lacks packages of the plan")
            .details(problem.details.clone()),
        false => problem,
    }
}

/// Removes the answer to packages that a killed run left; one of somebody else stays.
pub fn forget_policy(root: &Root) -> Result<(), Problem> {
    if matches!(root.read(POLICY, 4096), Ok(Some(bytes)) if bytes == POLICY_TEXT.as_bytes()) {
        discard(root, POLICY)?;
    }
    Ok(())
}
