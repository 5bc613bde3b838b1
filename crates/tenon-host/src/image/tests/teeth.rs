//! Verify has teeth: one change behind its back for each kind, found and named; and apply mends
//! it.

use tenon_core::image::check::{Check, Half, State};

use super::*;
use crate::image::verify::{concerns, verify};

type Change = fn(&Stage);

fn edit(stage: &Stage, path: &str, from: &str, to: &str) {
    let text = fs::read_to_string(stage.at(path)).unwrap();
    assert!(text.contains(from), "{path} has no {from}");
    fs::write(stage.at(path), text.replace(from, to)).unwrap();
}

fn mode(stage: &Stage, path: &str, mode: u32) {
    fs::set_permissions(stage.at(path), fs::Permissions::from_mode(mode)).unwrap();
}

fn relink(stage: &Stage, path: &str, target: &str) {
    fs::remove_file(stage.at(path)).unwrap();
    std::os::unix::fs::symlink(target, stage.at(path)).unwrap();
}

const CHANGES: &[(&str, Change)] = &[
    ("package runc", |s| edit(s, "var/lib/dpkg/status", "hold ok", "install ok")),
    ("no-package telnet", |s| {
        edit(s, "var/lib/dpkg/status", "Package: dash", "Package: telnet");
    }),
    ("group nodes", |s| edit(s, "etc/group", "nodes:", "others:")),
    ("user etcd", |s| edit(s, "etc/passwd", "/usr/sbin/nologin", "/bin/sh")),
    ("user etcd", |s| edit(s, "etc/shadow", "etcd:!*", "etcd:$y$")),
    ("user etcd", |s| edit(s, "etc/group", "adm:x:4:etcd", "adm:x:4:")),
    ("directory /etc/kubernetes/manifests", |s| mode(s, "etc/kubernetes/manifests", 0o777)),
    ("file /etc/motd", |s| edit(s, "etc/motd", "w", "W")),
    ("file /etc/motd", |s| mode(s, "etc/motd", 0o666)),
    ("file /etc/motd", |s| fs::remove_file(s.at("etc/motd")).unwrap()),
    ("block /etc/hosts:nodes", |s| edit(s, "etc/hosts", "10.0.0.1", "10.0.0.2")),
    ("setting /etc/login.defs:UMASK", |s| edit(s, "etc/login.defs", "027", "022")),
    ("pam /etc/pam.d/common-auth:pam_unix.so", |s| {
        edit(s, "etc/pam.d/common-auth", "remember=24", "nullok")
    }),
    ("file /etc/systemd/system.conf.d/90-tenon-limits.conf", |s| {
        edit(s, "etc/systemd/system.conf.d/90-tenon-limits.conf", "CORE=0:0", "CORE=0:1");
    }),
    ("link /etc/localtime", |s| relink(s, "etc/localtime", "/elsewhere")),
    ("absent /etc/cron.d/old*", |s| s.write("etc/cron.d/older", b"x")),
    ("access /etc/crontab", |s| mode(s, "etc/crontab", 0o644)),
    ("file /etc/sysctl.d/90-tenon.conf", |s| edit(s, "etc/sysctl.d/90-tenon.conf", "10", "9")),
    ("effective-sysctl kernel.panic", |s| s.write("etc/sysctl.d/99-x.conf", b"kernel.panic=1\n")),
    ("effective-sysctl kernel.pid_max", |s| {
        s.write("etc/sysctl.conf", b"kernel.pid_max = 4194303\n");
    }),
    ("effective-sshd PermitRootLogin", |s| {
        s.write(
            "etc/ssh/sshd_config",
            b"PermitRootLogin yes\nInclude /etc/ssh/sshd_config.d/*.conf\n",
        );
    }),
    ("file /etc/modules-load.d/tenon.conf", |s| {
        edit(s, "etc/modules-load.d/tenon.conf", "overlay", "")
    }),
    ("kernel-argument audit", |s| edit(s, "etc/default/grub.d/90-tenon.cfg", "audit=1", "audit=0")),
    ("kernel-argument quiet", |s| edit(s, "etc/default/grub", "splash", "splash quiet")),
    ("file /etc/systemd/system/tenon-x.service", |s| {
        edit(s, "etc/systemd/system/tenon-x.service", "true", "false");
    }),
    ("link /etc/systemd/system/multi-user.target.wants/tenon-x.service", |s| {
        fs::remove_file(s.at("etc/systemd/system/multi-user.target.wants/tenon-x.service"))
            .unwrap();
    }),
    ("link /etc/systemd/system/ufw.service", |s| relink(s, "etc/systemd/system/ufw.service", "/x")),
    ("download /usr/bin/kubelet", |s| edit(s, "usr/bin/kubelet", "kubelet", "kubelot")),
    ("download /opt/cni/bin", |s| edit(s, "opt/cni/bin/a", "program", "prgoram")),
    ("download /opt/cni/bin", |s| mode(s, "opt/cni/bin/a", 0o4755)),
];

