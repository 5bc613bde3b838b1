//! One run of a stage: its lock, the state, the steps in order, and how it ends.
//!
//! For each step: check, apply, verify, record. A crash between any two costs a repeat, never a
//! skip. How bad an error is stands in its exit code: 3, 4, 6 and 12 need a person, the stage is
//! `blocked` and its units do not start it again; anything else is tried again, twenty times.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use tenon_core::codes;
use tenon_core::codes::stages as pages;
use tenon_core::plan::digest::sha256;
use tenon_core::problem::{Finding, Problem};
use tenon_core::stages::paths;
use tenon_core::stages::state::{MOST_ATTEMPTS, State, Status};
use tenon_core::stages::{Machine, load};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{disk, fail, notify};
use crate::apply;
use crate::root::Root;
use crate::stop;

/// Neither config nor state comes near this size.
const LARGEST: u64 = 4 << 20;
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
            true => self.give_up(step, &problem),
            false => Ok(()),
        });
        // The first failure wins; that it could not be recorded is told beside it.
        match recorded {
            Ok(()) => problem,
            Err(second) => problem.cause(format!("and recording it: {second}")),
        }
    }

    /// Takes the trigger away, so that its path does not fire again, and tells the console.
    fn give_up(&self, step: &str, problem: &Problem) -> Result<(), Problem> {
        disk::remove(self.root, &paths::trigger(self.stage))?;
        let text = format!(
            "tenon: stage {} is blocked at step {step}\n{}",
            self.stage,
            problem.render("error")
        );
        apply::put(self.root, paths::ISSUE, 0o644, text.as_bytes()).map(|_| ())
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
        disk::remove(self.root, paths::ISSUE)?;
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

/// Why a stage could not be opened.
#[derive(Debug)]
pub enum Failure {
    Problem(Problem),
    /// Everything that is wrong with the config.
    Findings(Vec<Finding>),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Problem(problem)
    }
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

/// Now, in seconds, as the timeline and the state write it.
pub fn timestamp() -> String {
    let now = OffsetDateTime::now_utc().replace_nanosecond(0);
    now.ok().and_then(|now| now.format(&Rfc3339).ok()).unwrap_or_default()
}

/// The digest of what a stage works from.
pub fn inputs(config: &str, forced: &[String]) -> String {
    format!("sha256:{}", sha256(format!("{config}\n{}", forced.join("\n")).as_bytes()))
}

/// Reads and checks the machine's config; the text comes along.
pub fn read_machine(root: &Root, path: &str) -> Result<(Machine, String), Failure> {
    let bytes = disk::read(root, path, LARGEST)?;
    let bytes = bytes
        .ok_or_else(|| Problem::new(&pages::NO_MACHINE_CONFIG, format!("there is no {path}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Problem::new(&codes::decode::BAD_ENCODING, format!("{path} is not UTF-8")))?;
    let machine = load(&text, &format!("file://{path}")).map_err(Failure::Findings)?;
    Ok((machine, text))
}

fn read_fact(root: &Root, path: &str) -> Result<String, Problem> {
    let text = root.read_text(path).ok().flatten().filter(|text| !text.is_empty());
    text.ok_or_else(|| Problem::new(&codes::facts::MACHINE_READ, format!("{path} cannot be read")))
}

/// Reads the state. A file that cannot be read is moved aside, never taken for empty.
pub fn read_state(root: &Root) -> Result<State, Problem> {
    let Some(bytes) = disk::read(root, paths::STATE, LARGEST)? else {
        return Ok(State::default());
    };
    State::decode(&bytes).map_err(|problem| match problem.page == &pages::STATE_CORRUPT {
        false => problem,
        true => {
            let aside = format!("{}.corrupt-{}", paths::STATE, timestamp().replace(':', ""));
            match disk::rename(root, paths::STATE, &aside) {
                Ok(()) => problem.details([format!("moved to {aside}")]),
                Err(second) => problem.cause(second),
            }
        }
    })
}

/// Reads, changes and writes the state under its lock.
pub fn update(root: &Root, change: impl FnOnce(&mut State)) -> Result<State, Problem> {
    let _lock = lock_file(root, "state", FlockOperation::LockExclusive)?;
    let mut state = read_state(root)?;
    let before = state.clone();
    change(&mut state);
    if state != before || !root.exists(paths::STATE) {
        apply::put(root, paths::STATE, 0o600, &state.encode())?;
    }
    Ok(state)
}

/// Writes the marker that the state justifies.
fn mark(root: &Root, stage: &str, state: &State) -> Result<(), Problem> {
    let at = state.field(stage, "finishedAt").and_then(Value::as_str).unwrap_or_default();
    apply::put(root, &paths::done(stage), 0o600, format!("{at}\n").as_bytes()).map(|_| ())
}

/// Takes the lock of a stage; somebody else's run is named by its process.
fn lock(root: &Root, stage: &str) -> Result<OwnedFd, Problem> {
    let held = lock_file(root, stage, FlockOperation::NonBlockingLockExclusive)?;
    // Who holds it, for the next one that comes. Losing these digits harms nobody.
    let _ = rustix::fs::ftruncate(&held, 0);
    let _ = rustix::io::write(&held, std::process::id().to_string().as_bytes());
    Ok(held)
}

fn lock_file(root: &Root, name: &str, operation: FlockOperation) -> Result<OwnedFd, Problem> {
    disk::make(root, paths::LOCKS, 0o700)?;
    let path = format!("{}/{name}", paths::LOCKS);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
    let wrong = |error: std::io::Error| {
        Problem::new(&codes::host::FILE_WRITE, format!("locking {path}")).cause(error)
    };
    let file = root.open_at(&path, flags, Mode::from_raw_mode(0o600)).map_err(wrong)?;
    loop {
        match rustix::fs::flock(&file, operation) {
            Ok(()) => return Ok(file),
            Err(Errno::INTR) => stop::check()?,
            Err(Errno::WOULDBLOCK) => {
                let holder = root.read_text(&path).ok().flatten().unwrap_or_default();
                let what = format!("stage {name} is being run by process {holder}");
                return Err(Problem::new(&pages::STAGE_BUSY, what));
            }
            Err(error) => return Err(wrong(error.into())),
        }
    }
}

/// Adds a line to the timeline. One write of one line: a crash can lose it, not tear another.
fn append(root: &Root, line: &str) -> Result<(), Problem> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW;
    let written = root
        .open_at(paths::TIMELINE, flags, Mode::from_raw_mode(0o640))
        .and_then(|fd| std::fs::File::from(fd).write_all(line.as_bytes()));
    written.map_err(|error| {
        Problem::new(&codes::host::FILE_WRITE, format!("writing {}", paths::TIMELINE)).cause(error)
    })
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
