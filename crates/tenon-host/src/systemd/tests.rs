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

/// Against a real systemd, whose private socket is at `run/systemd/private` below the root that
/// the variable names, with the units that the lab sets up.
#[test]
#[ignore = "needs a real systemd: set TENON_TEST_MANAGER_ROOT"]
fn a_real_manager_speaks_the_same_words() {
    let root = std::env::var("TENON_TEST_MANAGER_ROOT").unwrap();
    let manager = Manager::connect(&Root::open(std::path::Path::new(&root)).unwrap()).unwrap();
    let limit = Duration::from_secs(10);
    let job = |verb, unit: &str, limit| manager.job(verb, unit, limit);
    let result = |word: &str| Ok(JobEnd::Result(word.to_owned()));
    manager.reload().unwrap();
    assert_eq!(job(Verb::Start, "good.service", limit), result("done"));
    let first = manager.state("good.service").unwrap();
    assert!(first.is_active() && first.restarts == 0 && first.active_since_us > 0, "{first:?}");
    assert_eq!(job(Verb::Restart, "good.service", limit), result("done"));
    let second = manager.state("good.service").unwrap();
    assert!(second.active_since_us > first.active_since_us);
    assert_eq!(job(Verb::Stop, "good.service", limit), result("done"));
    assert!(!manager.state("good.service").unwrap().is_active());
    assert_eq!(job(Verb::Start, "bad.service", limit), result("failed"));
    let bad = manager.state("bad.service").unwrap();
    assert_eq!(
        (bad.active.as_str(), bad.result.as_str(), bad.exit_status),
        ("failed", "exit-code", 1)
    );
    manager.reset_failed("bad.service").unwrap();
    assert_eq!(manager.state("bad.service").unwrap().active, "inactive");
    assert_eq!(job(Verb::Start, "slow.service", Duration::from_millis(200)), Ok(JobEnd::Deadline));
    assert_eq!(manager.state("masked.service").unwrap().load, "masked");
    assert_eq!(manager.state("none.service").unwrap().load, "not-found");
    let _ = job(Verb::Start, "loop.service", limit).unwrap();
    let end = Instant::now() + limit;
    while manager.state("loop.service").unwrap().restarts < 2 {
        assert!(Instant::now() < end, "a crash loop is counted");
        std::thread::sleep(stop::SLICE);
    }
    let _ = job(Verb::Stop, "loop.service", limit).unwrap();
    // The counter starts again with a start that was asked for.
    let _ = job(Verb::Start, "loop.service", limit).unwrap();
    assert!(manager.state("loop.service").unwrap().restarts <= 1);
    let _ = job(Verb::Stop, "loop.service", limit).unwrap();
}
