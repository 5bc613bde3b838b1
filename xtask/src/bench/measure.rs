//! One run of one program, measured from a process of its own: the peak memory that the kernel
//! keeps for ended children is then that program's alone.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

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
    pub memory_kib: u64,
}

/// `cargo xtask measure PROGRAM…`: runs it once and prints its cost as JSON.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let status = Command::new(&args.argv[0])
        .args(&args.argv[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("starting {}", args.argv[0]))?;
    let wall_us = u64::try_from(start.elapsed().as_micros())?;
    if !status.success() {
        bail!("{:?}: {status}", args.argv);
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let cost =
        Cost { wall_us, cpu_us: u64::try_from(cpu)?, memory_kib: u64::try_from(usage.max_rss())? };
    println!("{}", serde_json::to_string(&cost)?);
    Ok(())
}

/// Measures one run of a program through a launcher process.
pub fn once(launcher: &Path, argv: &[String], env: &[(String, String)]) -> anyhow::Result<Cost> {
    let output = Command::new(launcher)
        .arg("measure")
        .arg("--")
        .args(argv)
        .envs(env.iter().map(|(key, value)| (key, value)))
        .output()
        .context("starting the launcher")?;
    if !output.status.success() {
        bail!("{argv:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
