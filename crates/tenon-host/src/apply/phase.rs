//! The two phases of a run: what they start from, and the record that they end with.

use std::collections::BTreeMap;
use std::time::Instant;

use tenon_core::config::Hook;
use tenon_core::plan::diff::{self, Changes, Scene, Unplanned};
use tenon_core::plan::record::{RECORD_PATH, Record, SCHEMA, Saved};
use tenon_core::plan::step::{HookStage, Step, Summary};
use tenon_core::plan::{Plan, hash_full, hash_public};
use tenon_core::problem::{Finding, Problem};

use super::directories::{Directories, unreadable};
use super::files::{self, Batch, Probe, own};
use super::report::{Report, file_changes};
use super::units::Units;
use super::{Lock, Options, observe, preflight, record, record_of_instance};
use crate::root::Root;
use crate::stop;

/// A phase under way.
pub(super) struct Work<'a> {
    pub plan: &'a Plan,
    pub options: &'a Options,
    pub directories: Directories<'a>,
    /// The record on disk.
    pub before: Option<Record>,
    /// The record as it will be written at the end.
    pub after: Record,
    pub report: Report,
    pub units: Units<'a>,
    probe: Probe<'a>,
}

/// Writes the config phase's files, reloads and restarts what depends on them, and records it.
pub fn config_phase(
    root: &Root,
    _lock: &Lock,
    plan: &Plan,
    options: &Options,
) -> Result<Report, Problem> {
    let mut work = Work::start(root, plan, options, &|_| stop::check())?;
    work.config()?;
    work.finish()
}

/// Makes disks ready, starts the daemons, runs the last hooks, and records it.
pub fn run_phase(
    root: &Root,
    _lock: &Lock,
    plan: &Plan,
    options: &Options,
) -> Result<Report, Problem> {
    let mut work = Work::start(root, plan, options, &|_| stop::check())?;
    work.run()?;
    work.finish()
}

/// Runs the hooks that come before everything else. Their stamps are recorded at once.
pub fn pre_bootstrap(
    root: &Root,
    _lock: &Lock,
    hooks: &[Hook],
    instance_id: &str,
    options: &Options,
) -> Result<Report, Problem> {
    let nothing = Plan {
        summary: Summary { instance_id: instance_id.to_owned(), ..Summary::default() },
        steps: Vec::new(),
        findings: Vec::new(),
        reasons: BTreeMap::new(),
        disk_indexes: BTreeMap::new(),
    };
    let mut work = Work::start(root, &nothing, options, &|_| stop::check())?;
    let before = work.before.clone().unwrap_or_default();
    for hook in hooks {
        work.hook(HookStage::PreBootstrap, hook)?;
    }
    // Only the stamps are news: the rest of the record still describes the last plan.
    work.after = Record { hooks: work.after.hooks, ..before };
    work.after.schema = SCHEMA;
    work.after.instance_id = instance_id.to_owned();
    if work.after.hooks.is_empty() {
        return Ok(work.report);
    }
    work.finish()
}

impl<'a> Work<'a> {
    pub(super) fn start(
        root: &'a Root,
        plan: &'a Plan,
        options: &'a Options,
        probe: Probe<'a>,
    ) -> Result<Self, Problem> {
        let before = record_of_instance(root, plan)?;
        let mut after = before.clone().unwrap_or_default();
        after.schema = SCHEMA;
        after.version = env!("CARGO_PKG_VERSION").to_owned();
        after.instance_id.clone_from(&plan.summary.instance_id);
        after.config_hash.clone_from(&plan.summary.config_hash);
        after.plan_hash = hash_full(plan);
        after.disk_indexes.clone_from(&plan.disk_indexes);
        after.warnings = plan.lasting_warnings();
        let id = &plan.summary.instance_id;
        if record::interrupted(root, before.as_ref(), id)?.is_some() {
            after.generation += 1;
        }
        let plan_hash = hash_public(plan);
        Ok(Work {
            plan,
            options,
            directories: Directories::new(root),
            before,
            after,
            report: Report { plan_hash, ..Report::default() },
            units: Units::new(root, options),
            probe,
        })
    }

