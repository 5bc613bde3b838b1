//! The root that is worked on: what stands at a path, who owns what, which paths fit a pattern.

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use sha2::{Digest, Sha256};
use tenon_core::glob::fits;
use tenon_core::image::accounts;
use tenon_core::image::plan::ImagePlan;
use tenon_core::image::root_facts::RootFacts;
use tenon_core::plan::diff::Owner;
use tenon_core::problem::Problem;

use super::record::Record;
use crate::apply::Probe;
use crate::apply::directories::unreadable;
use crate::root::{Root, absent};

/// Text files of a system are far below; larger ones are not edited.
const TEXT_CAP: u64 = 16 << 20;

/// A root, its facts and what the last apply recorded.
pub struct Site<'a> {
    pub root: &'a Root,
    pub plan: &'a ImagePlan,
    pub facts: RootFacts,
    pub record: Record,
    /// Called by name before each step.
    pub probe: Probe<'a>,
    /// Who owns the root itself, and so stands for `root` in it.
    pub keeper: Owner,
}

/// What stands at a path, links not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Nothing,
    File(Dress),
    Directory(Dress),
    Link(String),
    Other(&'static str),
}

/// Mode and owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dress {
    pub mode: u32,
    pub owner: Owner,
}

impl Dress {
    fn of(stat: &Stat) -> Dress {
        let owner = Owner { uid: stat.st_uid, gid: stat.st_gid };
        Dress { mode: stat.st_mode & 0o7777, owner }
    }

    pub fn words(&self) -> String {
        format!("mode {:04o}, owner {}:{}", self.mode, self.owner.uid, self.owner.gid)
    }
}

impl Found {
    /// In words, for people who expected something else.
    pub fn words(&self) -> String {
        match self {
            Found::Nothing => "nothing".to_owned(),
            Found::File(dress) => format!("a file, {}", dress.words()),
            Found::Directory(dress) => format!("a directory, {}", dress.words()),
            Found::Link(target) => format!("a symbolic link to {target}"),
            Found::Other(words) => (*words).to_owned(),
        }
    }
}

impl<'a> Site<'a> {
    pub fn new(
        root: &'a Root,
        plan: &'a ImagePlan,
        facts: RootFacts,
        probe: Probe<'a>,
    ) -> Result<Site<'a>, Problem> {
        let record = Record::load(root)?;
        let stat = rustix::fs::fstat(root.fd()).map_err(|error| unreadable("/", error.into()))?;
        let keeper = Dress::of(&stat).owner;
        Ok(Site { root, plan, facts, record, probe, keeper })
    }

    /// Looks at a path itself.
    pub fn found(&self, path: &str) -> Result<Found, Problem> {
        found(self.root, path, OFlags::NOFOLLOW).map_err(|error| unreadable(path, error))
    }

    /// Looks at what a path leads to: `/var/run` is a link on every machine.
    pub fn followed(&self, path: &str) -> Result<Found, Problem> {
        found(self.root, path, OFlags::empty()).map_err(|error| unreadable(path, error))
    }

    /// The text of a file, empty if there is none. Bytes that are no UTF-8 make it unreadable.
    pub fn text(&self, path: &str) -> Result<String, Problem> {
        let bytes = self.bytes(path)?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|_| {
            unreadable(path, io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
        })
    }

    pub fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, Problem> {
        self.root.read(path, TEXT_CAP).map_err(|error| unreadable(path, error))
    }

    /// sha256 of a file of any size; None if there is none.
    pub fn hash(&self, path: &str) -> Result<Option<String>, Problem> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        match self.root.open_at(path, flags, Mode::empty()) {
            Ok(file) => hash(file).map(Some).map_err(|error| unreadable(path, error)),
            Err(error) if absent(&error) => Ok(None),
            Err(error) => Err(unreadable(path, error)),
        }
    }

    /// The numbers of `user:group`; None if the root has no such account. `root` is whoever owns
    /// the root, so that an ordinary user can build one.
    pub fn owner(&self, words: &str) -> Result<Option<Owner>, Problem> {
        let (user, group) = words.split_once(':').unwrap_or((words, words));
        let number = |name: &str, file: &str, keeper: u32| -> Result<Option<u32>, Problem> {
            if name == "root" {
                return Ok(Some(keeper));
            }
            let known = accounts::id_of(&self.text(file)?, name);
            Ok(name.parse().ok().or(known))
        };
        let uid = number(user, "/etc/passwd", self.keeper.uid)?;
        let gid = number(group, "/etc/group", self.keeper.gid)?;
        Ok(uid.zip(gid).map(|(uid, gid)| Owner { uid, gid }))
    }

    /// The paths that fit a pattern, in order; a path without `*` is its own only fit.
    pub fn matching(&self, pattern: &str) -> Result<Vec<String>, Problem> {
        matching(self.root, pattern)
    }
}

/// See [`Site::matching`].
pub fn matching(root: &Root, pattern: &str) -> Result<Vec<String>, Problem> {
    let mut paths = vec![String::new()];
    for part in pattern.trim_start_matches('/').split('/') {
        let mut next = Vec::new();
        for path in paths {
            if !part.contains('*') {
                next.push(format!("{path}/{part}"));
                continue;
            }
            let names = root.list(&path).map_err(|error| unreadable(&path, error))?;
            let names = names.into_iter().filter(|name| fits(name, part));
            next.extend(names.map(|name| format!("{path}/{name}")));
        }
        paths = next;
    }
    Ok(paths)
}

/// What stands at a path of a root.
pub fn found(root: &Root, path: &str, extra: OFlags) -> io::Result<Found> {
    let fd = match root.open_at(path, OFlags::PATH | extra, Mode::empty()) {
        Ok(fd) => fd,
        Err(error) if absent(&error) => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let stat = rustix::fs::fstat(&fd)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Found::File(Dress::of(&stat)),
        FileType::Directory => Found::Directory(Dress::of(&stat)),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(&fd, "", Vec::new())?;
            Found::Link(target.to_string_lossy().into_owned())
        }
        FileType::Fifo => Found::Other("a fifo"),
        FileType::Socket => Found::Other("a socket"),
        _ => Found::Other("a device"),
    })
}

/// sha256 of all that can be read from an open file.
pub fn hash(file: OwnedFd) -> io::Result<String> {
    let mut digest = Sha256::new();
    digest_all(std::fs::File::from(file), &mut digest)?;
    Ok(hex(digest))
}

/// Adds everything that can be read to a digest, and gives its length.
pub fn digest_all(mut reader: impl Read, digest: &mut Sha256) -> io::Result<u64> {
    let mut chunk = vec![0; 1 << 17];
    let mut length = 0;
    loop {
        match reader.read(&mut chunk)? {
            0 => return Ok(length),
            count => {
                digest.update(&chunk[..count]);
                length += count as u64;
            }
        }
    }
}

pub fn hex(digest: Sha256) -> String {
    tenon_core::hex::hex(&digest.finalize())
}
