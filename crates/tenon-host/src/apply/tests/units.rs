//! Units against a manager that does what each test says.

use std::io::{Read, Write};
use std::net::TcpListener;

use tempfile::TempDir;
use tenon_core::plan::record::UnitMark;

use super::*;
use crate::systemd::fake::{Fake, FakeUnit, active, inactive};

fn machine() -> (TempDir, Fake) {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::serve(dir.path());
    (dir, fake)
}

fn unit(name: &str) -> Unit {
    Unit {
        name: name.into(),
        verb: UnitVerb::EnsureFresh,
        inputs: Vec::new(),
        deadline: Duration::from_secs(10),
        ready: Ready::Job,
        requires: Vec::new(),
    }
}

fn need(stale: Option<&str>) -> UnitNeed {
    UnitNeed {
        unit: String::new(),
        mark: UnitMark { input_hash: String::new(), inputs: Vec::new() },
        stale: stale.map(str::to_owned),
        newest_input_us: None,
    }
}

/// A journal that says one line, whatever it is asked.
fn options(dir: &TempDir) -> Options {
    let program = dir.path().join("journal");
    std::fs::write(&program, "#!/bin/sh\necho last words of $2\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    Options { journal_program: program.display().to_string(), ..Options::default() }
}

fn ensure(dir: &TempDir, options: &Options, unit: &Unit) -> Result<Outcome, Problem> {
    let root = Root::open(dir.path()).unwrap();
    Units::new(&root, options).ensure(unit, &need(Some("its file changed")))
}

fn failing(state: UnitState, job: &'static str) -> FakeUnit {
    FakeUnit { after: state, job, ..FakeUnit::good() }
}

#[test]
fn row_73_a_unit_that_does_not_come_up_ends_with_its_last_words() {
    let (dir, fake) = machine();
    let state = UnitState {
        active: "failed".into(),
        sub: "failed".into(),
        result: "exit-code".into(),
        exit_status: 1,
        ..active()
    };
    fake.add("containerd.service", failing(state, "failed"));
    let problem = ensure(&dir, &options(&dir), &unit("containerd.service")).unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (8, "TN08001"));
    assert!(problem.what.contains("exit status 1"), "{}", problem.what);
    assert_eq!(problem.details, ["last words of containerd.service"]);
}

#[test]
fn row_74_a_slow_unit_meets_its_deadline() {
    let (dir, fake) = machine();
    fake.add("containerd.service", failing(inactive(), ""));
    let options = Options { unit_timeout: Some(Duration::from_millis(60)), ..options(&dir) };
    let problem = ensure(&dir, &options, &unit("containerd.service")).unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (9, "TN09002"));
    assert!(!problem.details.is_empty());
}

#[test]
fn row_75_a_unit_that_restarts_by_itself_is_a_crash_loop() {
    for state in [
        UnitState { restarts: 1, ..active() },
        UnitState { active: "activating".into(), sub: "auto-restart".into(), ..active() },
    ] {
        let (dir, fake) = machine();
        fake.add("containerd.service", failing(state, "done"));
        let problem = ensure(&dir, &options(&dir), &unit("containerd.service")).unwrap_err();
        assert_eq!((problem.exit(), problem.page.code), (8, "TN08004"));
    }
}

#[test]
fn rows_76_and_106_an_active_kubelet_is_up_when_its_health_port_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let answers = ["503 Service Unavailable", "200 OK"];
        for (stream, status) in listener.incoming().zip(answers) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
        }
    });
    let kubelet = Unit { ready: Ready::KubeletHealth { port }, ..unit("kubelet.service") };
    let (dir, fake) = machine();
    fake.add("kubelet.service", FakeUnit::good());
    let outcome = ensure(&dir, &options(&dir), &kubelet).unwrap();
    assert_eq!(outcome.verb, Some(Verb::Start));
    assert!(outcome.warning.is_none());
    // Nobody listens any more: a kubelet that crashes meanwhile is a failure …
    fake.add("kubelet.service", FakeUnit { crashes: 1, ..FakeUnit::good() });
    let problem = ensure(&dir, &options(&dir), &kubelet).unwrap_err();
    assert_eq!(problem.page.code, "TN08004");
    // … and one that does not is a warning.
    fake.add("kubelet.service", FakeUnit::good());
    let options = Options { unit_timeout: Some(Duration::from_millis(300)), ..options(&dir) };
    let warning = ensure(&dir, &options, &kubelet).unwrap().warning.unwrap();
    assert_eq!(warning.problem.page.code, "TN09003");
}

