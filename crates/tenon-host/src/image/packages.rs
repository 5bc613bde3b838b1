//! Installs what is missing and removes what must not be there, with the root's own package
//! manager, from the cache and without the network. No service is started by it.

use std::fs;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tenon_core::codes::image::{NOT_SIGNED, PACKAGE_NEEDED, PACKAGES_MISSING};
use tenon_core::image::family::Manager;
use tenon_core::image::item::Act;
use tenon_core::image::packages::{DPKG_STATUS, Package, Wish, dpkg_torn, fits};
use tenon_core::problem::Problem;

use super::cache::Cache;
use super::site::{Dress, Found, Site, found};
use super::{facts, inside};
use crate::apply::directories::{split, unreadable};
use crate::apply::discard::discard;
use crate::apply::files::write_problem;
use crate::root::{Root, absent};

const TIME: Duration = Duration::from_secs(3600);
const QUERY_TIME: Duration = Duration::from_secs(120);
/// Asked by Debian's packages before they start a service; 101 says no.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_TEXT: &str =
    "#!/bin/sh\n# tenon image: no service starts while an image is built\nexit 101\n";

/// Where somebody else's answer waits meanwhile.
const POLICY_KEPT: &str = "/usr/sbin/policy-rc.d.kept-by-tenon";

/// What was installed before rpm began: it is there while it works, and when it was stopped.
const UNDER_WAY: &str = "/usr/lib/tenon/image/packages-under-way";

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
    let (work, torn) = (work(site), torn(site)?);
    if work.is_empty() && torn.is_none() {
        return Ok(false);
    }
    (site.probe)("packages")?;
    begin(site, torn.is_some())?;
    let directory = cache.map(Cache::directory);
    let finished = match torn {
        // Of rpm there is nothing to finish if nothing had come.
        Some(came) if manager == Manager::Apt || !came.is_empty() => {
            inside::run(site.root, directory, &manager.finish(&came), TIME).map(|_| ())
        }
        _ => Ok(()),
    };
    let changed = finished.and_then(|()| run(site, manager, &work, cache));
    forget_policy(site.root)?;
    changed?;
    if site.root.exists(UNDER_WAY) {
        discard(site.root, UNDER_WAY)?;
    }
    site.facts.packages = facts::installed(site.root, manager)?;
    Ok(true)
}

/// Leaves what a package manager must find, or the next run after a stop.
fn begin(site: &Site<'_>, torn: bool) -> Result<(), Problem> {
    let owner = site.keeper;
    match site.facts.family.manager {
        Manager::Apt => {
            rename(site.root, POLICY, POLICY_KEPT)?;
            site.write_file(POLICY, POLICY_TEXT.as_bytes(), Dress { mode: 0o755, owner })
        }
        // The list of the run that was stopped first still says what there was before.
        Manager::Dnf if torn => Ok(()),
        Manager::Dnf => {
            let line =
                |(name, package): (&String, &Package)| format!("{name} {}\n", package.version);
            let list: String = site.facts.packages.iter().map(line).collect();
            site.write_file(UNDER_WAY, list.as_bytes(), Dress { mode: 0o644, owner })
        }
    }
}

/// What an earlier run was stopped in the middle of: with rpm, the packages that came meanwhile.
fn torn(site: &Site<'_>) -> Result<Option<Vec<String>>, Problem> {
    if site.facts.family.manager == Manager::Apt {
        let updates = "/var/lib/dpkg/updates";
        let names = site.root.list(updates).map_err(|error| unreadable(updates, error))?;
        return Ok(dpkg_torn(&site.text(DPKG_STATUS)?, &names).then(Vec::new));
    }
    if !site.root.exists(UNDER_WAY) {
        return Ok(None);
    }
    let before = site.text(UNDER_WAY)?;
    let came = |(name, package): &(&String, &Package)| {
        !before.lines().any(|line| {
            line.strip_prefix(name.as_str()).map(str::trim_start) == Some(&package.version)
        })
    };
    let now = site.facts.packages.iter().filter(|(name, _)| *name != "gpg-pubkey");
    Ok(Some(now.filter(came).map(|(name, _)| name.clone()).collect()))
}

