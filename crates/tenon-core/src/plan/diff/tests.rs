use std::time::Duration;

use super::*;
use crate::plan::record::{Record, SCHEMA};
use crate::plan::step::{Block, FileBody, Ownership, Ready, Removal, Summary, Unit, UnitVerb};

pub(crate) fn plan_of(steps: Vec<Step>) -> Plan {
    Plan {
        summary: Summary::default(),
        steps,
        findings: Vec::new(),
        reasons: BTreeMap::new(),
        disk_indexes: BTreeMap::new(),
    }
}

pub(crate) fn file(path: &str, mode: u32, body: &str) -> Step {
    Step::config(Action::File(FileBody::new(path, mode, body)), "test")
}

fn unit(name: &str, inputs: &[&str]) -> Step {
    let unit = Unit {
        name: name.into(),
        verb: UnitVerb::EnsureFresh,
        inputs: inputs.iter().map(ToString::to_string).collect(),
        deadline: Duration::from_secs(1),
        ready: Ready::Job,
        requires: Vec::new(),
    };
    Step::run(Action::Unit(unit), "test")
}

fn held(body: &str, mode: u32) -> Observed {
    let owner = Owner::default();
    Observed::File(Held { bytes: body.into(), mode, owner, modified_us: 0 })
}

fn tree(entries: &[(&str, Observed)]) -> Tree {
    entries.iter().map(|(path, observed)| (path.to_string(), observed.clone())).collect()
}

fn scene<'a>(plan: &'a Plan, tree: &'a Tree, record: Option<&'a Record>) -> Scene<'a> {
    Scene {
        plan,
        tree,
        record,
        owner: Owner::default(),
        edited: Edited::Overwrite,
        unplanned: Unplanned::Remove,
    }
}

fn run(scene: &Scene<'_>) -> Result<Changes, Vec<Finding>> {
    compare(scene, &scene.plan.steps.iter().collect::<Vec<_>>())
}

/// The record that a run with these changes leaves.
fn recorded(changes: &Changes) -> Record {
    let mut record = Record { schema: SCHEMA, ..Record::default() };
    for (path, mark) in &changes.marks {
        if let Some(mark) = mark {
            record.files.insert(path.clone(), mark.clone());
        }
    }
    for need in &changes.units {
        record.units.insert(need.unit.clone(), need.mark.clone());
    }
    record
}

#[test]
fn each_observation_has_its_kind() {
    let plan = plan_of(vec![file("/etc/a", 0o600, "new\n")]);
    for (observed, kind) in [
        (Observed::Absent, Some(Kind::Create)),
        (held("old\n", 0o600), Some(Kind::Change)),
        (held("new\n", 0o644), Some(Kind::Mode)),
        (held("new\n", 0o600), None),
    ] {
        let tree = tree(&[("/etc/a", observed.clone())]);
        let changes = run(&scene(&plan, &tree, None)).unwrap();
        assert_eq!(changes.files.first().map(FileChange::kind), kind, "{observed:?}");
        assert_eq!(changes.unchanged, usize::from(kind.is_none()));
    }
}

#[test]
fn row_49_only_plain_files_are_written() {
    let plan = plan_of(vec![file("/etc/a", 0o600, "x")]);
    let directory = Observed::Directory { mode: 0o755, owner: Owner::default() };
    for (observed, word, code) in [
        (held("/target", LINK_MODE), "symbolic link", "TN06002"),
        (directory, "directory", "TN06002"),
        (Observed::Other("a fifo"), "fifo", "TN06002"),
        (Observed::Large, "large", "TN06005"),
    ] {
        let tree = tree(&[("/etc/a", observed)]);
        let findings = run(&scene(&plan, &tree, None)).unwrap_err();
        assert!(findings[0].problem.what.contains(word));
        assert_eq!(findings[0].problem.page.code, code);
    }
}

