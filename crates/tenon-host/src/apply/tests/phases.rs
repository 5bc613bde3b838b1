//! Whole phases against a manager that only remembers what it was told.

use tenon_core::config::{Hook, HookRun, HookWork, OnFailure};
use tenon_core::plan::step::{HookStage, Output, Program, Ready, Unit, UnitVerb};

use super::*;
use crate::systemd::fake::{Fake, FakeUnit, active};

fn unit(name: &str, verb: UnitVerb, inputs: &[&str]) -> Unit {
    Unit {
        name: name.into(),
        verb,
        inputs: inputs.iter().map(ToString::to_string).collect(),
        deadline: Duration::from_secs(10),
        ready: Ready::Job,
        requires: Vec::new(),
    }
}

/// A plan with both daemons, a drop-in and the resolver.
fn plan(version: &str) -> Plan {
    let mut plan = node_plan(version);
    let drop_ins = "/etc/systemd/system/kubelet.service.d/";
    let reload = Action::Reload { inputs: vec![drop_ins.into()] };
    let resolved = unit(
        "systemd-resolved.service",
        UnitVerb::RestartOnChange,
        &["/run/systemd/resolved.conf.d/40-eks.conf"],
    );
    let containerd =
        unit("containerd.service", UnitVerb::EnsureFresh, &["/etc/containerd/config.toml"]);
    let mut kubelet =
        unit("kubelet.service", UnitVerb::EnsureFresh, &["/etc/eks/kubelet/environment", drop_ins]);
    kubelet.requires = vec!["containerd.service".into()];
    let marker = FileBody::new("/run/nodeadm/init", 0o644, "");
    plan.steps.push(Step::config(Action::Reload { inputs: vec![drop_ins.into()] }, "test"));
    plan.steps.push(Step::config(Action::Unit(resolved), "test"));
    plan.steps.push(Step::run(Action::File(marker), "test"));
    plan.steps.push(Step::run(reload, "test"));
    plan.steps.push(Step::run(Action::Unit(containerd), "test"));
    plan.steps.push(Step::run(Action::Unit(kubelet), "test"));
    plan
}

fn both(dir: &Path, plan: &Plan) -> Result<Report, Problem> {
    let root = Root::open(dir).unwrap();
    let lock = Lock::take(&root, PATIENCE)?;
    let options = Options { run_in_tree: true, ..Options::default() };
    let mut report = config_phase(&root, &lock, plan, &options)?;
    report.merge(run_phase(&root, &lock, plan, &options)?);
    Ok(report)
}

fn node() -> (TempDir, Fake) {
    let dir = machine();
    let fake = Fake::serve(dir.path());
    for name in ["containerd.service", "kubelet.service"] {
        fake.add(name, FakeUnit::good());
    }
    let running = FakeUnit { state: active(), ..FakeUnit::good() };
    fake.add("systemd-resolved.service", running);
    (dir, fake)
}

#[test]
fn a_node_comes_up_once_and_stays_up() {
    let (dir, fake) = node();
    let cloud_init = dir.path().join("run/cloud-init");
    fs::create_dir(&cloud_init).unwrap();
    fs::write(cloud_init.join("result.json"), "{}").unwrap();
    let report = both(dir.path(), &plan("1")).unwrap();
    let started = [
        "Reload",
        "ResetFailedUnit systemd-resolved.service",
        "RestartUnit systemd-resolved.service",
        "ResetFailedUnit containerd.service",
        "StartUnit containerd.service",
        "ResetFailedUnit kubelet.service",
        "StartUnit kubelet.service",
    ];
    assert_eq!(fake.log(), started);
    assert!(report.changed() && report.warnings.is_empty());
    assert!(dir.path().join("run/nodeadm/init").exists());
    // Row 42: the second run changes nothing and asks nothing of the manager but state.
    let before = tree(dir.path());
    let report = both(dir.path(), &plan("1")).unwrap();
    assert!(!report.changed(), "{:?}", report.changes);
    assert_eq!(fake.log(), started);
    assert_same(&tree(dir.path()), &before, "second run");
    fs::remove_file(cloud_init.join("result.json")).unwrap();
    let report = both(dir.path(), &plan("1")).unwrap();
    assert_eq!(report.warnings[0].problem.page.slug, "boot-under-way");
    fs::write(cloud_init.join("disabled"), "").unwrap();
    assert_eq!(both(dir.path(), &plan("1")).unwrap().warnings, [], "it will never finish");
}