/// What cannot be mended by apply, because somebody else's file decides.
const OTHERS: &[&str] = &["no-package", "effective-sysctl", "effective-sshd"];

fn failed(stage: &Stage) -> Vec<Check> {
    let checks = verify(&stage.plan, &stage.root(), None).unwrap();
    checks.into_iter().filter(|check| check.state != State::Pass && check.act != "manual").collect()
}

#[test]
fn each_change_is_found_named_and_mended() {
    for (at, (name, change)) in CHANGES.iter().enumerate() {
        let body = archive(&[("a", b"program a")]);
        let more = download("/usr/bin/kubelet", &sha256(b"a kubelet"), "")
            + &download("/opt/cni/bin", &sha256(&body), "members = {a = 'a'}\n");
        let stage = Stage::with(&more);
        Stage::pin(stage.place.path(), &body);
        Stage::pin(stage.place.path(), b"a kubelet");
        stage.apply().unwrap();
        change(&stage);
        let found = failed(&stage);
        let names: Vec<_> = found.iter().map(|c| format!("{} {}", c.act, c.key)).collect();
        assert!(names.iter().any(|found| found == name), "change {at}, {name}: {names:?}");
        for check in &found {
            assert!(!check.from.is_empty() && !check.remedy.is_empty(), "{check:?}");
            assert_ne!(check.expected, check.actual);
        }
        if !OTHERS.iter().any(|other| name.starts_with(other)) {
            stage.apply().unwrap();
            assert_eq!(failed(&stage), [], "change {at}, {name}");
        }
    }
}

#[test]
fn owners_are_checked_and_mended() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    stage.apply().unwrap();
    std::os::unix::fs::chown(stage.at("etc/motd"), Some(5), Some(6)).unwrap();
    let found = failed(&stage);
    assert_eq!(found.len(), 1);
    assert!(found[0].actual.contains("owner 5:6") && found[0].expected.contains("owner 0:0"));
    stage.apply().unwrap();
    assert_eq!(failed(&stage), []);
}

#[test]
fn the_running_kernel_is_judged_apart() {
    let stage = Stage::with(
        "[[mount]]\npath = '/dev/shm'\nsource = 'tmpfs'\ntype = 'tmpfs'\n\
         options = ['nodev', 'noexec']\nreason = 'r'\n",
    );
    stage.apply().unwrap();
    let kernel = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/sys/kernel/panic", "0\n"),
        ("proc/sys/kernel/pid_max", "4194304\n"),
        ("proc/cmdline", "root=/dev/vda1 audit=1 quiet\n"),
        ("proc/self/mountinfo", "30 1 0:25 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw,size=64k\n"),
        ("sys/module/overlay/refcnt", "1\n"),
    ] {
        let path = kernel.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let kernel = Root::open(kernel.path()).unwrap();
    let checks = verify(&stage.plan, &stage.root(), Some(&kernel)).unwrap();
    let state = |name: &str| {
        let running =
            |c: &&Check| c.half == Half::Running && format!("{} {}", c.act, c.key) == name;
        let check = checks.iter().find(running).unwrap_or_else(|| panic!("{name}"));
        (check.state, check.actual.clone())
    };
    assert_eq!(state("sysctl kernel.panic"), (State::Fail, "0".into()));
    assert_eq!(state("sysctl kernel.pid_max").0, State::Pass);
    assert_eq!(state("module overlay").0, State::Pass);
    assert_eq!(state("kernel-argument audit").0, State::Pass);
    assert_eq!(state("kernel-argument quiet").0, State::Fail);
    assert_eq!(state("mount /dev/shm"), (State::Fail, "mounted without noexec".into()));
    assert_eq!(state("unit tenon-x.service").0, State::Unknown);
    assert!(checks.iter().all(|c| c.half == Half::Running || c.state != State::Fail));
    let only: Vec<_> = checks.iter().filter(|c| concerns(&stage.plan, c, "module")).collect();
    assert_eq!(only.len(), 2);
    assert!(checks.iter().all(|c| concerns(&stage.plan, c, "test")));
}
