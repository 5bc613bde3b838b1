//! A program whose output is an item: clean surroundings, its own process group, a deadline
//! that counts, a cap on what it may say.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

/// Where programs are looked for, whatever the caller's environment says.
const PATHS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Between SIGTERM and SIGKILL. Short: the budget of the run is at stake.
const GRACE: Duration = Duration::from_millis(300);
/// How long a grandchild that kept the pipe open is listened to after the end.
const LINGER: Duration = Duration::from_millis(200);
const SLICE: Duration = Duration::from_millis(50);
/// What is kept of standard error, for the note.
const MOST_ERROR: usize = 300;

/// How a program ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// Its own end; 0 is good. A signal is -1.
    Exit(i32),
    Deadline,
    Cap,
    Stopped,
}

/// Finds a program; None if it is not installed.
pub fn find(program: &str) -> Option<PathBuf> {
    let places: Vec<PathBuf> = match program.starts_with('/') {
        true => vec![program.into()],
        false => PATHS.split(':').map(|place| PathBuf::from(place).join(program)).collect(),
    };
    places.into_iter().find(|path| path.is_file())
}

/// Runs a program and gives its standard output to `take` until `end`, or until `take` has had
/// enough. The second value is the begin of standard error.
pub fn run(
    argv: &[String],
    end: Instant,
    stopped: &dyn Fn() -> bool,
    take: &mut dyn FnMut(&[u8]) -> bool,
) -> std::io::Result<(End, String)> {
    let program = argv.first().and_then(|program| find(program));
    let program = program.ok_or(std::io::ErrorKind::NotFound)?;
    let mut child = Command::new(program)
        .args(&argv[1..])
        .env_clear()
        .envs([("PATH", PATHS), ("LC_ALL", "C"), ("HOME", "/"), ("PAGER", "cat")])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let mut error = Vec::new();
    let ended = listen(&mut child, end, stopped, take, &mut error);
    if !matches!(ended, Ok(End::Exit(_))) {
        kill(&mut child);
    }
    let words = String::from_utf8_lossy(&error).trim().to_owned();
    ended.map(|end| (end, words))
}

fn listen(
    child: &mut Child,
    end: Instant,
    stopped: &dyn Fn() -> bool,
    take: &mut dyn FnMut(&[u8]) -> bool,
    error: &mut Vec<u8>,
) -> std::io::Result<End> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let mut buffer = vec![0; 32 << 10];
    let mut exited: Option<(i32, Instant)> = None;
    loop {
        let ready = wait(out.as_ref(), err.as_ref())?;
        if ready.0 {
            match read(out.as_mut(), &mut buffer)? {
                0 => out = None,
                count if !take(&buffer[..count]) => return Ok(End::Cap),
                _ => {}
            }
        }
        if ready.1 {
            match read(err.as_mut(), &mut buffer)? {
                0 => err = None,
                count => {
                    let room = MOST_ERROR.saturating_sub(error.len());
                    error.extend_from_slice(&buffer[..count.min(room)]);
                }
            }
        }
        if exited.is_none() {
            let status = child.try_wait()?;
            exited = status.map(|status| (status.code().unwrap_or(-1), Instant::now()));
        }
        let lingered = |(_, at): &(i32, Instant)| at.elapsed() > LINGER;
        match exited {
            Some((code, _)) if out.is_none() && err.is_none() => return Ok(End::Exit(code)),
            Some(seen) if lingered(&seen) => return Ok(End::Exit(seen.0)),
            _ if stopped() => return Ok(End::Stopped),
            _ if Instant::now() >= end => return Ok(End::Deadline),
            _ => {}
        }
    }
}

/// Waits a little until one of the pipes has something, or its end.
fn wait(out: Option<&impl AsFd>, err: Option<&impl AsFd>) -> std::io::Result<(bool, bool)> {
    let mut watched = Vec::new();
    watched.extend(out.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    watched.extend(err.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    if watched.is_empty() {
        std::thread::sleep(Duration::from_millis(5));
        return Ok((false, false));
    }
    let slice = Timespec { tv_sec: 0, tv_nsec: i64::try_from(SLICE.as_nanos()).unwrap_or(0) };
    match poll(&mut watched, Some(&slice)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut ready = watched.iter().map(|fd| !fd.revents().is_empty());
    let first = out.is_some() && ready.next().unwrap_or_default();
    Ok((first, err.is_some() && ready.next().unwrap_or_default()))
}

fn read(pipe: Option<&mut impl Read>, buffer: &mut [u8]) -> std::io::Result<usize> {
    pipe.map_or(Ok(0), |pipe| pipe.read(buffer))
}

/// Ends the whole group and reaps the child.
fn kill(child: &mut Child) {
    let Ok(Some(group)) = i32::try_from(child.id()).map(Pid::from_raw) else { return };
    // Errors mean that the group is gone already.
    let _ = kill_process_group(group, Signal::TERM);
    let end = Instant::now() + GRACE;
    while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout_ms: u64, cap: usize) -> (End, String, usize) {
        let argv = ["sh", "-c", script].map(String::from);
        let mut bytes = 0;
        let end = Instant::now() + Duration::from_millis(timeout_ms);
        let mut take = |chunk: &[u8]| {
            bytes += chunk.len();
            bytes < cap
        };
        let (ended, error) = run(&argv, end, &|| false, &mut take).unwrap();
        (ended, error, bytes)
    }

    #[test]
    fn a_program_ends_in_one_of_four_ways() {
        assert_eq!(sh("echo hi; echo why >&2; exit 3", 5000, 100), (End::Exit(3), "why".into(), 3));
        assert_eq!(sh("echo hi; sleep 60", 200, 100).0, End::Deadline);
        assert_eq!(sh("yes", 5000, 100_000).0, End::Cap);
        let argv = ["sleep".to_owned(), "60".to_owned()];
        let end = Instant::now() + Duration::from_secs(30);
        assert_eq!(run(&argv, end, &|| true, &mut |_| true).unwrap().0, End::Stopped);
        assert!(run(&["no-such".into()], end, &|| false, &mut |_| true).is_err());
    }

    #[test]
    fn one_that_ignores_signals_and_its_children_are_gone_in_time() {
        let started = Instant::now();
        let (ended, _, bytes) =
            sh("trap '' TERM; (trap '' TERM; sleep 60) & echo x; sleep 60; sleep 60", 200, 100);
        assert_eq!((ended, bytes), (End::Deadline, 2));
        assert!(started.elapsed() < Duration::from_secs(3));
    }

    #[test]
    fn a_grandchild_that_keeps_the_pipe_is_not_waited_for() {
        let started = Instant::now();
        assert_eq!(sh("sleep 60 & echo x", 20_000, 100).0, End::Exit(0));
        assert!(started.elapsed() < Duration::from_secs(3));
    }

    #[test]
    fn the_surroundings_are_clean() {
        let argv = ["env".to_owned()];
        let mut text = Vec::new();
        let end = Instant::now() + Duration::from_secs(5);
        let mut take = |chunk: &[u8]| {
            text.extend_from_slice(chunk);
            true
        };
        run(&argv, end, &|| false, &mut take).unwrap();
        let text = String::from_utf8(text).unwrap();
        let names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
        assert_eq!(names.len(), 4, "{names:?}");
    }
}
