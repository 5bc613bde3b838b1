use super::fake::{Fake, FakeUnit, active, inactive};
use super::*;

fn manager(dir: &tempfile::TempDir) -> Manager {
    Manager::connect(&Root::open(dir.path()).unwrap()).unwrap()
}

#[test]
fn a_job_is_waited_for_by_its_own_path() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::serve(dir.path());
    fake.add("a.service", FakeUnit::good());
    fake.add("b.service", FakeUnit { job: "failed", ..FakeUnit::good() });
    let manager = manager(&dir);
    let second = Duration::from_secs(10);
    assert_eq!(manager.job(Verb::Start, "a.service", second), Ok(JobEnd::Result("done".into())));
    assert_eq!(
        manager.job(Verb::Restart, "b.service", second),
        Ok(JobEnd::Result("failed".into()))
    );
    assert_eq!(fake.log(), ["StartUnit a.service", "RestartUnit b.service"]);
}

#[test]
fn row_74_a_job_that_does_not_end_meets_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    Fake::serve(dir.path()).add("a.service", FakeUnit { job: "", ..FakeUnit::good() });
    let end = manager(&dir).job(Verb::Start, "a.service", Duration::from_millis(60));
    assert_eq!(end, Ok(JobEnd::Deadline));
}

#[test]
fn the_state_of_a_unit_is_read_whole() {
    let dir = tempfile::tempdir().unwrap();
    let state = UnitState {
        active: "failed".into(),
        result: "exit-code".into(),
        exit_status: 3,
        restarts: 2,
        needs_reload: true,
        active_since_us: 7,
        ..active()
    };
    let unit = FakeUnit { state: state.clone(), ..FakeUnit::default() };
    Fake::serve(dir.path()).add("a.service", unit);
    let manager = manager(&dir);
    assert_eq!(manager.state("a.service").unwrap(), state);
    assert_eq!(
        state.words(),
        "failed (running), result exit-code, exit status 3, restarted 2 times"
    );
    assert_eq!(manager.state("none.service").unwrap().load, "not-found");
    assert!(!inactive().is_active());
}

#[test]
fn row_77_no_manager_is_a_clear_message() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    let problem = Manager::connect(&root).unwrap_err();
    assert_eq!((problem.exit(), problem.causes.len()), (6, 2));
    assert!(!is_running(&root));
}
