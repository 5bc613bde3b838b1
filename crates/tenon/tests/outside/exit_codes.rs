//! Every exit code, by a run that earns it.
//!
//! Two codes have no case here: 8 needs a service manager with a broken unit (`e2e/`), and 70 a
//! mistake of ours.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::Signal;
use tenon_host::apply::Lock;
use tenon_host::root::Root;
use tenon_host::simulator::faults::{Faults, Rule};
use tenon_host::simulator::profile::Profile;

use crate::desk::{
    Desk, NOBODY, TENON, code, files_below, json, profile, quiet_command, signal, skipped, stderr,
    tenon, until,
};

/// A config with mistakes of several kinds.
const MISTAKES: &str = "tests/fixtures/mistakes.yaml";

/// What must be seen of a failed run: its code, and these words on standard error.
#[track_caller]
fn assert_failure(output: &Output, exit: i32, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(code(output), exit, "{text}");
    for word in words {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
    assert!(!text.contains("panic"), "{text}");
}

#[test]
fn code_0_done_and_already_done() {
    let desk = Desk::new();
    for (result, changed) in [("changed", true), ("unchanged", false)] {
        let output = desk.init(&["--output", "json"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let answer = json(&output);
        assert_eq!(answer["result"], result);
        assert!(answer["planHash"].as_str().unwrap().starts_with("sha256:"), "{answer}");
        assert_eq!(answer["changes"].as_array().unwrap().is_empty(), !changed);
    }
}

#[test]
fn code_1_a_check_that_finds_something() {
    let desk = Desk::new();
    let script = desk.file("old.sh", "#!/bin/bash\n/etc/eks/bootstrap.sh my-cluster\n");
    let output = desk.run(&["userdata", "lint", "--family", "AmazonLinux2023", &script]);
    assert_eq!(code(&output), 1, "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("TN01404"), "{output:?}");
}

#[test]
fn a_drill_does_not_mistake_a_long_config_for_a_fault() {
    let desk = Desk::new();
    let sample = tenon_host::rehearsal::SAMPLE;
    let config = desk.file("long.yaml", &format!("{sample}{}", "# \n".repeat(sample.len())));
    let output = desk.run(&["rehearse", "--faults", "-c", &config, "--also", &config]);
    assert_eq!(code(&output), 0, "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("13 passed, 0 failed"));
}

#[test]
fn code_2_changes_are_pending() {
    let desk = Desk::new();
    let plan = |more: &str| code(&desk.run(&["plan", "--root", desk.root(), more]));
    assert_eq!((plan("--diff"), plan("--exit-code")), (0, 2));
    assert_eq!(code(&desk.init(&[])), 0);
    // What the run phase would do is still pending; without it nothing is.
    let skip = |phase: &str| {
        code(&desk.run(&["plan", "--root", desk.root(), "--exit-code", "--skip", phase]))
    };
    assert_eq!((plan("--exit-code"), skip("config"), skip("run")), (2, 2, 0));
}

#[test]
fn code_3_a_wrong_config_with_every_finding() {
    let desk = Desk::new();
    let before = files_below(desk.root.path());
    let output = desk.init(&["-c", MISTAKES, "--output", "json"]);
    assert_eq!(code(&output), 3);
    let found = json(&output)["findings"].as_array().unwrap().len();
    let check = tenon(&["config", "check", "-c", MISTAKES, "--output", "json"]);
    assert_eq!(found, json(&check)["findings"].as_array().unwrap().len());
    assert!(found > 15, "{found}");
    assert_eq!(files_below(desk.root.path()), before, "nothing is touched");
}

#[test]
fn code_3_user_data_that_cannot_be_decoded_is_not_no_config() {
    for user_data in [&b"\x1f\x8b\x08\x00garbage"[..], b"\xff\xfe\x00\x01", b"kind: [\n"] {
        let desk = Desk::of(&profile().with_user_data(user_data.to_vec()), Faults::default());
        assert_failure(&desk.init(&[]), 3, &["imds://user-data"]);
    }
}

#[test]
fn code_4_no_source_has_a_config() {
    let script = b"#!/bin/sh\necho hello\n".to_vec();
    let bare = Profile { user_data: None, ..profile() };
    for profile in
        [bare, profile().with_user_data(b" \n".to_vec()), profile().with_user_data(script)]
    {
        let desk = Desk::of(&profile, Faults::default());
        let empty = desk.side.path().join("empty");
        fs::create_dir(&empty).unwrap();
        let output = desk.init(&["-c", "imds://user-data", "-c", empty.to_str().unwrap()]);
        assert_failure(&output, 4, &["TN04001", "imds://user-data", "empty"]);
    }
}

#[test]
fn code_5_nobody_at_the_metadata_address() {
    let desk = Desk::new();
    for arguments in [
        &["init", "--skip", "run", "--imds-timeout", "200ms"][..],
        &["facts", "--imds-timeout", "200ms"],
        &["plan", "--imds-timeout", "200ms"],
        &["net", "wait", "--timeout", "200ms"],
    ] {
        let output =
            quiet_command(TENON).args(arguments).args(["--root", desk.root()]).output().unwrap();
        let address = NOBODY.trim_start_matches("http://");
        assert_failure(&output, 5, &["TN05001", address]);
    }
}

#[test]
fn code_5_a_metadata_service_that_never_answers() {
    let rule = Rule { hang: true, ..Rule::on("*") };
    let desk = Desk::of(&profile(), Faults::of([rule]));
    let output = desk.init(&["--imds-timeout", "200ms"]);
    let address = desk.simulator.address().to_string();
    assert_failure(&output, 5, &["error TN05", &address]);
}

#[test]
fn code_6_a_target_that_is_no_file() {
    let desk = Desk::new();
    let place = desk.path("etc/containerd/config.toml");
    fs::create_dir_all(&place).unwrap();
    assert_failure(&desk.init(&[]), 6, &["TN06002", "/etc/containerd/config.toml"]);
    assert!(!desk.path("var/lib/kubelet/kubeconfig").exists());
}

#[test]
fn code_6_no_service_manager() {
    if !rustix::process::geteuid().is_root() {
        return skipped("no service manager", "without --skip run, init needs root");
    }
    let desk = Desk::new();
    let output = desk.run(&["init", "--root", desk.root()]);
    assert_failure(&output, 6, &["TN06006", "system_bus_socket"]);
}

#[test]
fn code_6_not_root() {
    let desk = Desk::new();
    // Another user must be able to reach the binary and to write below the root.
    let binary = desk.side.path().join("tenon");
    fs::copy(TENON, &binary).unwrap();
    for directory in [desk.side.path(), desk.root.path()] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let permitted = Command::new("setpriv").args(nobody).arg("true").output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        return skipped("not root", "setpriv cannot change the user here");
    }
    let output = desk
        .command("/usr/bin/env", &["setpriv"])
        .args(nobody)
        .arg(&binary)
        .args(["init", "--root", desk.root()])
        .output()
        .unwrap();
    assert_failure(&output, 6, &["TN06010", "--skip run"]);
}

/// Runs a shell line in a mount namespace of its own; None where that is not allowed.
fn in_mount_namespace(desk: &Desk, script: &str) -> Option<Output> {
    let probe = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "x", "/mnt"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skipped("a file system of the test's own", "unshare -m is not permitted here");
        return None;
    }
    let mut command = desk.command("/usr/bin/env", &["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
    command.args(["unshare", "-m", "sh", "-euc", script, "sh", TENON, desk.root()]);
    Some(command.output().unwrap())
}

/// Runs init on a machine that has been set up, with `/etc` on a file system made by `mount`.
fn init_on_other_etc(mount: &str, exit: i32, words: &[&str]) {
    let desk = Desk::new();
    assert_eq!(code(&desk.init(&[])), 0);
    let changed = tenon_host::rehearsal::SAMPLE.replace("team=web", "team=other");
    let config = desk.file("changed.yaml", &changed);
    let script = format!(
        "cp -a \"$2/etc\" \"$2/saved\"
         {mount}
         \"$1\" init --root \"$2\" --skip run -c {config} && code=0 || code=$?
         rm -f \"$2/etc/ballast\"
         diff -r \"$2/etc\" \"$2/saved\" >&2
         exit $code"
    );
    let Some(output) = in_mount_namespace(&desk, &script) else { return };
    assert_failure(&output, exit, words);
}

#[test]
fn code_7_row_31_a_full_disk_leaves_the_old_files() {
    let mount = "mount -t tmpfs -o size=256k x \"$2/etc\"; cp -a \"$2/saved/.\" \"$2/etc/\"
                 cat /dev/zero > \"$2/etc/ballast\" 2>/dev/null || true";
    init_on_other_etc(mount, 7, &["TN07", "bytes are needed", "/etc"]);
}

#[test]
fn code_7_row_33_no_inodes_left_leaves_the_old_files() {
    let mount = "mount -t tmpfs -o nr_inodes=64 x \"$2/etc\"; cp -a \"$2/saved/.\" \"$2/etc/\"
                 n=0; while touch \"$2/etc/ballast-$n\" 2>/dev/null; do n=$((n+1)); done
                 rm -rf \"$2/saved\"; cp -a \"$2/etc\" \"$2/saved\"";
    init_on_other_etc(mount, 7, &["TN07", "inodes are needed", "/etc"]);
}

#[test]
fn code_7_row_35_a_read_only_etc() {
    let mount = "mount --bind \"$2/etc\" \"$2/etc\"; mount -o remount,bind,ro \"$2/etc\"";
    init_on_other_etc(mount, 7, &["TN07", "read-only", "/etc"]);
}

#[test]
fn code_7_a_limit_on_the_size_of_files_is_no_signal() {
    let desk = Desk::new();
    let before = files_below(desk.root.path());
    let script = "ulimit -f 0; exec \"$0\" init --skip run --root \"$1\"";
    let output = desk.command("/bin/sh", &["-c", script, TENON, desk.root()]).output().unwrap();
    assert_failure(&output, 7, &["TN07", "File too large"]);
    assert_eq!(files_below(desk.root.path()), before, "nothing half written stays");
}

#[test]
fn code_7_files_that_are_not_there() {
    for arguments in [
        &["config", "check", "-c", "/nowhere/node.yaml"][..],
        &["plan", "--facts", "/nowhere/facts.json"],
        &["status", "--root", "/nowhere"],
        &["undo", "--root", "/nowhere"],
        &["imds", "serve", "--instance-type", "m5.large", "--user-data", "/nowhere/x"],
    ] {
        assert_failure(&tenon(arguments), 7, &["TN07", "/nowhere"]);
    }
}

#[test]
fn code_7_files_without_an_end() {
    for arguments in [
        &["plan", "--facts", "/dev/zero"][..],
        &["rehearse", "-c", "/dev/zero"],
        &["imds", "serve", "--instance-type", "m5.large", "--faults", "/dev/zero"],
    ] {
        assert_failure(&tenon(arguments), 7, &["TN07001", "/dev/zero", "too large"]);
    }
    assert_failure(&tenon(&["config", "check", "-c", "/dev/zero"]), 3, &["TN03210"]);
}

#[test]
fn code_9_a_state_that_does_not_come() {
    let desk = Desk::new();
    let arguments = ["status", "--wait", "configured", "--timeout", "10ms", "--root", desk.root()];
    assert_failure(&desk.run(&arguments), 9, &["TN09010"]);
    assert_eq!(code(&desk.init(&[])), 0);
    assert_eq!(code(&desk.run(&arguments)), 0);
}

#[test]
fn code_10_aws_is_needed_and_does_not_answer() {
    let config =
        "apiVersion: tenon.dev/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {name: web}\n";
    let desk = Desk::new();
    let config = desk.file("short.yaml", config);
    let output = desk
        .command(TENON, &["init", "--skip", "run", "-c", &config, "--root", desk.root()])
        .env("AWS_MAX_ATTEMPTS", "1")
        .output()
        .unwrap();
    assert_failure(&output, 10, &["TN10"]);
    assert!(!desk.path("etc/kubernetes/kubelet/config.json").exists());
}

#[test]
fn code_11_row_41_another_run_holds_the_lock() {
    let desk = Desk::new();
    assert_eq!(code(&desk.init(&[])), 0);
    let root = Root::open(desk.root.path()).unwrap();
    let lock = Lock::take(&root, Duration::ZERO).unwrap();
    let holder = std::process::id().to_string();
    assert_failure(&desk.init(&[]), 11, &["TN11001", &holder]);
    let undo = desk.run(&["undo", "--wait-lock", "5ms", "--root", desk.root()]);
    assert_failure(&undo, 11, &["TN11001"]);
    assert_eq!(desk.simulator.count("/token"), 1, "a run that may not work asks nobody");
    drop(lock);
    assert_eq!(code(&desk.init(&[])), 0);
}

#[test]
fn code_12_row_44_a_record_of_a_newer_tenon() {
    let desk = Desk::new();
    assert_eq!(code(&desk.init(&[])), 0);
    let record = desk.path("var/lib/tenon/record.json");
    let text = fs::read_to_string(&record).unwrap();
    let newer = text.replacen("\"schema\": 1", "\"schema\": 99", 1);
    assert_ne!(newer, text);
    fs::write(&record, &newer).unwrap();
    for command in ["init", "plan", "undo", "status"] {
        let mut arguments = vec![command, "--root", desk.root()];
        if command == "init" {
            arguments.extend(["--skip", "run"]);
        }
        assert_failure(&desk.run(&arguments), 12, &["TN12", "/var/lib/tenon/record.json"]);
    }
    assert_eq!(fs::read_to_string(&record).unwrap(), newer);
}

#[test]
fn code_64_bad_usage() {
    for arguments in [
        &[][..],
        &["nope"],
        &["init", "--nope"],
        &["init", "--skip", "lunch"],
        &["init", "--imds-timeout", "soon"],
        &["init", "--config-source", ""],
        &["rehearse", "--facts", "facts.json"],
        &["doctor", "--offline", "--facts", "facts.json"],
        &["status", "--facts", "facts.json"],
        &["doctor", "--watch", "--root", "tests"],
        &["doctor", "--watch", "--bundle", "x.tar.gz"],
        &["logs", "list", "--facts", "facts.json"],
        &["plan", "--output", "xml"],
        &["net", "udev", "--interface", "eth0", "--action", "spin"],
        &["explain", "spec.nope"],
        &["simulate", "fleet", "--nodes", "0"],
        &["simulate", "fleet", "--from", "tests/fixtures/mistakes.yaml"],
    ] {
        let output = tenon(arguments);
        assert_eq!(code(&output), 64, "{arguments:?} {output:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

/// A run that waits for a metadata service which never answers.
fn stopped_while_waiting(number: Signal, exit: i32) {
    let rule = Rule { hang: true, ..Rule::on("*") };
    let desk = Desk::of(&profile(), Faults::of([rule]));
    let before = files_below(desk.root.path());
    let child =
        desk.command(TENON, &["init", "--skip", "run", "--root", desk.root()]).spawn().unwrap();
    until("the first request", || !desk.simulator.log().is_empty());
    signal(&child, number);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), exit, "{}", stderr(&output));
    assert!(stderr(&output).contains("stopped by"), "{}", stderr(&output));
    // Counts, not clocks: within its first attempt, that is long before any deadline.
    assert_eq!(desk.simulator.log().len(), 1);
    assert_eq!(files_below(desk.root.path()), before, "no temporaries");
}

#[test]
fn code_130_sigint_while_waiting() {
    stopped_while_waiting(Signal::INT, 130);
}

#[test]
fn code_143_row_40_sigterm_while_waiting() {
    stopped_while_waiting(Signal::TERM, 143);
}

#[test]
fn nodeadm_knows_one_failure() {
    let desk = Desk::new();
    let nodeadm = desk.named("nodeadm");
    let internal = desk.named("nodeadm-internal");
    let run = |program: &Path, arguments: &[&str]| {
        let mut command = quiet_command(program);
        code(&command.args(arguments).output().unwrap())
    };
    for (program, arguments) in [
        (&nodeadm, &["config", "check", "-c", MISTAKES][..]),
        (&nodeadm, &["config", "check", "-c", "/nowhere"]),
        (&nodeadm, &["init", "--nope"]),
        (&nodeadm, &["init", "--skip", "run", "--root", desk.root(), "--imds-timeout", "50ms"]),
        (&internal, &["udev-net-manager", "-i", "", "-a", "add"]),
        (&internal, &["nope"]),
    ] {
        assert_eq!(run(program, arguments), 1, "{arguments:?}");
    }
    assert_eq!(run(&nodeadm, &["--help"]), 0);
}
