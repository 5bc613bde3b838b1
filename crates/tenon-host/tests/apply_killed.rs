//! The real process, killed or refused at system calls, then run again.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
#![expect(clippy::print_stdout, reason = "a skipped test says why, a child what it met")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::{
    assert_same, calls, calls_with_paths, entries, is_temporary, plain, strace_works, sweep, traced,
};
use tempfile::TempDir;
use tenon_core::plan::Plan;
use tenon_core::plan::step::{Action, FileBody, Step, Summary};
use tenon_host::apply::{self, Lock, Options};
use tenon_host::root::Root;

/// Names the root to the child that does the work.
const ROOT: &str = "TENON_TEST_ROOT";
/// Set to sweep every number instead of a sample.
const ALL: &str = "TENON_TEST_ALL_CALLS";

/// Ten files in seven directories.
fn plan(version: &str) -> Plan {
    let paths = [
        ("/etc/kubernetes/pki/ca.crt", 0o644),
        ("/etc/kubernetes/kubelet/config.json", 0o600),
        ("/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf", 0o600),
        ("/etc/eks/kubelet/environment", 0o600),
        ("/var/lib/kubelet/kubeconfig", 0o600),
        ("/etc/eks/image-credential-provider/config.json", 0o644),
        ("/etc/containerd/config.toml", 0o644),
        ("/etc/containerd/base-runtime-spec.json", 0o644),
        ("/etc/systemd/system/kubelet.service.d/environment.conf", 0o600),
        ("/etc/eks/proxy.env", 0o600),
    ];
    let body = |path: &str| format!("{path} {version}\n");
    let file = |(path, mode): (&str, u32)| {
        Step::config(Action::File(FileBody::new(path, mode, body(path))), "test")
    };
    Plan {
        summary: Summary { instance_id: "i-1".into(), ..Summary::default() },
        steps: paths.into_iter().map(file).collect(),
        findings: Vec::new(),
        reasons: BTreeMap::new(),
        disk_indexes: BTreeMap::new(),
    }
}

fn apply_on(root: &Path, version: &str) -> i32 {
    let root = Root::open(root).unwrap();
    let options = Options { sync_threads: 1, ..Options::default() };
    let run = || {
        let lock = Lock::take(&root, Duration::from_secs(5))?;
        apply::config_phase(&root, &lock, &plan(version), &options)
    };
    run().map_or_else(
        |problem| {
            println!("{}", problem.render("error"));
            i32::from(problem.exit())
        },
        |_| 0,
    )
}

/// The process that the others trace.
#[test]
#[ignore = "run by the other tests of this file"]
fn child() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let code = apply_on(Path::new(&root), "2");
    #[expect(clippy::exit, reason = "the exit code is what the parent looks at")]
    std::process::exit(code);
}

fn child_command(root: &Path) -> Vec<String> {
    let exe = std::env::current_exe().unwrap().display().to_string();
    let root = format!("{ROOT}={}", root.display());
    let words = ["--exact", "child", "--ignored", "--test-threads=1", "--quiet", "--nocapture"];
    ["env".to_owned(), root, exe].into_iter().chain(words.map(str::to_owned)).collect()
}

fn empty() -> TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    for name in ["etc", "var/lib", "run/tenon"] {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    dir
}

fn previous_generation() -> TempDir {
    let dir = empty();
    assert_eq!(apply_on(dir.path(), "1"), 0);
    dir
}

#[test]
fn row_39_killed_at_system_calls_then_run_again() {
    if !strace_works() {
        return;
    }
    let stride = if std::env::var_os(ALL).is_some() { 1 } else { 9 };
    let kills =
        sweep(&child_command, &empty, stride) + sweep(&child_command, &previous_generation, stride);
    println!("{kills} kills");
    assert!(kills > 20, "{kills} kills");
}

