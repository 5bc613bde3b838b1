//! Runs a command under strace and has the kernel kill it, or refuse it, at a chosen system
//! call. Works on any command line, so the same sweep serves a test binary and `tenon` itself.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The calls that change something, or that come between those that do.
pub const CALLS: &[&str] = &[
    "openat2", "mkdirat", "openat", "fchown", "fchmod", "write", "fsync", "renameat", "unlinkat",
    "flock", "close",
];

/// Mode, owner and content by path.
pub type Entries = BTreeMap<String, (u32, u32, Vec<u8>)>;

/// One run of a command on a root.
pub type CommandLine<'a> = &'a dyn Fn(&Path) -> Vec<String>;

/// A kill at every `stride`-th number of every call, then a whole run: the tree must be that of
/// a run without a kill, and no file may ever be torn. Gives the number of kills.
pub fn sweep(command: CommandLine<'_>, prepare: &dyn Fn() -> TempDir, stride: usize) -> usize {
    let whole = prepare();
    let old = entries(whole.path());
    assert_eq!(plain(&command(whole.path())), Some(0), "a run without a kill succeeds");
    let new = entries(whole.path());
    let mut kills = 0;
    for call in CALLS {
        for number in (1..).step_by(stride) {
            let root = prepare();
            let inject = format!("{call}:signal=KILL:when={number}");
            if traced(&command(root.path()), &inject) == Some(0) {
                break;
            }
            kills += 1;
            let when = format!("killed at {call} number {number}");
            assert_whole(&entries(root.path()), &old, &new, &when);
            assert_eq!(plain(&command(root.path())), Some(0), "{when}: run again");
            assert_same(&entries(root.path()), &new, &when);
        }
    }
    kills
}

/// Every path but a temporary has its old or its new state.
pub fn assert_whole(now: &Entries, old: &Entries, new: &Entries, when: &str) {
    for (path, held) in now.iter().filter(|(path, _)| !is_temporary(path)) {
        let known = old.get(path) == Some(held) || new.get(path) == Some(held);
        assert!(known, "{when}: {path} is torn");
    }
}

pub fn assert_same(now: &Entries, expected: &Entries, when: &str) {
    let paths = now.keys().chain(expected.keys());
    let differ: Vec<_> = paths.filter(|path| now.get(*path) != expected.get(*path)).collect();
    assert!(differ.is_empty(), "{when}: {differ:?}");
}

pub fn is_temporary(path: &str) -> bool {
    path.rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with(".tenon-") && name.ends_with(".tmp"))
}

/// Everything below a directory. `/run` belongs to the boot.
pub fn entries(root: &Path) -> Entries {
    let (mut found, mut todo) = (Entries::new(), vec![root.to_owned()]);
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let body = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if meta.is_dir() {
                todo.push(path);
            }
            if !name.starts_with("run") {
                found.insert(name, (meta.mode(), meta.uid(), body));
            }
        }
    }
    found
}

/// True when strace may trace here; says why not otherwise.
pub fn strace_works() -> bool {
    let works = traced(&["true".to_owned()], "fsync:error=EIO") == Some(0);
    if !works {
        println!("skipped: strace is not here or may not trace");
    }
    works
}

/// Runs a command with one injection; None when it was killed.
pub fn traced(command: &[String], inject: &str) -> Option<i32> {
    let call = inject.split(':').next().unwrap();
    Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={call}"), "-e", &format!("inject={inject}")])
        .args(command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_or(Some(127), |status| status.code())
}

/// Runs a command and gives the calls it made, one per line.
pub fn calls(command: &[String]) -> Vec<String> {
    calls_shown(command, &[])
}

/// The same with the path of every descriptor.
pub fn calls_with_paths(command: &[String]) -> Vec<String> {
    calls_shown(command, &["-y", "-s", "4096"])
}

fn calls_shown(command: &[String], options: &[&str]) -> Vec<String> {
    let output = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("strace")
        .args(["-f", "-qq"])
        .args(options)
        .arg("-o")
        .arg(output.path())
        .args(command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    fs::read_to_string(output.path()).unwrap().lines().map(str::to_owned).collect()
}

/// Runs a command as it is.
pub fn plain(command: &[String]) -> Option<i32> {
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    program.status().unwrap().code()
}
