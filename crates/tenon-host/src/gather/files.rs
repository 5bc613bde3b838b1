//! Small files of the kernel and the image: three system calls each, or none at all.

use std::io;

use rustix::fs::{Mode, OFlags};
use tenon_core::codes::facts::MACHINE_READ;
use tenon_core::problem::Problem;

use crate::root::{Root, absent};

/// Enough for any file read here; the kernel gives such files in one piece.
const SMALL: usize = 4096;

/// The trimmed text of a small file; None if there is none.
pub fn small(root: &Root, path: &str) -> Result<Option<String>, Problem> {
    let read = || -> io::Result<String> {
        let fd = root.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        let mut buffer = [0; SMALL];
        let count = rustix::io::read(&fd, &mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer[..count]).trim().to_owned())
    };
    match read() {
        Ok(text) => Ok(Some(text)),
        Err(error) if absent(&error) => Ok(None),
        Err(error) => Err(unreadable(path, error)),
    }
}

/// The text of a file of any size up to a mebibyte; empty if there is none.
pub fn whole(root: &Root, path: &str) -> Result<String, Problem> {
    let text = root.read_text(path).map_err(|error| unreadable(path, error))?;
    Ok(text.unwrap_or_default())
}

/// The names in a directory, sorted; none if there is no such directory.
pub fn names(root: &Root, path: &str) -> Result<Vec<String>, Problem> {
    root.list(path).map_err(|error| unreadable(path, error))
}

/// The names in a directory that are a word followed by a number: `cpu12`, not `cpufreq`.
pub fn numbered(root: &Root, path: &str, word: &str) -> Result<Vec<String>, Problem> {
    let mut names = names(root, path)?;
    names.retain(|name| number(name, word).is_some());
    Ok(names)
}

/// The number behind a word: 12 of `cpu12`.
pub fn number(name: &str, word: &str) -> Option<u32> {
    let digits = name.strip_prefix(word)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

pub fn unreadable(path: &str, error: io::Error) -> Problem {
    Problem::new(&MACHINE_READ, format!("reading {path}")).cause(error)
}
