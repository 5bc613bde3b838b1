//! Answers the questions of the checks from what is examined.

use std::io;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use tenon_core::checks::snapshot::{Answer, Look, Process, Question, Seen, Stat};
use tenon_core::codes;
use tenon_core::problem::Problem;

use super::processes;
use crate::root::{Root, absent, read_up_to};

/// No file that a check reads is larger.
const LARGEST: u64 = 1 << 20;

/// What is examined.
#[derive(Debug)]
pub struct Eyes {
    root: Root,
}

impl Eyes {
    /// Looks at a directory, or at this machine.
    pub fn on_root(path: &Path) -> Result<Self, Problem> {
        let root = Root::open(path).map_err(|error| {
            let what = format!("opening the root {}", path.display());
            Problem::new(&codes::checks::NO_NODE, what).cause(error)
        })?;
        Ok(Eyes { root })
    }

    /// The root, where files can be compared byte for byte.
    pub fn root(&self) -> Option<&Root> {
        Some(&self.root)
    }

    /// True when daemons run here.
    pub fn is_live(&self) -> bool {
        self.root.is_host()
    }

    /// What is examined, for messages.
    pub fn name(&self) -> String {
        self.root.path().display().to_string()
    }

    pub(super) fn processes(&self) -> Vec<Process> {
        processes::running(&self.root)
    }

    pub(super) fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::File(path) => Answer::Look(look(&self.root, path)),
            // A directory that cannot be listed gives no names; its files then answer for it.
            Question::List(path) => Answer::Names(self.root.list(path).unwrap_or_default()),
        }
    }
}

fn look(root: &Root, path: &str) -> Look {
    match see(root, path) {
        Ok(seen) => Look::There(seen),
        Err(error) if absent(&error) => Look::Absent,
        Err(error) => Look::Hidden(error.to_string()),
    }
}

fn see(root: &Root, path: &str) -> io::Result<Seen> {
    let file = root.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let mut seen = Seen {
        stat: Some(Stat { mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid }),
        is_directory: kind == FileType::Directory,
        body: Vec::new(),
    };
    if kind == FileType::RegularFile {
        seen.body = read_up_to(std::fs::File::from(file), LARGEST)?;
    }
    Ok(seen)
}