/// What a package manager of this machine must know of the root's: rpm of another distribution may
/// look for its database elsewhere.
pub fn environment(
    root: &Root,
    manager: Manager,
    cache: &Cache,
) -> Result<Vec<(String, String)>, Problem> {
    if manager == Manager::Apt {
        return Ok(Vec::new());
    }
    let argv = ["rpm", "--eval", "%_dbpath"].map(str::to_owned);
    let output = inside::run(root, None, &argv, QUERY_TIME)?;
    let home = cache.directory().join("dnf/home");
    let macros = format!("%_dbpath {}\n", String::from_utf8_lossy(&output.stdout).trim());
    fs::create_dir_all(&home)
        .and_then(|()| fs::write(home.join(".rpmmacros"), macros))
        .map_err(|error| write_problem("writing", &home.display().to_string(), error))?;
    Ok(vec![("HOME".to_owned(), home.display().to_string())])
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
        inside::run(site.root, directory, &manager.remove(&work.remove), TIME).map_err(told)?;
    }
    if work.install.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = work.install.iter().map(|(name, _)| *name).collect();
    if cache.is_none() {
        let what = format!("without a cache, {} cannot be installed", names.join(", "));
        return Err(Problem::new(&PACKAGES_MISSING, what));
    }
    tracing::info!(packages = names.join(" "), "installing packages from the cache");
    inside::run(site.root, directory, &manager.install(&work.install), TIME).map_err(told)?;
    Ok(())
}

/// What a package manager says in its own words.
fn told(problem: Problem) -> Problem {
    const UNSIGNED: &[&str] = &["GPG check FAILED", "is not signed", "unauthenticated packages"];
    const NEEDED: &[&str] = &["Failed dependencies", "dependency problems"];
    const MISSING: &[&str] = &[
        "Unable to fetch",
        "Unable to locate",
        "no installation candidate",
        "Unable to find a match",
        "is set but some packages are missing",
        "Cannot download",
        "no cache for",
    ];
    let says = |words: &[&str]| {
        problem.details.iter().any(|line| words.iter().any(|word| line.contains(word)))
    };
    let pages = [
        (UNSIGNED, &NOT_SIGNED, "a package is not signed by the key of its repository"),
        (NEEDED, &PACKAGE_NEEDED, "a package that must go is needed by others"),
        (MISSING, &PACKAGES_MISSING, "the cache lacks packages of the plan"),
    ];
    let Some((_, page, what)) = pages.into_iter().find(|(words, ..)| says(words)) else {
        return problem;
    };
    Problem::new(page, what).details(problem.details.clone())
}

/// Removes the answer to packages, also if a killed run left it, and puts back somebody else's.
pub fn forget_policy(root: &Root) -> Result<(), Problem> {
    if matches!(root.read(POLICY, 4096), Ok(Some(bytes)) if bytes == POLICY_TEXT.as_bytes()) {
        discard(root, POLICY)?;
    }
    match found(root, POLICY, OFlags::NOFOLLOW).map_err(|error| unreadable(POLICY, error))? {
        Found::Nothing => rename(root, POLICY_KEPT, POLICY),
        _ => Ok(()),
    }
}

/// Gives a file another name in its directory; nothing happens if there is none.
fn rename(root: &Root, from: &str, to: &str) -> Result<(), Problem> {
    let ((parent, from_name), (_, to_name)) = (split(from), split(to));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let renamed = root.open_at(parent, flags, Mode::empty()).and_then(|parent| {
        rustix::fs::renameat(&parent, from_name, &parent, to_name)?;
        Ok(rustix::fs::fsync(&parent)?)
    });
    match renamed {
        Err(error) if !absent(&error) => Err(write_problem("renaming", from, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_somebody_else_comes_back() {
        let stage = tempfile::tempdir().unwrap();
        let at = |path: &str| stage.path().join(&path[1..]);
        fs::create_dir_all(at("/usr/sbin")).unwrap();
        let root = Root::open(stage.path()).unwrap();
        forget_policy(&root).unwrap();
        fs::write(at(POLICY), "#!/bin/sh\nexit 0\n").unwrap();
        for killed_before_its_own in [true, false] {
            rename(&root, POLICY, POLICY_KEPT).unwrap();
            if !killed_before_its_own {
                fs::write(at(POLICY), POLICY_TEXT).unwrap();
            }
            forget_policy(&root).unwrap();
            assert_eq!(fs::read_to_string(at(POLICY)).unwrap(), "#!/bin/sh\nexit 0\n");
            assert!(!at(POLICY_KEPT).exists());
        }
    }
}