#[test]
fn row_43_only_the_daemon_whose_input_changed_restarts() {
    let (dir, fake) = node();
    both(dir.path(), &plan("1")).unwrap();
    let mut changed = plan("1");
    changed.steps[3] = file("/etc/eks/kubelet/environment", 0o600, "other\n");
    both(dir.path(), &changed).unwrap();
    // As many times as one likes: the manager's limit of starts is for crashes.
    assert_eq!(fake.log()[7..], ["ResetFailedUnit kubelet.service", "RestartUnit kubelet.service"]);
}

#[test]
fn a_run_killed_between_its_files_and_its_units_still_restarts() {
    let (dir, fake) = node();
    both(dir.path(), &plan("1")).unwrap();
    let mut changed = plan("1");
    changed.steps[3] = file("/etc/eks/kubelet/environment", 0o600, "other\n");
    let root = Root::open(dir.path()).unwrap();
    // The config phase alone: every file is new, no unit was touched.
    let lock = Lock::take(&root, PATIENCE).unwrap();
    config_phase(&root, &lock, &changed, &Options::default()).unwrap();
    assert_eq!(fake.log().len(), 7);
    let report = run_phase(&root, &lock, &changed, &Options::default()).unwrap();
    assert_eq!(fake.log()[7..], ["ResetFailedUnit kubelet.service", "RestartUnit kubelet.service"]);
    assert_eq!(report.changes.len(), 1);
}

#[test]
fn row_98_a_config_phase_without_a_manager_opens_no_connection() {
    let dir = machine();
    let root = Root::open(dir.path()).unwrap();
    let lock = Lock::take(&root, PATIENCE).unwrap();
    assert!(config_phase(&root, &lock, &plan("1"), &Options::default()).unwrap().changed());
    // Row 77: the run phase needs one and says so.
    let problem = run_phase(&root, &lock, &plan("1"), &Options::default()).unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (6, "TN06006"));
}

#[test]
fn the_kubelet_is_not_started_when_containerd_does_not_come_up() {
    let (dir, fake) = node();
    fake.add("containerd.service", FakeUnit { job: "failed", ..FakeUnit::good() });
    assert_eq!(both(dir.path(), &plan("1")).unwrap_err().exit(), 8);
    assert!(!fake.log().contains(&"StartUnit kubelet.service".to_owned()));
}

#[test]
fn programs_and_hooks_leave_their_traces_and_run_once() {
    let dir = machine();
    let count = dir.path().join("count");
    let script = format!("echo x >> {}", count.display());
    let shell = |script: &str| vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
    let program = Program {
        argv: shell(&format!("{script}; echo ARRAY")),
        timeout: Duration::from_secs(10),
        unless_exists: Some("/etc/made".into()),
        stamp: true,
        stdout_to: Some("/.aws/mdadm.conf".into()),
        ..Program::default()
    };
    let hook = Hook {
        name: "mine".into(),
        work: HookWork::Argv(shell(&script)),
        timeout: Duration::from_secs(10),
        on_failure: OnFailure::Abort,
        run: HookRun::OncePerInstance,
    };
    let plan = plan_of(vec![
        Step::config(Action::Hook { stage: HookStage::PreBootstrap, hook: hook.clone() }, "test"),
        Step::config(Action::Hook { stage: HookStage::PostConfig, hook: hook.clone() }, "test"),
        Step::run(Action::Program(program), "test"),
    ]);
    both(dir.path(), &plan).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(".aws/mdadm.conf")).unwrap(), "ARRAY\n");
    assert!(!both(dir.path(), &plan).unwrap().changed());
    assert_eq!(fs::read_to_string(&count).unwrap(), "x\nx\n");
    // A hook before everything else is stamped even though no plan exists yet.
    let root = Root::open(dir.path()).unwrap();
    let lock = Lock::take(&root, PATIENCE).unwrap();
    let mut early = hook;
    early.name = "early".into();
    for changed in [true, false] {
        let hooks = std::slice::from_ref(&early);
        let options = Options { run_in_tree: true, ..Options::default() };
        let report = pre_bootstrap(&root, &lock, hooks, "i-1", &options).unwrap();
        assert_eq!(report.changed(), changed);
    }
    drop(lock);
    assert!(both(dir.path(), &plan).is_ok());
    assert_eq!(load_record(&root).unwrap().unwrap().hooks.len(), 2);
}

