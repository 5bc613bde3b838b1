//! Large files, streamed into the root: a temporary beside the target, hashed on the way, synced,
//! then renamed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use tenon_core::codes::image::{UNSAFE_IN_ROOT, WRONG_CONTENT};
use tenon_core::problem::Problem;

use super::mend::privileged;
use super::site::{Dress, Found, Site, hex};
use crate::apply::directories::{Directories, split, temporary_name};
use crate::apply::files::{give, own, parent_fd, write_problem};
use crate::stop;

const CHUNK: usize = 1 << 17;

/// What the content must be, and what it is told as.
#[derive(Debug, Clone, Copy)]
pub struct Pinned<'a> {
    pub sha256: &'a str,
    pub name: &'a str,
}

impl Site<'_> {
    /// Streams content to a path and gives its sha256. Content other than pinned is not placed.
    pub fn place(
        &self,
        path: &str,
        content: &mut dyn Read,
        mode: u32,
        pinned: Option<Pinned<'_>>,
    ) -> Result<String, Problem> {
        let dress = Dress { mode, owner: self.keeper };
        privileged(path, dress)?;
        match self.found(path)? {
            Found::Nothing | Found::File(_) => {}
            other => {
                let what = format!("{path} is {}", other.words());
                return Err(Problem::new(&UNSAFE_IN_ROOT, what));
            }
        }
        let mut directories = Directories::new(self.root);
        directories.check_parents(path, &[], self.keeper.uid)?;
        self.make_directories(path, None)?;
        directories.forget();
        (self.probe)("temporary")?;
        let parent =
            parent_fd(&mut directories, path).map_err(|e| write_problem("opening", path, e))?;
        let temporary = temporary_name(path);
        let placed = fill(parent, &temporary, content, dress, path).and_then(|sha256| {
            if let Some(pinned) = pinned.filter(|pinned| pinned.sha256 != sha256) {
                return Err(wrong_content(pinned, &sha256));
            }
            (self.probe)("rename")?;
            rustix::fs::renameat(parent, &temporary, parent, split(path).1)
                .and_then(|()| rustix::fs::fsync(parent))
                .map_err(|error| write_problem("renaming to", path, error.into()))?;
            Ok(sha256)
        });
        if placed.is_err() {
            // What cannot be removed now is overwritten by the next run.
            let _ = rustix::fs::unlinkat(parent, &temporary, AtFlags::empty());
        }
        placed
    }
}

pub fn wrong_content(pinned: Pinned<'_>, actual: &str) -> Problem {
    let Pinned { name, sha256 } = pinned;
    Problem::new(&WRONG_CONTENT, format!("{name} has sha256 {actual}, pinned is {sha256}"))
}

fn fill(
    parent: BorrowedFd<'_>,
    temporary: &str,
    content: &mut dyn Read,
    dress: Dress,
    path: &str,
) -> Result<String, Problem> {
    let told = |error: io::Error| write_problem("writing", path, error);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(parent, temporary, flags, Mode::RUSR | Mode::WUSR);
    let opened = match open() {
        // Left by a killed run.
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(parent, temporary, AtFlags::empty()).and_then(|()| open())
        }
        opened => opened,
    };
    let file = opened.map_err(|error| told(error.into()))?;
    if own().uid == 0 {
        give(rustix::fd::AsFd::as_fd(&file), dress.owner).map_err(told)?;
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode(dress.mode)).map_err(|e| told(e.into()))?;
    let mut file = File::from(file);
    let sha256 = copy(content, &mut file, told)?;
    rustix::fs::fsync(&file).map_err(|error| told(error.into()))?;
    Ok(sha256)
}

/// Copies to the end, looking for a stop between chunks.
fn copy(
    content: &mut dyn Read,
    file: &mut File,
    told: impl Fn(io::Error) -> Problem,
) -> Result<String, Problem> {
    let mut digest = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        stop::check()?;
        let count = content.read(&mut chunk).map_err(&told)?;
        if count == 0 {
            return Ok(hex(digest));
        }
        digest.update(&chunk[..count]);
        file.write_all(&chunk[..count]).map_err(&told)?;
    }
}
