//! `tenon plan`, `init` and `status` from outside, on a tree and with replayed facts.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn golden(case: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(case).join(name)
}

/// Runs a command of Tenon on a tree with the config and facts of a golden case.
fn tenon(root: &TempDir, case: &str, command: &str, arguments: &[&str]) -> Output {
    let mut tenon = Command::new(env!("CARGO_BIN_EXE_tenon"));
    tenon.arg(command).arg("--root").arg(root.path());
    if command != "status" {
        tenon.arg("--facts").arg(golden(case, "facts.json"));
        tenon.arg("-c").arg(golden(case, "config.yaml"));
    }
    tenon.args(arguments).output().unwrap()
}

fn init(root: &TempDir, case: &str, arguments: &[&str]) -> Output {
    let arguments: Vec<&str> = ["--skip", "run"].into_iter().chain(arguments.to_vec()).collect();
    tenon(root, case, "init", &arguments)
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", told(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Content by path of everything but Tenon's own state.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut todo) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found.retain(|name, _| !name.starts_with("var/lib/tenon/") && !name.starts_with("run/"));
    found
}

#[test]
fn plan_announces_what_init_does_and_the_second_run_has_nothing_to_do() {
    let root = tempfile::tempdir().unwrap();
    let before = tenon(&root, "plain", "plan", &["--exit-code"]);
    assert_eq!(before.status.code(), Some(2), "{}", told(&before));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "a plan writes nothing");
    let planned = json(&tenon(&root, "plain", "plan", &["--output", "json"]));
    let first = json(&init(&root, "plain", &["--output", "json"]));
    assert_eq!((&first["result"], &first["planHash"]), (&"changed".into(), &planned["planHash"]));
    let part = &first["timings"][0];
    assert!(part["part"].is_string() && part["elapsedMs"].is_number(), "{part}");
    assert_eq!(first["findings"], Value::Array(vec![]));
    let mut expected = tree(&golden("plain", "expect"));
    expected.remove("plan.txt");
    assert_eq!(tree(root.path()), expected);
    let second = json(&init(&root, "plain", &["--output", "json"]));
    assert_eq!(
        (&second["result"], &second["changes"]),
        (&"unchanged".into(), &Value::Array(vec![]))
    );
    let left = json(&tenon(&root, "plain", "plan", &["--output", "json"]));
    let paths: Vec<&Value> =
        left["changes"].as_array().unwrap().iter().map(|change| &change["path"]).collect();
    assert_eq!(paths, ["/run/nodeadm/init"], "the run phase is still to come");
}

#[test]
fn a_run_without_a_cache_path_says_nothing_about_a_cache() {
    let root = tempfile::tempdir().unwrap();
    let output = init(&root, "plain", &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!told(&output).to_lowercase().contains("cache"), "{}", told(&output));
}

#[test]
fn a_refused_config_leaves_the_tree_alone_and_exits_with_its_class() {
    for (case, exit) in
        [("reserved-cpus-conflict", 3), ("version-unreadable", 5), ("fips-refused", 6)]
    {
        let root = tempfile::tempdir().unwrap();
        let output = init(&root, case, &[]);
        assert_eq!(output.status.code(), Some(exit), "{case}: {}", told(&output));
        assert_eq!(tree(root.path()), BTreeMap::new(), "{case}");
    }
}

#[test]
fn row_80_the_warning_about_an_unknown_type_stays_in_status() {
    let root = tempfile::tempdir().unwrap();
    assert!(told(&init(&root, "instance-unknown", &[])).contains("unknown instance type"));
    let status = tenon(&root, "", "status", &[]);
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(text.contains("! TN03") && text.contains("unknown instance type"), "{text}");
    let status = json(&tenon(&root, "", "status", &["--output", "json"]));
    assert_eq!(status["warnings"].as_array().unwrap().len(), 1, "{status}");
    // A config that settles the limit ends the warning.
    init(&root, "plain", &[]);
    let status = json(&tenon(&root, "", "status", &["--output", "json"]));
    assert_eq!(
        (&status["warnings"], &status["drifted"]),
        (&Value::Array(vec![]), &Value::Array(vec![]))
    );
}

#[test]
fn row_46_the_identity_of_another_machine_goes_only_when_asked() {
    let root = tempfile::tempdir().unwrap();
    let pki = root.path().join("var/lib/kubelet/pki");
    fs::create_dir_all(&pki).unwrap();
    fs::write(pki.join("kubelet.crt"), "of another machine").unwrap();
    let output = init(&root, "identity-of-another-machine", &[]);
    assert!(told(&output).contains("TN12300"), "{}", told(&output));
    assert!(pki.exists());
    let output = init(&root, "identity-of-another-machine", &["--reset-identity"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(!pki.exists() && root.path().join("var/lib/kubelet/kubeconfig").exists());
}
