//! One run at a time: an exclusive lock on the directory `/run/tenon` of the root.
//!
//! The lock is taken on a read-only handle, so that locking is not a write, and the kernel drops
//! it with the process, however that ends.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, chmodat, mkdirat};
use rustix::io::{Errno, FdFlags};
use tenon_core::codes;
use tenon_core::problem::Problem;

use crate::root::Root;
use crate::stop;

const DIRECTORY: &str = "/run/tenon";

/// Proof that no other run works on this root. Dropping it lets the next one in.
#[derive(Debug)]
pub struct Lock {
    held: OwnedFd,
}

impl Lock {
    /// The process that works on this root now; None if there is none, or it cannot be named.
    pub fn holder(root: &Root) -> Option<u32> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        holder(&root.open_at(DIRECTORY, flags, Mode::empty()).ok()?)
    }

    /// Takes the lock, waiting up to `wait` for another run to end.
    pub fn take(root: &Root, wait: Duration) -> Result<Self, Problem> {
        let held = open(root).map_err(|error| {
            Problem::new(&codes::host::FILE_WRITE, format!("opening {DIRECTORY}")).cause(error)
        })?;
        let end = Instant::now() + wait;
        loop {
            match rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock { held }),
                Err(Errno::WOULDBLOCK) if Instant::now() < end => stop::sleep(stop::SLICE)?,
                Err(Errno::WOULDBLOCK) => return Err(busy(&held)),
                Err(Errno::INTR) => {}
                Err(error) => {
                    let what = format!("locking {DIRECTORY}");
                    return Err(Problem::new(&codes::host::FILE_WRITE, what).cause(error));
                }
            }
        }
    }

    /// Lets the programs that this process starts hold the lock, too. Killed, it leaves them behind
    /// for a moment, and the next run must not meet them at work.
    pub fn with_children(self) -> Result<Self, Problem> {
        match rustix::io::fcntl_setfd(&self.held, FdFlags::empty()) {
            Ok(()) => Ok(self),
            Err(error) => {
                let what = format!("handing on the lock of {DIRECTORY}");
                Err(Problem::new(&codes::host::FILE_WRITE, what).cause(error))
            }
        }
    }
}

/// Opens the directory, making it and `/run` first where they are missing.
fn open(root: &Root) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match root.open_at(DIRECTORY, flags, Mode::empty()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => return result,
    }
    make(root, "/", "run", 0o755)?;
    make(root, "/run", "tenon", 0o700)?;
    root.open_at(DIRECTORY, flags, Mode::empty())
}

fn make(root: &Root, parent: &str, name: &str, mode: u32) -> io::Result<()> {
    let parent = root.open_at(parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
    let mode = Mode::from_raw_mode(mode);
    match mkdirat(&parent, name, mode) {
        // The umask may have taken bits away.
        Ok(()) => Ok(chmodat(&parent, name, mode, AtFlags::empty())?),
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn busy(held: &OwnedFd) -> Problem {
    let what = match holder(held) {
        Some(pid) => format!("another run works on this machine: process {pid}"),
        None => "another run works on this machine".to_owned(),
    };
    Problem::new(&codes::host::BUSY, what)
}

/// The process that holds the lock, as the kernel's table of locks has it.
fn holder(held: &OwnedFd) -> Option<u32> {
    let stat = rustix::fs::fstat(held).ok()?;
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let id = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  WRITE 1234 00:2d:567 0 EOF`; waiters have `->` in second place.
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ours = words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&id.as_str());
        ours.then(|| words.get(4)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_41_the_second_run_waits_or_stops_naming_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let first = Lock::take(&root, Duration::ZERO).unwrap();
        let problem = Lock::take(&root, Duration::from_millis(10)).unwrap_err();
        assert_eq!((problem.exit(), problem.page.code), (11, "TN11001"));
        assert!(problem.what.contains(&std::process::id().to_string()), "{}", problem.what);
        let waiting = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| Lock::take(&root, Duration::from_secs(20)));
            drop(first);
            waiter.join().unwrap()
        });
        assert!(waiting.is_ok());
    }

    #[test]
    fn a_program_that_a_run_left_behind_keeps_the_next_one_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let first = Lock::take(&root, Duration::ZERO).unwrap().with_children().unwrap();
        let mut program = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        drop(first);
        assert!(Lock::take(&root, Duration::ZERO).is_err());
        program.kill().unwrap();
        program.wait().unwrap();
        assert!(Lock::take(&root, Duration::from_secs(20)).is_ok());
    }
}
