//! `tenon simulate fleet` from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn tenon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon")).args(arguments).output().unwrap()
}

fn answer(arguments: &[&str]) -> Value {
    let output = tenon(&[&["simulate", "fleet", "--output", "json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Saves the plan of a golden case and gives the calls that are counted in it.
fn calls_of_case(case: &str, beside: &Path) -> Value {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(case);
    let (facts, config) = (golden.join("facts.json"), golden.join("config.yaml"));
    let (facts, config) = (facts.to_str().unwrap(), config.to_str().unwrap());
    let root = beside.to_str().unwrap();
    let plan = tenon(&["plan", "--facts", facts, "-c", config, "--root", root, "--output", "json"]);
    let file = beside.join(format!("{case}.json"));
    std::fs::write(&file, plan.stdout).unwrap();
    let mut answer = answer(&["--nodes", "100", "--from", file.to_str().unwrap()]);
    answer["fleet"]["calls"].take()
}

#[test]
fn a_plan_says_how_many_calls_its_nodes_make() {
    let beside = tempfile::tempdir().unwrap();
    assert_eq!(calls_of_case("plain", beside.path()), 0);
    assert_eq!(calls_of_case("cluster-described", beside.path()), 1);
}

#[test]
fn options_reach_the_simulation_and_the_answer_is_the_same_again() {
    let rush = ["--nodes", "2000", "--ramp", "30s", "--calls", "2", "--background", "5"];
    let first = answer(&rush);
    assert_eq!(first, answer(&rush));
    assert_eq!(first["fleet"]["rampMs"], 30_000);
    assert_eq!(first["bounds"]["completeS"], 260);
    assert_ne!(first["delayMs"], answer(&[&rush[..], &["--seed", "2"]].concat())["delayMs"]);
    assert_eq!(answer(&["--nodes", "2000", "--calls", "0"])["delayMs"]["p99"], 0);
}

#[test]
fn the_picture_goes_where_it_is_told() {
    let beside = tempfile::tempdir().unwrap();
    let file = beside.path().join("joins.svg");
    let drawn = tenon(&["simulate", "fleet", "--nodes", "50", "--svg", file.to_str().unwrap()]);
    assert!(String::from_utf8(drawn.stdout).unwrap().starts_with("50 nodes in 60 s, 1 call each"));
    let picture = std::fs::read(&file).unwrap();
    assert_eq!(tenon(&["simulate", "fleet", "--nodes", "50", "--svg", "-"]).stdout, picture);
    let nowhere = tenon(&["simulate", "fleet", "--nodes", "50", "--svg", "/proc/x.svg"]);
    assert_eq!(nowhere.status.code(), Some(7));
}
