//! The one way to run a program: no standard input, own process group, a bound on time and on
//! output, and the last words in the error.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tenon_core::codes;
use tenon_core::problem::Problem;

use crate::stop;

/// How much output is kept, from the end.
const KEEP_BYTES: usize = 64 * 1024;
/// How much of it an error shows.
const TAIL_LINES: usize = 20;
/// How long a program has between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// What a program left behind.
#[derive(Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    /// Last lines of standard error, then of standard output if there were none.
    pub tail: Vec<String>,
}

/// Runs a program to its end. A non-zero exit is not an error here; not starting, a passed
/// deadline and a stop are.
pub fn run(
    argv: &[String],
    timeout: Duration,
    env: &[(String, String)],
) -> Result<Output, Problem> {
    run_keeping(argv, timeout, env, KEEP_BYTES)
}

/// The same for a program whose answer is longer: so many bytes of it are kept.
pub fn run_keeping(
    argv: &[String],
    timeout: Duration,
    env: &[(String, String)],
    keep: usize,
) -> Result<Output, Problem> {
    let shown = argv.join(" ");
    let mut child = start(argv, env)?;
    let stdout = collect(child.stdout.take(), keep);
    let stderr = collect(child.stderr.take(), KEEP_BYTES);
    let ended = wait(&mut child, timeout);
    let (stdout, stderr) = (finish(stdout), finish(stderr));
    let tail = tail(if stderr.is_empty() { &stdout } else { &stderr });
    match ended {
        Ok(Some(status)) => Ok(Output { status, stdout, tail }),
        Ok(None) => Err(Problem::new(
            &codes::host::PROGRAM_TIMEOUT,
            format!("`{shown}` did not end within {} s", timeout.as_secs()),
        )
        .details(tail)),
        Err(problem) => Err(problem),
    }
}

fn start(argv: &[String], env: &[(String, String)]) -> Result<Child, Problem> {
    let (program, arguments) =
        argv.split_first().ok_or_else(|| Problem::new(&codes::usage::BUG, "empty command"))?;
    tracing::debug!(command = %argv.join(" "), "run");
    Command::new(program)
        .args(arguments)
        .envs(env.iter().map(|(key, value)| (key, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| {
            Problem::new(&codes::host::PROGRAM_FAILED, format!("starting `{program}`")).cause(error)
        })
}

/// The first bytes that a program prints; it is stopped when there are enough. Where the deadline
/// passes first, what came until then is the answer. A program that ends badly without a word is an
/// error.
pub fn head(argv: &[String], timeout: Duration, most: u64) -> Result<Vec<u8>, Problem> {
    let mut child = start(argv, &[])?;
    let said = collect(child.stderr.take(), KEEP_BYTES);
    let reader = collect_first(child.stdout.take(), most);
    let end = Instant::now() + timeout;
    let mut stopped = Ok(());
    while stopped.is_ok() && Instant::now() < end {
        if reader.as_ref().is_none_or(|(_, thread)| thread.is_finished()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
        stopped = stop::check();
    }
    let status = wait(&mut child, Duration::from_millis(200));
    stopped?;
    let bytes = finish(reader);
    match status? {
        Some(status) if !status.success() && bytes.is_empty() => {
            let what = format!("`{}` ended with {status}", argv.join(" "));
            let problem = Problem::new(&codes::host::PROGRAM_FAILED, what);
            Err(problem.details(tail(&finish(said))))
        }
        _ => Ok(bytes),
    }
}

/// Runs a program that must end with 0.
pub fn must(
    argv: &[String],
    timeout: Duration,
    env: &[(String, String)],
) -> Result<Output, Problem> {
    let output = run(argv, timeout, env)?;
    if output.status.success() {
        return Ok(output);
    }
    let what = format!("`{}` ended with {}", argv.join(" "), output.status);
    Err(Problem::new(&codes::host::PROGRAM_FAILED, what).details(output.tail))
}

type Reader = Option<(Arc<Mutex<Vec<u8>>>, JoinHandle<()>)>;

/// Reads a pipe to its end on a thread of its own, keeping the last bytes.
fn collect(pipe: Option<impl Read + Send + 'static>, keep: usize) -> Reader {
    let mut pipe = pipe?;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&kept);
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let Ok(mut kept) = shared.lock() else { return };
            kept.extend_from_slice(&buffer[..count]);
            let excess = kept.len().saturating_sub(keep);
            kept.drain(..excess);
        }
    });
    Some((kept, reader))
}

/// Reads the begin of a pipe on a thread of its own.
fn collect_first(pipe: Option<impl Read + Send + 'static>, most: u64) -> Reader {
    let mut pipe = pipe?.take(most);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&kept);
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let Ok(mut kept) = shared.lock() else { return };
            kept.extend_from_slice(&buffer[..count]);
        }
    });
    Some((kept, reader))
}

/// Takes what was read. A grandchild that kept the pipe open is not waited for.
fn finish(reader: Reader) -> Vec<u8> {
    let Some((kept, thread)) = reader else { return Vec::new() };
    let patience = Instant::now() + Duration::from_millis(200);
    while !thread.is_finished() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    kept.lock().map(|kept| kept.clone()).unwrap_or_default()
}

/// Waits for the end; None means that the deadline passed and the group was killed.
fn wait(child: &mut Child, timeout: Duration) -> Result<Option<ExitStatus>, Problem> {
    let end = Instant::now() + timeout;
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait().map_err(gone)? {
            return Ok(Some(status));
        }
        let stopped = stop::check();
        if stopped.is_err() || Instant::now() >= end {
            kill_group(child);
            return stopped.map(|()| None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Ends the whole process group: politely, then not.
fn kill_group(child: &mut Child) {
    let Ok(Some(group)) = i32::try_from(child.id()).map(Pid::from_raw) else { return };
    // Errors mean that the group is gone already.
    let _ = kill_process_group(group, Signal::TERM);
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        if let Ok(Some(_)) = child.try_wait() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

fn gone(error: std::io::Error) -> Problem {
    Problem::new(&codes::host::PROGRAM_FAILED, "waiting for a program").cause(error)
}

fn tail(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout: Duration) -> Result<Output, Problem> {
        must(&["sh".into(), "-c".into(), script.into()], timeout, &[])
    }

    #[test]
    fn a_failing_program_leaves_its_last_words() {
        let problem = sh("echo out; echo why >&2; exit 3", Duration::from_secs(5)).unwrap_err();
        assert_eq!(problem.exit(), 6);
        assert_eq!(problem.details, ["why"]);
    }

    #[test]
    fn a_hanging_program_and_its_children_are_killed() {
        let problem = sh("sleep 60 & echo started; wait", Duration::from_millis(50)).unwrap_err();
        assert_eq!(problem.exit(), 9);
        assert_eq!(problem.details, ["started"]);
    }

    #[test]
    fn the_head_of_endless_output_is_enough() {
        let argv = ["yes".to_owned()];
        let bytes = head(&argv, Duration::from_secs(10), 5).unwrap();
        assert_eq!(bytes, b"y\ny\ny");
        let argv = ["sh", "-c", "echo why >&2; exit 3"].map(str::to_owned);
        let problem = head(&argv, Duration::from_secs(10), 5).unwrap_err();
        assert_eq!((problem.exit(), problem.details.as_slice()), (6, &["why".to_owned()][..]));
    }

    #[test]
    fn a_missing_program_is_named() {
        let problem = must(&["no-such-program".into()], Duration::from_secs(1), &[]).unwrap_err();
        assert!(problem.what.contains("no-such-program"));
    }
}
