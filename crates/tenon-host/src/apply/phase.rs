//! The two phases of a run, step by step.

use std::collections::BTreeMap;
use std::time::Instant;

use tenon_core::config::Hook;
use tenon_core::plan::diff::{self, Changes, Scene, UnitNeed, Unplanned};
use tenon_core::plan::record::{Record, SCHEMA, Saved};
use tenon_core::plan::step::{
    Action, Bind, FileBody, HookStage, Phase, Program, Step, Summary, Unit,
};
use tenon_core::plan::{Plan, hash_full, hash_public};
use tenon_core::problem::{Finding, Problem};

use super::directories::{Directories, unreadable};
use super::files::{self, Batch, Probe, own};
use super::report::{Change, Report, file_changes};
use super::units::Units;
use super::{Lock, Options, bind, hooks, observe, preflight, programs, record, record_of_instance};
use crate::root::Root;
use crate::stop;
use crate::systemd;

/// Mode of a file that holds a program's output.
const OUTPUT_MODE: u32 = 0o644;

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
    units: Units<'a>,
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

    pub(super) fn config(&mut self) -> Result<(), Problem> {
        let steps: Vec<&Step> =
            self.plan.steps.iter().filter(|step| step.phase == Phase::Config).collect();
        programs::check_present(self.directories.root(), &self.plan.steps)?;
        let changes = self.files(&steps, self.options.unplanned)?;
        // A manager that does not run yet reads everything when it starts.
        if systemd::is_running(self.directories.root()) {
            self.reload(changes.reload.as_deref())?;
            self.units(&steps, &changes.units)?;
        }
        self.hooks(&steps)
    }

    pub(super) fn run(&mut self) -> Result<(), Problem> {
        let plan = self.plan;
        programs::check_present(self.directories.root(), &plan.steps)?;
        let steps: Vec<&Step> = plan.steps.iter().filter(|step| step.phase == Phase::Run).collect();
        for group in steps.chunk_by(|a, b| is_file(a) && is_file(b)) {
            // Programs and units change the tree behind our open handles.
            self.directories.forget();
            self.group(group)?;
        }
        Ok(())
    }

    /// Makes neighbouring file steps true in one batch, any other step by itself.
    fn group(&mut self, group: &[&Step]) -> Result<(), Problem> {
        stop::check()?;
        match &group[0].action {
            Action::Program(program) => self.program(program),
            Action::Bind(bind) => self.bind(bind),
            Action::Hook { .. } => self.hooks(group),
            Action::Unit(_) => {
                let needs = self.compare(group, Unplanned::Keep)?.units;
                self.units(group, &needs)
            }
            Action::Reload { .. } => {
                let reason = self.compare(group, Unplanned::Keep)?.reload;
                let touched = self.touched_input(&group[0].action);
                self.reload(reason.or(touched).as_deref())
            }
            Action::Directory { .. }
            | Action::File(_)
            | Action::Link { .. }
            | Action::Block(_)
            | Action::Remove(_) => self.files(group, Unplanned::Keep).map(|_| ()),
        }
    }

    /// A unit file that this run has changed before the reload step came.
    fn touched_input(&self, action: &Action) -> Option<String> {
        let Action::Reload { inputs } = action else { return None };
        let mut changed = self.report.changes.iter().filter(|change| change.kind == "file");
        let touched = changed.find(|change| diff::is_input(inputs, &change.path))?;
        Some(format!("{} changed", touched.path))
    }

    fn reload(&mut self, reason: Option<&str>) -> Result<(), Problem> {
        let Some(reason) = reason else { return Ok(()) };
        let start = Instant::now();
        self.units.reload()?;
        self.report.add(Change::new("reload", "systemd", "run"), start.elapsed());
        tracing::debug!(reason, "reloaded");
        self.report.time("units", start.elapsed());
        Ok(())
    }

    fn units(&mut self, steps: &[&Step], needs: &[UnitNeed]) -> Result<(), Problem> {
        for unit in steps.iter().filter_map(|step| unit_of(step)) {
            let Some(need) = needs.iter().find(|need| need.unit == unit.name) else { continue };
            let start = Instant::now();
            let outcome = self.units.ensure(unit, need)?;
            self.report.warnings.extend(outcome.warning);
            self.after.units.insert(unit.name.clone(), need.mark.clone());
            if let Some(verb) = outcome.verb {
                let reason = need.stale.as_deref().unwrap_or("not active");
                tracing::debug!(unit = unit.name, reason, "because");
                self.report.add(Change::new("unit", &unit.name, verb.word()), start.elapsed());
            }
            self.report.time("units", start.elapsed());
        }
        Ok(())
    }

    fn hooks(&mut self, steps: &[&Step]) -> Result<(), Problem> {
        for step in steps {
            match &step.action {
                // These ran before the plan was made.
                Action::Hook { stage: HookStage::PreBootstrap, .. } => {}
                Action::Hook { stage, hook } => self.hook(*stage, hook)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn hook(&mut self, stage: HookStage, hook: &Hook) -> Result<(), Problem> {
        let start = Instant::now();
        let summary = &self.plan.summary;
        let context = hooks::Context {
            stage,
            instance_id: &summary.instance_id,
            node_name: (stage != HookStage::PreBootstrap).then_some(&summary.node_name),
            environment: &self.options.hook_environment,
        };
        match hooks::run(hook, &context, &mut self.after.hooks)? {
            hooks::End::Skipped => {}
            hooks::End::Ran => {
                self.report.add(Change::new("hook", &hook.name, "run"), start.elapsed());
            }
            hooks::End::Warned(finding) => self.report.warnings.push(finding),
        }
        self.report.time("hooks", start.elapsed());
        Ok(())
    }

    fn program(&mut self, program: &Program) -> Result<(), Problem> {
        let root = self.directories.root();
        let changed: Vec<&str> =
            self.report.changes.iter().map(|change| change.path.as_str()).collect();
        if programs::is_done(root, program, &changed)? {
            return Ok(());
        }
        let start = Instant::now();
        let output = programs::run(program)?;
        self.directories.forget();
        if let Some(path) = &program.stdout_to {
            self.write_output(path, output)?;
        }
        if let Some(path) = program.unless_exists.as_ref().filter(|_| program.stamp) {
            self.write_output(path, Vec::new())?;
            // A stamp is no file of the plan: the record would have it removed again.
            self.after.files.remove(path);
        }
        let name = program.argv.first().map(String::as_str).unwrap_or_default();
        self.report.add(Change::new("program", name, "run"), start.elapsed());
        self.report.time("programs", start.elapsed());
        Ok(())
    }

    /// Writes a file whose content only this machine could tell, as a step of its own.
    fn write_output(&mut self, path: &str, body: Vec<u8>) -> Result<(), Problem> {
        let file = FileBody::new(path, OUTPUT_MODE, body);
        let step = Step::run(Action::File(file), "output of a program");
        self.files(&[&step], Unplanned::Keep).map(|_| ())
    }

    fn bind(&mut self, bind: &Bind) -> Result<(), Problem> {
        let start = Instant::now();
        if bind::ensure(self.directories.root(), &mut self.units, bind)? {
            self.report.add(Change::new("bind", &bind.at, "create"), start.elapsed());
        }
        self.report.time("disks", start.elapsed());
        Ok(())
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
            tracing::debug!(path = record_path(), elapsed = ?start.elapsed(), "recorded");
        }
        self.report.time("record", start.elapsed());
        Ok(self.report)
    }
}

/// True for steps that go into a batch with their neighbours.
fn is_file(step: &Step) -> bool {
    matches!(
        step.action,
        Action::Directory { .. }
            | Action::File(_)
            | Action::Link { .. }
            | Action::Block(_)
            | Action::Remove(_)
    )
}

fn unit_of(step: &Step) -> Option<&Unit> {
    match &step.action {
        Action::Unit(unit) => Some(unit),
        _ => None,
    }
}

fn record_path() -> &'static str {
    tenon_core::plan::record::RECORD_PATH
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
