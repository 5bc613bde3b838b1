//! `tenon image` from outside: exit codes, forms of answers, nothing written twice.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

fn tenon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon")).arg("image").args(arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A root of files and a plan for it.
struct Desk {
    place: TempDir,
}

impl Desk {
    fn new() -> Desk {
        let desk = Desk { place: tempfile::tempdir().unwrap() };
        let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        desk.write(
            "root/bin/sh",
            &[b"\x7fELF\x02\x01".as_slice(), &[0; 12], &[machine, 0]].concat(),
        );
        desk.write("root/etc/os-release", b"ID=debian\nVERSION_CODENAME=bookworm\n");
        desk.write("plan.json", plan("welcome\n").to_string().as_bytes());
        desk
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    fn write(&self, path: &str, body: &[u8]) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, body).unwrap();
    }

    fn run(&self, command: &str, more: &[&str]) -> Output {
        let (root, plan) = (self.at("root"), self.at("plan.json"));
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let mut words = vec![command.to_owned(), "--root".into(), path(&root)];
        if command == "apply" {
            words.extend(["--plan".into(), path(&plan)]);
        }
        words.extend(more.iter().map(|word| (*word).to_owned()));
        tenon(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn plan(content: &str) -> Value {
    let architecture = if cfg!(target_arch = "aarch64") { "aarch64" } else { "x86_64" };
    let fields = json!({"content": content, "mode": "0644"});
    let with = json!({"content": content, "mode": "0644", "owner": "root:root", "ifAbsent": false});
    json!({
        "schema": "tenon.image-plan/1", "name": "t", "family": "debian", "release": "bookworm",
        "arch": architecture, "kubernetes": "1.34.2", "profiles": ["t"], "exceptions": [],
        "resources": [{"kind": "file", "key": "/etc/motd", "fields": fields, "rules": ["r/1"],
                       "reasons": [{"feature": "t", "why": "w"}], "required": false}],
        "items": [{"act": "file", "key": "/etc/motd", "with": with, "from": ["file//etc/motd"]}],
    })
}

#[test]
fn apply_verify_and_seal_agree() {
    let desk = Desk::new();
    assert_eq!(code(&desk.run("verify", &[])), 12, "no plan in the root yet");
    let first = desk.run("apply", &["--output", "json"]);
    let answer: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(
        (&answer["schema"], &answer["changed"]),
        (&json!("tenon.image-apply/1"), &json!(true))
    );
    let second = desk.run("apply", &["--output", "json"]);
    let answer: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!((&answer["changed"], &answer["unchanged"]), (&json!(false), &json!(1)));

    assert_eq!(code(&desk.run("verify", &[])), 0);
    desk.write("root/etc/motd", b"go away\n");
    let verified = desk.run("verify", &["--output", "json"]);
    assert_eq!(code(&verified), 1);
    let answer: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((&answer["holds"], &answer["checks"][0]["rules"]), (&json!(false), &json!(["r/1"])));
    assert!(text(&desk.run("verify", &["--output", "junit"]).stdout).contains("failures=\"1\""));
    assert!(text(&desk.run("verify", &[]).stdout).contains("fail     file /etc/motd"));
    assert_eq!(code(&desk.run("verify", &["--only", "link"])), 0);

    assert_eq!(code(&desk.run("seal", &[])), 0);
    desk.write("root/root/.ssh/id_ed25519", b"-----BEGIN OPENSSH PRIVATE KEY-----\n");
    let sealed = desk.run("seal", &[]);
    assert_eq!(code(&sealed), 1);
    assert!(text(&sealed.stderr).contains("/root/.ssh/id_ed25519"));
}

#[test]
fn what_cannot_be_is_told_by_its_exit_code() {
    let desk = Desk::new();
    assert_eq!(code(&tenon(&["apply", "--plan", "x"])), 64, "the root is never guessed");
    assert_eq!(code(&desk.run("apply", &["--live"])), 6);
    desk.write("root/etc/os-release", b"ID=amzn\nVERSION_ID=2023\n");
    assert_eq!(code(&desk.run("apply", &[])), 6);
    let mut edited = plan("welcome\n");
    edited["items"][0]["with"]["content"] = json!("edited");
    desk.write("plan.json", edited.to_string().as_bytes());
    assert_eq!(code(&desk.run("apply", &[])), 3);
    let unknown =
        tenon(&["apply", "--root", desk.at("root").to_str().unwrap(), "--profile", "ciss"]);
    assert_eq!(code(&unknown), 3);
    assert!(text(&unknown.stderr).contains("cis"));
}