fn migration(printed: &str) -> Plan {
    let input = "/run/tenon/schema-2.toml";
    let program = Program {
        argv: vec!["printf".into(), "%s".into(), printed.into()],
        timeout: Duration::from_secs(10),
        when_changed: vec![input.into()],
        stdout_to: Some("/etc/containerd/config.toml".into()),
        output: Output::ContainerdConfig,
        ..Program::default()
    };
    let program = Step::config(Action::Program(program), "test");
    plan_of(vec![file(input, 0o600, printed), program])
}

#[test]
fn the_config_phase_runs_its_programs_and_judges_what_they_print() {
    let dir = machine();
    let config = dir.path().join("etc/containerd/config.toml");
    let runtime = |name: &str| {
        let table = "plugins.'io.containerd.cri.v1.runtime'.containerd";
        format!("[{table}]\ndefault_runtime_name = '{name}'\n[{table}.runtimes.runc]\n")
    };
    let good = runtime("runc");
    assert!(both(dir.path(), &migration(&good)).unwrap().changed());
    assert_eq!(fs::read_to_string(&config).unwrap(), good);
    assert!(!both(dir.path(), &migration(&good)).unwrap().changed());
    for bad in [&runtime("kata"), "version = ", ""] {
        for again in [false, true] {
            // Again: the input is in place by now, its translation is still due.
            let problem = both(dir.path(), &migration(bad)).unwrap_err();
            assert_eq!((problem.exit(), problem.page.code), (6, "TN06306"), "{bad} {again}");
            assert_eq!(fs::read_to_string(&config).unwrap(), good, "{bad}");
        }
    }
    fs::write(&config, "edited").unwrap();
    both(dir.path(), &migration(&good)).unwrap();
    assert_eq!(fs::read_to_string(&config).unwrap(), good);
}

#[test]
fn a_tree_of_another_machine_runs_no_programs_and_no_hooks_here() {
    let dir = machine();
    let hook = Hook {
        name: "mine".into(),
        work: HookWork::Argv(vec!["touch".into(), dir.path().join("x").display().to_string()]),
        timeout: Duration::from_secs(10),
        on_failure: OnFailure::Abort,
        run: HookRun::OncePerInstance,
    };
    let mut plan = migration("x");
    plan.steps.push(Step::config(Action::Hook { stage: HookStage::PostConfig, hook }, "test"));
    let report = run(dir.path(), &plan).unwrap();
    let codes: Vec<_> = report.warnings.iter().map(|it| it.problem.page.code).collect();
    assert_eq!(codes, ["TN06012"; 2]);
    assert!(!dir.path().join("x").exists());
    assert!(!dir.path().join("etc/containerd/config.toml").exists());
}

#[test]
fn row_46_the_identity_of_another_machine_is_discarded() {
    let dir = machine();
    fs::create_dir_all(dir.path().join("var/lib/kubelet/pki")).unwrap();
    fs::write(dir.path().join("var/lib/kubelet/pki/kubelet.crt"), "old").unwrap();
    let path = "/var/lib/kubelet/pki";
    let plan = plan_of(vec![Step::config(Action::Discard { path: path.into() }, "test")]);
    let report = run(dir.path(), &plan).unwrap();
    assert_eq!(report.changes, [Change::new("file", path, "remove")]);
    assert!(!dir.path().join("var/lib/kubelet/pki").exists());
    assert!(!run(dir.path(), &plan).unwrap().changed());
}

