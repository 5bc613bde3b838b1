//! Directories, moves and removals below a root, each on disk before the next.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use tenon_core::codes::host as pages;
use tenon_core::problem::Problem;

use crate::root::{Root, absent};

/// Splits a node path into its directory and its name.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn problem(doing: &str, path: &str, error: impl Into<io::Error>) -> Problem {
    let error = error.into();
    let page = match Errno::from_io_error(&error) {
        Some(Errno::NOSPC | Errno::DQUOT) => &pages::NO_SPACE,
        Some(Errno::ROFS) => &pages::READ_ONLY,
        _ => &pages::FILE_WRITE,
    };
    Problem::new(page, format!("{doing} {path}")).cause(error)
}

/// Opens a directory.
pub fn directory(root: &Root, path: &str) -> io::Result<OwnedFd> {
    root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// Makes a directory and those above it that are missing.
pub fn make(root: &Root, path: &str, mode: u32) -> Result<(), Problem> {
    if path.is_empty() || directory(root, path).is_ok() {
        return Ok(());
    }
    let (parent, name) = split(path);
    make(root, parent, mode)?;
    let made = || -> io::Result<()> {
        let parent = directory(root, parent)?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
            // The umask may have taken bits away.
            Ok(()) => {
                rustix::fs::chmodat(&parent, name, Mode::from_raw_mode(mode), AtFlags::empty())?
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(rustix::fs::fsync(&parent)?)
    };
    made().map_err(|error| problem("making", path, error))
}

/// Makes a new file with its mode and returns it open; the caller writes and syncs it.
pub fn create(root: &Root, path: &str, mode: u32) -> Result<std::fs::File, Problem> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let opened = root.open_at(path, flags, Mode::from_raw_mode(mode & 0o700));
    let file = opened.map_err(|error| problem("creating", path, error))?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))
        .map_err(|error| problem("setting the mode of", path, error))?;
    Ok(std::fs::File::from(file))
}

/// Moves a file or directory within its file system; what stands at the target is replaced if
/// it is a file or an empty directory. Both directories are on disk afterwards.
pub fn rename(root: &Root, from: &str, to: &str) -> Result<(), Problem> {
    let moved = || -> io::Result<()> {
        let (from_parent, from_name) = split(from);
        let (to_parent, to_name) = split(to);
        let (from_parent, to_parent) = (directory(root, from_parent)?, directory(root, to_parent)?);
        rustix::fs::renameat(&from_parent, from_name, &to_parent, to_name)?;
        rustix::fs::fsync(&to_parent)?;
        Ok(rustix::fs::fsync(&from_parent)?)
    };
    moved().map_err(|error| problem("renaming to", to, error))
}

/// Points a link at a target, replacing the link that is there in one step.
pub fn link(root: &Root, path: &str, target: &str) -> Result<(), Problem> {
    let (parent, name) = split(path);
    let linked = || -> io::Result<()> {
        let parent = directory(root, parent)?;
        let temporary = format!(".tenon-{name}.tmp");
        match rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        rustix::fs::symlinkat(target, &parent, &temporary)?;
        rustix::fs::renameat(&parent, &temporary, &parent, name)?;
        Ok(rustix::fs::fsync(&parent)?)
    };
    linked().map_err(|error| problem("linking", path, error))
}

/// Reads what a link points to; None if there is no link.
pub fn read_link(root: &Root, path: &str) -> Option<String> {
    let fd = root.open_at(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    let target = rustix::fs::readlinkat(&fd, "", Vec::new()).ok()?;
    Some(target.to_string_lossy().into_owned())
}

/// Removes a file if it is there.
pub fn remove(root: &Root, path: &str) -> Result<(), Problem> {
    let (parent, name) = split(path);
    let removed = || -> io::Result<()> {
        let parent = match directory(root, parent) {
            Err(error) if absent(&error) => return Ok(()),
            opened => opened?,
        };
        match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
            Ok(()) => Ok(rustix::fs::fsync(&parent)?),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    };
    removed().map_err(|error| problem("removing", path, error))
}

/// Reads a file whole; None if there is none.
pub fn read(root: &Root, path: &str, cap: u64) -> Result<Option<Vec<u8>>, Problem> {
    root.read(path, cap)
        .map_err(|error| Problem::new(&pages::FILE_READ, format!("reading {path}")).cause(error))
}
