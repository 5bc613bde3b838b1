//! The service manager over D-Bus: unit state, jobs and their results, reload.
//!
//! The system bus where there is one, else systemd's own private socket, which answers before
//! any bus daemon runs. Both speak the same interface; only the address of a call differs.
//! Waiting is on the `JobRemoved` signal of our own job, subscribed before the call; nothing
//! is polled.

mod boot;
#[cfg(test)]
pub(crate) mod fake;
mod private;
mod unit;

use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use futures_core::Stream;
use tenon_core::codes;
use tenon_core::problem::Problem;
use zbus::connection::{Builder, Connection};
use zbus::message::Type;
use zbus::{MatchRule, Message, MessageStream, OwnedObjectPath, block_on};

use crate::root::Root;
use crate::stop;

pub use unit::UnitState;

const SYSTEM_BUS: &str = "/run/dbus/system_bus_socket";
const PRIVATE: &str = "/run/systemd/private";
const NAME: &str = "org.freedesktop.systemd1";
const PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
/// What the manager says of a unit that it does not hold.
const NOT_LOADED: &str = "org.freedesktop.systemd1.NoSuchUnit";
/// How long the manager may take to answer a call; a reload reads every unit of the machine.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The directory that exists while systemd is the manager of a machine.
const RUNNING: &str = "/run/systemd/system";

/// What a job asks of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Start,
    Restart,
    Stop,
}

impl Verb {
    pub fn word(self) -> &'static str {
        match self {
            Verb::Start => "start",
            Verb::Restart => "restart",
            Verb::Stop => "stop",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Verb::Start => "StartUnit",
            Verb::Restart => "RestartUnit",
            Verb::Stop => "StopUnit",
        }
    }
}

/// How waiting for a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// systemd's word: `done`, `failed`, `timeout`, `canceled`, `dependency`, `skipped`.
    Result(String),
    /// Our deadline passed first.
    Deadline,
}

/// A connection to the manager.
#[derive(Debug, Clone)]
pub struct Manager {
    connection: Connection,
    /// False on the private socket, where calls have no destination.
    bus: bool,
}

/// True when a service manager runs on this root.
pub fn is_running(root: &Root) -> bool {
    root.exists(RUNNING)
}

impl Manager {
    /// Connects to the manager of this root.
    pub fn connect(root: &Root) -> Result<Self, Problem> {
        let mut absent =
            Problem::new(&codes::host::NO_MANAGER, "no service manager answers on this machine");
        for (path, bus) in [(SYSTEM_BUS, true), (PRIVATE, false)] {
            match Manager::open(root, path, bus) {
                Ok(manager) => return Ok(manager),
                Err(error) => absent = absent.cause(format!("{path}: {error}")),
            }
        }
        Err(absent)
    }

    /// Connects to one socket and asks for signals, which a manager grants a client only once.
    fn open(root: &Root, path: &str, bus: bool) -> zbus::Result<Self> {
        let path = root.join(path);
        let stream = if bus { UnixStream::connect(path) } else { private::connect(&path) };
        let builder = Builder::unix_stream(stream.map_err(zbus::Error::from)?);
        let builder = if bus { builder } else { builder.p2p() };
        let connection = block_on(builder.method_timeout(CALL_TIMEOUT).build())?;
        let manager = Manager { connection, bus };
        manager.call("Subscribe", &())?;
        Ok(manager)
    }

    /// Asks the manager to read its unit files again.
    pub fn reload(&self) -> Result<(), Problem> {
        self.call("Reload", &()).map(|_| ()).map_err(|error| refused("reloading units", &error))
    }

    /// Asks for a reboot of the machine, which nothing that follows can take back.
    pub fn reboot(&self) -> Result<(), Problem> {
        let asked = self.call("StartUnit", &("reboot.target", "replace-irreversibly"));
        asked.map(|_| ()).map_err(|error| refused("asking for a reboot", &error))
    }

    /// Lets a unit that failed, or was started, too often start again.
    pub fn reset_failed(&self, unit: &str) -> Result<(), Problem> {
        match self.call("ResetFailedUnit", &unit) {
            // Units that are down are let go after each look; the count goes with them.
            Err(zbus::Error::MethodError(name, ..)) if name.as_str() == NOT_LOADED => Ok(()),
            reset => {
                reset.map(|_| ()).map_err(|error| refused(&format!("resetting {unit}"), &error))
            }
        }
    }

    /// Runs a job and waits for its result.
    pub fn job(&self, verb: Verb, unit: &str, deadline: Duration) -> Result<JobEnd, Problem> {
        let doing = format!("{} of {unit}", verb.word());
        let (report, reported) = mpsc::channel();
        let (manager, name) = (self.clone(), unit.to_owned());
        // The wait has a thread of its own, so that this one can watch the clock and the stop
        // flag. When it gives up, the thread ends with the connection.
        std::thread::spawn(move || {
            // A closed channel means that nobody waits any more.
            let _ = report.send(block_on(manager.run_job(verb, &name)));
        });
        let end = Instant::now() + deadline;
        let mut told = Instant::now();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match reported.recv_timeout(left.min(stop::SLICE)) {
                Ok(result) => {
                    return result.map(JobEnd::Result).map_err(|error| refused(&doing, &error));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(Problem::new(&codes::host::NO_MANAGER, doing));
                }
                Err(mpsc::RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Ok(JobEnd::Deadline);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => stop::check()?,
            }
            if told.elapsed() >= Duration::from_secs(10) {
                told = Instant::now();
                tracing::info!(unit, left = ?left, "waiting for its job");
            }
        }
    }

    async fn run_job(&self, verb: Verb, unit: &str) -> zbus::Result<String> {
        let rule =
            MatchRule::builder().msg_type(Type::Signal).interface(MANAGER).member("JobRemoved");
        // On a bus anyone can send a signal; on the private socket there is only systemd.
        let rule = if self.bus { rule.sender(NAME) } else { rule }.build()?;
        let mut removed = MessageStream::for_match_rule(rule, &self.connection, None).await?;
        let reply = self.send(verb.method(), &(unit, "replace")).await?;
        let job: OwnedObjectPath = reply.body().deserialize()?;
        loop {
            let message = poll_fn(|context| Pin::new(&mut removed).poll_next(context)).await;
            let message =
                message.ok_or_else(|| zbus::Error::Failure("connection closed".into()))??;
            let body = message.body();
            let (_, path, _, result): (u32, OwnedObjectPath, String, String) =
                body.deserialize()?;
            if path == job {
                return Ok(result);
            }
        }
    }

    fn call<B>(&self, method: &str, body: &B) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        block_on(self.send(method, body))
    }

    async fn send<B>(&self, method: &str, body: &B) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.send_to(PATH, MANAGER, method, body).await
    }

    async fn send_to<B>(
        &self,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let destination = self.bus.then_some(NAME);
        self.connection.call_method(destination, path, Some(interface), method, body).await
    }
}

/// The problem of a call that the manager did not carry out.
fn refused(doing: &str, error: &zbus::Error) -> Problem {
    let timed_out =
        matches!(error, zbus::Error::InputOutput(io) if io.kind() == std::io::ErrorKind::TimedOut);
    let page = if timed_out { &codes::host::UNIT_TIMEOUT } else { &codes::host::UNIT_FAILED };
    Problem::new(page, doing).cause(error)
}

#[cfg(test)]
mod tests;