#[test]
fn a_run_after_a_removal_writes_nothing() {
    let dir = machine();
    run(dir.path(), &node_plan("1")).unwrap();
    let mut fewer = node_plan("1");
    let gone = fewer.steps.remove(6);
    let path = gone.action.written_path().unwrap().clone();
    let removal = Removal { path, proof: step::Ownership::Certain };
    let mut clearing = fewer.clone();
    clearing.steps.push(Step::config(Action::Remove(removal), "test"));
    assert!(run(dir.path(), &clearing).unwrap().changed());
    // The next plan has nothing to clear up; the record must already be its record.
    let record = dir.path().join("var/lib/tenon/record.json");
    let before = fs::metadata(&record).unwrap().ino();
    assert!(!run(dir.path(), &fewer).unwrap().changed());
    assert_eq!(fs::metadata(&record).unwrap().ino(), before);
}

#[test]
fn a_link_is_made_changed_and_removed_by_the_same_protocol() {
    let dir = machine();
    let at = dir.path().join("etc/wants/a.mount");
    let link = |target: &str| {
        let action = Action::Link { path: "/etc/wants/a.mount".into(), target: target.into() };
        plan_of(vec![Step::config(action, "test")])
    };
    for target in ["../a.mount", "../b.mount"] {
        assert!(run(dir.path(), &link(target)).unwrap().changed());
        assert!(!run(dir.path(), &link(target)).unwrap().changed());
        assert_eq!(fs::read_link(&at).unwrap(), Path::new(target));
    }
    run(dir.path(), &plan_of(vec![])).unwrap();
    assert!(fs::symlink_metadata(&at).is_err());
}

#[test]
fn hooks_between_a_killed_run_and_its_cure_do_not_hide_what_was_saved() {
    let dir = machine();
    run(dir.path(), &node_plan("1")).unwrap();
    let old = fs::read(dir.path().join("etc/eks/kubelet/environment")).unwrap();
    // Stopped when the files are in place and the record is not.
    let stop = |point: &'static str| match point {
        "directory-sync" => Err(Problem::new(&tenon_core::codes::host::TERMINATED, "test")),
        _ => Ok(()),
    };
    run_with(dir.path(), &node_plan("2"), &Options::default(), &stop).unwrap_err();
    let root = Root::open(dir.path()).unwrap();
    let lock = Lock::take(&root, PATIENCE).unwrap();
    let hook = Hook {
        name: "early".into(),
        work: HookWork::Argv(vec!["true".into()]),
        timeout: Duration::from_secs(10),
        on_failure: OnFailure::Abort,
        run: HookRun::OncePerInstance,
    };
    let options = Options { run_in_tree: true, ..Options::default() };
    pre_bootstrap(&root, &lock, &[hook], "i-1", &options).unwrap();
    drop(lock);
    run(dir.path(), &node_plan("2")).unwrap();
    let lock = Lock::take(&root, PATIENCE).unwrap();
    undo(&root, &lock, &plan_undo(&root).unwrap(), &Options::default()).unwrap();
    assert_eq!(fs::read(dir.path().join("etc/eks/kubelet/environment")).unwrap(), old);
}

#[test]
fn row_45_after_a_reboot_the_files_of_the_boot_are_written_and_read_again() {
    let (dir, fake) = node();
    let root = Root::open(dir.path()).unwrap();
    let lock = Lock::take(&root, PATIENCE).unwrap();
    config_phase(&root, &lock, &plan("1"), &Options::default()).unwrap();
    fs::remove_dir_all(dir.path().join("run/systemd/resolved.conf.d")).unwrap();
    drop(lock);
    let before = fake.log().len();
    both(dir.path(), &plan("1")).unwrap();
    let started = [
        "ResetFailedUnit systemd-resolved.service",
        "RestartUnit systemd-resolved.service",
        "ResetFailedUnit containerd.service",
        "StartUnit containerd.service",
        "ResetFailedUnit kubelet.service",
        "StartUnit kubelet.service",
    ];
    assert_eq!(fake.log()[before..], started);
    assert!(dir.path().join("run/systemd/resolved.conf.d/40-eks.conf").exists());
}
