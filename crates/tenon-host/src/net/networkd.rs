//! The administrative state of links as systemd-networkd sees it: over D-Bus with a wake-up on
//! change, else from the files that it keeps.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use futures_core::Stream;
use tenon_core::problem::Problem;
use zbus::connection::{Builder, Connection};
use zbus::message::Type;
use zbus::{MatchRule, MessageStream, OwnedObjectPath, OwnedVariant, block_on};

use crate::root::Root;
use crate::stop;

const BUS: &str = "/run/dbus/system_bus_socket";
const NAME: &str = "org.freedesktop.network1";
const PATH: &str = "/org/freedesktop/network1";
const MANAGER: &str = "org.freedesktop.network1.Manager";
const LINK: &str = "org.freedesktop.network1.Link";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the files are read where nothing wakes us, and the bus where a signal may be lost.
const FILES_PAUSE: Duration = Duration::from_millis(100);
const BUS_PAUSE: Duration = Duration::from_secs(2);

/// Link names and their states: `configured`, `unmanaged`, `configuring`, …
pub type States = BTreeMap<String, String>;

/// Where the states come from.
#[derive(Debug)]
pub enum Source<'r> {
    Bus { connection: Connection, changes: Receiver<()> },
    Files { root: &'r Root },
}

impl<'r> Source<'r> {
    /// The bus if networkd answers there, else its files.
    pub fn open(root: &'r Root) -> Self {
        match open_bus(root) {
            Ok((connection, changes)) => Source::Bus { connection, changes },
            Err(error) => {
                tracing::debug!(%error, "networkd does not answer on the bus; reading its files");
                Source::Files { root }
            }
        }
    }

    /// The states now. A bus that went away gives none, so that waiting goes on.
    pub fn states(&self) -> States {
        match self {
            Source::Bus { connection, .. } => {
                block_on(bus_states(connection)).unwrap_or_else(|error| {
                    tracing::debug!(%error, "networkd gave no states");
                    States::new()
                })
            }
            Source::Files { root } => file_states(root),
        }
    }

    /// Waits until something may have changed, at most until `end`.
    pub fn pause(&self, end: Instant) -> Result<(), Problem> {
        let left = end.saturating_duration_since(Instant::now());
        let Source::Bus { changes, .. } = self else {
            return stop::sleep(left.min(FILES_PAUSE));
        };
        let end = Instant::now() + left.min(BUS_PAUSE);
        loop {
            stop::check()?;
            let left = end.saturating_duration_since(Instant::now());
            match changes.recv_timeout(left.min(stop::SLICE)) {
                Ok(()) => return Ok(()),
                Err(_) if left.is_zero() => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return stop::sleep(left),
            }
        }
    }
}

/// Connects, subscribes to changes, and only then asks, so that no change falls in between.
fn open_bus(root: &Root) -> zbus::Result<(Connection, Receiver<()>)> {
    let stream = UnixStream::connect(root.join(BUS)).map_err(zbus::Error::from)?;
    let builder = Builder::unix_stream(stream).method_timeout(CALL_TIMEOUT);
    let connection = block_on(builder.build())?;
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(NAME)
        .interface(PROPERTIES)
        .member("PropertiesChanged")
        .build()?;
    let mut signals = block_on(MessageStream::for_match_rule(rule, &connection, None))?;
    block_on(bus_states(&connection))?;
    let (report, changes) = mpsc::channel();
    std::thread::spawn(move || {
        // Ends with the connection, or when nobody waits any more.
        while block_on(poll_fn(|context| Pin::new(&mut signals).poll_next(context))).is_some() {
            if report.send(()).is_err() {
                return;
            }
        }
    });
    Ok((connection, changes))
}

async fn bus_states(connection: &Connection) -> zbus::Result<States> {
    let reply = connection.call_method(Some(NAME), PATH, Some(MANAGER), "ListLinks", &()).await?;
    let links: Vec<(i32, String, OwnedObjectPath)> = reply.body().deserialize()?;
    let mut states = States::new();
    for (_, name, path) in links {
        let wanted = (LINK, "AdministrativeState");
        let reply =
            connection.call_method(Some(NAME), path, Some(PROPERTIES), "Get", &wanted).await?;
        let value: OwnedVariant = reply.body().deserialize()?;
        states.insert(name, String::try_from(value).unwrap_or_default());
    }
    Ok(states)
}

/// Reads `/run/systemd/netif/links/INDEX` of every link.
fn file_states(root: &Root) -> States {
    let text = |path: String| root.read_text(&path).ok().flatten().unwrap_or_default();
    let mut states = States::new();
    for name in root.list("/sys/class/net").unwrap_or_default() {
        let index = text(format!("/sys/class/net/{name}/ifindex"));
        if index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let kept = text(format!("/run/systemd/netif/links/{index}"));
        let state = kept.lines().find_map(|line| line.strip_prefix("ADMIN_STATE="));
        states.insert(name, state.unwrap_or_default().to_owned());
    }
    states
}
