//! Back to the previous generation, by the same protocol as forward.
//!
//! Undo is a change like any other: it saves what it replaces, so undoing twice ends where it
//! began. It writes files; units keep running on what they have read until they are restarted,
//! and the record keeps saying what that was.

use tenon_core::codes;
use tenon_core::plan::diff::{self, FileChange, Held, Observed, Paths};
use tenon_core::plan::record::{Generation, Record, Saved, UnitMark};
use tenon_core::problem::Problem;

use super::directories::Directories;
use super::files::{self, Batch, own};
use super::report::Change;
use super::{Lock, Options, observe, preflight, record};
use crate::root::Root;
use crate::stop;

/// What `undo` would do.
#[derive(Debug, Clone)]
pub struct Undo {
    /// The generation that comes back.
    pub generation: u64,
    /// Files to restore and to remove, sorted by path.
    pub changes: Vec<Change>,
    /// Units that have read a file which changes, by the record.
    pub units: Vec<String>,
    current: Record,
    previous: Generation,
    batch: Batch,
    removed: Vec<(String, Saved)>,
}

/// Finds the previous generation and what stands in its way. Reads only.
pub fn plan_undo(root: &Root) -> Result<Undo, Problem> {
    let nothing = || Problem::new(&codes::host::NOTHING_TO_UNDO, "there is nothing to undo");
    let current = record::load(root)?.ok_or_else(nothing)?;
    let number = current.generation.checked_sub(1).ok_or_else(nothing)?;
    let previous = record::generation(root, number)?.ok_or_else(nothing)?;
    if previous.instance_id != current.instance_id {
        let what = format!("generation {number} was saved on another instance");
        return Err(Problem::new(&codes::host::STATE_OTHER_MACHINE, what));
    }
    let mut undo = Undo {
        generation: number,
        changes: Vec::new(),
        units: Vec::new(),
        current,
        previous,
        batch: Batch::default(),
        removed: Vec::new(),
    };
    undo.compare(root)?;
    undo.find_units();
    Ok(undo)
}

/// Makes it so.
pub fn undo(root: &Root, _lock: &Lock, undo: &Undo, options: &Options) -> Result<(), Problem> {
    let mut directories = Directories::new(root);
    let Undo { current, previous, .. } = undo;
    let id = &current.instance_id;
    let mut batch = undo.batch.clone();
    if let Some((generation, expired)) =
        record::saving(root, Some(current), id, &batch, &undo.removed)?
    {
        batch.files.insert(0, generation);
        batch.saved_first = true;
        batch.removals.extend(expired);
    }
    write(&mut directories, batch, options)?;
    let mut after = previous.record.clone().unwrap_or_else(|| Record {
        schema: current.schema,
        instance_id: current.instance_id.clone(),
        disk_indexes: current.disk_indexes.clone(),
        hooks: current.hooks.clone(),
        ..Record::default()
    });
    after.version = env!("CARGO_PKG_VERSION").to_owned();
    after.generation = current.generation + 1;
    after.units.clone_from(&current.units);
    match record::writing(Some(current), &after) {
        Some(batch) => write(&mut directories, batch, options),
        None => Ok(()),
    }
}

fn write(
    directories: &mut Directories<'_>,
    mut batch: Batch,
    options: &Options,
) -> Result<(), Problem> {
    batch.directories = record::state_directories(directories)?;
    for path in batch.files.iter().map(|file| &file.path).chain(&batch.removals) {
        directories.check_parents(path, &[], own().uid)?;
    }
    preflight::check(directories, &batch)?;
    files::write(directories, &batch, options.sync_threads, &|_| stop::check())
}

impl Undo {
    fn compare(&mut self, root: &Root) -> Result<(), Problem> {
        let files = self.previous.files.keys().cloned().collect();
        let paths = Paths { files, ..Paths::default() };
        let tree = observe::observe(&mut Directories::new(root), &paths)?;
        for (path, saved) in self.previous.files.clone() {
            let held = match tree.get(&path) {
                Some(Observed::File(held)) => Some(held.clone()),
                Some(Observed::Absent) | None => None,
                Some(_) => {
                    let what = format!("{path} is no longer a plain file");
                    return Err(Problem::new(&codes::host::UNSAFE_TARGET, what));
                }
            };
            self.restore(path, saved, held);
        }
        Ok(())
    }

    fn find_units(&mut self) {
        let reads = |mark: &UnitMark| {
            self.changes.iter().any(|change| diff::is_input(&mark.inputs, &change.path))
        };
        let units = self.current.units.iter().filter(|(_, mark)| reads(mark));
        self.units = units.map(|(unit, _)| unit.clone()).collect();
    }

    fn restore(&mut self, path: String, saved: Saved, held: Option<Held>) {
        match (saved, held) {
            (Saved::Absent, None) => {}
            (Saved::Absent, Some(held)) => {
                self.changes.push(Change::new("file", &path, "remove"));
                let body = held.bytes;
                self.removed.push((path.clone(), Saved::File { mode: held.mode, body }));
                self.batch.removals.push(path);
            }
            (Saved::File { mode, body }, held) => {
                if held.as_ref().is_some_and(|held| held.bytes == body && held.mode == mode) {
                    return;
                }
                let action = if held.is_some() { "change" } else { "create" };
                self.changes.push(Change::new("file", &path, action));
                self.batch.files.push(FileChange {
                    path,
                    body,
                    mode,
                    owner: held.as_ref().map_or_else(own, |held| held.owner),
                    secret: true,
                    because: "undo".to_owned(),
                    previous: held,
                });
            }
        }
    }
}
