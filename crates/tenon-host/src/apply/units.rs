//! Brings units up: starts what is down, restarts what runs on older inputs, leaves the rest.
//!
//! The manager is contacted on first need, so a run without unit work opens no connection.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tenon_core::codes;
use tenon_core::plan::diff::UnitNeed;
use tenon_core::plan::step::{Ready, Unit, UnitVerb};
use tenon_core::problem::{Finding, Problem};

use super::Options;
use crate::command;
use crate::root::Root;
use crate::stop;
use crate::systemd::{JobEnd, Manager, UnitState, Verb};

/// How long the kubelet may take to answer on its health port.
const HEALTH_PATIENCE: Duration = Duration::from_secs(30);
const HEALTH_PAUSE: Duration = Duration::from_millis(250);
/// How long a unit without a health port must stay active.
const STABLE_FOR: Duration = Duration::from_secs(3);
const JOURNAL_LINES: &str = "20";
const JOURNAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The units of one run.
#[derive(Debug)]
pub struct Units<'a> {
    root: &'a Root,
    options: &'a Options,
    manager: Option<Manager>,
    reloaded: bool,
}

/// What was done to a unit.
#[derive(Debug, Default)]
pub struct Outcome {
    /// None: left as it was.
    pub verb: Option<Verb>,
    pub warning: Option<Finding>,
}

impl<'a> Units<'a> {
    pub fn new(root: &'a Root, options: &'a Options) -> Self {
        Units { root, options, manager: None, reloaded: false }
    }

    fn manager(&mut self) -> Result<Manager, Problem> {
        if self.manager.is_none() {
            self.manager = Some(Manager::connect(self.root)?);
        }
        self.manager.clone().ok_or_else(|| Problem::new(&codes::host::NO_MANAGER, "no manager"))
    }

    /// Has the manager read its units again, once in a run.
    pub fn reload(&mut self) -> Result<(), Problem> {
        self.manager()?.reload()?;
        self.reloaded = true;
        Ok(())
    }

    /// Makes a unit step true.
    pub fn ensure(&mut self, unit: &Unit, need: &UnitNeed) -> Result<Outcome, Problem> {
        // Nothing changed and nothing is there to be newer: nobody needs to be asked.
        let idle = need.stale.is_none() && need.newest_input_us.is_none();
        if unit.verb == UnitVerb::RestartOnChange && idle {
            return Ok(Outcome::default());
        }
        let manager = self.manager()?;
        let mut state = manager.state(&unit.name)?;
        let Some(verb) = decide(unit, need, &state) else { return Ok(Outcome::default()) };
        if state.needs_reload && !self.reloaded {
            self.reload()?;
            state = manager.state(&unit.name)?;
        }
        startable(&unit.name, &state)?;
        self.check_required(unit)?;
        // Also of a unit that has not failed: the manager counts our starts as it counts those of
        // a crash loop, and refuses the sixth changed run within ten seconds.
        manager.reset_failed(&unit.name)?;
        self.job(&unit.name, verb, self.options.unit_timeout.unwrap_or(unit.deadline))?;
        self.still_up(&unit.name, state.restarts)?;
        let warning = self.wait_ready(unit, state.restarts)?;
        Ok(Outcome { verb: Some(verb), warning })
    }

    /// Stops a unit if it runs; true if it did.
    pub fn stop_if_active(&mut self, name: &str) -> Result<bool, Problem> {
        let manager = self.manager()?;
        if !manager.state(name)?.is_active() {
            return Ok(false);
        }
        self.job(name, Verb::Stop, Duration::from_secs(90))?;
        Ok(true)
    }

    /// Starts a unit and waits for its job.
    pub fn start(&mut self, name: &str, deadline: Duration) -> Result<(), Problem> {
        startable(name, &self.manager()?.state(name)?)?;
        self.job(name, Verb::Start, deadline)
    }

    fn check_required(&mut self, unit: &Unit) -> Result<(), Problem> {
        let manager = self.manager()?;
        for required in &unit.requires {
            let state = manager.state(required)?;
            if !state.is_active() {
                let what = format!("{} needs {required}, which is {}", unit.name, state.words());
                let problem = Problem::new(&codes::host::UNIT_REQUIRED, what);
                return Err(problem.details(self.journal(required)));
            }
        }
        Ok(())
    }

    fn job(&mut self, name: &str, verb: Verb, deadline: Duration) -> Result<(), Problem> {
        let manager = self.manager()?;
        let end = manager.job(verb, name, deadline)?;
        let (page, told) = match end {
            JobEnd::Result(result) if result == "done" || result == "skipped" => return Ok(()),
            JobEnd::Result(result) => (&codes::host::UNIT_FAILED, format!("ended: {result}")),
            JobEnd::Deadline => {
                let told = format!("did not end within {} s", deadline.as_secs());
                (&codes::host::UNIT_TIMEOUT, told)
            }
        };
        let state = manager.state(name)?;
        let what = format!("the {} of {name} {told}; it is {}", verb.word(), state.words());
        Err(Problem::new(page, what).details(self.journal(name)))
    }

