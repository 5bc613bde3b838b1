//! Runs that are stopped at every point, then run again.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use tenon_core::codes;

use super::*;

/// What a run meets on disk.
const STARTS: &[&str] = &["empty", "previous generation", "hand-edited file", "leftovers"];

fn prepare(start: &str) -> TempDir {
    let dir = machine();
    if start != "empty" {
        run(dir.path(), &node_plan("1")).unwrap();
    }
    let path = |name: &str| dir.path().join(name);
    match start {
        "hand-edited file" => fs::write(path("etc/containerd/config.toml"), "mine").unwrap(),
        "leftovers" => {
            fs::write(path("etc/eks/kubelet/.tenon-0123456789abcdef.tmp"), "half").unwrap();
            fs::write(path("etc/.tenon-fedcba9876543210.tmp"), "half").unwrap();
        }
        _ => {}
    }
    dir
}

/// Calls a probe's answer at the n-th point only.
fn at(n: usize, seen: &AtomicUsize, act: impl Fn() -> Result<(), Problem>) -> Result<(), Problem> {
    if seen.fetch_add(1, Ordering::Relaxed) == n { act() } else { Ok(()) }
}

fn stray(tree: &Entries) -> Vec<&String> {
    tree.keys().filter(|name| name.contains(".tenon-") && name.ends_with(".tmp")).collect()
}

/// Every owned path has its old or its new state.
fn assert_old_or_new(now: &Entries, old: &Entries, new: &Entries) {
    for (path, held) in now.iter().filter(|(path, _)| !path.contains(".tenon-")) {
        assert!(old.get(path) == Some(held) || new.get(path) == Some(held), "{path} is torn");
    }
}

#[test]
fn rows_36_to_39_killed_at_every_point_then_run_again() {
    let options = Options { sync_threads: 1, ..Options::default() };
    for start in STARTS {
        let whole = prepare(start);
        let (old, seen) = (tree(whole.path()), AtomicUsize::new(0));
        run_with(whole.path(), &node_plan("2"), &options, &|_| at(usize::MAX, &seen, || Ok(())))
            .unwrap();
        let new = tree(whole.path());
        for n in 0..seen.load(Ordering::Relaxed) {
            let dir = prepare(start);
            let count = AtomicUsize::new(0);
            // A panic runs no clean-up of ours, as a kill would not.
            let killed = catch_unwind(AssertUnwindSafe(|| {
                let die = |_: &'static str| at(n, &count, || resume_unwind(Box::new("killed")));
                run_with(dir.path(), &node_plan("2"), &options, &die)
            }));
            assert!(killed.is_err());
            assert_old_or_new(&tree(dir.path()), &old, &new);
            run(dir.path(), &node_plan("2")).unwrap();
            assert_same(&tree(dir.path()), &new, &format!("{start}, point {n}"));
        }
    }
}

#[test]
fn row_40_a_stop_leaves_no_temporary_and_says_how_far_it_came() {
    let options = Options { sync_threads: 1, ..Options::default() };
    let stop = || Err(Problem::new(&codes::host::TERMINATED, "stopped by SIGTERM"));
    let old = tree(prepare("previous generation").path());
    for point in POINTS.iter().filter(|point| **point != "directory" && **point != "remove") {
        let dir = prepare("previous generation");
        let probe = |name: &'static str| if name == *point { stop() } else { Ok(()) };
        let problem = run_with(dir.path(), &node_plan("2"), &options, &probe).unwrap_err();
        assert_eq!(problem.exit(), 143);
        let now = tree(dir.path());
        assert!(stray(&now).is_empty(), "{point}");
        if ["temporary", "content", "sync", "rename"].contains(point) {
            assert_eq!(now, old, "{point}: nothing was renamed yet");
        }
        run(dir.path(), &node_plan("2")).unwrap();
    }
}

#[test]
fn a_failed_first_run_takes_its_directories_back() {
    let dir = machine();
    let before = tree(dir.path());
    let fail = |name: &'static str| match name {
        "sync" => Err(Problem::new(&codes::host::FILE_WRITE, "test")),
        _ => Ok(()),
    };
    run_with(dir.path(), &node_plan("1"), &Options::default(), &fail).unwrap_err();
    let mut after = tree(dir.path());
    after.remove("run/tenon");
    assert_eq!(after, before);
}

#[test]
fn leftovers_of_a_killed_run_are_swept_even_when_nothing_changes() {
    let dir = prepare("leftovers");
    assert_eq!(stray(&tree(dir.path())).len(), 2);
    assert!(!run(dir.path(), &node_plan("1")).unwrap().changed());
    assert!(stray(&tree(dir.path())).is_empty());
}

#[test]
fn files_on_a_disk_are_synced_by_several_threads_to_the_same_end() {
    // Not in memory: threads are used only where a sync costs something.
    let dir = tempfile::tempdir().unwrap();
    for name in ["etc", "var/lib", "run"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    let one = prepare("empty");
    run_with(dir.path(), &node_plan("1"), &Options::default(), &|_| Ok(())).unwrap();
    run(one.path(), &node_plan("1")).unwrap();
    assert_same(&tree(dir.path()), &tree(one.path()), "threads");
}
