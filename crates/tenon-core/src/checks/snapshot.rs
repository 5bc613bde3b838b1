//! What the host saw of a node, as plain data.
//!
//! Which paths matter depends on what stands in others: the unit names the environment file,
//! which names the config, which names the CA. So a check asks for what it needs, and what has
//! not been seen yet is noted as a question. The host answers the questions and has the checks
//! judged again until none is left: a handful of rounds, and no list of paths to keep in step.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::shown_text;
use crate::plan::record::Record;

/// Something a check needs to see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    File(String),
    List(String),
}

/// What the host says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Look(Look),
    Names(Vec<String>),
    /// The directory could not be listed, and why.
    Unlisted(String),
}

/// What stands at a path, links followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    Absent,
    /// It could not be seen, and why.
    Hidden(String),
    There(Seen),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// None where the source has no modes, as in a bundle.
    pub stat: Option<Stat>,
    pub is_directory: bool,
    /// Content of a file up to the host's bound.
    pub body: Vec<u8>,
    /// Microseconds since 1970 of the last change of content; 0 in a bundle.
    pub modified_us: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

/// A running daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    pub name: String,
    pub pid: u32,
    /// Without the program's own name.
    pub arguments: Vec<String>,
    /// Microseconds since 1970.
    pub started_us: i64,
}

/// How exact a start time is: the kernel tells the boot in whole seconds.
const SLACK_US: i64 = 2_000_000;

impl Process {
    /// True when a file was certainly changed after this process was started.
    pub fn is_older_than(&self, modified_us: i64) -> bool {
        modified_us > self.started_us + SLACK_US
    }
}

/// Everything that the checks may look at.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub files: BTreeMap<String, Look>,
    pub lists: BTreeMap<String, Vec<String>>,
    /// Directories that could not be listed, and why; they have no names above.
    pub unlisted: BTreeMap<String, String>,
    pub processes: Vec<Process>,
    pub record: Option<Record>,
    /// As the machine's files say it.
    pub kubelet_version: Option<String>,
    asked: RefCell<BTreeSet<Question>>,
}

impl Snapshot {
    /// What stands at a path. Unseen so far, it counts as hidden for this round.
    pub fn look(&self, path: &str) -> Look {
        match self.files.get(path) {
            Some(look) => look.clone(),
            None => {
                self.asked.borrow_mut().insert(Question::File(path.to_owned()));
                Look::Hidden("not looked at".to_owned())
            }
        }
    }

    /// The names in a directory, sorted.
    pub fn list(&self, path: &str) -> Vec<String> {
        match self.lists.get(path) {
            Some(names) => names.clone(),
            None => {
                self.asked.borrow_mut().insert(Question::List(path.to_owned()));
                Vec::new()
            }
        }
    }

    /// The text of a file; None if there is none, an error if it cannot be read as text.
    pub fn text(&self, path: &str) -> Result<Option<String>, String> {
        let name = shown_text(path);
        match self.look(path) {
            Look::Absent => Ok(None),
            Look::Hidden(why) => Err(format!("{name}: {why}")),
            Look::There(seen) if seen.is_directory => Err(format!("{name} is a directory")),
            Look::There(seen) => match String::from_utf8(seen.body) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(format!("{name} is not UTF-8")),
            },
        }
    }

    /// Judges until no question is left: `answer` says what stands at a path.
    pub fn settle<T>(
        &mut self,
        answer: &dyn Fn(&Question) -> Answer,
        judge: &dyn Fn(&Snapshot) -> T,
    ) -> T {
        loop {
            let verdict = judge(self);
            let questions = self.asked.take();
            if questions.is_empty() {
                return verdict;
            }
            for question in questions {
                match (answer(&question), question) {
                    (Answer::Look(look), Question::File(path)) => _ = self.files.insert(path, look),
                    (Answer::Names(names), Question::List(path)) => {
                        self.lists.insert(path, names);
                    }
                    (Answer::Unlisted(why), Question::List(path)) => {
                        self.unlisted.insert(path.clone(), why);
                        self.lists.insert(path, Vec::new());
                    }
                    (_, Question::File(path)) => _ = self.files.insert(path, Look::Absent),
                    (_, Question::List(path)) => _ = self.lists.insert(path, Vec::new()),
                }
            }
        }
    }

    /// The running daemon of this name.
    pub fn process(&self, name: &str) -> Option<&Process> {
        self.processes.iter().find(|process| process.name == name)
    }
}