    /// Waits until a started unit counts as up. A warning is news that stops nothing.
    fn wait_ready(&mut self, unit: &Unit, restarts: u32) -> Result<Option<Finding>, Problem> {
        match unit.ready {
            Ready::Job => Ok(None),
            Ready::KubeletHealth { port } => self.wait_healthy(unit, port, restarts),
            Ready::StableActive => {
                let end = Instant::now() + self.patience(STABLE_FOR);
                while Instant::now() < end {
                    self.still_up(&unit.name, restarts)?;
                    stop::sleep(HEALTH_PAUSE.min(end.saturating_duration_since(Instant::now())))?;
                }
                Ok(None)
            }
        }
    }

    fn wait_healthy(
        &mut self,
        unit: &Unit,
        port: u16,
        restarts: u32,
    ) -> Result<Option<Finding>, Problem> {
        let patience = self.patience(HEALTH_PATIENCE);
        let end = Instant::now() + patience;
        let agent = local_agent();
        let url = format!("http://127.0.0.1:{port}/healthz");
        let mut last = String::new();
        while Instant::now() < end {
            self.still_up(&unit.name, restarts)?;
            match agent.get(&url).call() {
                Ok(answer) if answer.status() == 200 => return Ok(None),
                Ok(answer) => last = format!("{url} answers {}", answer.status()),
                Err(error) => last = format!("{url}: {error}"),
            }
            stop::sleep(HEALTH_PAUSE)?;
        }
        let seconds = patience.as_secs_f32();
        let what = format!("{} is active but not healthy after {seconds} s", unit.name);
        let problem = Problem::new(&codes::host::NOT_HEALTHY_YET, what).cause(last);
        Ok(Some(Finding::warning(problem)))
    }

    /// `--unit-timeout` shortens these waits too.
    fn patience(&self, usual: Duration) -> Duration {
        self.options.unit_timeout.map_or(usual, |limit| limit.min(usual))
    }

    /// Refuses a unit that fell after its start. The restart counter starts at 0 with a start,
    /// or goes on from what it was `before`.
    fn still_up(&mut self, name: &str, before: u32) -> Result<(), Problem> {
        let state = self.manager()?.state(name)?;
        let looping =
            state.sub == "auto-restart" || (state.restarts != 0 && state.restarts != before);
        if state.is_active() && !looping {
            return Ok(());
        }
        let page = if looping { &codes::host::UNIT_RESTARTS } else { &codes::host::UNIT_FAILED };
        let problem = Problem::new(page, format!("{name} is {}", state.words()));
        Err(problem.details(self.journal(name)))
    }

    /// The last words of a unit. Without a journal there are none, which is no news.
    fn journal(&self, name: &str) -> Vec<String> {
        let words = ["--unit", name, "--lines", JOURNAL_LINES, "--no-pager", "--output", "cat"];
        let argv: Vec<String> = std::iter::once(self.options.journal_program.as_str())
            .chain(words)
            .map(str::to_owned)
            .collect();
        let output = command::run(&argv, JOURNAL_TIMEOUT, &[]);
        let text = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }
}

/// What must happen to a unit; None if it may stay as it is.
fn decide(unit: &Unit, need: &UnitNeed, state: &UnitState) -> Option<Verb> {
    match unit.verb {
        UnitVerb::RestartOnChange if !state.is_active() => None,
        UnitVerb::Start | UnitVerb::EnsureFresh if !state.is_active() => Some(wake(state)),
        UnitVerb::Start => None,
        UnitVerb::EnsureFresh | UnitVerb::RestartOnChange => {
            let outdated = need.stale.is_some() || has_newer_input(need, state, now_us());
            outdated.then_some(Verb::Restart)
        }
    }
}

/// The verb that brings up a unit which is down. One that waits for its automatic restart keeps a
/// start waiting too, and the restart then counts as one more fall; a restart begins at once.
fn wake(state: &UnitState) -> Verb {
    if state.sub == "auto-restart" { Verb::Restart } else { Verb::Start }
}

/// True when an input changed after the unit started. A time in the future is a clock that was
/// set back and says nothing.
fn has_newer_input(need: &UnitNeed, state: &UnitState, now_us: i64) -> bool {
    let started = i64::try_from(state.active_since_us).unwrap_or(i64::MAX);
    need.newest_input_us.is_some_and(|changed| changed > started && changed <= now_us)
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

/// Refuses units that cannot start whatever we do.
fn startable(name: &str, state: &UnitState) -> Result<(), Problem> {
    let (page, what) = match state.load.as_str() {
        "masked" => (&codes::host::UNIT_MASKED, format!("{name} is masked")),
        "not-found" => (&codes::host::UNIT_ABSENT, format!("{name} does not exist")),
        "loaded" => return Ok(()),
        other => (&codes::host::UNIT_FAILED, format!("{name} cannot be loaded: {other}")),
    };
    let problem = Problem::new(page, what);
    match state.load.as_str() {
        "masked" => Err(problem.fix(format!("unmask it: `systemctl unmask {name}`"))),
        _ => Err(problem),
    }
}

/// A client for this machine alone: no proxy, and any status is an answer.
fn local_agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(1)))
        .http_status_as_error(false)
        .proxy(None)
        .build();
    config.new_agent()
}

#[cfg(test)]
#[path = "tests/units.rs"]
mod tests;
