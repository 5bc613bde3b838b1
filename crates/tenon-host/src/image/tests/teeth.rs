//! Verify has teeth: one change behind its back for each kind, found and named; and apply mends
//! it.

use tenon_core::image::check::{Check, Half, State};
use tenon_core::image::item::{Act, Item};
use tenon_core::image::kind::KINDS;

use super::*;
use crate::image::record::{self, Entry};
use crate::image::site::Site;
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

/// Kind of resource, the check that must fail, and what is done behind its back.
const CHANGES: &[(&str, &str, Change)] = &[
    ("repository", "file /etc/apt/sources.list.d/lab.sources", |s| {
        edit(s, "etc/apt/sources.list.d/lab.sources", "127.0.0.1", "127.0.0.2");
    }),
    ("repository", "key /usr/share/keyrings/lab.asc", |s| {
        edit(s, "usr/share/keyrings/lab.asc", "WpzDLPa0", "XpzDLPa0");
    }),
    ("repository", "key /usr/share/keyrings/lab.asc", |s| {
        fs::remove_file(s.at("usr/share/keyrings/lab.asc")).unwrap();
    }),
    ("package", "package runc", |s| edit(s, "var/lib/dpkg/status", "hold ok", "install ok")),
    ("package", "package runc", |s| {
        edit(s, "var/lib/dpkg/status", "Version: 1.1.5", "Version: 1.2.0");
    }),
    ("package", "package runc", |s| {
        edit(s, "var/lib/dpkg/status", "Package: runc", "Package: crun")
    }),
    ("package-absent", "no-package telnet", |s| {
        edit(s, "var/lib/dpkg/status", "Package: dash", "Package: telnet");
    }),
    ("group", "group nodes", |s| edit(s, "etc/group", "nodes:", "others:")),
    ("user", "user etcd", |s| edit(s, "etc/passwd", "/usr/sbin/nologin", "/bin/sh")),
    ("user", "user etcd", |s| edit(s, "etc/passwd", "/var/lib/etcd", "/root")),
    ("user", "user etcd", |s| edit(s, "etc/shadow", "etcd:!*", "etcd:$y$")),
    ("user", "user etcd", |s| edit(s, "etc/group", "adm:x:4:etcd", "adm:x:4:")),
    ("directory", "directory /etc/kubernetes/manifests", |s| {
        mode(s, "etc/kubernetes/manifests", 0o777);
    }),
    ("directory", "directory /etc/kubernetes/manifests", |s| {
        fs::remove_dir(s.at("etc/kubernetes/manifests")).unwrap();
    }),
    ("download", "download /usr/bin/kubelet", |s| edit(s, "usr/bin/kubelet", "kubelet", "kubelot")),
    ("download", "download /usr/bin/kubelet", |s| mode(s, "usr/bin/kubelet", 0o777)),
    ("download", "download /opt/cni/bin", |s| edit(s, "opt/cni/bin/a", "program", "prgoram")),
    ("download", "download /opt/cni/bin", |s| mode(s, "opt/cni/bin/a", 0o4755)),
    ("file", "file /etc/motd", |s| edit(s, "etc/motd", "w", "W")),
    ("file", "file /etc/motd", |s| mode(s, "etc/motd", 0o666)),
    ("file", "file /etc/motd", |s| fs::remove_file(s.at("etc/motd")).unwrap()),
    ("block", "block /etc/hosts:nodes", |s| edit(s, "etc/hosts", "10.0.0.1", "10.0.0.2")),
    ("block", "block /etc/hosts:nodes", |s| edit(s, "etc/hosts", "# END tenon nodes\n", "")),
    ("link", "link /etc/localtime", |s| relink(s, "etc/localtime", "/elsewhere")),
    ("link", "link /etc/localtime", |s| {
        fs::remove_file(s.at("etc/localtime")).unwrap();
        s.write("etc/localtime", b"a file");
    }),
    ("absent", "absent /etc/cron.d/old*", |s| s.write("etc/cron.d/older", b"x")),
    ("access", "access /etc/crontab", |s| mode(s, "etc/crontab", 0o644)),
    ("sysctl", "file /etc/sysctl.d/90-tenon.conf", |s| {
        edit(s, "etc/sysctl.d/90-tenon.conf", "10", "9");
    }),
    ("sysctl", "effective-sysctl kernel.panic", |s| {
        s.write("etc/sysctl.d/99-x.conf", b"kernel.panic=1\n");
    }),
    ("sysctl", "effective-sysctl kernel.pid_max", |s| {
        s.write("etc/sysctl.conf", b"kernel.pid_max = 4194303\n");
    }),
    ("kernel-argument", "kernel-argument audit", |s| {
        edit(s, "etc/default/grub.d/90-tenon.cfg", "audit=1", "audit=0");
    }),
    ("kernel-argument", "kernel-argument quiet", |s| {
        edit(s, "etc/default/grub", "splash", "splash quiet");
    }),
    ("module", "file /etc/modules-load.d/tenon.conf", |s| {
        edit(s, "etc/modules-load.d/tenon.conf", "overlay", "");
    }),
    ("module", "file /etc/modprobe.d/tenon-denied.conf", |s| {
        edit(s, "etc/modprobe.d/tenon-denied.conf", "blacklist usb-storage\n", "");
    }),
    ("unit", "file /etc/systemd/system/tenon-x.service", |s| {
        edit(s, "etc/systemd/system/tenon-x.service", "true", "false");
    }),
    ("unit", "link /etc/systemd/system/multi-user.target.wants/tenon-x.service", |s| {
        fs::remove_file(s.at("etc/systemd/system/multi-user.target.wants/tenon-x.service"))
            .unwrap();
    }),
    ("mask", "link /etc/systemd/system/ufw.service", |s| {
        relink(s, "etc/systemd/system/ufw.service", "/x");
    }),
    ("mount", "file /etc/systemd/system/var-lib-containerd.mount", |s| {
        edit(s, "etc/systemd/system/var-lib-containerd.mount", "Options=nodev", "Options=dev");
    }),
    ("mount", "link /etc/systemd/system/local-fs.target.wants/var-lib-containerd.mount", |s| {
        relink(s, "etc/systemd/system/local-fs.target.wants/var-lib-containerd.mount", "/dev/null");
    }),
    ("limit", "file /etc/security/limits.d/90-tenon.conf", |s| {
        edit(s, "etc/security/limits.d/90-tenon.conf", "hard core 0", "hard core 1");
    }),
    ("limit", "file /etc/systemd/system.conf.d/90-tenon-limits.conf", |s| {
        edit(s, "etc/systemd/system.conf.d/90-tenon-limits.conf", "CORE=0:0", "CORE=0:1");
    }),
    ("setting", "setting /etc/login.defs:UMASK", |s| edit(s, "etc/login.defs", "027", "022")),
    ("sshd", "file /etc/ssh/sshd_config.d/00-tenon.conf", |s| {
        mode(s, "etc/ssh/sshd_config.d/00-tenon.conf", 0o644);
    }),
    ("sshd", "effective-sshd PermitRootLogin", |s| {
        s.write(
            "etc/ssh/sshd_config",
            b"PermitRootLogin yes\nInclude /etc/ssh/sshd_config.d/*.conf\n",
        );
    }),
    ("sudo", "file /etc/sudoers.d/90-tenon", |s| {
        edit(s, "etc/sudoers.d/90-tenon", "Defaults use_pty", "Defaults !use_pty");
    }),
    ("sudo", "effective-sudo use_pty", |s| {
        s.write("etc/sudoers.d/99-x", b"Defaults !use_pty\n");
    }),
    ("pam", "pam /etc/pam.d/common-auth:pam_unix.so", |s| {
        edit(s, "etc/pam.d/common-auth", "remember=24", "nullok");
    }),
    ("audit", "file /etc/audit/rules.d/50-identity.rules", |s| {
        edit(s, "etc/audit/rules.d/50-identity.rules", "-p wa", "-p r");
    }),
    ("cached-image", "cached-image registry.k8s.io/pause", |s| {
        let place = s.at("var/lib/tenon/images");
        let archive = fs::read_dir(place).unwrap().next().unwrap().unwrap().path();
        fs::write(archive, "torn").unwrap();
    }),
    ("cached-image", "cached-image registry.k8s.io/pause", |s| {
        fs::remove_dir_all(s.at("var/lib/tenon/images")).unwrap();
    }),
    ("crypto-policy", "file /etc/crypto-policies/config", |s| {
        edit(s, "etc/crypto-policies/config", "FIPS", "LEGACY");
    }),
    ("command", "command aide", |s| edit(s, "var/lib/aide.db", "made", "forged")),
    ("command", "command aide", |s| s.write("etc/aide.conf", b"other input")),
];

