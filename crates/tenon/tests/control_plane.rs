//! `tenon control-plane render` from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: first-master
  cluster: {name: lab, endpoint: \"https://api.example:6443\", kubernetesVersion: v1.34.10}
  node: {name: cp-1, ip: 10.0.0.4}
";

/// Renders below a directory of its own, with this config and these further words.
fn render(dir: &Path, config: &str, words: &[&str]) -> Output {
    fs::write(dir.join("machine.yaml"), config).unwrap();
    fs::create_dir_all(dir.join("root")).unwrap();
    Command::new(env!("CARGO_BIN_EXE_tenon"))
        .current_dir(dir)
        .args(["control-plane", "render", "--config", "machine.yaml", "--out", "out"])
        .args(["--root", "root"])
        .args(words)
        .output()
        .unwrap()
}

#[test]
fn every_file_is_written_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let output = render(dir.path(), CONFIG, &["--output", "json"]);
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["schema"], "tenon.control-plane-files/1");
    let files = answer["files"].as_array().unwrap();
    assert_eq!(files.len(), 8, "{files:?}");
    for file in files {
        let path = dir.path().join("out").join(file.as_str().unwrap().trim_start_matches('/'));
        assert!(fs::metadata(&path).unwrap().len() > 100, "{}", path.display());
    }
}

#[test]
fn another_version_and_patches_show_in_the_pods() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("patches")).unwrap();
    let patch = "metadata: {labels: {team: web}}\n";
    fs::write(dir.path().join("patches/kube-scheduler0+merge.yaml"), patch).unwrap();
    let words = ["--kubernetes-version", "v1.36.1", "--patches", "patches"];
    assert!(render(dir.path(), CONFIG, &words).status.success());
    let path = dir.path().join("out/etc/kubernetes/manifests/kube-scheduler.yaml");
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("kube-scheduler:v1.36.1") && text.contains("team: web"), "{text}");
}

#[test]
fn what_cannot_be_started_is_refused_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let form = format!("{CONFIG}  controlPlane: {{form: self-hosted}}\n");
    let patches = dir.path().join("bad");
    fs::create_dir(&patches).unwrap();
    fs::write(patches.join("kubelet.yaml"), "a: b\n").unwrap();
    for (config, words, said) in [
        (CONFIG, &["--kubernetes-version", "v1.32.0"][..], "TN03651"),
        (CONFIG, &["--kubernetes-version", "latest"], "TN03651"),
        (CONFIG, &["--patches", "bad"], "TN03652"),
        (form.as_str(), &[], "self-hosted"),
    ] {
        let output = render(dir.path(), config, words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{words:?}: {text}");
        assert!(text.contains(said), "{said} is not in {text}");
        assert!(!dir.path().join("out/etc").exists(), "{words:?} wrote files");
    }
}
