//! The file half of apply on temporary roots: what is written, what is refused, and that every
//! interruption is cured by running again.

#![expect(clippy::print_stdout, reason = "a skipped test says why")]

mod faults;
mod interrupted;
mod phases;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::TempDir;
use tenon_core::plan::diff::Edited;
use tenon_core::plan::step::{self, Action, Block, FileBody, Removal, Step, Summary};

use super::phase::Work;
use super::*;

/// A program that another test starts holds our lock for the instant between fork and exec.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A root that looks like a small machine.
pub(super) fn machine() -> TempDir {
    // Memory where there is some: these tests sync thousands of files.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    fs::create_dir_all(dir.path().join("etc")).unwrap();
    fs::create_dir_all(dir.path().join("var/lib")).unwrap();
    fs::create_dir_all(dir.path().join("run")).unwrap();
    fs::write(dir.path().join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    dir
}

pub(super) fn file(path: &str, mode: u32, body: &str) -> Step {
    Step::config(Action::File(FileBody::new(path, mode, body)), "test")
}

pub(super) fn plan_of(steps: Vec<Step>) -> Plan {
    Plan {
        summary: Summary { instance_id: "i-1".into(), ..Summary::default() },
        steps,
        findings: Vec::new(),
        reasons: BTreeMap::new(),
        disk_indexes: BTreeMap::new(),
    }
}

/// Ten files like a node's, one block, one of them under /run.
pub(super) fn node_plan(version: &str) -> Plan {
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
        ("/run/systemd/resolved.conf.d/40-eks.conf", 0o644),
    ];
    let mut steps: Vec<Step> = paths
        .iter()
        .map(|(path, mode)| file(path, *mode, &format!("{path} {version}\n")))
        .collect();
    let lines = vec![format!("10.0.0.1\tapi-{version}")];
    let block = Block { path: "/etc/hosts".into(), name: "api-server".into(), lines };
    steps.push(Step::config(Action::Block(block), "test"));
    plan_of(steps)
}

pub(super) fn run(dir: &Path, plan: &Plan) -> Result<Report, Problem> {
    run_with(dir, plan, &Options { sync_threads: 1, ..Options::default() }, &|_| Ok(()))
}

pub(super) fn run_with(
    dir: &Path,
    plan: &Plan,
    options: &Options,
    probe: Probe<'_>,
) -> Result<Report, Problem> {
    let root = Root::open(dir).unwrap();
    let _lock = Lock::take(&root, PATIENCE)?;
    let mut work = Work::start(&root, plan, options, probe)?;
    work.config()?;
    work.finish()
}

/// Mode and content by path.
pub(super) type Entries = BTreeMap<String, (u32, Vec<u8>)>;

/// Names the paths that differ, rather than printing every byte.
pub(super) fn assert_same(now: &Entries, expected: &Entries, when: &str) {
    let paths = now.keys().chain(expected.keys());
    let differ: Vec<_> = paths.filter(|path| now.get(*path) != expected.get(*path)).collect();
    assert!(differ.is_empty(), "{when}: {differ:?}");
}

/// Every file below a directory with mode and content; directories with their mode.
pub(super) fn tree(dir: &Path) -> Entries {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let body = match meta.is_file() {
                true => fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            found.insert(name, (meta.mode() & 0o7777, body));
            if meta.is_dir() {
                todo.push(path);
            }
        }
    }
    found
}

#[test]
fn writes_content_modes_directories_and_the_record() {
    let dir = machine();
    let report = run(dir.path(), &node_plan("1")).unwrap();
    assert_eq!(report.changes.iter().filter(|change| change.kind == "file").count(), 11);
    let tree = tree(dir.path());
    assert_eq!(tree["etc/eks/kubelet/environment"].0, 0o600);
    assert_eq!(tree["etc/eks/kubelet/environment"].1, b"/etc/eks/kubelet/environment 1\n");
    assert_eq!(tree["etc/containerd/config.toml"].0, 0o644);
    assert_eq!(tree["etc/eks/kubelet"].0, 0o755);
    assert_eq!(tree["var/lib/tenon"].0, 0o700);
    assert_eq!(tree["var/lib/tenon/record.json"].0, 0o600);
    let hosts = String::from_utf8(tree["etc/hosts"].1.clone()).unwrap();
    assert!(hosts.starts_with("127.0.0.1 localhost\n# BEGIN tenon api-server\n"));
    let record = Record::decode(&tree["var/lib/tenon/record.json"].1).unwrap();
    assert_eq!((record.generation, record.files.len()), (1, 10));
}

#[test]
fn row_42_the_same_config_again_changes_nothing() {
    let dir = machine();
    run(dir.path(), &node_plan("1")).unwrap();
    let times = |dir: &Path| -> Vec<_> {
        tree(dir).keys().map(|name| fs::metadata(dir.join(name)).unwrap().ctime_nsec()).collect()
    };
    let before = times(dir.path());
    let report = run(dir.path(), &node_plan("1")).unwrap();
    let mut merged = Report::default();
    merged.merge(report.clone());
    assert!(merged.plan_hash.starts_with("sha256:"), "two phases have one plan");
    assert!(!report.changed());
    assert_eq!(report.unchanged, 11);
    assert_eq!(times(dir.path()), before);
}

