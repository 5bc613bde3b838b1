//! A service manager for tests: systemd's interface on a private socket, with units that do
//! what a test tells them.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::os::unix::net::{UnixListener, UnixStream};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_core::Stream;
use zbus::connection::Builder;
use zbus::message::Type;
use zbus::{Connection, Guid, Message, MessageStream, ObjectPath, Variant, block_on};

use super::{MANAGER, PATH, UnitState};

/// A unit that a test has set up.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeUnit {
    pub state: UnitState,
    /// What a start job ends with; empty means that it never ends.
    pub job: &'static str,
    /// State after a start job.
    pub after: UnitState,
    /// Restarts that each look at the state adds, as a crash loop does.
    pub crashes: u32,
    /// When it left inactive, entered active, and entered inactive again.
    pub stamps: [u64; 3],
    /// What it is ordered after.
    pub ordered: &'static [&'static str],
}

/// What the tests look at.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub units: BTreeMap<String, FakeUnit>,
    /// Calls that change something: `StartUnit kubelet.service`, `Reload`.
    pub log: Vec<String>,
    /// Stamps of the manager itself.
    manager: BTreeMap<&'static str, u64>,
    jobs: u32,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Fake(pub Arc<Mutex<World>>);

pub(crate) fn active() -> UnitState {
    UnitState {
        load: "loaded".into(),
        active: "active".into(),
        sub: "running".into(),
        result: "success".into(),
        active_since_us: u64::MAX,
        ..UnitState::default()
    }
}

pub(crate) fn inactive() -> UnitState {
    UnitState { active: "inactive".into(), sub: "dead".into(), active_since_us: 0, ..active() }
}

impl FakeUnit {
    /// A unit that is down and comes up when asked.
    pub(crate) fn good() -> Self {
        FakeUnit { state: inactive(), job: "done", after: active(), ..FakeUnit::default() }
    }
}

