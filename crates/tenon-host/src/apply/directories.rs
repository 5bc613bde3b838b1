//! Open directories of a run: each is opened, examined and listed once.
//!
//! Everything below works relative to these handles, so a directory that is swapped behind our
//! back does not move the work elsewhere.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use tenon_core::codes;
use tenon_core::plan::diff::{self, Owner};
use tenon_core::problem::Problem;

use crate::root::{Root, absent};

const TEMPORARY_START: &str = ".tenon-";
const TEMPORARY_END: &str = ".tmp";
const WORLD_WRITABLE: u32 = 0o002;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    stat: Stat,
    names: Option<BTreeMap<String, FileType>>,
}

/// The directories of one root, opened on first use.
#[derive(Debug)]
pub struct Directories<'r> {
    root: &'r Root,
    known: BTreeMap<String, Option<Directory>>,
}

impl Directory {
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    pub fn owner(&self) -> Owner {
        Owner { uid: self.stat.st_uid, gid: self.stat.st_gid }
    }

    /// Number of the file system.
    pub fn device(&self) -> u64 {
        self.stat.st_dev
    }

    /// The entries as they were when first asked for.
    pub fn names(&mut self) -> io::Result<&BTreeMap<String, FileType>> {
        let fd = self.fd.as_fd();
        match self.names {
            Some(ref names) => Ok(names),
            None => Ok(self.names.insert(list(fd)?)),
        }
    }
}

impl<'r> Directories<'r> {
    pub fn new(root: &'r Root) -> Self {
        Directories { root, known: BTreeMap::new() }
    }

    pub fn root(&self) -> &'r Root {
        self.root
    }

    /// Forgets what is open, after programs have changed the tree.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// The directory at a node path (`""` is the root itself); None if it does not exist.
    pub fn get(&mut self, path: &str) -> io::Result<Option<&mut Directory>> {
        if !self.known.contains_key(path) {
            let opened = if self.is_absent(path) { None } else { self.open(path)? };
            self.known.insert(path.to_owned(), opened);
        }
        Ok(self.known.get_mut(path).and_then(Option::as_mut))
    }

    /// True when a directory above is known to be missing, or known not to list this one.
    fn is_absent(&self, path: &str) -> bool {
        let (parent, name) = split(path);
        match self.known.get(parent) {
            Some(None) => true,
            Some(Some(Directory { names: Some(names), .. })) => !names.contains_key(name),
            Some(Some(_)) => false,
            None => !parent.is_empty() && self.is_absent(parent),
        }
    }

    fn open(&self, path: &str) -> io::Result<Option<Directory>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = match self.root.open_at(path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(error) if absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let stat = rustix::fs::fstat(&fd)?;
        Ok(Some(Directory { fd, stat, names: None }))
    }

    /// The innermost directory above `path` that exists.
    pub fn nearest(&mut self, path: &str) -> io::Result<&mut Directory> {
        let above: Vec<String> = diff::parents(path).map(str::to_owned).collect();
        for parent in above {
            if self.get(&parent)?.is_some() {
                return self.get(&parent)?.ok_or_else(|| io::ErrorKind::NotFound.into());
            }
        }
        self.get("")?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens a directory that was just made, whatever was known about it.
    pub fn refresh(&mut self, path: &str) -> io::Result<&mut Directory> {
        let opened = self.open(path)?;
        self.known.insert(path.to_owned(), opened);
        self.get(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Removes temporaries that a killed run left in the directories listed so far.
    pub fn sweep(&mut self) -> io::Result<()> {
        for directory in self.known.values_mut().flatten() {
            let Some(names) = &mut directory.names else { continue };
            for (name, _) in names.extract_if(.., |name, _| is_temporary(name)) {
                tracing::debug!(%name, "removing a stray temporary");
                rustix::fs::unlinkat(&directory.fd, name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// Refuses a path whose parents others can change. `fixed` are directories that this run
    /// gives a new mode and owner anyway.
    pub fn check_parents(&mut self, path: &str, fixed: &[&str], me: u32) -> Result<(), Problem> {
        let above: Vec<String> = diff::parents(path).map(str::to_owned).collect();
        for parent in above.iter().filter(|parent| !fixed.contains(&parent.as_str())) {
            let Some(directory) = self.get(parent).map_err(|error| unreadable(parent, error))?
            else {
                continue;
            };
            let (uid, mode) = (directory.owner().uid, directory.mode());
            let what = if mode & WORLD_WRITABLE != 0 {
                format!("{parent}, above {path}, is writable by everyone (mode {mode:04o})")
            } else if uid != 0 && uid != me {
                format!("{parent}, above {path}, belongs to user {uid}")
            } else {
                continue;
            };
            return Err(Problem::new(&codes::host::UNSAFE_DIRECTORY, what));
        }
        Ok(())
    }
}

pub fn unreadable(path: &str, error: io::Error) -> Problem {
    let path = if path.is_empty() { "/" } else { path };
    Problem::new(&codes::host::FILE_READ, format!("reading {path}")).cause(error)
}

/// Splits a node path into its directory and its name.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The name of a file's temporary: the same in every run, short whatever the file's name.
pub fn temporary_name(path: &str) -> String {
    format!("{TEMPORARY_START}{}{TEMPORARY_END}", &tenon_core::hex::sha256(path.as_bytes())[..16])
}

fn is_temporary(name: &str) -> bool {
    let middle = name.strip_prefix(TEMPORARY_START).and_then(|s| s.strip_suffix(TEMPORARY_END));
    middle.is_some_and(|m| m.len() == 16 && m.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn list(fd: BorrowedFd<'_>) -> io::Result<BTreeMap<String, FileType>> {
    let mut buffer = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(fd, &mut buffer);
    let mut names = BTreeMap::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        // A name that is not UTF-8 cannot be one of ours.
        if let Ok(name) = entry.file_name().to_str() {
            names.insert(name.to_owned(), entry.file_type());
        }
    }
    names.remove(".");
    names.remove("..");
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_is_known_by_its_name() {
        let name = temporary_name("/etc/kubernetes/kubelet/config.json");
        assert!(is_temporary(&name) && name.len() < 64);
        assert_eq!(name, temporary_name("/etc/kubernetes/kubelet/config.json"));
        for foreign in [".tenon-notes.tmp", "config.json", ".tenon-0123456789abcdef.tmp.swp"] {
            assert!(!is_temporary(foreign), "{foreign}");
        }
    }
}
