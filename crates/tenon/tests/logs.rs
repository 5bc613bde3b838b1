//! `tenon logs` from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn tenon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon")).arg("logs").args(arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A dead node's volume.
fn node(name: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "etc/os-release", "ID=amzn\nVERSION_ID=\"2023\"\n");
    write(root.path(), "etc/resolv.conf", "nameserver 10.0.0.2\n");
    write(
        root.path(),
        "etc/kubernetes/kubelet/config.json",
        &format!("{{\"name\": \"{name}\"}}\n"),
    );
    write(root.path(), "var/log/messages", "token=CANARY-1 said\nall is lost\n");
    root
}

/// Collects a volume; gives the bundle.
fn bundle(root: &TempDir, out: &TempDir, name: &str) -> PathBuf {
    let path = out.path().join(name);
    let root = root.path().to_str().unwrap();
    let output =
        tenon(&["collect", "--root", root, "--out", path.to_str().unwrap(), "--reproducible"]);
    assert_eq!(code(&output), 1, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout(&output), format!("{}\n", path.display()), "nothing else on standard output");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("kubelet/journal.log") && told.contains("TN01510"), "{told}");
    path
}

#[test]
fn a_volume_is_collected_shown_searched_and_compared() {
    let (good, bad, out) = (node("good"), node("bad"), tempfile::tempdir().unwrap());
    let (left, right) = (bundle(&good, &out, "l.tar.gz"), bundle(&bad, &out, "r.tar.gz"));
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 2, "nothing is left behind");
    let left = left.to_str().unwrap();
    let tree = stdout(&tenon(&["show", left]));
    assert!(tree.contains("logs/messages.txt") && tree.contains("not-applicable"), "{tree}");
    let item = tenon(&["show", left, "logs/messages.txt"]);
    assert_eq!(stdout(&item), "token=<redacted:key-value:1> said\nall is lost\n");
    assert_eq!(stdout(&tenon(&["show", left, "/var/log/messages"])), stdout(&item));
    let missing = tenon(&["show", left, "kubelet/journal.log"]);
    assert_eq!(code(&missing), 3);
    let found = tenon(&["grep", left, "all is lost"]);
    assert_eq!(stdout(&found), "logs/messages.txt:2: all is lost\n");
    assert_eq!(code(&tenon(&["grep", left, "no such words"])), 1);
    assert_eq!(code(&tenon(&["grep", left, "all is lost", "--unit", "kubelet.service"])), 1);
    assert_eq!(code(&tenon(&["grep", left, "all is lost", "--unit", "kubelet"])), 1);
    assert_eq!(code(&tenon(&["grep", left, "all is lost", "--unit", "kublet"])), 64);
    let long = format!("{}\nthe second line\n", "x".repeat(200 << 10));
    write(good.path(), "var/log/messages", &long);
    let long = bundle(&good, &out, "long.tar.gz");
    let found = stdout(&tenon(&["grep", long.to_str().unwrap(), "the second line"]));
    assert_eq!(found, "logs/messages.txt:2: the second line\n");
    let differs = stdout(&tenon(&["diff", left, right.to_str().unwrap()]));
    assert!(differs.contains("kubelet/config/config.json\n  - {\"name\": \"good\"}"), "{differs}");
    let same = stdout(&tenon(&["diff", left, left]));
    assert!(same.starts_with("no difference"), "{same}");
}

#[test]
fn standard_output_carries_the_bundle_alone() {
    let root = node("x");
    let output = tenon(&[
        "collect",
        "--root",
        root.path().to_str().unwrap(),
        "--out",
        "-",
        "--only",
        "logs",
    ]);
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.starts_with(&[0x1f, 0x8b]));
    assert!(!output.stdout.windows(6).any(|six| six == b"CANARY"));
}

#[test]
fn json_says_where_the_bundle_is_and_progress_is_one_object_per_item() {
    let (root, out) = (node("x"), tempfile::tempdir().unwrap());
    let output = tenon(&[
        "collect",
        "--root",
        root.path().to_str().unwrap(),
        "--out",
        out.path().to_str().unwrap(),
        "--only",
        "logs,identity/os-release",
        "--output",
        "json",
        "--progress",
        "json",
    ]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["schema"], "tenon.logs-collect/1");
    assert!(Path::new(answer["path"].as_str().unwrap()).starts_with(out.path()));
    let told = String::from_utf8(output.stderr).unwrap();
    let objects = told.lines().filter(|line| line.starts_with('{'));
    let paths: Vec<_> =
        objects.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect();
    assert_eq!(paths.len(), 9, "{told}");
    assert!(paths.iter().all(|it| it["status"].is_string() && it["path"].is_string()));
}

