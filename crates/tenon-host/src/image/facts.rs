//! What a root is: read from its own files, and for rpm from its own program.

use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tenon_core::codes::host::PROGRAM_FAILED;
use tenon_core::codes::image::NO_DISTRIBUTION;
use tenon_core::image::family::Manager;
use tenon_core::image::packages::{self, DNF_LOCKS, DPKG_STATUS, Installed, RPM_QUERY};
use tenon_core::image::root_facts::{RootFacts, architecture, closer, distribution};
use tenon_core::problem::Problem;

use super::inside;
use crate::apply::directories::unreadable;
use crate::root::{Root, read_up_to};

/// Programs that every root has one of; the first that is an executable tells the architecture.
const PROGRAMS: &[&str] =
    &["/bin/sh", "/usr/bin/sh", "/usr/lib/systemd/systemd", "/sbin/init", "/usr/bin/env"];
/// dpkg keeps some kilobytes for each package.
const STATUS_CAP: u64 = 64 << 20;
pub(super) const QUERY_TIME: Duration = Duration::from_secs(120);

/// Gathers the facts about a root.
pub fn gather(root: &Root) -> Result<RootFacts, Problem> {
    let text = text(root, "/etc/os-release")?.or(text(root, "/usr/lib/os-release")?);
    let known = text.as_deref().and_then(distribution);
    let place = root.path().display();
    let Some((family, release)) = known else {
        return Err(Problem::new(&NO_DISTRIBUTION, format!("{place} names no known distribution")));
    };
    let Some(architecture) = PROGRAMS.iter().find_map(|program| machine(root, program)) else {
        return Err(Problem::new(&NO_DISTRIBUTION, format!("{place} has no program to look at")));
    };
    let packages = installed(root, family.manager)?;
    let release = closer(release, &packages);
    Ok(RootFacts { family, release, architecture: architecture.to_owned(), packages })
}

fn machine(root: &Root, program: &str) -> Option<&'static str> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = root.open_at(program, flags, Mode::empty()).ok()?;
    architecture(&read_up_to(std::fs::File::from(file), 64).ok()?)
}

/// What the root's package database says now.
pub(super) fn installed(root: &Root, manager: Manager) -> Result<Installed, Problem> {
    if manager == Manager::Apt {
        let bytes = root.read(DPKG_STATUS, STATUS_CAP).map_err(|e| unreadable(DPKG_STATUS, e))?;
        return Ok(packages::dpkg(&String::from_utf8_lossy(&bytes.unwrap_or_default())));
    }
    if !root.exists("/usr/bin/rpm") {
        return Ok(Installed::new());
    }
    let query: Vec<String> = RPM_QUERY.iter().map(|word| (*word).to_owned()).collect();
    let answer = inside::run(root, None, &query, QUERY_TIME)?;
    if answer.stdout.len() >= inside::ANSWER_BYTES {
        // The beginning of the list is lost, and what is not in it would count as missing.
        return Err(Problem::new(&PROGRAM_FAILED, "rpm lists more packages than are kept"));
    }
    let locks = text(root, DNF_LOCKS)?.unwrap_or_default();
    Ok(packages::rpm(&String::from_utf8_lossy(&answer.stdout), &locks))
}

fn text(root: &Root, path: &str) -> Result<Option<String>, Problem> {
    root.read_text(path).map_err(|error| unreadable(path, error))
}
