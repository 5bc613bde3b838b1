//! Machines that are not as they should be.

use std::os::unix::fs::symlink;

use super::*;

/// Puts something at a path.
type Make<'a> = &'a dyn Fn(&Path);

fn refused(dir: &TempDir, plan: &Plan) -> Problem {
    let before = tree(dir.path());
    let problem = run(dir.path(), plan).unwrap_err();
    let mut after = tree(dir.path());
    if !before.contains_key("run/tenon") {
        after.remove("run/tenon");
    }
    assert_eq!(after, before, "a refusal changes nothing");
    problem
}

#[test]
fn row_49_links_directories_and_fifos_are_refused_and_nothing_is_written() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("victim"), "safe").unwrap();
    let plan = plan_of(vec![file("/etc/first", 0o600, "x"), file("/etc/a", 0o600, "x")]);
    let kinds: [(&str, Make<'_>); 3] = [
        ("symbolic link", &|path| symlink(outside.path().join("victim"), path).unwrap()),
        ("directory", &|path| fs::create_dir(path).unwrap()),
        ("fifo", &|path| {
            let argv = ["mkfifo".to_owned(), path.display().to_string()];
            crate::command::must(&argv, Duration::from_secs(5), &[]).map(|_| ()).unwrap();
        }),
    ];
    for (kind, make) in kinds {
        let dir = machine();
        make(&dir.path().join("etc/a"));
        if kind == "fifo" {
            // Reading a fifo would wait for a writer: compare without `tree`.
            let problem = run(dir.path(), &plan).unwrap_err();
            assert_eq!(problem.exit(), 6);
            assert!(!dir.path().join("etc/first").exists());
            continue;
        }
        let problem = refused(&dir, &plan);
        assert_eq!(problem.exit(), 6);
        assert!(problem.what.contains(kind), "{}", problem.what);
    }
    assert_eq!(fs::read_to_string(outside.path().join("victim")).unwrap(), "safe");
}

#[test]
fn row_49_a_linked_parent_does_not_lead_out_of_the_root() {
    let (dir, outside) = (machine(), tempfile::tempdir().unwrap());
    symlink(outside.path(), dir.path().join("etc/eks")).unwrap();
    let result = run(dir.path(), &plan_of(vec![file("/etc/eks/a", 0o600, "x")]));
    assert_eq!(result.unwrap_err().exit(), 7);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn row_50_a_parent_that_others_can_change_is_refused_unless_the_plan_mends_it() {
    let dir = machine();
    fs::create_dir(dir.path().join("etc/eks")).unwrap();
    fs::set_permissions(dir.path().join("etc/eks"), fs::Permissions::from_mode(0o777)).unwrap();
    let wanted = file("/etc/eks/kubelet/environment", 0o600, "x");
    let problem = refused(&dir, &plan_of(vec![wanted.clone()]));
    assert_eq!((problem.exit(), problem.page.code), (6, "TN06003"));
    assert!(problem.what.contains("/etc/eks,"), "{}", problem.what);
    let mend = Step::config(Action::Directory { path: "/etc/eks".into(), mode: 0o755 }, "test");
    run(dir.path(), &plan_of(vec![mend, wanted])).unwrap();
    assert_eq!(tree(dir.path())["etc/eks"].0, 0o755);
}

#[test]
fn row_50_a_parent_of_another_user_is_refused() {
    let dir = machine();
    fs::create_dir(dir.path().join("etc/eks")).unwrap();
    if std::os::unix::fs::chown(dir.path().join("etc/eks"), Some(12345), None).is_err() {
        println!("skipped: needs root to give a directory away");
        return;
    }
    let problem = refused(&dir, &plan_of(vec![file("/etc/eks/a", 0o600, "x")]));
    assert_eq!(problem.page.code, "TN06003");
    assert!(problem.what.contains("12345"));
}

#[test]
fn row_51_modes_do_not_depend_on_the_umask_and_the_label_is_kept() {
    let dir = machine();
    let path = dir.path().join("etc/a");
    fs::write(&path, "old").unwrap();
    let label = b"system_u:object_r:etc_t:s0\0";
    let set =
        rustix::fs::setxattr(&path, "security.selinux", label, rustix::fs::XattrFlags::empty());
    run(dir.path(), &plan_of(vec![file("/etc/a", 0o640, "new")])).unwrap();
    assert_eq!(tree(dir.path())["etc/a"], (0o640, b"new".to_vec()));
    if let Err(error) = set {
        println!("label not tested: this file system does not take one ({error})");
        return;
    }
    let mut held = [0; 64];
    let length = rustix::fs::getxattr(&path, "security.selinux", &mut held[..]).unwrap();
    assert_eq!(&held[..length], label);
}

#[test]
fn removals_of_the_plan_follow_their_proof() {
    let dir = machine();
    fs::write(dir.path().join("etc/stale"), "x").unwrap();
    let proof = step::Ownership::Certain;
    let removal = Removal { path: "/etc/stale".into(), proof };
    let plan = plan_of(vec![Step::config(Action::Remove(removal), "test")]);
    let report = run(dir.path(), &plan).unwrap();
    assert_eq!(report.changes[0].action, "remove");
    assert!(!dir.path().join("etc/stale").exists());
    assert!(!run(dir.path(), &plan).unwrap().changed());
}
