//! Which units run on older inputs than planned, and whether the manager must reload.
//!
//! The judge is the record: a run that was killed between writing a file and restarting its
//! unit left the file in place but not the unit's hash, so the next run still restarts.

use std::collections::BTreeMap;

use super::{Changes, Observed, Scene, Tree};
use crate::hex::sha256;
use crate::plan::digest::Fields;
use crate::plan::record::UnitMark;
use crate::plan::step::{Action, Step, Unit, UnitVerb};

/// What a unit needs, as far as files can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitNeed {
    pub unit: String,
    /// What the record says once the unit runs on its inputs as they will be.
    pub mark: UnitMark,
    /// Why the unit must not go on with what it has read; None if its inputs are those of its
    /// last start.
    pub stale: Option<String>,
    /// Newest change of an input that stays as it is, in microseconds since 1970.
    pub newest_input_us: Option<i64>,
}

/// sha256 of every file as it will be after the changes.
type After<'a> = BTreeMap<&'a str, String>;

pub(super) fn judge(scene: &Scene<'_>, steps: &[&Step], changes: &mut Changes) {
    let after = after(scene, changes);
    let units = steps.iter().filter_map(|step| match &step.action {
        Action::Unit(unit) => Some(need(scene, unit, changes, &after)),
        _ => None,
    });
    let needs = units.collect();
    let reload = steps.iter().find_map(|step| match &step.action {
        Action::Reload { inputs } => reload_reason(scene, inputs, changes, &after),
        _ => None,
    });
    (changes.units, changes.reload) = (needs, reload);
}

/// sha256 of every file as it stands.
fn contents(tree: &Tree) -> After<'_> {
    let mut contents = After::new();
    for (path, observed) in tree {
        if let Observed::File(held) = observed {
            contents.insert(path, sha256(&held.bytes));
        }
    }
    contents
}

fn after<'a>(scene: &Scene<'a>, changes: &'a Changes) -> After<'a> {
    let mut after = contents(scene.tree);
    for file in &changes.files {
        after.insert(&file.path, file.sha256());
    }
    for removal in &changes.removals {
        after.remove(removal.path.as_str());
    }
    after
}

/// True when a list of inputs, directories among them, names this path.
pub fn is_input(inputs: &[String], path: &str) -> bool {
    inputs.iter().any(|input| match input.strip_suffix('/') {
        Some(directory) => path.rsplit_once('/').is_some_and(|(parent, _)| parent == directory),
        None => input == path,
    })
}

/// The hash over paths and contents of a unit's inputs as they stand.
pub fn input_hash(inputs: &[String], tree: &Tree) -> String {
    hash_of(&inputs_among(inputs, &contents(tree)))
}

fn inputs_among<'m, 'a>(inputs: &[String], all: &'m After<'a>) -> Vec<(&'m &'a str, &'m String)> {
    all.iter().filter(|(path, _)| is_input(inputs, path)).collect()
}

fn hash_of(inputs: &[(&&str, &String)]) -> String {
    let mut fields = Fields::default();
    for (path, sha256) in inputs {
        fields.add(path).add(sha256);
    }
    fields.hash()
}

fn need(scene: &Scene<'_>, unit: &Unit, changes: &Changes, after: &After<'_>) -> UnitNeed {
    let inputs = inputs_among(&unit.inputs, after);
    let input_hash = hash_of(&inputs);
    let times = inputs.iter().filter_map(|(path, _)| match scene.tree.get(**path) {
        Some(Observed::File(held)) => Some(held.modified_us),
        _ => None,
    });
    UnitNeed {
        // A file may be written anew with the content that the record has: under /run after a
        // reboot, or over an edit. Whoever read what was there before must read it again.
        stale: touched_input(&unit.inputs, changes)
            .map(|path| format!("{path} changed"))
            .or_else(|| stale_reason(scene, unit, &input_hash, inputs.len(), after)),
        newest_input_us: times.max(),
        unit: unit.name.clone(),
        mark: UnitMark { input_hash, inputs: unit.inputs.clone() },
    }
}

fn stale_reason(
    scene: &Scene<'_>,
    unit: &Unit,
    input_hash: &str,
    present: usize,
    after: &After<'_>,
) -> Option<String> {
    let Some(recorded) = scene.record.and_then(|record| record.units.get(&unit.name)) else {
        // A unit that is only restarted on news has none while its inputs do not exist.
        if unit.verb == UnitVerb::RestartOnChange && present == 0 {
            return None;
        }
        return Some("not started by Tenon on this machine yet".to_owned());
    };
    if recorded.input_hash == input_hash {
        return None;
    }
    let differing = differing_inputs(scene, &unit.inputs, after);
    Some(match differing.as_slice() {
        [] => "an input that is not Tenon's changed".to_owned(),
        [one] => format!("{one} changed"),
        [one, rest @ ..] => format!("{one} and {} more changed", rest.len()),
    })
}

/// An input that this run writes or removes.
fn touched_input<'c>(inputs: &[String], changes: &'c Changes) -> Option<&'c str> {
    let files = changes.files.iter().map(|file| file.path.as_str());
    let removed = changes.removals.iter().map(|removal| removal.path.as_str());
    files.chain(removed).find(|path| is_input(inputs, path))
}

/// The inputs whose content is not what the record says.
fn differing_inputs<'a>(scene: &Scene<'a>, inputs: &[String], after: &After<'a>) -> Vec<&'a str> {
    let Some(record) = scene.record else { return Vec::new() };
    let mut paths: Vec<&str> = after.keys().copied().collect();
    paths.extend(record.files.keys().map(String::as_str));
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| {
        let recorded = record.files.get(*path).map(|mark| &mark.sha256);
        is_input(inputs, path)
            && after.get(path) != recorded
            // A foreign file that was there before is no news.
            && (recorded.is_some() || written(scene, path))
    });
    paths
}

/// True when the plan writes this path.
fn written(scene: &Scene<'_>, path: &str) -> bool {
    scene.plan.steps.iter().any(|step| step.action.written_path().is_some_and(|it| it == path))
}

/// With a record, the manager must reload when a unit file is not what the record says; without
/// one, when this run changes a unit file.
fn reload_reason(
    scene: &Scene<'_>,
    inputs: &[String],
    changes: &Changes,
    after: &After<'_>,
) -> Option<String> {
    let touched = touched_input(inputs, changes);
    let path = touched.or_else(|| differing_inputs(scene, inputs, after).first().copied())?;
    Some(format!("{path} changed"))
}