/// What apply cannot mend here: somebody else's file decides, a mirror is needed, or a program
/// would have to run.
const OTHERS: &[&str] =
    &["no-package", "package", "effective-sysctl", "effective-sshd", "effective-sudo", "command"];

const COMMAND: &str = "[[command]]\nname = 'aide'\nwords = ['aideinit']\ninputs = ['/etc/aide.conf']\n\
    outputs = ['/var/lib/aide.db']\nwhy = 'w'\nreason = 'r'\n";

/// A root in which one resource of every kind holds.
fn whole() -> Stage {
    let members = archive(&[("a", b"program a")]);
    let manifest = b"{\"schemaVersion\": 2}";
    let digest = sha256(manifest);
    let more = download("/usr/bin/kubelet", &sha256(b"a kubelet"), "")
        + &download("/opt/cni/bin", &sha256(&members), "members = {a = 'a'}\n")
        + &format!(
            "[[cached-image]]\nname = 'pause'\nreference = 'registry.k8s.io/pause'\n\
             digest = 'sha256:{digest}'\npin = true\nreason = 'r'\n"
        );
    let mut stage = Stage::with(&more);
    Stage::pin(stage.place.path(), &members);
    Stage::pin(stage.place.path(), b"a kubelet");
    let index = format!("{{\"manifests\": [{{\"digest\": \"sha256:{digest}\"}}]}}");
    let blob = format!("blobs/sha256/{digest}");
    let image = tar_of(&[("index.json", index.as_bytes()), (&blob, manifest)]);
    stage.cache();
    fs::write(stage.place.path().join(format!("cache/images/{digest}.tar")), image).unwrap();
    stage.apply().unwrap();
    // A command needs programs inside the root; that it ran is what the record says.
    stage.plan = plan(&format!("{PROFILE}{more}{COMMAND}"));
    stage.write("etc/aide.conf", b"input");
    stage.write("var/lib/aide.db", b"made by it");
    remember_command(&stage);
    stage
}

