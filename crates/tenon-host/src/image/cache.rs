//! What `fetch` brought: files under the names of their hashes, archives of container images
//! under their digests, and the package manager's own directories.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use tenon_core::codes::host::{BUSY, FILE_WRITE};
use tenon_core::codes::image::NOT_CACHED;
use tenon_core::image::cached;
use tenon_core::image::item::Act;
use tenon_core::problem::Problem;

use super::site::Site;
use crate::stop;

#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
}

/// The right to use a cache, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Turn {
    _held: File,
}

impl Cache {
    /// Opens a cache, making it where it is missing.
    pub fn open(directory: &Path) -> Result<Cache, Problem> {
        let made = ["sha256", "images", "apt/archives/partial", "apt/lists/partial", "rpm"]
            .iter()
            .try_for_each(|name| fs::create_dir_all(directory.join(name)))
            .and_then(|()| directory.canonicalize());
        let what = || format!("making the cache {}", directory.display());
        let directory = made.map_err(|e| Problem::new(&FILE_WRITE, what()).cause(e))?;
        Ok(Cache { directory })
    }

    /// Waits until nobody else changes the cache, and keeps others from it while it is held.
    pub fn turn(&self, wait: Duration) -> Result<Turn, Problem> {
        self.locked(FlockOperation::NonBlockingLockExclusive, wait)
    }

    /// Waits until nobody changes the cache; many may read it at once.
    pub fn reading(&self, wait: Duration) -> Result<Turn, Problem> {
        self.locked(FlockOperation::NonBlockingLockShared, wait)
    }

    /// The lock is on the directory itself, so that locking is not a write.
    fn locked(&self, kind: FlockOperation, wait: Duration) -> Result<Turn, Problem> {
        let what = format!("locking the cache {}", self.directory.display());
        let failed = |error: io::Error| Problem::new(&FILE_WRITE, what.clone()).cause(error);
        let held = File::open(&self.directory).map_err(failed)?;
        let (end, mut told) = (Instant::now() + wait, false);
        loop {
            match rustix::fs::flock(&held, kind) {
                Ok(()) => return Ok(Turn { _held: held }),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() >= end => {
                    let what = format!("another fetch uses the cache {}", self.directory.display());
                    let fix = "wait for it to end, or give another --cache";
                    return Err(Problem::new(&BUSY, what).fix(fix));
                }
                Err(Errno::WOULDBLOCK) => {
                    if !told {
                        tracing::info!("waiting: another fetch or apply uses this cache");
                        told = true;
                    }
                    stop::sleep(stop::SLICE)?;
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the content of an act lies; None for acts that need none.
    pub fn path(&self, act: &Act) -> Option<PathBuf> {
        match act {
            Act::Download { sha256, .. } => Some(self.directory.join("sha256").join(sha256)),
            Act::CachedImage { digest, .. } => {
                let name = format!("{}.tar", cached::digits(digest)?);
                Some(self.directory.join("images").join(name))
            }
            _ => None,
        }
    }

    pub fn open_entry(&self, act: &Act) -> Result<File, Problem> {
        let path = self.path(act).unwrap_or_default();
        File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(&[words(act, Some(self))]),
            _ => Problem::new(&NOT_CACHED, format!("opening {}", path.display())).cause(error),
        })
    }
}

/// Refuses a plan whose gaps the cache cannot close, naming every entry.
pub fn check(site: &Site<'_>, cache: Option<&Cache>) -> Result<(), Problem> {
    let mut lacking = Vec::new();
    for act in site.plan.items.iter().filter(|item| is_entry(&item.act)) {
        let there = cache.and_then(|cache| cache.path(&act.act)).is_some_and(|path| path.exists());
        if !there && !site.gaps(act)?.is_empty() {
            lacking.push(words(&act.act, cache));
        }
    }
    if lacking.is_empty() { Ok(()) } else { Err(missing(&lacking)) }
}

fn is_entry(act: &Act) -> bool {
    matches!(act, Act::Download { .. } | Act::CachedImage { .. })
}

/// An entry, as somebody can look for it.
fn words(act: &Act, cache: Option<&Cache>) -> String {
    let path = cache.and_then(|cache| cache.path(act));
    let path = path.map_or_else(|| "a cache".to_owned(), |path| path.display().to_string());
    match act {
        Act::Download { url, .. } => format!("{path} from {url}"),
        Act::CachedImage { reference, digest, .. } => format!("{path} with {reference}@{digest}"),
        _ => path,
    }
}

fn missing(entries: &[String]) -> Problem {
    let what = match entries {
        [one] => format!("the cache lacks {one}"),
        many => format!("the cache lacks {} entries", many.len()),
    };
    let details = if entries.len() > 1 { entries.to_vec() } else { Vec::new() };
    Problem::new(&NOT_CACHED, what).details(details)
}
