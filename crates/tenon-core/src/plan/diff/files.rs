//! What one step about a path means for what stands there now.

use std::collections::BTreeSet;

use super::{
    Changes, DirectoryChange, Edited, FileChange, Held, LINK_MODE, Observed, RemovalChange, Scene,
};
use crate::codes;
use crate::codes::Page;
use crate::plan::block;
use crate::plan::record::FileMark;
use crate::plan::step::{Action, Block, FileBody, Ownership, Removal, Step};
use crate::problem::{Finding, Problem};

/// Once written by us, then kept by the kubelet after its TLS bootstrap: deleting it would cut
/// the node off.
const NEVER_REMOVED: &str = "/var/lib/kubelet/kubeconfig";

/// Mode of a file that receives a block and does not exist yet.
const BLOCK_FILE_MODE: u32 = 0o644;

pub(super) fn compare_step(scene: &Scene<'_>, step: &Step, changes: &mut Changes) {
    match &step.action {
        Action::Directory { path, mode } => directory(scene, path, *mode, changes),
        Action::File(file) => compare_file(scene, file, &step.because, changes),
        Action::Block(block) => compare_block(scene, block, &step.because, changes),
        Action::Remove(removal) => remove(scene, removal, &step.because, changes),
        Action::Link { path, target } => link(scene, path, target, &step.because, changes),
        Action::Reload { .. }
        | Action::Discard { .. }
        | Action::Unit(_)
        | Action::Program(_)
        | Action::Bind(_)
        | Action::Hook { .. } => {}
    }
}

fn observed<'a>(scene: &Scene<'a>, path: &str) -> &'a Observed {
    scene.tree.get(path).unwrap_or(&Observed::Absent)
}

fn directory(scene: &Scene<'_>, path: &str, mode: u32, changes: &mut Changes) {
    let exists = match observed(scene, path) {
        // A directory that is there is left as it is, unless others can change what it holds.
        Observed::Directory { mode: held, owner } => {
            let safe = held & 0o002 == 0 && (owner.uid == 0 || owner.uid == scene.owner.uid);
            if safe {
                return;
            }
            true
        }
        Observed::Absent => false,
        other => return refuse(path, other, changes),
    };
    changes.directories.push(DirectoryChange { path: path.to_owned(), mode, exists });
}

fn compare_file(scene: &Scene<'_>, file: &FileBody, because: &str, changes: &mut Changes) {
    let held = match observed(scene, &file.path) {
        Observed::Absent => None,
        Observed::File(held) if !held.is_link() => Some(held),
        other => return refuse(&file.path, other, changes),
    };
    if held.is_some_and(|held| !judge_content(scene, file, held, changes)) {
        return;
    }
    changes.marks.insert(file.path.clone(), Some(mark(&file.body, file.mode)));
    let right = |held: &Held| {
        held.bytes == file.body && held.mode == file.mode && held.owner == scene.owner
    };
    if held.is_some_and(right) {
        changes.unchanged += 1;
        return;
    }
    changes.files.push(FileChange {
        path: file.path.clone(),
        body: file.body.clone(),
        mode: file.mode,
        owner: scene.owner,
        secret: file.secret,
        because: because.to_owned(),
        previous: held.cloned(),
    });
}

/// Looks at content that is not what is planned; false means that the file stays as it is.
fn judge_content(scene: &Scene<'_>, file: &FileBody, held: &Held, changes: &mut Changes) -> bool {
    let path = &file.path;
    let recorded = scene.record.and_then(|record| record.files.get(path));
    if held.bytes == file.body {
        return true;
    }
    let Some(recorded) = recorded else {
        if file.refuse_foreign {
            let what = format!("{path} is there already and is not Tenon's");
            changes.findings.push(Finding::error(Problem::new(&codes::host::FOREIGN_FILE, what)));
        }
        return !file.refuse_foreign;
    };
    if recorded.sha256 == crate::hex::sha256(&held.bytes) {
        return true;
    }
    edited(scene, path, held, changes)
}

/// Follows the policy for an edited file; false means that it stays.
fn edited(scene: &Scene<'_>, path: &str, held: &Held, changes: &mut Changes) -> bool {
    let outcome = match scene.edited {
        Edited::Overwrite => "is overwritten",
        Edited::Keep => "stays as it is",
        Edited::Backup => "is overwritten; its text is kept beside it",
    };
    warn(&codes::host::EDITED_FILE, format!("{path} was edited and {outcome}"), changes);
    if scene.edited == Edited::Backup {
        changes.files.push(FileChange {
            path: format!("{path}.tenon-backup"),
            body: held.bytes.clone(),
            mode: 0o600,
            owner: scene.owner,
            secret: true,
            because: "the edited text".to_owned(),
            previous: None,
        });
    }
    scene.edited != Edited::Keep
}

fn link(scene: &Scene<'_>, path: &str, target: &str, because: &str, changes: &mut Changes) {
    let held = match observed(scene, path) {
        Observed::Absent => None,
        Observed::File(held) if held.is_link() => Some(held),
        other => return refuse(path, other, changes),
    };
    changes.marks.insert(path.to_owned(), Some(mark(target.as_bytes(), LINK_MODE)));
    if held.is_some_and(|held| held.bytes == target.as_bytes()) {
        changes.unchanged += 1;
        return;
    }
    changes.files.push(FileChange {
        path: path.to_owned(),
        body: target.as_bytes().to_vec(),
        mode: LINK_MODE,
        owner: scene.owner,
        secret: false,
        because: because.to_owned(),
        previous: held.cloned(),
    });
}

