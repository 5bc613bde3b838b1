//! `tenon doctor` from outside: exit codes, what is on standard output, a bundle of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn tenon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon")).args(arguments).output().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => assert!(fs::copy(&path, &target).is_ok()),
        }
    }
}

/// A volume whose `/var` may not run programs.
fn volume() -> tempfile::TempDir {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/doctor");
    let root = tempfile::tempdir().unwrap();
    copy(&fixtures.join("base/root"), root.path());
    copy(&fixtures.join("31-hardening/root"), root.path());
    root
}

#[test]
fn a_cause_is_exit_1_with_the_verdict_first() {
    let root = volume();
    let output = tenon(&["doctor", "--root", root.path().to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("NOT JOINED   the image does not let"), "{text}");
    assert!(text.contains("\n  cause 31 ") && text.contains("\n  fix "), "{text}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn json_is_alone_on_standard_output() {
    let root = volume();
    let path = root.path().to_str().unwrap();
    let output = tenon(&["diagnose", "--root", path, "--output", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["schema"], "tenon.doctor/1");
    assert_eq!(answer["causes"][0]["id"], "doctor-31");
    assert_eq!(answer["source"]["path"], path);
}

#[test]
fn nothing_to_examine_is_exit_5() {
    let root = tempfile::tempdir().unwrap();
    let output = tenon(&["doctor", "--root", root.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8(output.stderr).unwrap().contains("TN05530"));
    let nowhere = root.path().join("nowhere");
    let output = tenon(&["doctor", "--root", nowhere.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn wrong_questions_are_refused() {
    for arguments in
        [&["--only", "wrong-c"][..], &["--since", "noon"], &["--bundle", "x", "--root", "/y"]]
    {
        let output = tenon(&[&["doctor"], arguments].concat());
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
    }
}

#[test]
fn a_bundle_carries_the_verdict_and_gives_it_again() {
    let root = volume();
    let path = root.path().to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.tar.gz");
    let file = file.to_str().unwrap();
    tenon(&["logs", "collect", "--root", path, "--only", "kubelet,probes,verdict", "--out", file]);
    let verdict = |arguments: &[&str]| -> Value {
        let output = tenon(&[&["doctor", "--output", "json"], arguments].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (here, there) = (verdict(&["--root", path]), verdict(&["--bundle", file]));
    for key in ["state", "causes", "steps", "node"] {
        assert_eq!(here[key], there[key], "{key}");
    }
    let packed = tenon(&["logs", "show", file, "verdict/doctor.json"]);
    let packed: Value = serde_json::from_slice(&packed.stdout).unwrap();
    assert_eq!(packed["causes"], here["causes"]);
}

#[test]
fn every_cause_has_a_page() {
    for number in 1..=43 {
        let output = tenon(&["explain", &format!("doctor-{number:02}")]);
        assert!(output.status.success(), "{number}");
    }
}
