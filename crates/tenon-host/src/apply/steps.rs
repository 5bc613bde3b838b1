//! The steps of a plan, carried out in order.

use std::time::Instant;

use tenon_core::codes;
use tenon_core::config::Hook;
use tenon_core::plan::diff::{self, UnitNeed, Unplanned};
use tenon_core::plan::step::{Action, Bind, FileBody, HookStage, Phase, Program, Step, Unit};
use tenon_core::problem::{Finding, Problem};

use super::phase::Work;
use super::report::Change;
use super::{bind, discard, hooks, programs};
use crate::root::Root;
use crate::stop;
use crate::systemd;

/// Mode of a file that holds a program's output.
const OUTPUT_MODE: u32 = 0o644;
/// No such file comes near this size.
const LARGEST_OUTPUT: u64 = 8 << 20;

impl Work<'_> {
    pub(super) fn config(&mut self) -> Result<(), Problem> {
        let steps: Vec<&Step> =
            self.plan.steps.iter().filter(|step| step.phase == Phase::Config).collect();
        programs::check_present(self.directories.root(), &self.plan.steps)?;
        let changes = self.files(&steps, self.options.unplanned)?;
        for step in &steps {
            match &step.action {
                Action::Discard { path } => self.discard(path)?,
                Action::Program(program) => self.program(program)?,
                _ => {}
            }
        }
        // A manager that does not run yet reads everything when it starts.
        if systemd::is_running(self.directories.root()) {
            self.reload(changes.reload.as_deref())?;
            self.units(&steps, &changes.units)?;
        }
        self.hooks(&steps)
    }

    pub(super) fn run(&mut self) -> Result<(), Problem> {
        let plan = self.plan;
        self.report.warnings.extend(boot_under_way(self.directories.root()));
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
            Action::Discard { path } => self.discard(path),
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

    pub(super) fn hook(&mut self, stage: HookStage, hook: &Hook) -> Result<(), Problem> {
        if !self.may_run(&format!("hook `{}`", hook.name)) {
            return Ok(());
        }
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

    /// True when a program's inputs or its output are not what the last whole run left. The judge
    /// is the record, so a run that was stopped between input and output is made up for.
    fn has_news(&self, program: &Program) -> bool {
        let recorded = self.before.as_ref().map(|record| &record.files);
        let as_recorded = |path: &String, now: Option<&str>| {
            let before =
                recorded.and_then(|files| files.get(path)).map(|mark| mark.sha256.as_str());
            before.is_some() && before == now
        };
        let input = |path: &String| {
            as_recorded(path, self.after.files.get(path).map(|mark| mark.sha256.as_str()))
        };
        let output = |path: &String| {
            let bytes = self.directories.root().read(path, LARGEST_OUTPUT).ok().flatten();
            as_recorded(path, bytes.map(|bytes| tenon_core::hex::sha256(&bytes)).as_deref())
        };
        program.when_changed.is_empty()
            || !program.when_changed.iter().all(input)
            || !program.stdout_to.iter().all(output)
    }

    /// A program works on the machine that it runs on, which a tree under `--root` is not.
    fn may_run(&mut self, name: &str) -> bool {
        let may = self.options.run_in_tree || self.directories.root().is_host();
        if !may {
            let what = format!("not run under --root: {name}");
            let problem = Problem::new(&codes::host::NOT_RUN_IN_TREE, what);
            self.report.warnings.push(Finding::warning(problem));
        }
        may
    }

    fn discard(&mut self, path: &str) -> Result<(), Problem> {
        let start = Instant::now();
        if discard::discard(self.directories.root(), path)? {
            self.directories.forget();
            self.report.add(Change::new("file", path, "remove"), start.elapsed());
        }
        Ok(())
    }

    fn program(&mut self, program: &Program) -> Result<(), Problem> {
        let done = programs::is_done(self.directories.root(), program)? || !self.has_news(program);
        if done || !self.may_run(&program.argv.join(" ")) {
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
}

/// What an image switches cloud-init off with.
const CLOUD_INIT_OFF: &str = "/etc/cloud/cloud-init.disabled";

/// Scripts of the user data that still run may change what the daemons are about to read.
fn boot_under_way(root: &Root) -> Option<Finding> {
    // One that is switched off leaves its directory and no result.
    let over = ["/run/cloud-init/result.json", "/run/cloud-init/disabled", CLOUD_INIT_OFF];
    let running = root.exists("/run/cloud-init") && !over.iter().any(|path| root.exists(path));
    let what = "the daemons are started before cloud-init has finished";
    running.then(|| Finding::warning(Problem::new(&codes::host::BOOT_UNDER_WAY, what)))
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
