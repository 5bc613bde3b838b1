//! The plan minus what is already true: [`Changes`]. A second run is empty.
//!
//! Pure. The host observes every path that [`paths`] names, and hands the picture in; what
//! leaves is exactly what must be written, removed, reloaded and restarted, with reasons.

mod files;
mod units;

use std::collections::{BTreeMap, BTreeSet};

use super::record::{FileMark, Record};
use super::step::{Action, FileBody, Plan, Step};
use super::text_diff;
use crate::problem::{Class, Finding};

pub use units::{UnitNeed, input_hash, is_input};

/// What stands at each path that matters, without following links.
pub type Tree = BTreeMap<String, Observed>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    Absent,
    /// A regular file, or a symbolic link ([`LINK_MODE`]).
    File(Held),
    Directory {
        mode: u32,
        owner: Owner,
    },
    /// A regular file above the size that is read.
    Large,
    /// Something else, in words: `a device`, `a fifo`.
    Other(&'static str),
}

/// The mode that stands for a symbolic link, whose content is its target.
pub const LINK_MODE: u32 = 0o120_777;

/// A regular file, read whole, or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub bytes: Vec<u8>,
    pub mode: u32,
    pub owner: Owner,
    /// Microseconds since 1970 of the last change of content.
    pub modified_us: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

/// What happens with an owned file that someone edited by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Edited {
    #[default]
    Overwrite,
    /// Leave it, with a warning.
    Keep,
    /// Overwrite it, and leave the edited text beside it as `NAME.tenon-backup`.
    Backup,
}

/// What happens with recorded files that the plan no longer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unplanned {
    #[default]
    Remove,
    /// For plans of a part of the node (`--daemon`, a single phase).
    Keep,
}

/// Everything a comparison looks at besides the steps.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub plan: &'a Plan,
    pub tree: &'a Tree,
    /// The record of this instance, if there is one.
    pub record: Option<&'a Record>,
    /// Who owns what is written.
    pub owner: Owner,
    pub edited: Edited,
    pub unplanned: Unplanned,
}

/// What must be done to make the steps true.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// Directories to create or to give another mode, outermost first.
    pub directories: Vec<DirectoryChange>,
    /// Files to write, in plan order.
    pub files: Vec<FileChange>,
    /// Files to delete.
    pub removals: Vec<RemovalChange>,
    /// Files that are as planned already.
    pub unchanged: usize,
    /// Why the service manager must read its units again; None if it need not.
    pub reload: Option<String>,
    /// The units of these steps, each with the hash of its inputs as they will be.
    pub units: Vec<UnitNeed>,
    /// What the record will say about the files of these steps; None forgets the path.
    pub marks: BTreeMap<String, Option<FileMark>>,
    /// Warnings found on the way.
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryChange {
    pub path: String,
    pub mode: u32,
    pub exists: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    pub body: Vec<u8>,
    pub mode: u32,
    pub owner: Owner,
    pub secret: bool,
    pub because: String,
    pub previous: Option<Held>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovalChange {
    pub path: String,
    pub because: String,
    pub previous: Held,
}

/// How a file change is counted and marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Create,
    Change,
    /// The bytes are right, mode or owner are not.
    Mode,
}

impl Held {
    pub fn is_link(&self) -> bool {
        self.mode == LINK_MODE
    }
}

impl FileChange {
    pub fn kind(&self) -> Kind {
        match &self.previous {
            None => Kind::Create,
            Some(held) if held.bytes == self.body => Kind::Mode,
            Some(_) => Kind::Change,
        }
    }

    pub fn sha256(&self) -> String {
        crate::hex::sha256(&self.body)
    }

    /// The lines that change; a secret body shows its size alone.
    pub fn diff(&self, show_secrets: bool) -> Vec<String> {
        let old: &[u8] = self.previous.as_ref().map_or(&[], |held| &held.bytes);
        match self.secret && !show_secrets && old != self.body {
            true => vec![format!("[redacted, {} bytes, changed]", self.body.len())],
            false => text_diff::lines(old, &self.body),
        }
    }
}

