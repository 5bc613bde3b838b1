//! What the manager knows about one unit.

use std::collections::HashMap;

use tenon_core::problem::Problem;
use zbus::{OwnedObjectPath, OwnedVariant, block_on};

use super::{Manager, refused};

const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
pub(super) const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";

/// The state of a unit, in systemd's own words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitState {
    /// `loaded`, `not-found`, `masked`, `bad-setting`, `error`
    pub load: String,
    /// `active`, `inactive`, `activating`, `failed`, …
    pub active: String,
    /// `running`, `dead`, `auto-restart`, …
    pub sub: String,
    /// Of a service: `success`, `exit-code`, `signal`, `start-limit-hit`, …
    pub result: String,
    /// Exit status of the main process of a service.
    pub exit_status: i32,
    /// How often the manager restarted a service by itself.
    pub restarts: u32,
    /// Its files changed since the manager read them.
    pub needs_reload: bool,
    /// When it became active, in microseconds since 1970; 0 if it never did.
    pub active_since_us: u64,
}

impl UnitState {
    pub fn is_active(&self) -> bool {
        self.active == "active"
    }

    /// The state in a few words, for messages.
    pub fn words(&self) -> String {
        let mut words = format!("{} ({})", self.active, self.sub);
        if !self.result.is_empty() && self.result != "success" {
            words.push_str(&format!(", result {}", self.result));
        }
        if self.exit_status != 0 {
            words.push_str(&format!(", exit status {}", self.exit_status));
        }
        if self.restarts > 0 {
            words.push_str(&format!(", restarted {} times", self.restarts));
        }
        words
    }
}

/// One row of the manager's list: name, description, three states, the unit it follows, its
/// path, and its job.
type Loaded =
    (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);
pub(super) type Properties = HashMap<String, OwnedVariant>;

impl Manager {
    /// The names of all units that the manager has loaded.
    pub fn loaded(&self) -> Result<Vec<String>, Problem> {
        let read =
            || -> zbus::Result<Vec<Loaded>> { self.call("ListUnits", &())?.body().deserialize() };
        let units = read().map_err(|error| refused("listing units", &error))?;
        Ok(units.into_iter().map(|unit| unit.0).collect())
    }

    /// Reads the state of a unit. A unit that does not exist has a state too: `not-found`.
    pub fn state(&self, unit: &str) -> Result<UnitState, Problem> {
        let read = block_on(self.read_state(unit));
        read.map_err(|error| refused(&format!("reading the state of {unit}"), &error))
    }

    async fn read_state(&self, unit: &str) -> zbus::Result<UnitState> {
        let reply = self.send("LoadUnit", &unit).await?;
        let path: OwnedObjectPath = reply.body().deserialize()?;
        let general = self.properties(&path, UNIT).await?;
        let mut state = UnitState {
            load: text(&general, "LoadState"),
            active: text(&general, "ActiveState"),
            sub: text(&general, "SubState"),
            needs_reload: flag(&general, "NeedDaemonReload"),
            active_since_us: number(&general, "ActiveEnterTimestamp"),
            ..UnitState::default()
        };
        if unit.ends_with(".service") && state.load == "loaded" {
            let service = self.properties(&path, SERVICE).await?;
            state.result = text(&service, "Result");
            state.exit_status = signed(&service, "ExecMainStatus");
            state.restarts = u32::try_from(number(&service, "NRestarts")).unwrap_or(u32::MAX);
        }
        Ok(state)
    }

    pub(super) async fn properties(&self, path: &str, interface: &str) -> zbus::Result<Properties> {
        let reply = self.send_to(path, PROPERTIES, "GetAll", &interface).await?;
        reply.body().deserialize()
    }
}

fn text(properties: &Properties, name: &str) -> String {
    let value = properties.get(name).and_then(|value| <&str>::try_from(value).ok());
    value.unwrap_or_default().to_owned()
}

fn flag(properties: &Properties, name: &str) -> bool {
    properties.get(name).is_some_and(|value| bool::try_from(value).unwrap_or_default())
}

/// An unsigned number of either width.
pub(super) fn number(properties: &Properties, name: &str) -> u64 {
    let Some(value) = properties.get(name) else { return 0 };
    u64::try_from(value).or_else(|_| u32::try_from(value).map(u64::from)).unwrap_or_default()
}

fn signed(properties: &Properties, name: &str) -> i32 {
    properties.get(name).and_then(|value| i32::try_from(value).ok()).unwrap_or_default()
}