/// A refused call ends the run with 7, the old tree and no temporary; the next run succeeds.
fn refused(inject: &str) -> bool {
    let root = previous_generation();
    let old = entries(root.path());
    let code = traced(&child_command(root.path()), inject);
    if code != Some(7) {
        return false;
    }
    let now = entries(root.path());
    assert!(!now.keys().any(|path| is_temporary(path)), "{inject}");
    assert_same(&now, &old, inject);
    assert_eq!(plain(&child_command(root.path())), Some(0), "{inject}: run again");
    true
}

#[test]
fn row_32_no_space_during_a_write_changes_nothing() {
    if strace_works() {
        // Some of the first writes are those of the test frame.
        let refusals = (1..=6).filter(|n| refused(&format!("write:error=ENOSPC:when={n}"))).count();
        assert!(refusals >= 3, "{refusals} refusals");
    }
}

#[test]
fn row_34_a_sync_that_does_not_succeed_is_final() {
    if !strace_works() {
        return;
    }
    for number in [1, 5, 11] {
        assert!(refused(&format!("fsync:error=EIO:when={number}")), "{number}");
    }
    // Interrupted by a signal is the one error that is repeated.
    let root = previous_generation();
    assert_eq!(traced(&child_command(root.path()), "fsync:error=EINTR:when=2"), Some(0));
}

#[test]
fn calls_that_are_refused_before_the_first_rename_change_nothing() {
    if strace_works() {
        for inject in
            ["fchmod:error=EPERM:when=3", "fchown:error=EPERM:when=3", "renameat:error=EIO:when=1"]
        {
            assert!(refused(inject), "{inject}");
        }
    }
}

/// The names of the calls between taking the lock and the end.
fn calls_of_apply(root: &Path) -> Vec<String> {
    let lines = calls(&child_command(root));
    let names = lines.iter().map(|line| {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        call.to_owned()
    });
    // Debug builds ask about each descriptor before they close it.
    names
        .skip_while(|call| !call.starts_with("flock("))
        .filter(|call| !call.contains("F_GETFD"))
        .collect()
}

#[test]
fn a_run_of_ten_files_stays_within_its_budget_of_calls() {
    if !strace_works() {
        return;
    }
    let root = empty();
    let first = calls_of_apply(root.path());
    let count = |name: &str| first.iter().filter(|call| call.starts_with(name)).count();
    // Ten files, the saved generation, the record.
    assert_eq!(count("renameat("), 12);
    assert!(!first.iter().any(|call| call.contains("O_TRUNC")));
    println!("first run: {} calls", first.len());
    assert!(first.len() <= 210, "{}: {first:#?}", first.len());
    // Row 42: the second run writes nothing.
    let second = calls_of_apply(root.path());
    println!("second run: {} calls", second.len());
    let writes = |call: &&String| {
        ["write(", "rename", "unlink", "mkdir", "fchmod", "fchown", "fsync"]
            .iter()
            .any(|name| call.starts_with(name))
            || call.contains("O_CREAT")
            || call.contains("O_WRONLY")
            || call.contains("O_RDWR")
    };
    let written: Vec<_> = second.iter().filter(writes).collect();
    assert!(written.is_empty(), "{written:#?}");
    assert!(second.len() <= 132, "{}: {second:#?}", second.len());
}

