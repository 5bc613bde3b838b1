//! The engine over a temporary root: order, repeats, attempts, endings.

use std::fs;
use std::path::Path;

use tenon_core::codes::host::UNIT_FAILED;

use super::super::record::begin_anew;
use super::*;

const CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: first-master
  cluster: {name: prod, endpoint: \"https://api.example:6443\", kubernetesVersion: v1.34.2}
";

/// Two steps: each writes a file; `fault` makes the second one end badly.
#[derive(Default)]
struct Work {
    applied: Vec<&'static str>,
    fault: Option<Problem>,
}

fn check(name: &'static str, run: &Run<'_>) -> Result<Check, Problem> {
    Ok(match run.root.exists(&format!("/srv/{name}")) {
        true => Check::Satisfied("there already".into()),
        false => Check::Needed,
    })
}

fn apply_file(name: &'static str, work: &mut Work, run: &Run<'_>) -> Result<(), Problem> {
    work.applied.push(name);
    run.write(&format!("/srv/{name}"), 0o644, b"x")
}

const STEPS: &[Step<Work>] = &[
    Step {
        name: "one",
        check: |_, run| check("one", run),
        apply: |work, run| apply_file("one", work, run),
        verify: None,
    },
    Step {
        name: "two",
        check: |_, run| check("two", run),
        apply: |work, run| match work.fault.take() {
            Some(problem) => Err(problem),
            None => apply_file("two", work, run),
        },
        verify: None,
    },
];

fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "etc/tenon/config.yaml", CONFIG);
    put(dir.path(), "proc/sys/kernel/random/boot_id", "boot-1\n");
    put(dir.path(), "var/lib/tenon/trigger/bootstrap", "");
    put(dir.path(), "var/lib/tenon/trigger/addons", "");
    dir
}

fn put(root: &Path, path: &str, text: &str) {
    fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
    fs::write(root.join(path), text).unwrap();
}

fn order() -> Order {
    Order { stage: "bootstrap", config: paths::CONFIG.into(), forced: Vec::new() }
}

fn play(root: &Root, work: &mut Work) -> Result<bool, Problem> {
    match Run::open(root, &order()) {
        Ok(Opened::Run(mut run)) => {
            run.steps(STEPS, work)?;
            run.finish(Status::Done, "all there").map(|()| true)
        }
        Ok(Opened::Done { drift }) => Ok(drift),
        Err(Failure::Problem(problem)) => Err(problem),
        Err(Failure::Findings(findings)) => Err(findings[0].problem.clone()),
    }
}

fn transient() -> Problem {
    Problem::new(&UNIT_FAILED, "the unit did not come up")
}

#[test]
fn a_clean_run_leaves_state_marker_timeline_and_no_trigger() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    let mut work = Work::default();
    assert!(play(&root, &mut work).unwrap());
    assert_eq!(work.applied, ["one", "two"]);
    assert!(root.exists("/var/lib/tenon/done/bootstrap"));
    assert!(!root.exists("/var/lib/tenon/trigger/bootstrap"));
    let state = read_state(&root).unwrap();
    assert_eq!(state.status("bootstrap"), Status::Done);
    assert_eq!(state.attempts("bootstrap", "two"), 1);
    let timeline = fs::read_to_string(dir.path().join("var/lib/tenon/timeline.jsonl")).unwrap();
    let steps: Vec<Value> =
        timeline.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let steps: Vec<_> = steps.iter().map(|line| line["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["one", "two", "end"]);
    let second = play(&root, &mut work).unwrap();
    assert!(!second && work.applied.len() == 2, "the second run does nothing");
}

#[test]
fn a_transient_error_is_counted_and_a_repeat_continues() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    let mut work = Work { fault: Some(transient()), ..Work::default() };
    let problem = play(&root, &mut work).unwrap_err();
    assert_eq!(problem.exit(), 8);
    let state = read_state(&root).unwrap();
    assert_eq!(state.status("bootstrap"), Status::Running);
    assert_eq!(state.attempts("bootstrap", "two"), 1);
    assert!(root.exists("/var/lib/tenon/trigger/bootstrap"), "the trigger stays for the repeat");
    play(&root, &mut work).unwrap();
    assert_eq!(work.applied, ["one", "two"], "step one was not repeated");
}

#[test]
fn the_twentieth_failure_blocks_and_only_a_reset_reopens() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    let mut exits = Vec::new();
    for _ in 0..20 {
        let mut work = Work { fault: Some(transient()), ..Work::default() };
        exits.push(play(&root, &mut work).unwrap_err().exit());
    }
    assert_eq!((exits[18], exits[19]), (8, 12));
    assert!(!root.exists("/var/lib/tenon/trigger/bootstrap"));
    let issue = fs::read_to_string(dir.path().join("etc/issue.d/90-tenon.issue")).unwrap();
    assert!(issue.contains("the unit did not come up"), "{issue}");
    let problem = play(&root, &mut Work::default()).unwrap_err();
    assert_eq!(problem.page.slug, "stage-blocked", "no fault any more, but the count stands");
    update(&root, |state| state.forget("bootstrap")).unwrap();
    play(&root, &mut Work::default()).unwrap();
    assert!(!root.exists("/etc/issue.d/90-tenon.issue"));
}

