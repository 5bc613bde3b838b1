//! One run of a stage: its lock, the state, the steps in order, and how it ends.
//!
//! For each step: check, apply, verify, record. A crash between any two costs a repeat, never a
//! skip. How bad an error is stands in its exit code: 3, 4, 6 and 12 need a person, the stage is
//! `blocked` and its units do not start it again; anything else is tried again, twenty times.

use std::os::fd::OwnedFd;
use std::time::Instant;

use serde_json::{Value, json};
use tenon_core::codes::stages as pages;
use tenon_core::hex::sha256;
use tenon_core::problem::Problem;
use tenon_core::stages::Machine;
use tenon_core::stages::paths;
use tenon_core::stages::state::{MOST_ATTEMPTS, State, Status};

use super::record::{
    Failure, append, inputs, lock, mark, read_fact, read_machine, read_state, timestamp, update,
};
use super::{disk, fail, notify};
use crate::apply;
use crate::root::Root;
use crate::stop;

/// Exit codes after which the units do not start a stage again.
pub const PERMANENT: [u8; 4] = [3, 4, 6, 12];

/// What a stage is run with.
#[derive(Debug, Clone)]
pub struct Order {
    pub stage: &'static str,
    /// Node path of the config.
    pub config: String,
    /// What the command line forces, as `name=value`; part of the inputs.
    pub forced: Vec<String>,
}

/// How opening a stage ended.
#[derive(Debug)]
pub enum Opened<'r> {
    /// There is work.
    Run(Box<Run<'r>>),
    /// Done before. `drift`: its inputs have changed since.
    Done { drift: bool },
}

/// One run of a stage.
#[derive(Debug)]
pub struct Run<'r> {
    pub root: &'r Root,
    pub machine: Machine,
    pub boot_id: String,
    stage: &'static str,
    /// The state as of the last save.
    state: State,
    _lock: OwnedFd,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// True already, in a few words.
    Satisfied(String),
    Needed,
}