/// Runs the child with a file system of these options on `/etc`. Gives exit code, output, and
/// the files that are on it afterwards; None where mounting is not allowed.
fn on_mount(options: &str) -> Option<(i32, String, String)> {
    let root = empty();
    let script = format!(
        "cd {0} && mount -t tmpfs -o mode=755,{options} none etc || exit 99; \
         \"$@\"; code=$?; echo; find etc -type f > left; exit $code",
        root.path().display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
    let output = command.args(child_command(root.path())).output().ok()?;
    let left = std::fs::read_to_string(root.path().join("left"));
    let (Some(code), Ok(left)) = (output.status.code(), left) else {
        println!("skipped: mounting is not allowed here");
        return None;
    };
    Some((code, String::from_utf8_lossy(&output.stdout).into_owned(), left))
}

#[test]
fn rows_31_33_and_35_a_file_system_without_room_is_found_before_the_first_write() {
    for (options, page, word) in [
        ("size=16k", "TN07003", "bytes are needed"),
        ("nr_inodes=9", "TN07004", "inodes are needed"),
        ("ro", "TN07005", "read-only"),
    ] {
        let Some((code, told, left)) = on_mount(options) else { return };
        assert_eq!(code, 7, "{options}: {told}");
        assert!(told.contains(page) && told.contains(word), "{options}: {told}");
        assert!(told.contains("mounted at /"), "{options}: {told}");
        assert_eq!(left, "", "{options}");
    }
    let (code, told, left) = on_mount("size=1m").unwrap();
    assert_eq!((code, left.lines().count()), (0, 9), "{told}");
}

#[test]
fn row_51_the_umask_does_not_matter() {
    let trees = ["000", "022", "077"].map(|umask| {
        let root = empty();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
        let output = command.args(child_command(root.path())).output().unwrap();
        assert!(output.status.success());
        entries(root.path())
    });
    assert_same(&trees[0], &trees[1], "umask 000");
    assert_same(&trees[2], &trees[1], "umask 077");
}

/// The lines of a run that decide what a power loss leaves: syncs and renames, with paths.
fn durable_calls(root: &Path) -> Vec<Durable> {
    let quoted = |text: &str| text.split('"').nth(1).unwrap_or_default().to_owned();
    let bracketed = |text: &str| {
        let start = text.find('<').map_or(0, |at| at + 1);
        text[start..text.find('>').unwrap_or(text.len())].to_owned()
    };
    let lines = calls_with_paths(&child_command(root));
    let parse = |line: &String| {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        if let Some(rest) = call.strip_prefix("fsync(") {
            return Some(Durable::Sync(bracketed(rest)));
        }
        let rest = call.strip_prefix("renameat(")?;
        let (from, to) = rest.split_once(", ")?;
        let directory = bracketed(from);
        let target = to.split_once(", ")?.1;
        let path = |name: &str| format!("{directory}/{name}");
        Some(Durable::Rename(path(&quoted(to)), path(&quoted(target))))
    };
    lines.iter().filter_map(parse).collect()
}

#[derive(Debug, PartialEq)]
enum Durable {
    Sync(String),
    Rename(String, String),
}

#[test]
fn rows_36_to_38_what_a_power_loss_can_leave_is_old_new_or_a_stray_temporary() {
    if !strace_works() {
        return;
    }
    let root = previous_generation();
    let log = durable_calls(root.path());
    let at = |wanted: &Durable, from: usize| {
        log.iter().skip(from).position(|call| call == wanted).map(|found| found + from)
    };
    let renames: Vec<_> =
        (0..log.len()).filter(|i| matches!(log[*i], Durable::Rename(..))).collect();
    assert_eq!(renames.len(), 12);
    let last = *renames.last().unwrap();
    for place in &renames {
        let Durable::Rename(from, to) = &log[*place] else { continue };
        let content = at(&Durable::Sync(from.clone()), 0);
        assert!(content.is_some_and(|sync| sync < *place), "{to} has a name before its content");
        let directory = to.rsplit_once('/').unwrap().0.to_owned();
        let named = at(&Durable::Sync(directory), *place);
        // The record may claim only what is on disk.
        assert!(named.is_some_and(|sync| *place == last || sync < last), "{to} is not synced");
    }
    let Durable::Rename(_, first) = &log[renames[0]] else { panic!("not a rename") };
    assert!(first.ends_with("generations/1"), "what is replaced is saved first: {first}");
    let saved = Durable::Sync(first.rsplit_once('/').unwrap().0.to_owned());
    assert!(at(&saved, renames[0]).is_some_and(|sync| sync < renames[1]), "saved, but not synced");
    let Durable::Rename(_, record) = &log[last] else { panic!("not a rename") };
    assert!(record.ends_with("record.json"), "the record comes last: {record}");
}