    /// Makes the file steps true and returns what was compared.
    pub(super) fn files(
        &mut self,
        steps: &[&Step],
        unplanned: Unplanned,
    ) -> Result<Changes, Problem> {
        let start = Instant::now();
        let changes = self.compare(steps, unplanned)?;
        self.report.unchanged += changes.unchanged;
        self.report.warnings.extend(changes.findings.iter().cloned());
        self.report.time("compare", start.elapsed());
        let start = Instant::now();
        if !changes.is_empty() {
            self.write(&changes)?;
        }
        for change in file_changes(&changes) {
            self.report.add(change, start.elapsed());
        }
        for (path, mark) in &changes.marks {
            match mark {
                Some(mark) => _ = self.after.files.insert(path.clone(), mark.clone()),
                None => _ = self.after.files.remove(path),
            }
        }
        self.report.time("files", start.elapsed());
        Ok(changes)
    }

    pub(super) fn compare(
        &mut self,
        steps: &[&Step],
        unplanned: Unplanned,
    ) -> Result<Changes, Problem> {
        let mentioned = self.plan.steps.iter().chain(steps.iter().copied());
        let paths = diff::paths(mentioned, self.before.as_ref());
        let tree = observe::observe(&mut self.directories, &paths)?;
        record::list_state(&mut self.directories, &tree)
            .and_then(|()| self.directories.sweep())
            .map_err(|error| unreadable("/var/lib/tenon", error))?;
        let scene = Scene {
            plan: self.plan,
            tree: &tree,
            record: self.before.as_ref(),
            owner: own(),
            edited: self.options.edited,
            unplanned,
        };
        diff::compare(&scene, steps).map_err(refusal)
    }

    /// Writes a change set: saved generation first, then the files.
    fn write(&mut self, changes: &Changes) -> Result<(), Problem> {
        let mut batch = Batch {
            directories: changes.directories.clone(),
            files: changes.files.clone(),
            removals: changes.removals.iter().map(|removal| removal.path.clone()).collect(),
            saved_first: false,
        };
        let root = self.directories.root();
        let removed: Vec<_> = changes
            .removals
            .iter()
            .map(|it| {
                let body = it.previous.bytes.clone();
                (it.path.clone(), Saved::File { mode: it.previous.mode, body })
            })
            .collect();
        let id = &self.plan.summary.instance_id;
        let saving = record::saving(root, self.before.as_ref(), id, &batch, &removed)?;
        if let Some((generation, expired)) = saving {
            let number = self.before.as_ref().map_or(0, |record| record.generation);
            self.after.generation = number + 1;
            batch.directories.extend(record::state_directories(&mut self.directories)?);
            batch.directories.sort_by(|a, b| a.path.cmp(&b.path));
            batch.directories.dedup_by(|a, b| a.path == b.path);
            batch.files.insert(0, generation);
            batch.saved_first = true;
            batch.removals.extend(expired);
        }
        self.write_batch(&batch)
    }

    fn write_batch(&mut self, batch: &Batch) -> Result<(), Problem> {
        let fixed: Vec<&str> = batch.directories.iter().map(|dir| dir.path.as_str()).collect();
        let files = batch.files.iter().map(|file| &file.path);
        for path in files.chain(&batch.removals) {
            self.directories.check_parents(path, &fixed, own().uid)?;
        }
        preflight::check(&mut self.directories, batch)?;
        files::write(&mut self.directories, batch, self.options.sync_threads, self.probe)
    }

    /// Writes the record and gives the report.
    pub(super) fn finish(mut self) -> Result<Report, Problem> {
        let start = Instant::now();
        if let Some(mut batch) = record::writing(self.before.as_ref(), &self.after) {
            self.directories.forget();
            batch.directories = record::state_directories(&mut self.directories)?;
            self.write_batch(&batch)?;
            tracing::debug!(path = RECORD_PATH, elapsed = ?start.elapsed(), "recorded");
        }
        self.report.time("record", start.elapsed());
        Ok(self.report)
    }
}

/// One problem of many findings: the first that stops, with the others below it.
fn refusal(findings: Vec<Finding>) -> Problem {
    let mut stopping = findings.into_iter().filter(|finding| finding.stops(true));
    let first = stopping.next().map(|finding| finding.problem);
    let first = first.unwrap_or_else(|| {
        Problem::new(&tenon_core::codes::usage::BUG, "a refusal without a reason")
    });
    let others: Vec<String> = stopping.map(|finding| finding.problem.to_string()).collect();
    first.details(others)
}
