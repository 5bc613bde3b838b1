//! The real binary, killed at every system call of an `init`, then run again.
//!
//! At the moment of death each file has its old or its new content; after the second run the
//! tree is that of a run that nobody disturbed, mode for mode, with no stray file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use super::Lab;
use crate::lab::must;

/// Before and after: two configs of one machine, with ten files and more between them.
const BEFORE: &str = "golden/environment/config.yaml";
const AFTER: &str = "golden/proxy-and-environment/config.yaml";
const FACTS: &str = "golden/proxy-and-environment/facts.json";

/// Calls that end the process by themselves, or that strace cannot stop at.
const UNKILLABLE: &[&str] = &["execve", "exit", "exit_group", "rt_sigreturn", "brk"];

type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

pub fn refuse(lab: &Lab) -> Option<String> {
    let probe = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .arg(&lab.tenon)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    match probe {
        Ok(status) if status.success() => None,
        _ => Some("strace cannot trace a process here".into()),
    }
}

pub fn run(lab: &Lab) -> anyhow::Result<usize> {
    let place = tempfile::tempdir()?;
    let mut cases = 0;
    for start in [None, Some(BEFORE)] {
        let scene = Scene { lab, start, place: place.path() };
        cases += scene.sweep()?;
    }
    Ok(cases)
}

struct Scene<'a> {
    lab: &'a Lab,
    /// The config that is in place when the run begins; None for an empty root.
    start: Option<&'a str>,
    place: &'a Path,
}

impl Scene<'_> {
    fn sweep(&self) -> anyhow::Result<usize> {
        let old = self.fresh("old")?;
        let old = tree(&old)?;
        let clean = self.fresh("clean")?;
        must(&mut self.init(&clean, AFTER))?;
        let clean = tree(&clean)?;
        let calls = self.calls()?;
        let total: usize = calls.values().sum();
        println!(
            "  from {}: {total} calls of {} kinds",
            self.start.unwrap_or("nothing"),
            calls.len()
        );
        for (call, count) in &calls {
            for number in 1..=*count {
                self.kill(call, number, &old, &clean)
                    .with_context(|| format!("killed at {call} number {number}"))?;
            }
        }
        Ok(total)
    }

    fn kill(&self, call: &str, number: usize, old: &Tree, clean: &Tree) -> anyhow::Result<()> {
        let root = self.fresh("killed")?;
        let inject = format!("inject={call}:signal=KILL:when={number}");
        // The tracer ends with the signal of the traced: its status says nothing more.
        strace(&["-e", &inject, "-o", "/dev/null"], &self.init(&root, AFTER)).output()?;
        for (path, held) in tree(&root)? {
            let legal = [old.get(&path), clean.get(&path)];
            let temporary = path.to_string_lossy().contains(".tenon-");
            let state = path.starts_with("var/lib/tenon");
            ensure!(
                temporary || state || legal.contains(&Some(&held)),
                "{} is neither old nor new at the moment of death",
                path.display()
            );
        }
        must(&mut self.init(&root, AFTER))?;
        same(&tree(&root)?, clean)
    }

    /// How often the run makes each call.
    fn calls(&self) -> anyhow::Result<BTreeMap<String, usize>> {
        let root = self.fresh("counted")?;
        let log = self.place.join("trace");
        let log_name = log.to_string_lossy();
        must(&mut strace(&["-o", &log_name], &self.init(&root, AFTER)))?;
        let mut calls = BTreeMap::new();
        for line in fs::read_to_string(&log)?.lines() {
            // `1234 openat2(3, …`; lines without a bracket are signals and exits.
            let Some((head, _)) = line.split_once('(') else { continue };
            let Some(name) = head.split_whitespace().last() else { continue };
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if plain && !UNKILLABLE.contains(&name) {
                *calls.entry(name.to_owned()).or_insert(0) += 1;
            }
        }
        ensure!(calls.values().sum::<usize>() > 100, "the trace holds almost nothing");
        Ok(calls)
    }

    /// A root in the state in which the run begins.
    fn fresh(&self, name: &str) -> anyhow::Result<PathBuf> {
        let root = self.place.join(name);
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir(&root)?;
        if let Some(config) = self.start {
            must(&mut self.init(&root, config))?;
        }
        Ok(root)
    }

    fn init(&self, root: &Path, config: &str) -> Command {
        let mut command = self.lab.command();
        command
            .current_dir(&self.lab.repository)
            .args(["init", "--skip", "run", "--fsync-threads", "1", "--facts", FACTS, "-c", config])
            .arg("--root")
            .arg(root);
        command
    }
}

/// The same command under strace.
fn strace(options: &[&str], command: &Command) -> Command {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq"]).args(options).arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        traced.current_dir(directory);
    }
    traced
}

/// Every file below a root with its mode. The lock's directory has no files.
fn tree(root: &Path) -> anyhow::Result<Tree> {
    let mut tree = Tree::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            if metadata.is_dir() {
                open.push(path);
                continue;
            }
            let held = (metadata.permissions().mode(), fs::read(&path)?);
            tree.insert(path.strip_prefix(root)?.to_owned(), held);
        }
    }
    Ok(tree)
}

/// Compares all but the saved generations, whose number depends on how often a run began.
fn same(found: &Tree, clean: &Tree) -> anyhow::Result<()> {
    let owned = |path: &&PathBuf| !path.starts_with("var/lib/tenon");
    let (left, right): (Vec<_>, Vec<_>) =
        (found.keys().filter(owned).collect(), clean.keys().filter(owned).collect());
    if left != right {
        bail!("the cured tree has other files: {left:?} instead of {right:?}");
    }
    for path in left {
        ensure!(found[path] == clean[path], "{} differs after the cure", path.display());
    }
    let stray = found.keys().find(|path| path.to_string_lossy().contains(".tenon-"));
    ensure!(stray.is_none(), "a temporary was left: {stray:?}");
    Ok(())
}
