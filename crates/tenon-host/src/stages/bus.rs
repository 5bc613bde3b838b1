//! The system bus: update-engine's updates, and logind's reboot.

use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use futures_core::Stream;
use tenon_core::codes::stages as pages;
use tenon_core::problem::Problem;
use tenon_core::stages::os_update::{Ended, Status, Watch};
use zbus::connection::{Builder, Connection};
use zbus::message::Type;
use zbus::{MatchRule, MessageStream, block_on};

use crate::root::Root;
use crate::stop;
use crate::systemd::Manager;

const SOCKET: &str = "/run/dbus/system_bus_socket";
const UPDATE: (&str, &str, &str) =
    ("com.coreos.update1", "/com/coreos/update1", "com.coreos.update1.Manager");
const LOGIN: (&str, &str, &str) =
    ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager");
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the status is asked for besides the signals.
const POLL: Duration = Duration::from_secs(10);

/// How long an update may take, and how long it may stand still.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub whole: Duration,
    pub still: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { whole: Duration::from_secs(45 * 60), still: Duration::from_secs(10 * 60) }
    }
}

/// Connects to the system bus; None when the machine has none.
fn connect(root: &Root) -> Option<Connection> {
    let stream = UnixStream::connect(root.join(SOCKET)).ok()?;
    block_on(Builder::unix_stream(stream).method_timeout(CALL_TIMEOUT).build()).ok()
}

fn failed(what: &str, error: impl std::fmt::Display) -> Problem {
    Problem::new(&pages::UPDATE_FAILED, what).cause(error)
}

fn get_status(bus: &Connection) -> zbus::Result<Status> {
    let (name, path, interface) = UPDATE;
    let reply = block_on(bus.call_method(Some(name), path, Some(interface), "GetStatus", &()))?;
    let body: (i64, f64, String, String, i64) = reply.body().deserialize()?;
    Ok(status(body))
}

fn status(body: (i64, f64, String, String, i64)) -> Status {
    let (last_checked, progress, operation, version, _) = body;
    Status { last_checked, progress, operation, version }
}

/// The version that waits for a reboot, if update-engine is there and has one.
pub fn pending_update(root: &Root) -> Option<String> {
    let first = get_status(&connect(root)?).ok()?;
    let version = first.version.clone();
    Watch::new(first).is_pending().then_some(version)
}

/// Asks for an update and follows it to its end.
pub fn update(root: &Root, patience: Patience) -> Result<Option<String>, Problem> {
    let bus =
        connect(root).ok_or_else(|| failed("the system bus does not answer", "no connection"))?;
    // Before the attempt, so that no signal is missed.
    let signals = subscribe(&bus).map_err(|error| failed("listening to update-engine", error))?;
    let first = get_status(&bus).map_err(|error| failed("update-engine does not answer", error))?;
    let mut watch = Watch::new(first.clone());
    if watch.is_pending() {
        return Ok(Some(first.version));
    }
    if !watch.is_under_way() {
        let (name, path, interface) = UPDATE;
        block_on(bus.call_method(Some(name), path, Some(interface), "AttemptUpdate", &()))
            .map_err(|error| failed("update-engine refused the attempt", error))?;
    }
    follow(&bus, &signals, &mut watch, patience)
}

fn follow(
    bus: &Connection,
    signals: &mpsc::Receiver<Status>,
    watch: &mut Watch,
    patience: Patience,
) -> Result<Option<String>, Problem> {
    let (start, mut moved, mut asked) = (Instant::now(), Instant::now(), Instant::now());
    loop {
        stop::check()?;
        let mut news: Option<Status> = signals.recv_timeout(stop::SLICE).ok();
        if news.is_none() && asked.elapsed() >= POLL {
            asked = Instant::now();
            news = get_status(bus).ok();
        }
        if let Some(status) = news {
            if watch.progressed(&status) {
                moved = Instant::now();
                tracing::info!(operation = status.operation, progress = status.progress, "update");
            }
            match watch.see(&status) {
                None => {}
                Some(Ended::NoUpdate) => return Ok(None),
                Some(Ended::NeedReboot(version)) => return Ok(Some(version)),
                Some(Ended::Failed) => {
                    return Err(failed("update-engine reported an error", status.operation));
                }
            }
        }
        for (since, most, what) in [
            (start, patience.whole, "the update did not end within its time"),
            (moved, patience.still, "the update made no progress"),
        ] {
            if since.elapsed() >= most {
                return Err(Problem::new(&pages::UPDATE_STALLED, what));
            }
        }
    }
}

/// Status signals, as they come.
fn subscribe(bus: &Connection) -> zbus::Result<mpsc::Receiver<Status>> {
    let (name, path, interface) = UPDATE;
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(name)
        .path(path)
        .interface(interface)
        .member("StatusUpdate")
        .build()?;
    let mut stream = block_on(MessageStream::for_match_rule(rule, bus, None))?;
    let (send, receive) = mpsc::channel();
    // Ends with the connection, or when nobody listens any more.
    std::thread::spawn(move || {
        block_on(async {
            while let Some(Ok(message)) =
                poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await
            {
                let Ok(body) = message.body().deserialize() else { continue };
                if send.send(status(body)).is_err() {
                    break;
                }
            }
        });
    });
    Ok(receive)
}

/// Asks logind for a reboot; where there is none, the service manager.
pub fn reboot(root: &Root) -> Result<(), Problem> {
    let (name, path, interface) = LOGIN;
    let asked = connect(root)
        .map(|bus| block_on(bus.call_method(Some(name), path, Some(interface), "Reboot", &false)));
    match asked {
        Some(Ok(_)) => return Ok(()),
        Some(Err(error)) => tracing::warn!(%error, "logind did not reboot the machine"),
        None => tracing::info!("no system bus; the service manager is asked for the reboot"),
    }
    Manager::connect(root)?.reboot()
}

#[cfg(test)]
#[path = "bus_tests.rs"]
pub mod tests;
