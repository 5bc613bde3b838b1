//! One run of one program. Times are taken by a process of its own, so that CPU time is that
//! program's alone; what does not depend on the moment is counted in runs of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use super::rows::Row;
use crate::lab;

#[derive(clap::Args)]
pub struct Args {
    /// Program and arguments
    #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
    argv: Vec<String>,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    pub wall_us: u64,
    pub cpu_us: u64,
}

/// What every run of a row costs alike.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    pub memory_kib: u64,
    pub calls: usize,
    pub processes: usize,
}

/// `cargo xtask measure PROGRAM…`: runs it once and prints its cost as JSON.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let status = quiet(&args.argv[0], &args.argv[1..]).status();
    let status = status.with_context(|| format!("starting {}", args.argv[0]))?;
    let wall_us = u64::try_from(start.elapsed().as_micros())?;
    ensure!(status.success(), "{:?}: {status}", args.argv);
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    println!("{}", serde_json::to_string(&Cost { wall_us, cpu_us: u64::try_from(cpu)? })?);
    Ok(())
}

fn quiet(program: &str, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Takes away the environment of cargo: its library path has every dynamic program search more
/// directories than on a node.
fn plain<'a>(command: &'a mut Command, row: &Row) -> &'a mut Command {
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.envs(row.env.iter().map(|(key, value)| (key, value)))
}

/// Measures one run of a row through a launcher process.
pub fn once(launcher: &Path, row: &Row) -> anyhow::Result<Cost> {
    (row.before)()?;
    let mut command = Command::new(launcher);
    command.args(["measure", "--"]).args(&row.argv);
    let output = plain(&mut command, row).output().context("starting the launcher")?;
    if !output.status.success() {
        bail!("{:?}: {}", row.argv, String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Counts what one row costs: system calls and processes under strace, memory under GNU time,
/// which is small enough not to be counted itself.
pub fn count(row: &Row) -> anyhow::Result<Counts> {
    lab::install("strace", "strace")?;
    lab::install("time", "time")?;
    let file = tempfile::NamedTempFile::new()?;
    let noted = file.path().display().to_string();
    under(row, &["strace", "-f", "-qq", "-e", "signal=none", "-o", &noted])?;
    let trace = std::fs::read_to_string(file.path())?;
    under(row, &["time", "--quiet", "-f", "%M", "-o", &noted])?;
    let memory = std::fs::read_to_string(file.path())?;
    let calls: Vec<_> = trace.lines().filter_map(call).collect();
    Ok(Counts {
        memory_kib: memory.trim().parse().context("the answer of time")?,
        calls: calls.len(),
        processes: 1 + calls.iter().filter(|call| begins_process(call)).count(),
    })
}

fn under(row: &Row, wrapper: &[&str]) -> anyhow::Result<()> {
    (row.before)()?;
    let words = wrapper.iter().map(ToString::to_string).chain(row.argv.iter().cloned());
    let words: Vec<String> = words.collect();
    let status = plain(&mut quiet(&words[0], &words[1..]), row)
        .status()
        .with_context(|| format!("starting {}", words[0]))?;
    ensure!(status.success(), "{words:?}: {status}");
    Ok(())
}

/// The call in a line of strace: `1234  name(…`. The second half of an interrupted one is none.
fn call(line: &str) -> Option<&str> {
    let line = line.split_once(' ')?.1.trim_start();
    let name = line.split_once('(')?.0;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(line)
}

fn begins_process(call: &str) -> bool {
    let thread = call.contains("CLONE_THREAD");
    ["fork(", "vfork(", "clone(", "clone3("].iter().any(|name| call.starts_with(name)) && !thread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_no_process_and_half_a_call_is_none() {
        let trace = "1  clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
                     1  clone3({flags=CLONE_VM|CLONE_THREAD}) = 3\n\
                     2  <... read resumed>\"\", 1) = 0\n\
                     2  exit_group(0) = ?\n";
        let calls: Vec<_> = trace.lines().filter_map(call).collect();
        assert_eq!(calls.len(), 3);
        assert_eq!(calls.iter().filter(|call| begins_process(call)).count(), 1);
    }
}
