//! Looks at every path that a plan mentions, without following links and without writing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use tenon_core::plan::diff::{self, Held, LINK_MODE, Observed, Owner, Paths, Tree};
use tenon_core::problem::Problem;

use super::directories::{Directories, split, unreadable};

/// Larger files are not read: no file of a node comes near.
const LARGEST: u64 = 8 << 20;

/// The picture of the machine that a comparison needs.
pub fn observe(directories: &mut Directories<'_>, paths: &Paths) -> Result<Tree, Problem> {
    let mut tree = Tree::new();
    for path in &paths.files {
        let found = look(directories, path).map_err(|error| unreadable(path, error))?;
        note(directories, &mut tree, path, found)?;
    }
    for path in &paths.directories {
        let found = look_directory(directories, path).map_err(|error| unreadable(path, error))?;
        note(directories, &mut tree, path, found)?;
    }
    for path in &paths.listed {
        for name in names(directories, path).map_err(|error| unreadable(path, error))? {
            let entry = format!("{path}/{name}");
            let found = look(directories, &entry).map_err(|error| unreadable(&entry, error))?;
            tree.insert(entry, found);
        }
    }
    Ok(tree)
}

/// Enters a finding, and the missing directories above it.
fn note(
    directories: &mut Directories<'_>,
    tree: &mut Tree,
    path: &str,
    found: Observed,
) -> Result<(), Problem> {
    tree.insert(path.to_owned(), found);
    for parent in diff::parents(path) {
        if tree.contains_key(parent) {
            break;
        }
        let known = directories.get(parent).map_err(|error| unreadable(parent, error))?;
        let found = match known {
            Some(directory) => {
                Observed::Directory { mode: directory.mode(), owner: directory.owner() }
            }
            None => Observed::Absent,
        };
        tree.insert(parent.to_owned(), found);
    }
    Ok(())
}

fn names(directories: &mut Directories<'_>, path: &str) -> io::Result<Vec<String>> {
    let Some(directory) = directories.get(path)? else { return Ok(Vec::new()) };
    let files = directory.names()?.iter().filter(|(_, kind)| **kind != FileType::Directory);
    Ok(files.map(|(name, _)| name.clone()).collect())
}

/// A directory of the plan may be a link to one, as `/var/run` is on every machine.
fn look_directory(directories: &mut Directories<'_>, path: &str) -> io::Result<Observed> {
    if let Some(directory) = directories.get(path)? {
        return Ok(Observed::Directory { mode: directory.mode(), owner: directory.owner() });
    }
    look(directories, path)
}

fn look(directories: &mut Directories<'_>, path: &str) -> io::Result<Observed> {
    let (parent, name) = split(path);
    let Some(directory) = directories.get(parent)? else { return Ok(Observed::Absent) };
    let Some(kind) = directory.names()?.get(name).copied() else { return Ok(Observed::Absent) };
    let kind = match kind {
        FileType::Unknown => file_type(directory.fd(), name)?,
        kind => kind,
    };
    match kind {
        FileType::RegularFile => read(directory.fd(), name),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(directory.fd(), name, Vec::new())?.into_bytes();
            let (owner, mode) = (Owner::default(), LINK_MODE);
            Ok(Observed::File(Held { bytes: target, mode, owner, modified_us: 0 }))
        }
        FileType::Directory => {
            let stat = rustix::fs::statat(directory.fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(Observed::Directory { mode: stat.st_mode & 0o7777, owner: owner(&stat) })
        }
        FileType::Fifo => Ok(Observed::Other("a fifo")),
        FileType::Socket => Ok(Observed::Other("a socket")),
        FileType::CharacterDevice | FileType::BlockDevice => Ok(Observed::Other("a device")),
        FileType::Unknown => Ok(Observed::Other("neither a file nor a directory")),
    }
}

fn file_type(directory: BorrowedFd<'_>, name: &str) -> io::Result<FileType> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

fn owner(stat: &Stat) -> Owner {
    Owner { uid: stat.st_uid, gid: stat.st_gid }
}

fn read(directory: BorrowedFd<'_>, name: &str) -> io::Result<Observed> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    if size > LARGEST {
        return Ok(Observed::Large);
    }
    let modified_us = stat.st_mtime * 1_000_000 + stat.st_mtime_nsec as i64 / 1000;
    let bytes = read_whole(file.as_fd(), size)?;
    Ok(Observed::File(Held {
        bytes,
        mode: stat.st_mode & 0o7777,
        owner: owner(&stat),
        modified_us,
    }))
}

/// Reads to the end: one call for a file that keeps its size.
fn read_whole(file: BorrowedFd<'_>, size: u64) -> io::Result<Vec<u8>> {
    let expected = usize::try_from(size).unwrap_or_default();
    let mut bytes = vec![0; expected + 1];
    let mut length = 0;
    loop {
        let count = rustix::io::retry_on_intr(|| rustix::io::read(file, &mut bytes[length..]))?;
        length += count;
        if count == 0 || length == expected {
            bytes.truncate(length);
            return Ok(bytes);
        }
        if length == bytes.len() {
            bytes.resize(length * 2, 0);
        }
    }
}
