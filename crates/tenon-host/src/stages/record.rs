//! The files behind a run: config, state, markers, locks, timeline.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde_json::Value;
use tenon_core::codes;
use tenon_core::codes::stages as pages;
use tenon_core::hex::sha256;
use tenon_core::problem::{Finding, Problem};
use tenon_core::stages::paths;
use tenon_core::stages::state::State;
use tenon_core::stages::{Machine, load};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{disk, is_permanent};
use crate::apply;
use crate::root::Root;

/// Neither config nor state comes near this size.
const LARGEST: u64 = 4 << 20;
/// A program that somebody starts holds a copy of every lock between its fork and its exec.
const STAGE_WAIT: Duration = Duration::from_millis(500);
/// How long another process may take to change the state; it takes milliseconds.
const STATE_WAIT: Duration = Duration::from_secs(30);

/// Why a stage could not be opened.
#[derive(Debug)]
pub enum Failure {
    Problem(Problem),
    /// Everything that is wrong with the config.
    Findings(Vec<Finding>),
}

impl Failure {
    /// The problem that needs a person, if it is one.
    pub fn permanent(&self) -> Option<&Problem> {
        let problem = match self {
            Failure::Problem(problem) => Some(problem),
            Failure::Findings(list) => list.first().map(|finding| &finding.problem),
        };
        problem.filter(|problem| is_permanent(problem))
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Problem(problem)
    }
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

/// Reads a fact of one line that must be there.
pub fn read_fact(root: &Root, path: &str) -> Result<String, Problem> {
    let text = root.read_text(path).ok().flatten().filter(|text| !text.is_empty());
    text.ok_or_else(|| Problem::new(&codes::facts::MACHINE_READ, format!("{path} cannot be read")))
}

/// Reads the state. A file that cannot be read is moved aside and never taken for empty, then or
/// later: that there is none any more stops every stage until a person has reopened one.
pub fn read_state(root: &Root) -> Result<State, Problem> {
    let Some(bytes) = disk::read(root, paths::STATE, LARGEST)? else {
        return match aside(root)? {
            None => Ok(State::default()),
            Some(path) => Err(Problem::new(&pages::STATE_CORRUPT, "state.json was damaged")
                .details([format!("moved to {path}")])),
        };
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

/// Where a damaged state lies, the latest if there are several.
fn aside(root: &Root) -> Result<Option<String>, Problem> {
    let (home, name) = disk::split(paths::STATE);
    let names = root.list(home).map_err(|error| {
        Problem::new(&codes::host::FILE_READ, format!("listing {home}")).cause(error)
    })?;
    let damaged = names.iter().filter(|it| it.starts_with(&format!("{name}.corrupt-"))).max();
    Ok(damaged.map(|name| format!("{home}/{name}")))
}

/// Begins a new state in place of a damaged one, because a person reopens a stage.
pub fn begin_anew(root: &Root) -> Result<(), Problem> {
    let _lock = lock_file(root, "state", STATE_WAIT)?;
    match read_state(root) {
        Err(problem) if problem.page == &pages::STATE_CORRUPT => {
            apply::put(root, paths::STATE, 0o600, &State::default().encode()).map(|_| ())
        }
        read => read.map(|_| ()),
    }
}

/// Reads, changes and writes the state under its lock.
pub fn update(root: &Root, change: impl FnOnce(&mut State)) -> Result<State, Problem> {
    let _lock = lock_file(root, "state", STATE_WAIT)?;
    let mut state = read_state(root)?;
    let before = state.clone();
    change(&mut state);
    if state != before || !root.exists(paths::STATE) {
        // Also after a stop was asked for: that the run was stopped is part of the record.
        apply::put_regardless(root, paths::STATE, 0o600, &state.encode())?;
    }
    Ok(state)
}

/// Writes the marker that the state justifies.
pub fn mark(root: &Root, stage: &str, state: &State) -> Result<(), Problem> {
    let at = state.field(stage, "finishedAt").and_then(Value::as_str).unwrap_or_default();
    apply::put(root, &paths::done(stage), 0o600, format!("{at}\n").as_bytes()).map(|_| ())
}

/// Takes the lock of a stage; somebody else's run is named by its process.
pub fn lock(root: &Root, stage: &str) -> Result<OwnedFd, Problem> {
    let held = lock_file(root, stage, STAGE_WAIT)?;
    // Who holds it, for the next one that comes. Losing these digits harms nobody.
    let _ = rustix::fs::ftruncate(&held, 0);
    let _ = rustix::io::write(&held, std::process::id().to_string().as_bytes());
    Ok(held)
}

fn lock_file(root: &Root, name: &str, patience: Duration) -> Result<OwnedFd, Problem> {
    let end = Instant::now() + patience;
    disk::make(root, paths::LOCKS, 0o700)?;
    let path = format!("{}/{name}", paths::LOCKS);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
    let wrong = |error: std::io::Error| {
        Problem::new(&codes::host::FILE_WRITE, format!("locking {path}")).cause(error)
    };
    let file = root.open_at(&path, flags, Mode::from_raw_mode(0o600)).map_err(wrong)?;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(Errno::WOULDBLOCK) => {
                let holder = root.read_text(&path).ok().flatten().unwrap_or_default();
                let what = format!("lock {name} is held by process {holder}");
                return Err(Problem::new(&pages::STAGE_BUSY, what));
            }
            Err(error) => return Err(wrong(error.into())),
        }
    }
}

/// Adds a line to the timeline. One write of one line: a crash can lose it, not tear another.
pub fn append(root: &Root, line: &str) -> Result<(), Problem> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW;
    let written = root
        .open_at(paths::TIMELINE, flags, Mode::from_raw_mode(0o640))
        .and_then(|fd| std::fs::File::from(fd).write_all(line.as_bytes()));
    written.map_err(|error| {
        Problem::new(&codes::host::FILE_WRITE, format!("writing {}", paths::TIMELINE)).cause(error)
    })
}
