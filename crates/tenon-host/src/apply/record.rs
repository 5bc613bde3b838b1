//! The record on disk: read first, written last; and the generations that `undo` goes back to.

use std::collections::BTreeMap;
use std::io;

use tenon_core::plan::diff::{DirectoryChange, FileChange, Observed, Paths, Tree};
use tenon_core::plan::record::{GENERATIONS_PATH, Generation, RECORD_PATH, Record, SCHEMA, Saved};
use tenon_core::problem::Problem;

use super::directories::{Directories, unreadable};
use super::files::{Batch, own};
use super::observe;
use crate::root::Root;

const STATE_DIRECTORY: &str = "/var/lib/tenon";
/// How many generations are kept.
const KEPT: u64 = 3;
/// No record comes near this size.
const LARGEST: u64 = 8 << 20;

/// The record, whichever instance it was made on; None if there is none.
pub fn load(root: &Root) -> Result<Option<Record>, Problem> {
    let bytes = root.read(RECORD_PATH, LARGEST).map_err(|error| unreadable(RECORD_PATH, error))?;
    bytes.map(|bytes| Record::decode(&bytes)).transpose()
}

/// The generation saved under a number; None if there is none.
pub fn generation(root: &Root, number: u64) -> Result<Option<Generation>, Problem> {
    let path = Generation::path(number);
    let bytes = root.read(&path, LARGEST).map_err(|error| unreadable(&path, error))?;
    bytes.map(|bytes| Generation::decode(&bytes)).transpose()
}

/// The batch that saves what `batch` is going to replace, to be written in front of it. None
/// when nothing that outlives a boot is replaced.
pub fn saving(
    root: &Root,
    record: Option<&Record>,
    instance_id: &str,
    batch: &Batch,
    removed: &[(String, Saved)],
) -> Result<Option<(FileChange, Vec<String>)>, Problem> {
    let mut files: Vec<(String, Saved)> =
        batch.files.iter().map(|file| (file.path.clone(), saved(file))).collect();
    files.extend(removed.iter().cloned());
    files.retain(|(path, _)| !path.starts_with("/run/"));
    if files.is_empty() {
        return Ok(None);
    }
    let number = record.map_or(0, |record| record.generation);
    let mut generation = Generation {
        schema: SCHEMA,
        number,
        instance_id: instance_id.to_owned(),
        record: record.cloned(),
        files: files.into_iter().collect(),
    };
    if let Some(earlier) = interrupted(root, record, instance_id)? {
        generation.files.extend(earlier.files);
    }
    let expired = number.checked_sub(KEPT).map(Generation::path);
    let expired = expired.filter(|path| root.exists(path)).into_iter().collect();
    Ok(Some((state_file(Generation::path(number), generation.encode()), expired)))
}

/// What a run saved that never came to its record: the true old content of what it replaced.
pub fn interrupted(
    root: &Root,
    record: Option<&Record>,
    instance_id: &str,
) -> Result<Option<Generation>, Problem> {
    let saved = generation(root, record.map_or(0, |record| record.generation))?;
    let belongs = |saved: &Generation| {
        saved.instance_id == instance_id && essence(saved.record.as_ref()) == essence(record)
    };
    Ok(saved.filter(belongs))
}

/// A record without the stamps that hooks add between two runs; None while they are all it has.
fn essence(record: Option<&Record>) -> Option<Record> {
    let made = record.filter(|record| record.generation > 0);
    made.map(|record| Record { hooks: BTreeMap::new(), ..record.clone() })
}

fn saved(file: &FileChange) -> Saved {
    match &file.previous {
        Some(held) => Saved::File { mode: held.mode, body: held.bytes.clone() },
        None => Saved::Absent,
    }
}

/// The batch that writes the record; None when the record on disk says the same.
pub fn writing(before: Option<&Record>, after: &Record) -> Option<Batch> {
    (before != Some(after)).then(|| Batch {
        files: vec![state_file(RECORD_PATH.to_owned(), after.encode())],
        ..Batch::default()
    })
}

fn state_file(path: String, body: Vec<u8>) -> FileChange {
    FileChange {
        path,
        body,
        mode: 0o600,
        owner: own(),
        secret: true,
        because: "Tenon's own state".to_owned(),
        previous: None,
    }
}

/// The state directories that a batch of ours needs and that are not there or not private.
pub fn state_directories(
    directories: &mut Directories<'_>,
) -> Result<Vec<DirectoryChange>, Problem> {
    let wanted = [STATE_DIRECTORY, GENERATIONS_PATH];
    let paths =
        Paths { directories: wanted.iter().map(ToString::to_string).collect(), ..Paths::default() };
    let tree = observe::observe(directories, &paths)?;
    Ok(tree.iter().filter_map(|(path, found)| change(path, found, &wanted)).collect())
}

fn change(path: &str, found: &Observed, private: &[&str]) -> Option<DirectoryChange> {
    let mode = if private.contains(&path) { 0o700 } else { 0o755 };
    let exists = match found {
        Observed::Directory { mode: held, .. } if *held == mode || mode == 0o755 => return None,
        Observed::Directory { .. } => true,
        _ => false,
    };
    Some(DirectoryChange { path: path.to_owned(), mode, exists })
}

/// Lists the state directories, so that strays in them are swept with the others.
pub fn list_state(directories: &mut Directories<'_>, tree: &Tree) -> io::Result<()> {
    for path in [STATE_DIRECTORY, GENERATIONS_PATH] {
        if !tree.contains_key(path)
            && let Some(directory) = directories.get(path)?
        {
            directory.names()?;
        }
    }
    Ok(())
}
