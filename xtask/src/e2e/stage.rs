//! Where machines run: a process and mount namespace of its own, so that everything a scenario
//! starts or mounts is gone when it ends, however it ends.
//!
//! The outer half waits for the verdict and removes the cgroups, which belong to
//! no namespace. The inner half is this program again, as process 1 of the new namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::Lab;

#[derive(clap::Args)]
pub struct InsideArgs {
    layer: String,
    place: PathBuf,
    tenon: PathBuf,
    cache: PathBuf,
}

/// The inner half's world.
pub struct Stage {
    /// Everything that the scenario writes; removed at the end.
    pub place: PathBuf,
    /// The static binary under test.
    pub tenon: PathBuf,
    /// The lab's parts.
    pub cache: PathBuf,
}

/// Why no machine can run on this host.
pub fn refuse(_lab: &Lab) -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("needs root, for namespaces and cgroups".into());
    }
    if !Path::new("/sys/fs/cgroup/systemd").exists() {
        return Some("needs the cgroup v1 hierarchies, which machines here are booted with".into());
    }
    None
}

/// Plays a layer inside and gives the number of cases that passed.
pub fn play(lab: &Lab, layer: &str) -> anyhow::Result<usize> {
    sweep(&lab.cache)?;
    let place = tempfile::Builder::new().prefix("run-").tempdir_in(&lab.cache)?;
    let status = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"])
        .args(["--mount-proc", "--propagation", "private"])
        .arg(std::env::current_exe()?)
        .args(["machine-inside", layer])
        .args([place.path(), &lab.tenon, &lab.cache])
        .status()
        .context("starting the stage")?;
    let verdict = fs::read_to_string(place.path().join("verdict"));
    let clean = remove_cgroups(place.path());
    match verdict.as_deref().unwrap_or_default().strip_prefix("passed ").map(str::parse) {
        Some(Ok(cases)) => clean.map(|()| cases),
        _ => {
            let kept = lab.cache.join(format!("failed-{layer}"));
            keep(place.path(), &kept)?;
            let said = verdict.unwrap_or_else(|_| format!("no verdict, {status}"));
            bail!("{said}\nlogs: {}", kept.display())
        }
    }
}

/// The inner half.
pub fn inside(args: &InsideArgs) -> anyhow::Result<()> {
    let stage =
        Stage { place: args.place.clone(), tenon: args.tenon.clone(), cache: args.cache.clone() };
    let play = super::scenario(&args.layer)?;
    let verdict = match play(&stage) {
        Ok(cases) => format!("passed {cases}"),
        Err(error) => format!("{error:#}"),
    };
    Ok(fs::write(args.place.join("verdict"), verdict)?)
}

/// Removes what a run left that was killed together with its outer half.
fn sweep(cache: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("run-") {
            remove_cgroups(&entry.path())?;
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Removes the cgroups that the machines below this place noted. Their processes are dead, but
/// the kernel may take a moment to see it.
fn remove_cgroups(place: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    for entry in fs::read_dir(place)? {
        let Ok(noted) = fs::read_to_string(entry?.path().join("cgroups")) else { continue };
        for directory in noted.lines().map(Path::new) {
            while directory.exists() {
                remove_tree(directory);
                let left = directory.exists();
                ensure!(!left || Instant::now() < deadline, "{} is left", directory.display());
                if left {
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }
    Ok(())
}

/// Removes a cgroup, children first. One that is still in use stays.
fn remove_tree(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    // The caller looks whether it is gone.
    let _ = fs::remove_dir(directory);
}

/// Keeps the logs of a failed run in place of those of the last one.
fn keep(place: &Path, kept: &Path) -> anyhow::Result<()> {
    if kept.exists() {
        fs::remove_dir_all(kept)?;
    }
    fs::create_dir_all(kept)?;
    for directory in [place.to_owned()].into_iter().chain(directories(place)?) {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "log") {
                let name = path.strip_prefix(place)?.to_string_lossy().replace('/', "-");
                fs::copy(&path, kept.join(name))?;
            }
        }
    }
    Ok(())
}

fn directories(place: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}