#[test]
fn a_unit_without_a_health_port_must_stay_active() {
    let stable = Unit { ready: Ready::StableActive, ..unit("kubelet.service") };
    let (dir, fake) = machine();
    let options = Options { unit_timeout: Some(Duration::from_millis(100)), ..options(&dir) };
    fake.add("kubelet.service", FakeUnit::good());
    assert!(ensure(&dir, &options, &stable).is_ok());
    fake.add("kubelet.service", FakeUnit { crashes: 1, ..FakeUnit::good() });
    assert_eq!(ensure(&dir, &options, &stable).unwrap_err().exit(), 8);
}

#[test]
fn row_78_masked_and_absent_units_are_named() {
    let (dir, fake) = machine();
    let masked = UnitState { load: "masked".into(), ..inactive() };
    fake.add("kubelet.service", FakeUnit { state: masked, ..FakeUnit::default() });
    let problem = ensure(&dir, &options(&dir), &unit("kubelet.service")).unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (8, "TN08002"));
    assert!(problem.fix_text().contains("systemctl unmask kubelet.service"));
    let problem = ensure(&dir, &options(&dir), &unit("none.service")).unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (8, "TN08003"));
    assert!(fake.log().is_empty());
}

#[test]
fn a_unit_waits_for_what_it_requires() {
    let (dir, fake) = machine();
    fake.add("kubelet.service", FakeUnit::good()).add("containerd.service", FakeUnit::good());
    let kubelet = Unit { requires: vec!["containerd.service".into()], ..unit("kubelet.service") };
    let problem = ensure(&dir, &options(&dir), &kubelet).unwrap_err();
    assert_eq!(problem.page.code, "TN08005");
    assert!(fake.log().is_empty());
}

#[test]
fn what_happens_follows_verb_state_and_inputs() {
    let at = |us| UnitNeed { newest_input_us: Some(us), ..need(None) };
    let since = |us| UnitState { active_since_us: us, ..active() };
    let falling =
        || UnitState { active: "activating".into(), sub: "auto-restart".into(), ..active() };
    use UnitVerb::{EnsureFresh, RestartOnChange, Start};
    for (verb, need, state, expected) in [
        (EnsureFresh, need(None), active(), None),
        (EnsureFresh, need(Some("x")), active(), Some(Verb::Restart)),
        (EnsureFresh, need(None), inactive(), Some(Verb::Start)),
        // A start would wait until the manager's own restart is due.
        (EnsureFresh, need(None), falling(), Some(Verb::Restart)),
        (Start, need(None), falling(), Some(Verb::Restart)),
        (EnsureFresh, at(20), since(10), Some(Verb::Restart)),
        (EnsureFresh, at(10), since(20), None),
        // A clock that was set back: the file is from the future.
        (EnsureFresh, at(i64::MAX), since(20), None),
        (Start, need(Some("x")), active(), None),
        (Start, need(None), inactive(), Some(Verb::Start)),
        (RestartOnChange, need(Some("x")), active(), Some(Verb::Restart)),
        (RestartOnChange, need(Some("x")), inactive(), None),
        (RestartOnChange, at(10), since(20), None),
        (RestartOnChange, at(20), since(10), Some(Verb::Restart)),
    ] {
        let unit = Unit { verb, ..unit("a.service") };
        assert_eq!(decide(&unit, &need, &state), expected, "{verb:?} {need:?} {state:?}");
    }
}

#[test]
fn a_unit_whose_files_changed_is_reloaded_before_it_starts() {
    let (dir, fake) = machine();
    let state = UnitState { needs_reload: true, ..inactive() };
    fake.add("a.service", FakeUnit { state, ..FakeUnit::good() });
    ensure(&dir, &options(&dir), &unit("a.service")).unwrap();
    assert_eq!(fake.log(), ["Reload", "ResetFailedUnit a.service", "StartUnit a.service"]);
}