impl Fake {
    /// Serves on the private socket of a root.
    pub(crate) fn serve(root: &std::path::Path) -> Self {
        let fake = Fake::default();
        std::fs::create_dir_all(root.join("run/systemd/system")).unwrap();
        let listener = UnixListener::bind(root.join("run/systemd/private")).unwrap();
        let server = fake.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let server = server.clone();
                std::thread::spawn(move || server.talk(stream.unwrap()));
            }
        });
        fake
    }

    pub(crate) fn add(&self, name: &str, unit: FakeUnit) -> &Self {
        self.0.lock().unwrap().units.insert(name.into(), unit);
        self
    }

    /// Sets stamps of the manager.
    pub(crate) fn manager(&self, stamps: &[(&'static str, u64)]) {
        self.0.lock().unwrap().manager.extend(stamps.iter().copied());
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.0.lock().unwrap().log.clone()
    }

    fn talk(&self, stream: UnixStream) {
        // An error is a client that went away, which is the end of the talk.
        let _ = block_on(async {
            let guid = Guid::generate();
            let connection = Builder::unix_stream(stream).server(guid).p2p().build().await?;
            let mut messages = MessageStream::from(&connection);
            let mut subscribed = false;
            while let Some(message) =
                poll_fn(|context| Pin::new(&mut messages).poll_next(context)).await
            {
                let message = message?;
                let header = message.header();
                if message.message_type() != Type::MethodCall {
                    continue;
                }
                if header.member().is_some_and(|member| member == "Subscribe") {
                    // As the real one does on a bus.
                    let again = std::mem::replace(&mut subscribed, true);
                    let refusal = "org.freedesktop.systemd1.AlreadySubscribed";
                    match again {
                        true => connection.reply_error(&header, refusal, &"again").await?,
                        false => connection.reply(&header, &()).await?,
                    }
                    continue;
                }
                self.answer(&connection, &message).await?;
            }
            Ok::<(), zbus::Error>(())
        });
    }

    async fn answer(&self, connection: &Connection, call: &Message) -> zbus::Result<()> {
        let header = call.header();
        let member = header.member().map(ToString::to_string).unwrap_or_default();
        let path = header.path().map(ToString::to_string).unwrap_or_default();
        match member.as_str() {
            "Reload" => {
                self.0.lock().unwrap().log.push(member);
                connection.reply(&header, &()).await
            }
            "ResetFailedUnit" => {
                let name: String = call.body().deserialize()?;
                let down = {
                    let mut world = self.0.lock().unwrap();
                    world.log.push(format!("{member} {name}"));
                    world.units.get(&name).is_none_or(|unit| unit.state.active == "inactive")
                };
                // As the real one does: a unit that is down is not loaded.
                match down {
                    true => connection.reply_error(&header, super::NOT_LOADED, &name).await,
                    false => connection.reply(&header, &()).await,
                }
            }
            "LoadUnit" => {
                let name: String = call.body().deserialize()?;
                connection.reply(&header, &unit_path(&name)).await
            }
            "ListUnits" => connection.reply(&header, &self.list()).await,
            "GetAll" => connection.reply(&header, &self.properties(&path)).await,
            _ => self.job(connection, call, &member).await,
        }
    }

    async fn job(&self, connection: &Connection, call: &Message, verb: &str) -> zbus::Result<()> {
        let (name, _): (String, String) = call.body().deserialize()?;
        let (id, result) = {
            let mut world = self.0.lock().unwrap();
            world.log.push(format!("{verb} {name}"));
            world.jobs += 1;
            let id = world.jobs;
            let unit = world.units.entry(name.clone()).or_default();
            unit.state = match verb {
                "StopUnit" => inactive(),
                _ => unit.after.clone(),
            };
            (id, unit.job)
        };
        let path = ObjectPath::try_from(format!("{PATH}/job/{id}"))?;
        connection.reply(&call.header(), &path).await?;
        if result.is_empty() {
            return Ok(());
        }
        let to = None::<&str>;
        // Someone else's job ends first: ours must not be mistaken for it.
        let other =
            (0_u32, ObjectPath::try_from(format!("{PATH}/job/0"))?, "other.service", "failed");
        connection.emit_signal(to, PATH, MANAGER, "JobRemoved", &other).await?;
        let body = (id, path, name.as_str(), result);
        connection.emit_signal(to, PATH, MANAGER, "JobRemoved", &body).await
    }

    fn list(&self) -> Vec<Listed> {
        let world = self.0.lock().unwrap();
        let text = String::new;
        let row = |name: &String| {
            let path = unit_path(name);
            (name.clone(), text(), text(), text(), text(), text(), path.clone(), 0, text(), path)
        };
        world.units.keys().map(row).collect()
    }

    fn properties(&self, path: &str) -> HashMap<String, Variant<'static>> {
        let mut world = self.0.lock().unwrap();
        if path == PATH {
            let stamps = world.manager.iter();
            return stamps.map(|(name, us)| ((*name).to_owned(), Variant::from(*us))).collect();
        }
        let unit = world.units.iter_mut().find(|(name, _)| unit_path(name).as_str() == path);
        let absent = UnitState { load: "not-found".into(), ..inactive() };
        let (state, [left, entered, down], ordered) = match unit {
            Some((_, unit)) => {
                unit.state.restarts += unit.crashes;
                (unit.state.clone(), unit.stamps, unit.ordered)
            }
            None => (absent, [0; 3], &[][..]),
        };
        let text = |value: &str| Variant::from(value.to_owned());
        [
            ("LoadState", text(&state.load)),
            ("ActiveState", text(&state.active)),
            ("SubState", text(&state.sub)),
            ("Result", text(&state.result)),
            ("ExecMainStatus", Variant::from(state.exit_status)),
            ("NRestarts", Variant::from(state.restarts)),
            ("NeedDaemonReload", Variant::from(state.needs_reload)),
            ("ActiveEnterTimestamp", Variant::from(state.active_since_us)),
            ("InactiveExitTimestampMonotonic", Variant::from(left)),
            ("ActiveEnterTimestampMonotonic", Variant::from(entered)),
            ("InactiveEnterTimestampMonotonic", Variant::from(down)),
            ("After", Variant::from(ordered.to_vec())),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

type Path = ObjectPath<'static>;
type Listed = (String, String, String, String, String, String, Path, u32, String, Path);

fn unit_path(name: &str) -> ObjectPath<'static> {
    let escaped: String = name
        .bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("_{b:02x}") }
        })
        .collect();
    ObjectPath::try_from(format!("{PATH}/unit/{escaped}")).unwrap()
}
