//! The directory that a run works on: `/`, or the `--root` of a rehearsal or an image.
//!
//! Every path is resolved below an open directory with `openat2(RESOLVE_IN_ROOT)`: a symbolic
//! link, absolute or not, cannot lead out of it, and the same code serves a node and a test.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// More than any file of a node holds, short of a large user's config.
const USUAL_FILE: usize = 16 << 10;

/// An open root directory.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens `path` as the root of the run.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Root { fd, path: path.to_owned() })
    }

    /// Where the root lies, for messages and for programs that need a real path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The real path of a node path, for messages and programs; not for opening files.
    pub fn join(&self, path: &str) -> PathBuf {
        self.path.join(path.trim_start_matches('/'))
    }

    /// True when the root is the machine's own.
    pub fn is_host(&self) -> bool {
        self.path == Path::new("/")
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Opens a node path below the root.
    pub fn open_at(&self, path: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let below = path.trim_start_matches('/');
        let below = if below.is_empty() { "." } else { below };
        let flags = flags | OFlags::CLOEXEC;
        loop {
            match rustix::fs::openat2(&self.fd, below, flags, mode, ResolveFlags::IN_ROOT) {
                // A rename elsewhere in the tree raced with the look-up.
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }

    /// Reads a file whole, up to `cap` bytes; None if there is none.
    pub fn read(&self, path: &str, cap: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(error) if absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let bytes = read_up_to(file, cap + 1)?;
        if bytes.len() as u64 > cap {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("more than {cap} bytes"),
            ));
        }
        Ok(Some(bytes))
    }

    /// Reads a small text file and trims it; None if it is absent or not UTF-8.
    pub fn read_text(&self, path: &str) -> io::Result<Option<String>> {
        let bytes = self.read(path, 1 << 20)?;
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| text.trim().to_owned()))
    }

    /// The names in a directory, sorted; empty if there is no such directory.
    pub fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = match self.open_at(path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(error) if absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The last part of what a symbolic link points to; None if there is no such link.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let fd = self.open_at(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()).ok()?;
        let target = rustix::fs::readlinkat(&fd, "", Vec::new()).ok()?;
        Some(target.to_string_lossy().rsplit('/').next()?.to_owned())
    }

    /// True if the path exists, links followed.
    pub fn exists(&self, path: &str) -> bool {
        self.open_at(path, OFlags::PATH, Mode::empty()).is_ok()
    }
}

/// Reads to the end or to a bound. Two system calls for any file of a node: the standard
/// library would begin with 32 bytes and double.
pub(crate) fn read_up_to(reader: impl Read, bound: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_FILE);
    reader.take(bound).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True for the errors that mean "there is no such file".
pub fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_link_stays_below_the_root() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        std::fs::write(dir.path().join("etc/name"), "inside").unwrap();
        std::os::unix::fs::symlink("/etc/name", dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink("../../../../etc/name", dir.path().join("climb")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(root.read_text("/link").unwrap().unwrap(), "inside");
        assert_eq!(root.read_text("/climb").unwrap().unwrap(), "inside");
        assert_eq!(root.read("/etc/none", 10).unwrap(), None);
        assert_eq!(root.list("/").unwrap(), ["climb", "etc", "link"]);
    }

    #[test]
    fn a_read_stops_at_its_cap() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("big"), [0; 11]).unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(root.read("/big", 10).is_err());
        assert_eq!(root.read("/big", 11).unwrap().unwrap().len(), 11);
    }
}