/// Does something on the machine, or says why it could not.
pub type Act<C> = fn(&mut C, &mut Run<'_>) -> Result<(), Problem>;

/// One step of a stage, over the stage's own context.
pub struct Step<C> {
    pub name: &'static str,
    /// Whether there is anything to do, from facts.
    pub check: fn(&mut C, &mut Run<'_>) -> Result<Check, Problem>,
    pub apply: Act<C>,
    /// Whether it worked. None: the check must be satisfied now.
    pub verify: Option<Act<C>>,
}

impl<'r> Run<'r> {
    /// Takes the stage's lock, reads config and state, mends the pair of state and marker.
    pub fn open(root: &'r Root, order: &Order) -> Result<Opened<'r>, Failure> {
        let opened = Run::try_open(root, order);
        if let Err(failure) = &opened
            && let Some(problem) = failure.permanent()
        {
            // There is no run that could record it; the console and the log have it.
            give_up(root, order.stage, "open", problem)?;
        }
        opened
    }

    fn try_open(root: &'r Root, order: &Order) -> Result<Opened<'r>, Failure> {
        let stage = order.stage;
        let lock = lock(root, stage)?;
        let (machine, text) = read_machine(root, &order.config)?;
        let boot_id = read_fact(root, paths::BOOT_ID)?;
        let inputs = inputs(&text, &order.forced);
        let state = read_state(root)?;
        let marked = root.exists(&paths::done(stage));
        if state.status(stage).is_final() {
            if !marked {
                mark(root, stage, &state)?;
            }
            let before = state.field(stage, "inputs").and_then(Value::as_str);
            return Ok(Opened::Done { drift: before.is_some_and(|before| before != inputs) });
        }
        if marked {
            let what = format!("done/{stage} is there, and the state does not say so");
            return Err(Problem::new(&pages::MARKER_BY_HAND, what).into());
        }
        let mut run = Run { root, machine, boot_id, stage, state, _lock: lock };
        run.begin(&text, inputs, &order.forced)?;
        Ok(Opened::Run(Box::new(run)))
    }

    fn begin(&mut self, text: &str, inputs: String, forced: &[String]) -> Result<(), Problem> {
        let machine_id = self.root.read_text(paths::MACHINE_ID).ok().flatten().unwrap_or_default();
        let before = self.state.text("node.machineId").to_owned();
        if !before.is_empty() && !machine_id.is_empty() && before != machine_id {
            return Err(Problem::new(&pages::OTHER_MACHINE, "the state is of another machine"));
        }
        let (stage, boot_id) = (self.stage, self.boot_id.clone());
        let role = self.machine.role.word();
        let digest = format!("sha256:{}", sha256(text.as_bytes()));
        self.update(|state| {
            state.set_node("role", role);
            state.set_node("configDigest", &digest);
            if !machine_id.is_empty() {
                state.set_node("machineId", &machine_id);
            }
            state.enter_boot(&boot_id);
            state.set(stage, "inputs", inputs.into());
            if !forced.is_empty() {
                state.set_output(stage, "forced", &forced.join(" "));
            }
            if state.field(stage, "startedAt").is_none() {
                state.set(stage, "startedAt", timestamp().into());
            }
            if state.status(stage) != Status::Rebooting {
                state.set_status(stage, Status::Running);
            }
        })
    }

    pub fn stage(&self) -> &'static str {
        self.stage
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Changes the state on disk: read, change, write, under the state's own lock.
    pub fn update(&mut self, change: impl FnOnce(&mut State)) -> Result<(), Problem> {
        self.state = update(self.root, change)?;
        Ok(())
    }

    /// What this stage found out earlier.
    pub fn output(&self, key: &str) -> Option<&str> {
        self.state.output(self.stage, key)
    }

    pub fn set_output(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        let stage = self.stage;
        self.update(|state| state.set_output(stage, key, value))
    }

    /// Runs the steps in order. An error ends the run; what it means is already on record.
    pub fn steps<C>(&mut self, steps: &[Step<C>], context: &mut C) -> Result<(), Problem> {
        for step in steps {
            let start = Instant::now();
            let mut ask = |phase: Phase, run: &mut Run<'r>| match phase {
                Phase::Check => (step.check)(context, run),
                Phase::Apply => (step.apply)(context, run).map(|()| Check::Needed),
                Phase::Verify => match step.verify {
                    Some(verify) => verify(context, run).map(|()| Check::Needed),
                    None => (step.check)(context, run).and_then(|check| proven(step.name, check)),
                },
            };
            let result = self.step(step.name, &mut ask);
            self.settle(step.name, start, result)?;
        }
        Ok(())
    }

    fn step(&mut self, name: &'static str, ask: Ask<'_, 'r>) -> Result<Option<String>, Problem> {
        stop::check()?;
        let stage = self.stage;
        let status = format!("{stage}: {name}");
        notify::status(&status);
        // Counted before the work, so that a kill in the middle of it counts too.
        let tried = self.state.attempts(stage, name);
        if tried >= MOST_ATTEMPTS {
            return Err(self.spent(name, tried));
        }
        self.update(|state| {
            state.set(stage, "step", name.into());
            state.set_attempts(stage, name, tried + 1);
        })?;
        if let Check::Satisfied(words) = ask(Phase::Check, self)? {
            self.update(|state| state.set_attempts(stage, name, tried))?;
            return Ok(Some(words));
        }
        ask(Phase::Apply, self)?;
        fail::after(name);
        ask(Phase::Verify, self)?;
        Ok(None)
    }

    fn spent(&self, name: &str, tried: u64) -> Problem {
        let last = self.state.field(self.stage, "lastError");
        let last = last.and_then(|error| error.get("what")).and_then(Value::as_str);
        let what = format!("step {name} was tried {tried} times");
        Problem::new(&pages::BLOCKED, what).cause(last.unwrap_or("every run ended in the middle"))
    }

    /// Records how a step ended.
    fn settle(
        &mut self,
        name: &'static str,
        start: Instant,
        result: Result<Option<String>, Problem>,
    ) -> Result<(), Problem> {
        let elapsed = start.elapsed();
        let (outcome, words) = match &result {
            Ok(None) => ("done", String::new()),
            Ok(Some(words)) => ("satisfied", words.clone()),
            Err(problem) if is_waiting(problem) => ("waiting", problem.to_string()),
            Err(problem) => ("error", problem.to_string()),
        };
        tracing::info!(stage = self.stage, step = name, outcome, detail = words, "step");
        self.note(name, outcome, elapsed.as_millis(), &words)?;
        match result {
            Ok(_) => Ok(()),
            Err(problem) => Err(self.fail(name, problem)),
        }
    }

    fn note(&self, step: &str, outcome: &str, millis: u128, words: &str) -> Result<(), Problem> {
        let line = json!({
            "time": timestamp(),
            "boot": self.boot_id,
            "stage": self.stage,
            "step": step,
            "outcome": outcome,
            "elapsedMs": u64::try_from(millis).unwrap_or(u64::MAX),
            "detail": words,
        });
        append(self.root, &format!("{line}\n"))
    }

    /// Records an error and gives the one to end with.
    fn fail(&mut self, step: &str, problem: Problem) -> Problem {
        let stage = self.stage;
        let waits = is_waiting(&problem) || matches!(problem.exit(), 130 | 143);
        let tried = self.state.attempts(stage, step);
        let spent = !waits && tried >= MOST_ATTEMPTS && !is_permanent(&problem);
        let problem = match spent {
            true => Problem::new(&pages::BLOCKED, format!("step {step}: {}", problem.what))
                .cause(format!("attempt {tried} of {MOST_ATTEMPTS}"))
                .details(problem.causes.clone()),
            false => problem,
        };
        let blocked = is_permanent(&problem);
        let status = match (blocked, problem.page == &pages::REBOOT_PENDING, waits) {
            (true, ..) => Status::Blocked,
            (_, true, _) => Status::Rebooting,
            (_, _, true) => Status::Waiting,
            _ => Status::Running,
        };
        let error = json!({
            "code": problem.page.code,
            "what": problem.what,
            "causes": problem.causes,
            "fix": problem.fix_text(),
            "at": timestamp(),
        });
        let recorded = self.update(|state| {
            state.set_status(stage, status);
            state.set(stage, "lastError", error);
            if waits {
                state.set_attempts(stage, step, tried.saturating_sub(1));
            }
        });
        notify::status(&format!("{stage}: {step}: {}", problem.what));
        let recorded = recorded.and_then(|()| match blocked {
            true => give_up(self.root, self.stage, step, &problem),
            false => Ok(()),
        });
        // The first failure wins; that it could not be recorded is told beside it.
        match recorded {
            Ok(()) => problem,
            Err(second) => problem.cause(format!("and recording it: {second}")),
        }
    }

    /// Ends the stage: state first, then the marker, then the trigger.
    pub fn finish(mut self, status: Status, words: &str) -> Result<(), Problem> {
        let stage = self.stage;
        self.update(|state| {
            state.set_status(stage, status);
            state.set(stage, "finishedAt", timestamp().into());
            state.set(stage, "step", Value::Null);
            state.set(stage, "lastError", Value::Null);
        })?;
        fail::after(&format!("{stage}-state"));
        mark(self.root, stage, &self.state)?;
        fail::after(&format!("{stage}-marker"));
        disk::remove(self.root, &paths::trigger(stage))?;
        if !self.state.any_blocked() {
            disk::remove(self.root, paths::ISSUE)?;
        }
        self.note("end", status.word(), 0, words)?;
        notify::status(&format!("{stage}: {words}"));
        tracing::info!(stage, "{words}");
        Ok(())
    }

    /// Writes a file of the machine as a step's effect.
    pub fn write(&self, path: &str, mode: u32, body: &[u8]) -> Result<(), Problem> {
        if apply::put(self.root, path, mode, body)? {
            tracing::info!(path, "written");
        }
        Ok(())
    }
}

/// Takes away what starts the stage, so that its path does not fire again, and tells the console.
fn give_up(root: &Root, stage: &str, step: &str, problem: &Problem) -> Result<(), Problem> {
    disk::remove(root, &paths::trigger(stage))?;
    match stage {
        "assets" => disk::remove(root, paths::READY)?,
        // The add-ons require it: their path would start it again and again.
        "bootstrap" => disk::remove(root, &paths::trigger("addons"))?,
        _ => {}
    }
    let error = problem.render("error");
    let text = format!("tenon: stage {stage} is blocked at step {step}\n{error}");
    apply::put(root, paths::ISSUE, 0o644, text.as_bytes()).map(|_| ())
}

#[derive(Clone, Copy)]
enum Phase {
    Check,
    Apply,
    Verify,
}

type Ask<'a, 'r> = &'a mut dyn FnMut(Phase, &mut Run<'r>) -> Result<Check, Problem>;

fn proven(step: &str, check: Check) -> Result<Check, Problem> {
    match check {
        Check::Satisfied(_) => Ok(check),
        Check::Needed => {
            let what = format!("step {step} was carried out and is still needed");
            Err(Problem::new(&pages::STEP_NOT_PROVEN, what))
        }
    }
}

/// True when a person must act.
pub fn is_permanent(problem: &Problem) -> bool {
    PERMANENT.contains(&problem.exit())
}

/// True for a wait on somebody else, which is not an attempt.
fn is_waiting(problem: &Problem) -> bool {
    [&pages::WAITING_INPUTS, &pages::REBOOT_PENDING].contains(&problem.page)
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