#[test]
fn missing_parents_are_made_outermost_first() {
    let plan = plan_of(vec![file("/etc/eks/kubelet/environment", 0o600, "x")]);
    let tree = tree(&[
        ("/etc", Observed::Directory { mode: 0o755, owner: Owner::default() }),
        ("/etc/eks", Observed::Absent),
        ("/etc/eks/kubelet", Observed::Absent),
    ]);
    let changes = run(&scene(&plan, &tree, None)).unwrap();
    let made: Vec<_> = changes.directories.iter().map(|dir| dir.path.as_str()).collect();
    assert_eq!(made, ["/etc/eks", "/etc/eks/kubelet"]);
}

#[test]
fn row_48_an_edited_file_follows_the_policy() {
    let plan = plan_of(vec![file("/etc/a", 0o600, "planned")]);
    let first = run(&scene(&plan, &Tree::new(), None)).unwrap();
    let record = recorded(&first);
    let tree = tree(&[("/etc/a", held("edited", 0o600))]);
    for (policy, written) in [
        (Edited::Overwrite, vec!["/etc/a"]),
        (Edited::Keep, vec![]),
        (Edited::Backup, vec!["/etc/a.tenon-backup", "/etc/a"]),
    ] {
        let changes = run(&Scene { edited: policy, ..scene(&plan, &tree, Some(&record)) }).unwrap();
        let paths: Vec<_> = changes.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, written, "{policy:?}");
        assert_eq!(changes.findings[0].problem.page.slug, "edited-file");
    }
}

#[test]
fn row_99_what_is_no_longer_planned_is_removed() {
    let before = plan_of(vec![file("/etc/a", 0o600, "a"), file("/etc/b", 0o600, "b")]);
    let record = recorded(&run(&scene(&before, &Tree::new(), None)).unwrap());
    let plan = plan_of(vec![file("/etc/a", 0o600, "a")]);
    let tree = tree(&[("/etc/a", held("a", 0o600)), ("/etc/b", held("b", 0o600))]);
    let changes = run(&scene(&plan, &tree, Some(&record))).unwrap();
    assert_eq!(changes.removals[0].path, "/etc/b");
    assert_eq!(changes.marks["/etc/b"], None);
    let part = Scene { unplanned: Unplanned::Keep, ..scene(&plan, &tree, Some(&record)) };
    assert!(run(&part).unwrap().is_empty());
}

#[test]
fn the_kubelets_own_kubeconfig_is_never_removed() {
    let path = "/var/lib/kubelet/kubeconfig";
    let before = plan_of(vec![file(path, 0o600, "exec")]);
    let record = recorded(&run(&scene(&before, &Tree::new(), None)).unwrap());
    let (plan, tree) = (plan_of(vec![]), tree(&[(path, held("bootstrapped", 0o600))]));
    let changes = run(&scene(&plan, &tree, Some(&record))).unwrap();
    assert!(changes.removals.is_empty());
}

#[test]
fn a_foreign_file_is_a_clash_where_the_plan_says_so() {
    let mut step = file("/etc/hosts.toml", 0o644, "ours");
    let Action::File(body) = &mut step.action else { panic!() };
    body.refuse_foreign = true;
    let plan = plan_of(vec![step]);
    let foreign = tree(&[("/etc/hosts.toml", held("theirs", 0o644))]);
    let findings = run(&scene(&plan, &foreign, None)).unwrap_err();
    assert_eq!(findings[0].problem.page.code, "TN06004");
    let record = recorded(&run(&scene(&plan, &Tree::new(), None)).unwrap());
    assert_eq!(run(&scene(&plan, &foreign, Some(&record))).unwrap().files.len(), 1);
}

#[test]
fn a_stale_environment_file_is_removed_only_in_our_form() {
    let path = "/etc/systemd/system/kubelet.service.d/environment.conf";
    let removal = Removal { path: path.into(), proof: Ownership::EnvironmentShape };
    let plan = plan_of(vec![Step::config(Action::Remove(removal), "test")]);
    for (body, removed) in
        [("[Service]\nEnvironment=\"A=b\"\n", 1), ("[Service]\nExecStart=/bin/x\n", 0)]
    {
        let tree = tree(&[(path, held(body, 0o644))]);
        let changes = run(&scene(&plan, &tree, None)).unwrap();
        assert_eq!(changes.removals.len(), removed, "{body:?}");
        assert_eq!(changes.findings.len(), 1 - removed);
    }
}

