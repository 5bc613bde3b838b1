//! Looks at this node without touching it: record, lock, daemons, files.

use std::time::{Duration, Instant};

use tenon_core::codes;
use tenon_core::plan::digest::sha256;
use tenon_core::plan::record::Record;
use tenon_core::problem::Problem;
use tenon_core::status::{Daemon, Sight, State};

use crate::apply::{self, Lock};
use crate::root::Root;
use crate::stop;
use crate::systemd::{self, Manager};

/// No managed file comes near this size.
const LARGEST: u64 = 1 << 20;
/// Pause between two looks while waiting. The service manager can signal a change of a unit,
/// but not that another process let go of the lock or wrote the record.
const PAUSE: Duration = Duration::from_millis(250);

/// Looks once.
pub fn look(root: &Root) -> Result<Sight, Problem> {
    let record = apply::load_record(root)?;
    let drifted = record.as_ref().map(|record| drifted(root, record)).unwrap_or_default();
    let daemons = match &record {
        Some(record) if systemd::is_running(root) => daemons(root, record)?,
        _ => Vec::new(),
    };
    Ok(Sight { busy: Lock::holder(root), record, daemons, drifted })
}

/// Looks until the node has come as far as `goal`, has failed, or the time is over.
pub fn wait(root: &Root, goal: State, timeout: Duration) -> Result<Sight, Problem> {
    let end = Instant::now() + timeout;
    loop {
        let sight = look(root)?;
        match sight.state() {
            State::Failed => return Err(failed(&sight)),
            state if state >= goal => return Ok(sight),
            state if Instant::now() >= end => {
                let what = format!(
                    "the node is `{}`, not `{}`, after {} s",
                    state.name(),
                    goal.name(),
                    timeout.as_secs()
                );
                return Err(Problem::new(&codes::host::STATE_TIMEOUT, what).fix(state.next()));
            }
            _ => stop::sleep(PAUSE)?,
        }
    }
}

fn failed(sight: &Sight) -> Problem {
    let daemon = sight.daemons.iter().find(|daemon| daemon.active == "failed");
    let name = daemon.map_or("a daemon", |daemon| &daemon.unit);
    let problem = Problem::new(&codes::host::UNIT_FAILED, format!("{name} failed"));
    match daemon {
        Some(daemon) => problem.cause(&daemon.words),
        None => problem,
    }
}

fn daemons(root: &Root, record: &Record) -> Result<Vec<Daemon>, Problem> {
    let manager = Manager::connect(root)?;
    let mut daemons = Vec::new();
    for unit in record.units.keys() {
        let state = manager.state(unit)?;
        daemons.push(Daemon {
            unit: unit.clone(),
            words: state.words(),
            active: state.active,
            since_us: state.active_since_us,
        });
    }
    Ok(daemons)
}

/// The recorded files that are not as recorded. Files under `/run` go with a reboot.
fn drifted(root: &Root, record: &Record) -> Vec<String> {
    let differs = |path: &str, expected: &str| match root.read(path, LARGEST) {
        Ok(Some(bytes)) => sha256(&bytes) != expected,
        _ => true,
    };
    record
        .files
        .iter()
        .filter(|(path, mark)| !path.starts_with("/run/") && differs(path, &mark.sha256))
        .map(|(path, _)| path.clone())
        .collect()
}
