//! What a run tells the journal about its time.

use serde_json::Value;
use tenon_core::timeline::PHASES;
use tenon_host::simulator::faults::{Faults, Rule};

use crate::desk::{Desk, TENON, code, profile, stderr};

/// Makes the node's files as a service manager would have it, and gives the line about phases.
fn told(desk: &Desk, more: &[&str]) -> Option<Value> {
    let arguments = ["init", "--root", desk.root(), "--skip", "run"];
    let mut command = desk.command(TENON, &[&arguments[..], more].concat());
    let output = command.env("INVOCATION_ID", "0123").output().unwrap();
    let said = stderr(&output);
    let line = said.lines().find_map(|line| line.split_once(PHASES))?.1.to_owned();
    Some(serde_json::from_str(line.trim()).unwrap())
}

fn names(record: &Value) -> Vec<&str> {
    let spans = record["spans"].as_array().unwrap().iter();
    spans.map(|span| span["name"].as_str().unwrap()).collect()
}

#[test]
fn every_run_under_a_service_manager_tells_its_phases() {
    let desk = Desk::new();
    let first = told(&desk, &[]).unwrap();
    for name in ["metadata", "config", "machine", "plan", "write files"] {
        assert!(names(&first).contains(&name), "{name} is missing: {first}");
    }
    assert!(first["beginUs"].as_i64().unwrap() > 0);
    assert_eq!(first["instanceType"], "m6i.large");
    assert_eq!(first["launched"], "2025-01-01T00:00:00Z");
    // A run that changes nothing tells as much, and writes no file about it.
    let second = told(&desk, &[]).unwrap();
    assert_eq!(names(&second), names(&first));
    assert!(second["beginUs"].as_i64() > first["beginUs"].as_i64());
}

#[test]
fn a_run_that_stops_tells_how_far_it_came() {
    let refuses = Rule { status: Some(500), ..Rule::on("*") };
    let desk = Desk::of(&profile(), Faults::of([refuses]));
    let record = told(&desk, &["--imds-timeout", "300ms"]).unwrap();
    assert_eq!(names(&record), ["metadata"]);
    assert!(record["spans"][0]["lengthUs"].as_i64().unwrap() > 0, "{record}");
}

#[test]
fn nobody_else_is_told() {
    let desk = Desk::new();
    let output = desk.init(&[]);
    assert_eq!(code(&output), 0);
    assert!(!stderr(&output).contains(PHASES));
    assert_eq!(told(&desk, &["--quiet"]), None);
}