#[test]
fn a_block_keeps_every_other_byte_of_the_file() {
    let block = Block { path: "/etc/hosts".into(), name: "api".into(), lines: vec!["1 a".into()] };
    let plan = plan_of(vec![Step::config(Action::Block(block), "test")]);
    let bytes = b"\xff\xfe latin\n".to_vec();
    let owner = Owner { uid: 5, gid: 6 };
    let file = Observed::File(Held { bytes: bytes.clone(), mode: 0o664, owner, modified_us: 0 });
    let tree = tree(&[("/etc/hosts", file)]);
    let changes = run(&scene(&plan, &tree, None)).unwrap();
    assert!(changes.files[0].body.starts_with(&bytes));
    assert_eq!((changes.files[0].mode, changes.files[0].owner), (0o664, owner));
    assert!(changes.marks.is_empty());
}

#[test]
fn rows_43_and_11_a_unit_is_stale_by_the_record_not_by_the_diff() {
    let steps = vec![
        file("/etc/kubelet", 0o600, "new"),
        file("/etc/containerd", 0o644, "same"),
        unit("kubelet.service", &["/etc/kubelet", "/etc/kubelet.d/"]),
        unit("containerd.service", &["/etc/containerd"]),
    ];
    let old = plan_of(vec![
        file("/etc/kubelet", 0o600, "old"),
        steps[1].clone(),
        steps[2].clone(),
        steps[3].clone(),
    ]);
    let plan = plan_of(steps);
    let record = recorded(&run(&scene(&old, &Tree::new(), None)).unwrap());
    // The file is in place already, as after a kill between rename and restart.
    let after_kill =
        tree(&[("/etc/kubelet", held("new", 0o600)), ("/etc/containerd", held("same", 0o644))]);
    let changes = run(&scene(&plan, &after_kill, Some(&record))).unwrap();
    assert!(changes.is_empty());
    assert_eq!(changes.units[0].stale.as_deref(), Some("/etc/kubelet changed"));
    assert_eq!(changes.units[1].stale, None);
    // A foreign drop-in counts as an input.
    let record = recorded(&changes);
    let mut more = after_kill.clone();
    more.insert("/etc/kubelet.d/99-user.conf".into(), held("x", 0o644));
    let changes = run(&scene(&plan, &more, Some(&record))).unwrap();
    assert_eq!(changes.units[0].stale.as_deref(), Some("an input that is not Tenon's changed"));
}

#[test]
fn a_reload_is_due_by_the_record_or_else_by_the_diff() {
    let path = "/etc/systemd/system/a.service.d/x.conf";
    let reload = Step::config(
        Action::Reload { inputs: vec!["/etc/systemd/system/a.service.d/".into()] },
        "test",
    );
    let plan = plan_of(vec![file(path, 0o600, "x"), reload]);
    let first = run(&scene(&plan, &Tree::new(), None)).unwrap();
    assert!(first.reload.is_some());
    let done = tree(&[(path, held("x", 0o600))]);
    assert_eq!(run(&scene(&plan, &done, None)).unwrap().reload, None);
    assert_eq!(run(&scene(&plan, &done, Some(&recorded(&first)))).unwrap().reload, None);
    // Killed before the reload: the record does not have the file yet.
    let record = Record::default();
    assert!(run(&scene(&plan, &done, Some(&record))).unwrap().reload.is_some());
}

#[test]
fn a_secret_body_shows_its_size_alone() {
    let mut step = file("/etc/a", 0o600, "token");
    let Action::File(body) = &mut step.action else { panic!() };
    body.secret = true;
    let plan = plan_of(vec![step]);
    let tree = tree(&[("/etc/a", held("older", 0o600))]);
    let changes = run(&scene(&plan, &tree, None)).unwrap();
    assert_eq!(changes.files[0].diff(false), ["[redacted, 5 bytes, changed]"]);
    assert_eq!(changes.files[0].diff(true), ["- older", "+ token"]);
}
