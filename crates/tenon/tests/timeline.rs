//! `tenon timeline` from outside, on the saved timeline of a boot that really happened.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tenon_core::timeline::what_if;

fn saved() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/timeline.json")
}

fn tenon(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    command.arg("timeline").args(arguments).output().unwrap()
}

fn from(arguments: &[&str]) -> Output {
    let saved = saved();
    tenon(&[&["--from", saved.to_str().unwrap()], arguments].concat())
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_saved_timeline_is_shown_as_it_was() {
    let text = stdout(&from(&[]));
    assert!(text.contains("Ready after ") && text.contains("critical chain"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(stdout(&from(&["--output", "json"])), fs::read_to_string(saved()).unwrap());
}

#[test]
fn drawings_go_to_files_or_are_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let text = stdout(&from(&["--svg", &path("a.svg"), "--html", &path("a.html")]));
    assert!(text.contains("Ready after "), "the text is still the answer");
    let drawn = fs::read_to_string(path("a.svg")).unwrap();
    assert_eq!(stdout(&from(&["--svg", "-"])), drawn);
    assert!(fs::read_to_string(path("a.html")).unwrap().contains("default-src 'none'"));
    let committed = saved().with_file_name("timeline.svg");
    let same = fs::read_to_string(committed).unwrap() == drawn;
    assert!(same, "draw it again: cargo xtask e2e cluster --save-timeline");
    assert_eq!(from(&["--svg", "/none/a.svg"]).status.code(), Some(7));
}

#[test]
fn without_a_service_manager_the_advice_is_about_timelines() {
    let root = tempfile::tempdir().unwrap();
    let none = tenon(&["--root", root.path().to_str().unwrap()]);
    assert_eq!(none.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&none.stderr).contains("--from FILE"));
}

#[test]
fn an_estimate_says_that_it_is_one() {
    let guess = from(&["--what-if", "without=containerd.service", "--output", "json"]);
    let guess: Value = serde_json::from_str(&stdout(&guess)).unwrap();
    assert!(guess["estimate"]["savesUs"].as_i64().unwrap() > 0, "{}", guess["estimate"]);
    assert!(stdout(&from(&["--what-if", "no-cloud-init"])).contains("ESTIMATE"));
    let unknown = from(&["--what-if", "no-clout-init"]);
    assert_eq!(unknown.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean `no-cloud-init`?"));
}

#[test]
fn help_names_every_scenario() {
    let help = stdout(&tenon(&["--help"]));
    for scenario in what_if::SCENARIOS {
        let line = format!("  {:<17} {}", scenario.name, scenario.about);
        assert!(help.contains(&line), "{line} is missing in\n{help}");
    }
}

#[test]
fn nodes_are_put_side_by_side() {
    let saved = saved();
    let saved = saved.to_str().unwrap();
    let text = stdout(&tenon(&["--compare", saved, saved, saved]));
    assert!(text.starts_with("3 boots, median ") && !text.contains("outlier\n"), "{text}");
    let json = stdout(&tenon(&["--compare", saved, saved, "--output", "json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "tenon.timeline-compare/1");
    assert_eq!(tenon(&["--compare", saved]).status.code(), Some(64));
}

#[test]
fn what_is_no_timeline_and_where_none_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.json");
    fs::write(&file, "{\"schema\": \"tenon.plan/1\"}").unwrap();
    assert_eq!(tenon(&["--from", file.to_str().unwrap()]).status.code(), Some(5));
    assert_eq!(tenon(&["--from", "/none.json"]).status.code(), Some(7));
    let nobody = tenon(&["--root", dir.path().to_str().unwrap()]);
    assert_eq!(nobody.status.code(), Some(6));
}
