//! `--live` and its undo, on a root that is the machine's own: of a process with a root, a network
//! and mounts for itself, where programs that would reach the real machine are stand-ins.

use std::process::Command as Program;

use tenon_core::image::check::{Check, Half, State};

use super::*;
use crate::image::live;
use crate::image::verify::verify;

/// Set for the process whose root is the stage's.
const INSIDE: &str = "TENON_TEST_INSIDE";

/// Keeps the state of units in files, and notes what it was asked for.
const SYSTEMCTL: &str = "#!/bin/sh
echo \"systemctl $*\" >>/stand-in/log
case $1 in
is-active) cat \"/stand-in/$2\" 2>/dev/null || echo inactive ;;
start) [ ! -e \"/stand-in/broken\" ] && echo active >\"/stand-in/$2\" ;;
stop) echo inactive >\"/stand-in/$2\" ;;
esac
";
const MODPROBE: &str = "#!/bin/sh
echo \"modprobe $*\" >>/stand-in/log
case $1 in
-r) [ ! -e /stand-in/in-use ] && rm -r \"/sys/module/$2\" ;;
*) mkdir -p \"/sys/module/$1\" ;;
esac
";

const WISHES: &str = "about = 'x'
[[sysctl]]
key = 'net.ipv4.ip_forward'
value = '1'
reason = 'r'
[[sysctl]]
key = 'net.core.somaxconn'
floor = 16384
reason = 'r'
[[sysctl]]
key = 'net.ipv4.no_such_setting'
value = '1'
reason = 'r'
[[module]]
name = 'overlay'
state = 'loaded'
reason = 'r'
[[module]]
name = 'usb-storage'
state = 'denied'
reason = 'r'
[[kernel-argument]]
key = 'tenon-no-such-argument'
value = '1'
reason = 'r'
[[unit]]
name = 'lab.service'
content = \"[Service]\\nExecStart=/bin/true\\n\"
state = 'enabled'
wanted-by = ['multi-user.target']
reason = 'r'
[[mask]]
unit = 'ufw.service'
reason = 'r'
[[mount]]
path = '/var/lib/containerd'
source = 'LABEL=containerd'
type = 'xfs'
options = ['nodev']
reason = 'r'
";

/// Runs a test again with the stage as its root. Without a network of its own, settings would be
/// those of this machine.
fn on_own_machine(test: &str, work: impl FnOnce()) {
    if !is_root() {
        return;
    }
    if std::env::var_os(INSIDE).is_some() {
        return work();
    }
    // Programs do not run from every tmpfs.
    let stage = Stage::in_place(&std::env::temp_dir(), "");
    fs::remove_dir_all(stage.at("bin")).unwrap();
    for (name, text) in [("systemctl", SYSTEMCTL), ("modprobe", MODPROBE)] {
        stage.write(&format!("stand-in/{name}"), text.as_bytes());
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(stage.at(&format!("stand-in/{name}")), mode).unwrap();
    }
    stage.write("stand-in/ufw.service", b"inactive\n");
    fs::create_dir_all(stage.at("run/systemd/system")).unwrap();
    let script = "root=$1 own=$2 test=$3\n\
        show() { mkdir -p \"$root$1\"; mount --bind \"$1\" \"$root$1\"; \
        mount -o remount,bind,ro \"$root$1\"; }\n\
        for place in /usr/bin /usr/lib64 /usr/lib/*-linux-gnu; do [ ! -d $place ] || show $place; done\n\
        for name in bin lib lib64; do ln -s usr/$name \"$root/$name\"; done\n\
        mount -t proc proc \"$root/proc\"\n\
        : >\"$root/dev/null\"; mount --bind /dev/null \"$root/dev/null\"\n\
        : >\"$root/own\"; mount --bind \"$own\" \"$root/own\"\n\
        exec chroot \"$root\" /usr/bin/env PATH=/stand-in:/usr/bin /own --exact \"$test\" --nocapture";
    let own = std::env::current_exe().unwrap();
    let outside = fs::read("/proc/sys/net/ipv4/ip_forward").unwrap();
    let output = Program::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--propagation", "private", "sh", "-euc"])
        .args([script, "x"])
        .arg(stage.path())
        .arg(own)
        .arg(format!("image::tests::live::{test}"))
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    assert_eq!(fs::read("/proc/sys/net/ipv4/ip_forward").unwrap(), outside);
}

fn host() -> Root {
    Root::open(Path::new("/")).unwrap()
}

fn kernel(key: &str) -> String {
    fs::read_to_string(format!("/proc/sys/{key}")).unwrap().trim().to_owned()
}

fn asked() -> String {
    let log = fs::read_to_string("/stand-in/log").unwrap_or_default();
    let acts: Vec<&str> = log.lines().filter(|line| !line.contains("is-active")).collect();
    let _ = fs::remove_file("/stand-in/log");
    acts.join(", ")
}

fn apply(live: bool) -> Result<Report, Problem> {
    let options = Options { cache: None, live, files_only: false, probe: &|_| Ok(()) };
    apply::apply(&plan(WISHES), &host(), options)
}

fn effects(list: &[live::Effect]) -> Vec<String> {
    list.iter().map(|one| format!("{} {}>{}", one.name, one.before, one.after)).collect()
}