impl Changes {
    /// True when the disk is as planned. Units are judged apart, by their state.
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.files.is_empty() && self.removals.is_empty()
    }

    /// How many files are created, changed (mode included) and removed.
    pub fn counts(&self) -> [usize; 3] {
        let created = self.files.iter().filter(|file| file.kind() == Kind::Create).count();
        [created, self.files.len() - created, self.removals.len()]
    }
}

/// What the host must look at before a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths {
    pub files: BTreeSet<String>,
    /// Directories that a step names.
    pub directories: BTreeSet<String>,
    /// Directories whose every entry is an input of a unit.
    pub listed: BTreeSet<String>,
}

/// Collects the paths that the steps and the record mention.
pub fn paths<'s>(steps: impl IntoIterator<Item = &'s Step>, record: Option<&Record>) -> Paths {
    let mut paths = Paths::default();
    paths.files.extend(record.iter().flat_map(|record| record.files.keys().cloned()));
    for step in steps {
        match &step.action {
            Action::Directory { path, .. } => _ = paths.directories.insert(path.clone()),
            Action::File(FileBody { path, .. }) | Action::Link { path, .. } => {
                paths.files.insert(path.clone());
            }
            Action::Block(block) => _ = paths.files.insert(block.path.clone()),
            Action::Remove(removal) => _ = paths.files.insert(removal.path.clone()),
            Action::Unit(unit) => add_inputs(&mut paths, &unit.inputs),
            Action::Reload { inputs } => add_inputs(&mut paths, inputs),
            Action::Program(program) => paths.files.extend(program.stdout_to.clone()),
            Action::Discard { .. } | Action::Bind(_) | Action::Hook { .. } => {}
        }
    }
    paths
}

/// Adds the inputs of a unit.
pub fn add_inputs(paths: &mut Paths, inputs: &[String]) {
    for input in inputs {
        match input.strip_suffix('/') {
            Some(directory) => _ = paths.listed.insert(directory.to_owned()),
            None => _ = paths.files.insert(input.clone()),
        }
    }
}

/// Compares steps of the plan with the machine. Findings of class error refuse the whole.
pub fn compare(scene: &Scene<'_>, steps: &[&Step]) -> Result<Changes, Vec<Finding>> {
    let mut changes = Changes::default();
    for step in steps {
        files::compare_step(scene, step, &mut changes);
    }
    if scene.unplanned == Unplanned::Remove {
        files::remove_unplanned(scene, &mut changes);
    }
    add_parents(scene, &mut changes);
    units::judge(scene, steps, &mut changes);
    match changes.findings.iter().any(|finding| finding.class == Class::Error) {
        true => Err(changes.findings),
        false => Ok(changes),
    }
}

/// Adds the missing parents of new files, and puts all directories outermost first.
fn add_parents(scene: &Scene<'_>, changes: &mut Changes) {
    let planned: BTreeSet<_> = changes.directories.iter().map(|dir| dir.path.clone()).collect();
    let mut missing = BTreeSet::new();
    let targets = changes.files.iter().map(|file| file.path.as_str());
    for path in targets.chain(planned.iter().map(String::as_str)) {
        missing.extend(parents(path).filter(|dir| {
            scene.tree.get(*dir) == Some(&Observed::Absent) && !planned.contains(*dir)
        }));
    }
    let missing: Vec<String> = missing.into_iter().map(str::to_owned).collect();
    let new = |path| DirectoryChange { path, mode: 0o755, exists: false };
    changes.directories.extend(missing.into_iter().map(new));
    // A parent's path is a prefix of its children's, so it sorts before them.
    changes.directories.sort_by(|a, b| a.path.cmp(&b.path));
}

/// The directories above an absolute path, innermost first, without the root.
pub fn parents(path: &str) -> impl Iterator<Item = &str> {
    fn above(path: &str) -> Option<&str> {
        path.rsplit_once('/').map(|(directory, _)| directory).filter(|dir| !dir.is_empty())
    }
    std::iter::successors(above(path), |path| above(path))
}

#[cfg(test)]
pub(crate) mod tests;