fn compare_block(scene: &Scene<'_>, planned: &Block, because: &str, changes: &mut Changes) {
    let held = match observed(scene, &planned.path) {
        Observed::Absent if planned.lines.is_empty() => return,
        Observed::Absent => None,
        Observed::File(held) if !held.is_link() => Some(held),
        other => return refuse(&planned.path, other, changes),
    };
    // Bytes that are not UTF-8 stay as they are: each byte is one character here and back.
    let old: String =
        held.iter().flat_map(|held| held.bytes.iter().copied().map(char::from)).collect();
    let wide = |line: &String| line.bytes().map(char::from).collect();
    let wanted = Block { lines: planned.lines.iter().map(wide).collect(), ..planned.clone() };
    let new = block::place(&old, &wanted);
    if held.is_some() && new == old {
        changes.unchanged += 1;
        return;
    }
    changes.files.push(FileChange {
        path: planned.path.clone(),
        body: new.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect(),
        mode: held.map_or(BLOCK_FILE_MODE, |held| held.mode),
        owner: held.map_or(scene.owner, |held| held.owner),
        secret: false,
        because: because.to_owned(),
        previous: held.cloned(),
    });
}

fn remove(scene: &Scene<'_>, removal: &Removal, because: &str, changes: &mut Changes) {
    let path = &removal.path;
    let recorded = scene.record.is_some_and(|record| record.files.contains_key(path));
    let held = match observed(scene, path) {
        Observed::Absent => {
            changes.marks.insert(path.clone(), None);
            return;
        }
        Observed::File(held) if !held.is_link() || recorded => held,
        other => {
            let what = format!("{path} is {}", words(other));
            return warn(&codes::host::NOT_REMOVED, what, changes);
        }
    };
    if removal.proof == Ownership::EnvironmentShape && !recorded && !has_environment_shape(held) {
        let what = format!("{path} holds more than environment variables");
        return warn(&codes::host::NOT_REMOVED, what, changes);
    }
    push_removal(path, held, because, changes);
}

/// Removes what the last run wrote and this plan does not have.
pub(super) fn remove_unplanned(scene: &Scene<'_>, changes: &mut Changes) {
    let Some(record) = scene.record else { return };
    let planned: BTreeSet<&str> = scene.plan.steps.iter().filter_map(planned_path).collect();
    for (path, mark) in &record.files {
        if planned.contains(path.as_str()) {
            continue;
        }
        let held = match observed(scene, path) {
            Observed::File(held) if path != NEVER_REMOVED => held,
            Observed::File(_) | Observed::Absent => {
                changes.marks.insert(path.clone(), None);
                continue;
            }
            other => {
                let what = format!("{path} is {}", words(other));
                warn(&codes::host::NOT_REMOVED, what, changes);
                continue;
            }
        };
        let ours = mark.sha256 == crate::hex::sha256(&held.bytes);
        if ours || edited(scene, path, held, changes) {
            push_removal(path, held, "no longer planned", changes);
        }
    }
}

fn planned_path(step: &Step) -> Option<&str> {
    match &step.action {
        Action::Remove(removal) => Some(&removal.path),
        action => action.written_path().map(String::as_str),
    }
}

fn push_removal(path: &str, held: &Held, because: &str, changes: &mut Changes) {
    changes.marks.insert(path.to_owned(), None);
    changes.removals.push(RemovalChange {
        path: path.to_owned(),
        because: because.to_owned(),
        previous: held.clone(),
    });
}

/// True for the form that Tenon and nodeadm give a file of environment variables.
fn has_environment_shape(held: &Held) -> bool {
    let Ok(text) = std::str::from_utf8(&held.bytes) else { return false };
    let ours = |line: &str| {
        let line = line.trim();
        line.is_empty()
            || line == "[Service]"
            || line == "[Manager]"
            || line.starts_with("Environment=")
            || line.starts_with("DefaultEnvironment=")
            || line.starts_with("EnvironmentFile=")
    };
    text.lines().all(ours)
}

fn refuse(path: &str, found: &Observed, changes: &mut Changes) {
    let page = match found {
        Observed::Large => &codes::host::TARGET_TOO_LARGE,
        _ => &codes::host::UNSAFE_TARGET,
    };
    let what = format!("{path} is {}", words(found));
    changes.findings.push(Finding::error(Problem::new(page, what)));
}

fn warn(page: &'static Page, what: String, changes: &mut Changes) {
    changes.findings.push(Finding::warning(Problem::new(page, what)));
}

fn words(found: &Observed) -> &'static str {
    match found {
        Observed::Absent => "absent",
        Observed::File(held) if held.is_link() => "a symbolic link",
        Observed::File(_) => "a file",
        Observed::Directory { .. } => "a directory",
        Observed::Large => "a very large file",
        Observed::Other(words) => words,
    }
}

fn mark(body: &[u8], mode: u32) -> FileMark {
    FileMark { sha256: crate::hex::sha256(body), mode }
}