fn states(half: Half) -> BTreeMap<String, State> {
    let checks = verify(&plan(WISHES), &host(), Some(&host())).unwrap();
    let of_half = checks.into_iter().filter(|check: &Check| check.half == half);
    of_half.map(|check| (format!("{} {}", check.act, check.key), check.state)).collect()
}

const RUNNING: &[&str] = &[
    "kernel-argument tenon-no-such-argument",
    "mask ufw.service",
    "module overlay",
    "module usb-storage",
    "mount /var/lib/containerd",
    "sysctl net.core.somaxconn",
    "sysctl net.ipv4.ip_forward",
    "sysctl net.ipv4.no_such_setting",
    "unit lab.service",
];

/// Files alone without the flag; with it the machine, too; and back.
#[test]
fn the_machine_changes_only_when_asked_and_goes_back() {
    on_own_machine("the_machine_changes_only_when_asked_and_goes_back", || {
        let (forward, somaxconn) = ("net/ipv4/ip_forward", "net/core/somaxconn");
        fs::write(format!("/proc/sys/{forward}"), "0").unwrap();
        fs::write(format!("/proc/sys/{somaxconn}"), "128").unwrap();
        fs::write("/stand-in/lab.service", "inactive\n").unwrap();

        let report = apply(false).unwrap();
        assert!(report.changed.len() >= 6 && report.live.is_empty(), "{report:?}");
        assert_eq!((kernel(forward).as_str(), kernel(somaxconn).as_str()), ("0", "128"));
        assert_eq!(asked(), "", "no program was asked to change anything");
        assert!(states(Half::Files).values().all(|state| *state == State::Pass));
        let running = states(Half::Running);
        assert_eq!(running.keys().map(String::as_str).collect::<Vec<_>>(), RUNNING);
        let state = |name: &str| running[name];
        for name in ["module overlay", "mount /var/lib/containerd", "sysctl net.ipv4.ip_forward"] {
            assert_eq!(state(name), State::Fail, "{name}");
        }
        assert_eq!(state("kernel-argument tenon-no-such-argument"), State::Fail);
        assert_eq!(state("sysctl net.ipv4.no_such_setting"), State::Unknown);
        for name in ["module usb-storage", "mask ufw.service", "unit lab.service"] {
            assert_eq!(state(name), State::Pass, "{name}");
        }

        let report = apply(true).unwrap();
        assert_eq!(report.changed, Vec::<String>::new());
        assert_eq!(
            effects(&report.live),
            [
                "sysctl net.core.somaxconn 128>16384",
                "sysctl net.ipv4.ip_forward 0>1",
                "module overlay not loaded>loaded",
                "unit var-lib-containerd.mount inactive>active",
                "unit lab.service inactive>active",
            ]
        );
        assert_eq!((kernel(forward).as_str(), kernel(somaxconn).as_str()), ("1", "16384"));
        let started = "systemctl start var-lib-containerd.mount, systemctl start lab.service";
        assert_eq!(asked(), format!("systemctl daemon-reload, modprobe overlay, {started}"));
        assert_eq!(states(Half::Running)["sysctl net.ipv4.ip_forward"], State::Pass);

        let again = apply(true).unwrap();
        assert_eq!((again.live.len(), asked().as_str()), (0, ""), "there is nothing left to do");
        fs::write("/stand-in/lab.service", "failed\n").unwrap();
        assert_eq!(states(Half::Running)["unit lab.service"], State::Fail);
        assert!(states(Half::Files).values().all(|state| *state == State::Pass));

        let back = live::restore(&host()).unwrap();
        assert_eq!(back.len(), 5);
        assert_eq!((kernel(forward).as_str(), kernel(somaxconn).as_str()), ("0", "128"));
        assert_eq!(
            asked(),
            "systemctl stop lab.service, systemctl stop var-lib-containerd.mount, modprobe -r overlay"
        );
        assert!(states(Half::Files).values().all(|state| *state == State::Pass), "files stay");
        assert_eq!(live::restore(&host()).unwrap(), []);
    });
}

/// What cannot be started is told, and what was changed before it can still be undone; what cannot
/// be undone is kept for the next time.
#[test]
fn a_live_change_that_fails_can_be_undone() {
    on_own_machine("a_live_change_that_fails_can_be_undone", || {
        let forward = "net/ipv4/ip_forward";
        fs::write(format!("/proc/sys/{forward}"), "0").unwrap();
        fs::write("/stand-in/broken", "").unwrap();
        let problem = apply(true).unwrap_err();
        assert!(problem.what.contains("systemctl start"), "{}", problem.what);
        assert_eq!(kernel(forward), "1");
        fs::write("/stand-in/in-use", "").unwrap();
        let problem = live::restore(&host()).unwrap_err();
        assert!(problem.what.contains("modprobe -r overlay"), "{}", problem.what);
        assert_eq!(kernel(forward), "0", "the others went back");
        fs::remove_file("/stand-in/in-use").unwrap();
        let rest = live::restore(&host()).unwrap();
        assert_eq!(effects(&rest), ["module overlay >not loaded"]);
    });
}

#[test]
fn another_root_has_no_kernel() {
    let stage = Stage::new();
    let options = Options { cache: None, live: true, files_only: false, probe: &|_| Ok(()) };
    let before = stage.picture();
    let problem = apply::apply(&stage.plan, &stage.root(), options).unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (6, "TN06820"));
    assert_eq!(stage.picture(), before);
}