#[test]
fn row_43_a_changed_config_writes_only_what_differs() {
    let dir = machine();
    run(dir.path(), &node_plan("1")).unwrap();
    let mut plan = node_plan("1");
    plan.steps[3] = file("/etc/eks/kubelet/environment", 0o600, "other\n");
    let report = run(dir.path(), &plan).unwrap();
    let paths: Vec<_> = report.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["/etc/eks/kubelet/environment"]);
}

#[test]
fn row_99_a_setting_that_is_removed_takes_its_file_along() {
    let dir = machine();
    run(dir.path(), &node_plan("1")).unwrap();
    let mut plan = node_plan("1");
    plan.steps.remove(2);
    run(dir.path(), &plan).unwrap();
    let tree = tree(dir.path());
    assert!(!tree.contains_key("etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf"));
    assert_eq!(Record::decode(&tree["var/lib/tenon/record.json"].1).unwrap().files.len(), 9);
}

#[test]
fn row_46_a_record_of_another_instance_removes_nothing() {
    let dir = machine();
    run(dir.path(), &node_plan("1")).unwrap();
    let mut plan = plan_of(vec![file("/etc/containerd/config.toml", 0o644, "x")]);
    plan.summary.instance_id = "i-2".into();
    run(dir.path(), &plan).unwrap();
    let tree = tree(dir.path());
    assert!(tree.contains_key("etc/eks/kubelet/environment"));
    let record = Record::decode(&tree["var/lib/tenon/record.json"].1).unwrap();
    assert_eq!((record.instance_id.as_str(), record.files.len()), ("i-2", 1));
}

#[test]
fn row_44_state_of_a_newer_binary_is_not_touched() {
    let dir = machine();
    fs::create_dir_all(dir.path().join("var/lib/tenon")).unwrap();
    fs::write(dir.path().join("var/lib/tenon/record.json"), r#"{"schema": 99}"#).unwrap();
    let before = tree(dir.path());
    let problem = run(dir.path(), &node_plan("1")).unwrap_err();
    assert_eq!(problem.exit(), 12);
    let mut after = tree(dir.path());
    after.remove("run/tenon");
    assert_eq!(after, before);
}

#[test]
fn row_48_an_edited_file_can_be_kept_or_saved() {
    for (edited, body, backup) in [
        (Edited::Keep, "mine", false),
        (Edited::Overwrite, "/etc/containerd/config.toml 1\n", false),
        (Edited::Backup, "/etc/containerd/config.toml 1\n", true),
    ] {
        let dir = machine();
        run(dir.path(), &node_plan("1")).unwrap();
        let path = dir.path().join("etc/containerd/config.toml");
        fs::write(&path, "mine").unwrap();
        let options = Options { edited, ..Options::default() };
        let report = run_with(dir.path(), &node_plan("1"), &options, &|_| Ok(())).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), body, "{edited:?}");
        assert_eq!(dir.path().join("etc/containerd/config.toml.tenon-backup").exists(), backup);
        assert_eq!(report.warnings[0].problem.page.slug, "edited-file");
    }
}

#[test]
fn undo_brings_the_previous_generation_back_and_forth() {
    let dir = machine();
    run(dir.path(), &node_plan("1")).unwrap();
    let first = tree(dir.path());
    let mut plan = node_plan("2");
    plan.steps.remove(2);
    plan.steps.push(file("/etc/new", 0o600, "new"));
    run(dir.path(), &plan).unwrap();
    let second = tree(dir.path());
    let root = Root::open(dir.path()).unwrap();
    let go_back = || {
        let lock = Lock::take(&root, PATIENCE).unwrap();
        undo(&root, &lock, &plan_undo(&root).unwrap(), &Options::default()).unwrap();
    };
    // /run belongs to the boot, not to a generation; the state directory counts on.
    let same = |expected: &Entries| {
        let now = tree(dir.path());
        let lasting = |tree: &Entries| -> BTreeMap<_, _> {
            let ours = |name: &str| name.starts_with("run") || name.starts_with("var/lib/tenon");
            tree.iter()
                .filter(|(name, _)| !ours(name))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        };
        assert_eq!(lasting(&now), lasting(expected));
    };
    go_back();
    same(&first);
    go_back();
    same(&second);
    assert_eq!(load_record(&root).unwrap().unwrap().generation, 4);
}

#[test]
fn only_three_generations_are_kept() {
    let dir = machine();
    for version in ["1", "2", "3", "4", "5"] {
        run(dir.path(), &node_plan(version)).unwrap();
    }
    let kept = fs::read_dir(dir.path().join("var/lib/tenon/generations")).unwrap().count();
    assert_eq!(kept, 3);
    let nothing = plan_undo(&Root::open(machine().path()).unwrap()).unwrap_err();
    assert_eq!(nothing.page.code, "TN12003");
}
