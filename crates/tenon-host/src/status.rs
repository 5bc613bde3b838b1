//! Looks at this node without touching it: record, lock, daemons, files.

use std::time::{Duration, Instant};

use tenon_core::checks::drift;
use tenon_core::codes;
use tenon_core::plan::record::Record;
use tenon_core::problem::Problem;
use tenon_core::status::{Daemon, Sight, State};

use crate::apply::{self, Lock};
use crate::root::Root;
use crate::stop;
use crate::systemd::{self, Manager};

/// Pause between two looks while waiting. The service manager can signal a change of a unit,
/// but not that another process let go of the lock or wrote the record.
const PAUSE: Duration = Duration::from_millis(250);

/// Looks once.
pub fn look(root: &Root) -> Result<Sight, Problem> {
    let record = apply::load_record(root)?;
    let drifted = record.as_ref().map(|record| drifted(root, record)).transpose()?;
    let daemons = match &record {
        Some(record) if systemd::is_running(root) => daemons(root, record)?,
        _ => Vec::new(),
    };
    Ok(Sight { busy: Lock::holder(root), record, daemons, drifted: drifted.unwrap_or_default() })
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

/// The recorded files that are not as recorded, links among them.
fn drifted(root: &Root, record: &Record) -> Result<Vec<String>, Problem> {
    let tree = apply::look_at_recorded(root, record)?;
    let found = drift::deviations(record, &tree, apply::own()).into_iter();
    let mut paths: Vec<String> = found.map(|deviation| deviation.path).collect();
    paths.dedup();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use tenon_core::hex::sha256;
    use tenon_core::plan::diff::LINK_MODE;
    use tenon_core::plan::record::FileMark;

    use super::*;

    #[test]
    fn drift_is_content_mode_or_absence_and_a_link_is_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        let mut record = Record::default();
        let mut mark = |path: &str, body: &str, mode| {
            let sha256 = sha256(body.as_bytes());
            record.files.insert(path.into(), FileMark { sha256, mode });
        };
        for name in ["good", "edited", "wider"] {
            fs::write(at(name), "text").unwrap();
            mode(&at(name), 0o600).unwrap();
            mark(&format!("/{name}"), "text", 0o600);
        }
        symlink("/good", at("link")).unwrap();
        mark("/link", "/good", LINK_MODE);
        mark("/gone", "text", 0o600);
        mark("/run/gone", "text", 0o600);
        fs::write(at("edited"), "other").unwrap();
        mode(&at("wider"), 0o644).unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(drifted(&root, &record).unwrap(), ["/edited", "/gone", "/wider"]);
    }
}