fn remember_command(stage: &Stage) {
    let root = stage.root();
    let facts = crate::image::facts::gather(&root).unwrap();
    let site = Site::new(&root, &stage.plan, facts, &|_| Ok(())).unwrap();
    let is_command = |item: &&Item| matches!(item.act, Act::Command { .. });
    let item = stage.plan.items.iter().find(is_command).unwrap();
    let entry = Entry {
        hash: record::item_hash(item),
        inputs: Some(site.inputs(&["/etc/aide.conf".to_owned()]).unwrap()),
        files: BTreeMap::from([("/var/lib/aide.db".to_owned(), sha256(b"made by it"))]),
    };
    let mut record = record::Record::load(&root).unwrap();
    record.items.insert(record::name(item), entry);
    stage.write(record::PATH.trim_start_matches('/'), record.to_json().to_string().as_bytes());
}

fn failed(stage: &Stage) -> Vec<Check> {
    let checks = verify(&stage.plan, &stage.root(), None).unwrap();
    checks.into_iter().filter(|check| check.state != State::Pass && check.act != "manual").collect()
}

/// A kind that nobody can break behind the back of verify is not checked at all.
#[test]
fn every_kind_has_a_change_that_is_found() {
    let changed: std::collections::BTreeSet<&str> =
        CHANGES.iter().map(|(kind, ..)| *kind).collect();
    for kind in KINDS {
        // Somebody is told of the first; `placed` has the changes of the others.
        let elsewhere = ["manual", "tenon", "stamp"].contains(&kind.name);
        assert!(elsewhere || changed.contains(kind.name), "no change for kind {}", kind.name);
    }
    let stage = whole();
    let checks = verify(&stage.plan, &stage.root(), None).unwrap();
    let manual: Vec<_> = checks.iter().filter(|check| check.state == State::Manual).collect();
    assert_eq!((manual.len(), manual[0].expected.as_str()), (1, "somebody must look"));
}

#[test]
fn each_change_is_found_named_and_mended() {
    let untouched = whole();
    assert_eq!(failed(&untouched), []);
    for (at, (kind, name, change)) in CHANGES.iter().enumerate() {
        let mut stage = whole();
        change(&stage);
        let found = failed(&stage);
        let names: Vec<_> = found.iter().map(|c| format!("{} {}", c.act, c.key)).collect();
        assert!(names.iter().any(|found| found == name), "change {at}, {name}: {names:?}");
        for check in &found {
            let of_kind = |from: &String| from.starts_with(&format!("{kind}/"));
            assert!(check.from.iter().any(of_kind), "change {at}: {:?} is no {kind}", check.from);
            assert!(!check.remedy.is_empty(), "{check:?}");
            assert_ne!(check.expected, check.actual);
        }
        if !OTHERS.contains(&name.split(' ').next().unwrap()) {
            stage.plan = without_command(&stage.plan);
            stage.apply().unwrap();
            assert_eq!(failed(&stage), [], "change {at}, {name}");
        }
    }
}

fn without_command(plan: &ImagePlan) -> ImagePlan {
    let mut plan = plan.clone();
    plan.items.retain(|item| !matches!(item.act, Act::Command { .. }));
    plan
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
         options = ['nodev', 'noexec']\nreason = 'r'\n\
         [[mount]]\npath = '/tmp'\nsource = 'tmpfs'\ntype = 'tmpfs'\n\
         options = ['nodev', 'mode=1777', 'size=50%', 'nofail', 'x-systemd.automount']\nreason = 'r'\n",
    );
    stage.apply().unwrap();
    let kernel = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/sys/kernel/panic", "0\n"),
        ("proc/sys/kernel/pid_max", "4194304\n"),
        ("proc/cmdline", "root=/dev/vda1 audit=1 quiet\n"),
        (
            "proc/self/mountinfo",
            "30 1 0:25 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw,size=64k\n\
             31 1 0:26 / /tmp rw,nodev - tmpfs tmpfs rw,size=509000k\n",
        ),
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
    assert_eq!(state("mount /tmp"), (State::Pass, "mounted".into()));
    assert_eq!(state("mount /var/lib/containerd"), (State::Fail, "not mounted".into()));
    assert_eq!(state("unit tenon-x.service").0, State::Unknown);
    assert!(checks.iter().all(|c| c.half == Half::Running || c.state != State::Fail));
    let only: Vec<_> = checks.iter().filter(|c| concerns(&stage.plan, c, "module")).collect();
    assert_eq!(only.len(), 4);
    assert!(checks.iter().all(|c| concerns(&stage.plan, c, "test")));
}
