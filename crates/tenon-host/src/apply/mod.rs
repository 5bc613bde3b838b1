//! Makes a plan true: files, then units, then the record. Running again is the cure for
//! whatever stopped a run.
//!
//! ```text
//! lock         one run at a time
//! observe      what stands at each path now
//! files        the batch protocol: old or new, never torn
//! preflight    room on each file system, before the first write
//! record       what the next run compares with, and what undo goes back to
//! units        start, restart, wait; systemd speaks D-Bus for it
//! programs     mdadm, mkfs and the like
//! discard      what another machine left, removed with everything below it
//! bind         a directory moved onto another file system; copy_tree copies its content
//! hooks        the user's own programs
//! store        one file outside the plan
//! undo         back to the previous generation
//! mend         what `harden --fix` changes
//! ```
//!
//! No room here decides anything about Kubernetes: the plan has decided.

mod bind;
mod copy_tree;
pub(crate) mod directories;
pub(crate) mod discard;
pub(crate) mod files;
mod hooks;
mod lock;
mod mend;
mod observe;
mod phase;
pub(crate) mod preflight;
mod programs;
mod record;
mod report;
mod steps;
mod store;
mod undo;
mod units;

use std::time::Duration;

use tenon_core::plan::Plan;
use tenon_core::plan::diff::{self, Changes, Edited, Scene, Tree, Unplanned};
use tenon_core::plan::record::Record;
use tenon_core::plan::step::{Phase, Step};
use tenon_core::problem::{Finding, Problem};

use crate::root::Root;

pub use discard::discard;
pub use files::{MOST_THREADS, POINTS, Probe, own};
pub use lock::Lock;
pub use mend::{is_interrupted, mend, restart_kubelet};
pub use phase::{config_phase, pre_bootstrap, run_phase};
pub use record::load as load_record;
pub use report::{Change, Report};
pub use store::{put, put_regardless, store};
pub use undo::{Undo, plan_undo, undo};

/// Choices of the command line about how a plan is made true.
#[derive(Debug, Clone)]
pub struct Options {
    pub edited: Edited,
    /// `Keep` when the plan is of a part of the node (`--daemon`).
    pub unplanned: Unplanned,
    /// Replaces every unit's own deadline (`--unit-timeout`).
    pub unit_timeout: Option<Duration>,
    /// Variables that hooks see besides their own: the proxy's.
    pub hook_environment: Vec<(String, String)>,
    /// The program that prints the last lines of a unit.
    pub journal_program: String,
    /// Run programs and hooks although the root is not the machine's own.
    pub run_in_tree: bool,
    /// Threads that sync files; 1 makes the order of system calls the same in every run.
    pub sync_threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            edited: Edited::Overwrite,
            unplanned: Unplanned::Remove,
            unit_timeout: None,
            hook_environment: Vec::new(),
            journal_program: "journalctl".to_owned(),
            run_in_tree: false,
            sync_threads: MOST_THREADS,
        }
    }
}

/// Compares these phases of the plan with the machine, reading only: the answer of `tenon plan`.
pub fn preview(
    root: &Root,
    plan: &Plan,
    phases: &[Phase],
    options: &Options,
) -> Result<Result<Changes, Vec<Finding>>, Problem> {
    let record = record_of_instance(root, plan)?;
    let mut directories = directories::Directories::new(root);
    let paths = diff::paths(&plan.steps, record.as_ref());
    let tree = observe::observe(&mut directories, &paths)?;
    let scene = Scene {
        plan,
        tree: &tree,
        record: record.as_ref(),
        owner: files::own(),
        edited: options.edited,
        unplanned: options.unplanned,
    };
    let steps: Vec<&Step> = plan.steps.iter().filter(|step| phases.contains(&step.phase)).collect();
    Ok(diff::compare(&scene, &steps))
}

/// What stands at the paths that a record lists, inputs of its units included.
pub fn look_at_recorded(root: &Root, record: &Record) -> Result<Tree, Problem> {
    let mut paths = diff::paths([], Some(record));
    for unit in record.units.values() {
        diff::add_inputs(&mut paths, &unit.inputs);
    }
    observe::observe(&mut directories::Directories::new(root), &paths)
}

fn record_of_instance(root: &Root, plan: &Plan) -> Result<Option<Record>, Problem> {
    let id = &plan.summary.instance_id;
    Ok(load_record(root)?.and_then(|record| record.of_instance(id)))
}

#[cfg(test)]
mod tests;
