//! Answers the questions of the checks from what is examined.

use std::io;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use tenon_core::checks::snapshot::{Answer, Look, Process, Question, Seen, Stat};
use tenon_core::codes;
use tenon_core::plan::record::{RECORD_PATH, Record};
use tenon_core::problem::Problem;

use super::processes;
use crate::apply;
use crate::collect::{Answer as Answered, Source};
use crate::root::{Root, absent, read_up_to};

/// No file that a check reads is larger.
const LARGEST: u64 = 1 << 20;

/// What is examined: this machine, a directory or a bundle.
#[derive(Debug)]
pub struct Eyes {
    source: Source,
    name: String,
}

impl Eyes {
    /// Looks at a directory, or at this machine.
    pub fn on_root(path: &Path) -> Result<Self, Problem> {
        let source = Source::root(path).map_err(|problem| {
            let what = format!("there is no node at {}", path.display());
            Problem::new(&codes::checks::NO_NODE, what).cause(problem.what.as_str())
        })?;
        Ok(Eyes { source, name: path.display().to_string() })
    }

    /// Looks at what `tenon logs collect` took from a node.
    pub fn on_bundle(file: &Path) -> Result<Self, Problem> {
        Ok(Eyes { source: Source::bundle(file)?, name: file.display().to_string() })
    }

    /// The root, where files can be compared byte for byte; None for a bundle.
    pub fn root(&self) -> Option<&Root> {
        self.source.root_handle()
    }

    /// True when daemons run here.
    pub fn is_live(&self) -> bool {
        self.source.is_live()
    }

    /// What is examined, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn processes(&self) -> Vec<Process> {
        self.root().map(processes::running).unwrap_or_default()
    }

    pub(super) fn record(&self) -> Result<Option<Record>, Problem> {
        match self.root() {
            Some(root) => apply::load_record(root),
            None => match self.source.read(RECORD_PATH, LARGEST) {
                Answered::Known(bytes) => Record::decode(&bytes).map(Some),
                _ => Ok(None),
            },
        }
    }

    pub(super) fn answer(&self, question: &Question) -> Answer {
        match (question, self.root()) {
            (Question::File(path), Some(root)) => Answer::Look(look(root, path)),
            (Question::File(path), None) => Answer::Look(self.collected(path)),
            (Question::List(path), _) => match self.source.list(path) {
                Answered::Known(names) => Answer::Names(names),
                Answered::Absent => Answer::Names(Vec::new()),
                Answered::Unknown(why) => Answer::Unlisted(why),
            },
        }
    }

    /// What a bundle knows of a path: the content without secrets, and the mode it had.
    fn collected(&self, path: &str) -> Look {
        // The mode of a link says nothing of the file behind it.
        let node = self.source.stat(path).known().filter(|node| node.kind != "link");
        let stat = node.as_ref().map(|node| Stat { mode: node.mode, uid: node.uid, gid: node.gid });
        let is_directory = node.is_some_and(|node| node.kind == "directory");
        if is_directory {
            return Look::There(Seen { stat, is_directory, ..Seen::default() });
        }
        match self.source.read(path, LARGEST) {
            Answered::Known(body) => Look::There(Seen { stat, is_directory, body, modified_us: 0 }),
            Answered::Absent => Look::Absent,
            Answered::Unknown(why) => Look::Hidden(why),
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
        modified_us: stat.st_mtime * 1_000_000 + stat.st_mtime_nsec as i64 / 1000,
    };
    if kind == FileType::RegularFile {
        seen.body = read_up_to(std::fs::File::from(file), LARGEST)?;
    }
    Ok(seen)
}
