//! `tenon undo` from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

fn tenon(root: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["undo", "--root"])
        .arg(root.path())
        .args(arguments)
        .output()
        .unwrap()
}

/// A machine whose last run changed `/etc/a` and made `/etc/b`.
fn machine() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("etc")).unwrap();
    fs::create_dir_all(at("var/lib/tenon/generations")).unwrap();
    fs::write(at("etc/a"), "new").unwrap();
    fs::write(at("etc/b"), "new").unwrap();
    let record = |generation: u32| {
        format!(
            r#"{{"schema": 1, "version": "0", "instanceId": "i-1", "generation": {generation},
                "configHash": "", "planHash": "",
                "units": {{"kubelet.service": {{"inputHash": "x", "inputs": ["/etc/a"]}},
                           "other.service": {{"inputHash": "x", "inputs": ["/etc/c"]}}}}}}"#
        )
    };
    fs::write(at("var/lib/tenon/record.json"), record(2)).unwrap();
    let saved = format!(
        r#"{{"schema": 1, "number": 1, "instanceId": "i-1", "record": {},
            "files": {{"/etc/a": {{"was": "file", "mode": 384, "body": "b2xk"}},
                       "/etc/b": {{"was": "absent"}}}}}}"#,
        record(1)
    );
    fs::write(at("var/lib/tenon/generations/1"), saved).unwrap();
    root
}

#[test]
fn restores_removes_and_names_the_units() {
    let root = machine();
    let output = tenon(&root, &["--output", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["result"], "changed");
    assert_eq!(answer["restart"], serde_json::json!(["kubelet.service"]));
    assert_eq!(fs::read_to_string(root.path().join("etc/a")).unwrap(), "old");
    assert!(!root.path().join("etc/b").exists());
    // Back again, told as text; standard input is no terminal, so nothing is asked.
    let output = tenon(&root, &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("+ /etc/b"));
    assert_eq!(fs::read_to_string(root.path().join("etc/a")).unwrap(), "new");
}

#[test]
fn nothing_to_undo_is_exit_12() {
    let root = tempfile::tempdir().unwrap();
    let output = tenon(&root, &[]);
    assert_eq!(output.status.code(), Some(12));
    assert!(String::from_utf8_lossy(&output.stderr).contains("TN12003"));
}
