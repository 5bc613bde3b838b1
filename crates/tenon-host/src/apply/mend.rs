//! What `harden --fix` writes: modes and owners in place, files by the protocol of [`store`],
//! then the record, so that what was hardened is not taken for drift.

use std::io;
use std::time::Duration;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use tenon_core::checks::mend::{Dress, Mending, touched};
use tenon_core::codes;
use tenon_core::hex::sha256;
use tenon_core::plan::diff::{self, Held, Observed, Paths};
use tenon_core::plan::record::Record;
use tenon_core::problem::Problem;

use super::directories::Directories;
use super::files;
use super::{Lock, load_record, observe, record, store};
use crate::root::Root;
use crate::stop;
use crate::systemd::{JobEnd, Manager, Verb};

/// A file of settings is nobody else's business.
const NEW_FILE_MODE: u32 = 0o600;
const KUBELET: &str = "kubelet.service";
const RESTART_DEADLINE: Duration = Duration::from_secs(60);

/// Makes a mending true. Every file has its old or its new content at every instant.
pub fn mend(root: &Root, lock: &Lock, mending: &Mending) -> Result<(), Problem> {
    for (path, dress) in &mending.dresses {
        stop::check()?;
        put_on(root, path, *dress).map_err(|error| {
            let what = format!("setting mode and owner of {path}");
            Problem::new(&codes::host::FILE_WRITE, what).cause(error)
        })?;
        tracing::info!(path, "mode and owner set");
    }
    for write in &mending.writes {
        let mode = mode_of(root, &write.path).unwrap_or(NEW_FILE_MODE);
        store(root, lock, &write.path, mode, &write.body)?;
        tracing::info!(path = write.path, "written");
    }
    let paths = touched(mending).into_iter().map(str::to_owned);
    let tree = look(root, Paths { files: paths.collect(), ..Paths::default() })?;
    rewrite(root, |record| {
        for (path, found) in &tree {
            if let (Some(mark), Observed::File(held)) = (record.files.get_mut(path), found) {
                let Held { bytes, mode, .. } = held;
                (mark.sha256, mark.mode) = (sha256(bytes), *mode);
            }
        }
    })
}

/// Restarts the kubelet, and records what it now runs on.
pub fn restart_kubelet(root: &Root, _lock: &Lock) -> Result<(), Problem> {
    let end = Manager::connect(root)?.job(Verb::Restart, KUBELET, RESTART_DEADLINE)?;
    if end != JobEnd::Result("done".to_owned()) {
        let what = format!("{KUBELET} did not start again");
        return Err(Problem::new(&codes::host::UNIT_FAILED, what).cause(format!("{end:?}")));
    }
    let recorded = load_record(root)?.and_then(|record| record.units.get(KUBELET).cloned());
    let Some(mark) = recorded else { return Ok(()) };
    let mut paths = Paths::default();
    diff::add_inputs(&mut paths, &mark.inputs);
    let tree = look(root, paths)?;
    let input_hash = diff::input_hash(&mark.inputs, &tree);
    rewrite(root, |record| {
        if let Some(mark) = record.units.get_mut(KUBELET) {
            mark.input_hash.clone_from(&input_hash);
        }
    })
}

fn look(root: &Root, paths: Paths) -> Result<diff::Tree, Problem> {
    observe::observe(&mut Directories::new(root), &paths)
}

fn open(root: &Root, path: &str) -> io::Result<std::os::fd::OwnedFd> {
    root.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
}

fn mode_of(root: &Root, path: &str) -> Option<u32> {
    let stat = rustix::fs::fstat(open(root, path).ok()?).ok()?;
    Some(stat.st_mode & 0o7777)
}

fn put_on(root: &Root, path: &str, dress: Dress) -> io::Result<()> {
    let file = open(root, path)?;
    if dress.to_root {
        rustix::fs::fchown(&file, Some(Uid::ROOT), Some(Gid::ROOT))?;
    }
    if let Some(mode) = dress.mode {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    }
    Ok(())
}

/// Changes the record, if there is one and the change is one.
fn rewrite(root: &Root, change: impl Fn(&mut Record)) -> Result<(), Problem> {
    let Some(before) = load_record(root)? else { return Ok(()) };
    let mut after = before.clone();
    change(&mut after);
    let Some(batch) = record::writing(Some(&before), &after) else { return Ok(()) };
    let mut directories = Directories::new(root);
    let written = files::write(&mut directories, &batch, 1, &|_| stop::check());
    written.map_err(|problem| problem.details(["the node itself is mended".to_owned()]))
}

/// Says whether a run began and never came to its record.
pub fn is_interrupted(root: &Root, known: &Record) -> Result<bool, Problem> {
    Ok(record::interrupted(root, Some(known), &known.instance_id)?.is_some())
}