#[test]
fn every_entry_is_listed_with_cap_and_sensitivity() {
    let text = stdout(&tenon(&["list", "--only", "kubelet"]));
    assert!(text.contains("kubelet/journal.log\n    journal unit=kubelet.service\n    up to 32 MiB, tail kept, 30 s, sensitivity medium, required\n"), "{text}");
    let list: serde_json::Value =
        serde_json::from_slice(&tenon(&["list", "--output", "json"]).stdout).unwrap();
    assert_eq!(list["schema"], "tenon.logs-list/1");
    assert!(list["items"].as_array().unwrap().len() > 150);
}

#[test]
fn a_users_entries_are_taken_and_commands_need_a_word() {
    let (root, out) = (node("x"), tempfile::tempdir().unwrap());
    write(root.path(), "srv/app.log", "hello\n");
    write(
        root.path(),
        "etc/tenon/collect.d/app.toml",
        "[app]\nlog = { file = \"/srv/app.log\" }\n",
    );
    let (at, to) = (root.path().to_str().unwrap(), out.path().join("b.tar.gz"));
    let collect = ["collect", "--root", at, "--only", "user", "--out", to.to_str().unwrap()];
    assert_eq!(code(&tenon(&collect)), 0);
    assert_eq!(stdout(&tenon(&["show", to.to_str().unwrap(), "user/log.log"])), "hello\n");
    write(root.path(), "etc/tenon/collect.d/run.toml", "[app]\nrun = { command = [\"id\"] }\n");
    assert_eq!(code(&tenon(&collect)), 3);
    let allowed = [&collect[..], &["--allow-commands"]].concat();
    assert_eq!(code(&tenon(&allowed)), 0);
}

#[test]
fn wrong_words_and_wrong_files_have_their_codes() {
    let out = tempfile::tempdir().unwrap();
    let noise = out.path().join("noise");
    fs::write(&noise, "noise").unwrap();
    for (arguments, expected) in [
        (vec!["collect", "--only", "nope"], 64),
        (vec!["collect", "--since", "yesterday"], 64),
        (vec!["collect", "--no-redact", "--upload", "s3://bucket/key"], 64),
        (vec!["collect", "--upload", "ftp://x"], 64),
        (vec!["collect", "--upload", "s3://bucket/key", "--out", "-"], 64),
        (vec!["collect", "--format", "zst"], 64),
        (vec!["collect", "--out", "/no/such/x.tar.zst"], 64),
        (vec!["collect", "--out", "/no/such/x.ZIP"], 64),
        (vec!["collect", "--upload", "s3://bucket/x.tar.xz"], 64),
        (vec!["list", "--only", "kubelt"], 64),
        (vec!["show", noise.to_str().unwrap()], 3),
        (vec!["show", "/no/such/file"], 7),
        (vec!["collect", "--root", "/no/such/dir"], 7),
    ] {
        let output = tenon(&arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(code(&output), expected, "{arguments:?} {told}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let root = node("x");
    let nowhere = [
        "collect",
        "--root",
        root.path().to_str().unwrap(),
        "--only",
        "logs",
        "--out",
        "/proc/x.tar.gz",
    ];
    assert_eq!(code(&tenon(&nowhere)), 7);
}

/// The full size, 2 GiB, is measured by hand; what matters is that logs are never held.
#[test]
fn memory_does_not_grow_with_the_logs() {
    let (root, out) = (node("x"), tempfile::tempdir().unwrap());
    let line = "2026-11-15T10:00:00Z stderr F a line of a log, as long as they usually are\n";
    let log = line.repeat((32 << 20) / line.len());
    for file in ["messages", "syslog", "cron", "dnf.log", "kube-proxy.log"] {
        write(root.path(), &format!("var/log/{file}"), &log);
    }
    let bundle = out.path().join("b.tar.gz");
    let limited = Command::new("sh")
        .args(["-c", "ulimit -d 32768; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tenon")])
        .args(["logs", "collect", "--only", "logs", "--max-item", "1MiB", "--jobs", "4", "--root"])
        .arg(root.path())
        .arg("--out")
        .arg(&bundle)
        .output()
        .unwrap();
    assert_eq!(code(&limited), 0, "{}", String::from_utf8_lossy(&limited.stderr));
    let manifest = tenon(&["show", bundle.to_str().unwrap(), "--output", "json"]);
    let manifest: serde_json::Value = serde_json::from_slice(&manifest.stdout).unwrap();
    assert!(manifest["totals"]["bytes"].as_u64().unwrap() > 5 << 20);
}