#[test]
fn a_permanent_error_blocks_at_once_and_waiting_is_no_attempt() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    let waiting = Problem::new(&pages::WAITING_INPUTS, "no bundle yet");
    let mut work = Work { fault: Some(waiting), ..Work::default() };
    assert_eq!(play(&root, &mut work).unwrap_err().exit(), 9);
    let state = read_state(&root).unwrap();
    assert_eq!(
        (state.status("bootstrap"), state.attempts("bootstrap", "two")),
        (Status::Waiting, 0)
    );
    work.fault = Some(Problem::new(&pages::WRONG_DIGEST, "the digest differs"));
    assert_eq!(play(&root, &mut work).unwrap_err().exit(), 3);
    assert_eq!(read_state(&root).unwrap().status("bootstrap"), Status::Blocked);
    assert!(!root.exists("/var/lib/tenon/trigger/bootstrap"));
    assert!(!root.exists("/var/lib/tenon/trigger/addons"), "its service requires this one");
    // Once the cause is gone a run by hand succeeds.
    play(&root, &mut Work::default()).unwrap();
}

#[test]
fn state_and_marker_are_mended_or_refused() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    play(&root, &mut Work::default()).unwrap();
    fs::remove_file(dir.path().join("var/lib/tenon/done/bootstrap")).unwrap();
    play(&root, &mut Work::default()).unwrap();
    assert!(root.exists("/var/lib/tenon/done/bootstrap"), "done without marker: written again");
    update(&root, |state| state.forget("bootstrap")).unwrap();
    let problem = play(&root, &mut Work::default()).unwrap_err();
    assert_eq!(problem.page.slug, "marker-by-hand");
}

#[test]
fn a_damaged_state_is_moved_aside_and_stops_the_stage() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    put(dir.path(), "var/lib/tenon/state.json", "{\"schema\": 1, ");
    assert_eq!(play(&root, &mut Work::default()).unwrap_err().exit(), 12);
    let names = root.list("/var/lib/tenon").unwrap();
    assert!(names.iter().any(|name| name.starts_with("state.json.corrupt-")), "{names:?}");
    let again = play(&root, &mut Work::default()).unwrap_err();
    assert_eq!(again.page.slug, "stage-state-corrupt", "moved aside is not a first run");
    begin_anew(&root).unwrap();
    assert!(play(&root, &mut Work::default()).unwrap(), "a person began anew");
}

#[test]
fn a_second_process_is_told_who_holds_the_stage() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    let held = lock(&root, "bootstrap").unwrap();
    let problem = play(&root, &mut Work::default()).unwrap_err();
    assert_eq!(problem.exit(), 11);
    assert!(problem.what.contains(&std::process::id().to_string()), "{}", problem.what);
    drop(held);
    play(&root, &mut Work::default()).unwrap();
}

#[test]
fn changed_inputs_after_the_end_are_drift_and_another_machine_is_refused() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    put(dir.path(), "etc/machine-id", "aaaa\n");
    play(&root, &mut Work::default()).unwrap();
    put(dir.path(), "etc/tenon/config.yaml", &CONFIG.replace("prod", "test"));
    assert!(play(&root, &mut Work::default()).unwrap(), "drift");
    update(&root, |state| state.forget("bootstrap")).unwrap();
    fs::remove_file(dir.path().join("var/lib/tenon/done/bootstrap")).unwrap();
    put(dir.path(), "etc/machine-id", "bbbb\n");
    let problem = play(&root, &mut Work::default()).unwrap_err();
    assert_eq!(problem.page.slug, "state-of-another-machine");
}

#[test]
fn a_bad_config_takes_the_trigger_away_and_tells_the_console() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    put(dir.path(), "etc/tenon/config.yaml", &CONFIG.replace("role:", "rule:"));
    assert_eq!(play(&root, &mut Work::default()).unwrap_err().exit(), 3);
    assert!(!root.exists("/var/lib/tenon/trigger/bootstrap"), "its path would fire without end");
    let issue = fs::read_to_string(dir.path().join("etc/issue.d/90-tenon.issue")).unwrap();
    assert!(issue.contains("spec.r"), "{issue}");
    put(dir.path(), "etc/tenon/config.yaml", CONFIG);
    play(&root, &mut Work::default()).unwrap();
    assert!(!root.exists("/etc/issue.d/90-tenon.issue"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(8))]

    /// Whatever goes wrong in between, the marker is never ahead of the effects, and the end is
    /// that of a run without a fault.
    #[test]
    fn any_sequence_of_faults_ends_like_a_clean_run(faults in proptest::collection::vec(0..4_u8, 0..10)) {
        let dir = machine();
        let root = Root::open(dir.path()).unwrap();
        for fault in faults {
            let fault = match fault {
                0 => Some(transient()),
                1 => Some(Problem::new(&pages::WAITING_INPUTS, "not yet")),
                2 => Some(Problem::new(&pages::WRONG_DIGEST, "wrong")),
                // The effect of a step is lost, as after a restored disk.
                _ => {
                    let _ = fs::remove_file(dir.path().join("srv/one"));
                    Some(transient())
                }
            };
            let done_before = root.exists(&paths::done("bootstrap"));
            let _ = play(&root, &mut Work { fault, ..Work::default() });
            let marked = root.exists(&paths::done("bootstrap"));
            assert!(done_before || !marked || root.exists("/srv/two"), "the marker is ahead");
        }
        play(&root, &mut Work::default()).unwrap();
        assert_eq!(read_state(&root).unwrap().status("bootstrap"), Status::Done);
        assert!(root.exists("/srv/one") && root.exists("/srv/two"));
        assert!(!root.exists("/var/lib/tenon/trigger/bootstrap"));
    }
}
