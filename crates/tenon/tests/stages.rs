//! The stages from outside: what a person types, sees and gets as exit code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: first-master
  cluster: {name: prod, endpoint: \"https://api.example:6443\", kubernetesVersion: v1.34.2}
  node: {name: cp-1, ip: 10.0.0.4}
  assets: {source: push}
";

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Machine(tempfile::tempdir().unwrap());
        machine.put("etc/tenon/config.yaml", CONFIG);
        machine.put("proc/sys/kernel/random/boot_id", "boot-1\n");
        machine.put("etc/os-release", "ID=flatcar\nVERSION_ID=4593.1.0\n");
        machine.put("sys/fs/cgroup/cgroup.controllers", "");
        machine.program("kubelet", "Kubernetes v1.34.2");
        machine.program("containerd", "containerd x 1.7.20 y");
        machine
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, says: &str) {
        let path = format!("usr/bin/{name}");
        self.put(&path, &format!("#!/bin/sh\necho {says}\n"));
        fs::set_permissions(self.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn tenon(&self, arguments: &[&str]) -> Output {
        tenon_in(self.0.path(), &[&["--root", "."], arguments].concat())
    }

    fn exit(&self, arguments: &[&str]) -> i32 {
        self.tenon(arguments).status.code().unwrap()
    }

    fn bundle(&self) {
        self.put("bundle/addons/10.yaml", "kind: Namespace\n");
        assert_eq!(self.exit(&["stage", "assets", "--cluster", "prod", "--build", "bundle"]), 0);
    }
}

fn tenon_in(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon"))
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn from_an_empty_machine_to_the_open_gate() {
    let machine = Machine::new();
    assert_eq!(machine.exit(&["stage", "status"]), 1);
    assert_eq!(machine.exit(&["stage", "assets"]), 9, "nothing was sent yet");
    machine.bundle();
    assert_eq!(machine.exit(&["stage", "assets", "--import", "bundle"]), 0);
    assert_eq!(machine.exit(&["stage", "assets"]), 0);
    let preview = stdout(&machine.tenon(&["stage", "prepare", "--dry-run"]));
    assert!(preview.contains("kubelet-env       not run yet"), "{preview}");
    assert!(!machine.path("etc/kubernetes").exists(), "a dry run writes nothing");
    assert_eq!(stdout(&machine.tenon(&["stage", "prepare"])), "done\n");
    assert_eq!(stdout(&machine.tenon(&["stage", "prepare"])), "done before; nothing to do\n");
    let status = machine.tenon(&["stage", "status", "--output", "json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["schema"], "tenon.stage-status/1");
    assert_eq!(status["stages"][1]["status"], "done");
    assert_eq!(status["done"], false, "the control plane is not there yet");
    let timeline = stdout(&machine.tenon(&["stage", "status", "--timeline"]));
    assert!(timeline.contains("prepare   kubelet-env      done"), "{timeline}");
    let mode =
        fs::metadata(machine.path("etc/kubernetes/kubelet.env")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_blocked_stage_shows_cause_and_way_out_and_a_reset_opens_it() {
    let machine = Machine::new();
    machine.put("etc/tenon/config.yaml", &CONFIG.replace("source: push", "source: none"));
    machine.program("kubelet", "Kubernetes v1.36.0");
    assert_eq!(machine.exit(&["stage", "prepare"]), 6, "newer than the cluster");
    let status = stdout(&machine.tenon(&["stage", "status"]));
    for words in ["blocked", "kubelet v1.36.0", "next:", "`tenon stage reset prepare`"] {
        assert!(status.contains(words), "{words}: {status}");
    }
    assert!(!machine.path("etc/kubernetes/kubelet.env").exists());
    assert_eq!(machine.exit(&["stage", "reset", "prepare"]), 64, "not without --yes");
    assert_eq!(machine.exit(&["stage", "reset", "prepare", "--yes"]), 0);
    machine.program("kubelet", "Kubernetes v1.34.2");
    assert_eq!(machine.exit(&["stage", "prepare"]), 0);
}

#[test]
fn exit_codes_say_who_must_act() {
    let machine = Machine::new();
    machine.put("etc/tenon/config.yaml", &CONFIG.replace("role:", "rule:"));
    assert_eq!(machine.exit(&["stage", "prepare"]), 3);
    fs::remove_file(machine.path("etc/tenon/config.yaml")).unwrap();
    assert_eq!(machine.exit(&["stage", "prepare"]), 4);
    let machine = Machine::new();
    machine.put("var/lib/tenon/done/prepare", "");
    assert_eq!(machine.exit(&["stage", "prepare"]), 12, "a marker made by hand");
    machine.put("var/lib/tenon/pending/runtime-reset", "{}");
    assert_eq!(machine.exit(&["stage", "runtime-reset"]), 12);
    assert_eq!(machine.exit(&["stage", "assets", "--source", "ftp://x"]), 64);
}

#[test]
fn the_desk_writes_units_and_ignition_and_checks_the_config() {
    let machine = Machine::new();
    let config = "etc/tenon/config.yaml";
    assert_eq!(stdout(&machine.tenon(&["config", "check", "-c", config])), "config is valid\n");
    let units = stdout(&machine.tenon(&["units", "render", "-c", config, "--dir", "units"]));
    assert!(units.contains("systemctl enable tenon-assets.path"), "{units}");
    assert!(machine.path("units/kubelet.service").exists());
    let ignition = machine.tenon(&["ignition", "render", "-c", config, "--spec", "3.0"]);
    let ignition: Value = serde_json::from_slice(&ignition.stdout).unwrap();
    assert_eq!(ignition["ignition"]["version"], "3.0.0");
    assert_eq!(machine.exit(&["ignition", "render", "-c", config, "--spec", "3.9"]), 64);
    for command in ["ignition", "units"] {
        for role in ["master", "etcd"] {
            let refused = machine.tenon(&[command, "render", "-c", config, "--role", role]);
            assert_eq!(refused.status.code(), Some(3), "{command} {role}");
            assert!(refused.stdout.is_empty(), "{command} {role}");
        }
        assert_eq!(machine.exit(&[command, "render", "-c", config, "--role", "boss"]), 64);
    }
    let schema = machine.tenon(&["config", "schema", "--machine"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert!(schema["properties"]["spec"]["properties"]["controlPlane"].is_object());
    let field = stdout(&machine.tenon(&["explain", "spec.assets.retire"]));
    assert!(field.contains("`truncate`"), "{field}");
}

#[test]
fn a_damaged_state_is_no_first_run_until_a_person_says_so() {
    let machine = Machine::new();
    machine.put("var/lib/tenon/state.json", "{");
    assert_eq!(machine.exit(&["stage", "status"]), 12);
    assert_eq!(machine.exit(&["stage", "status"]), 12, "moved aside by the first look");
    assert_eq!(machine.exit(&["stage", "prepare", "--input-wait", "0s"]), 12);
    assert_eq!(machine.exit(&["stage", "reset", "prepare", "--yes"]), 0);
    assert_eq!(machine.exit(&["stage", "status"]), 1);
}

#[test]
fn a_stop_is_recorded_and_is_no_attempt() {
    let machine = Machine::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .current_dir(machine.0.path())
        .args(["--root", ".", "--quiet", "stage", "prepare"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let state = || fs::read_to_string(machine.path("var/lib/tenon/state.json")).unwrap_or_default();
    for _ in 0..500 {
        if state().contains("\"inputs\": 1") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(state().contains("\"inputs\": 1"), "the step began: {}", state());
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let state: Value = serde_json::from_str(&state()).unwrap();
    let prepare = &state["stages"]["prepare"];
    assert_eq!(prepare["status"], "waiting");
    assert_eq!(prepare["attempts"]["inputs"], 0, "{prepare}");
}

#[test]
fn a_packed_bundle_is_for_its_owner_alone() {
    let machine = Machine::new();
    machine.put("bundle/pki/ca.key", "key");
    machine.put("old.tar.gz", "was there, and open to all");
    for archive in ["new.tar.gz", "old.tar.gz"] {
        let line = ["stage", "assets", "--build", "bundle", "--archive", archive];
        assert_eq!(machine.exit(&line), 0);
        let mode = fs::metadata(machine.path(archive)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{archive}");
    }
    // The key above was open to all where it was written.
    assert_eq!(machine.exit(&["stage", "assets", "--import", "new.tar.gz"]), 0);
    let key = machine.path("var/lib/tenon/incoming/pki/ca.key");
    assert_eq!(fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn add_ons_from_a_directory_that_is_not_there_are_not_done() {
    let machine = Machine::new();
    assert_eq!(machine.exit(&["stage", "addons", "--dir", "/srv/addnos"]), 7);
    assert!(!machine.path("var/lib/tenon/state.json").exists(), "nothing has begun");
}

#[test]
fn the_nearest_command_is_named_and_a_refused_import_leaves_nothing() {
    let machine = Machine::new();
    let typo = machine.tenon(&["stage", "asset"]);
    assert_eq!(typo.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&typo.stderr).contains("did you mean `assets`?"));
    machine.bundle();
    machine.put("bundle/addons/10.yaml", "kind: Changed\n");
    let refused = machine.tenon(&["stage", "assets", "--import", "bundle"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(!String::from_utf8_lossy(&refused.stderr).contains("rejected"), "nothing is kept");
    assert_eq!(machine.exit(&["stage", "assets", "--import", "no-such-file"]), 7);
    assert!(!machine.path("var/lib/tenon/incoming.tmp").exists());
    assert!(!machine.path("var/lib/tenon/incoming").exists());
}
