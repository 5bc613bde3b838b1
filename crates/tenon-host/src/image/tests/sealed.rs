//! Seal: what goes, what stays, what must not be left.

use super::*;
use crate::image::live;
use crate::image::record::Record;
use crate::image::seal::seal;

#[test]
fn what_belongs_to_one_machine_goes() {
    let stage = Stage::new();
    for path in [
        "etc/ssh/ssh_host_rsa_key",
        "etc/ssh/ssh_host_rsa_key.pub",
        "var/lib/cloud/instance/id",
        "home/admin/.ssh/authorized_keys",
        "root/.bash_history",
        "root/.viminfo",
        "home/admin/.lesshst",
        "var/lib/amazon/ssm/Vault/Store/RegistrationKey",
        "var/log/journal/x/system.journal",
        "var/cache/apt/pkgcache.bin",
        "var/lib/systemd/random-seed",
        "var/lib/tenon/record.json",
        "usr/sbin/policy-rc.d",
    ] {
        stage.write(path, b"x");
    }
    stage.write("etc/machine-id", b"0123456789abcdef0123456789abcdef\n");
    let sealed = seal(&stage.root(), false).unwrap();
    assert_eq!(sealed.left, []);
    assert_eq!(fs::read(stage.at("etc/machine-id")).unwrap(), b"");
    assert!(stage.at("var/log/journal/x").is_dir() && stage.at("var/cache/apt").is_dir());
    assert!(stage.at("usr/sbin/policy-rc.d").exists(), "somebody else's answer stays");
    assert_eq!(sealed.removed.len(), 13, "{:?}", sealed.removed);
    assert_eq!(seal(&stage.root(), false).unwrap().removed, Vec::<String>::new());
}

#[test]
fn what_must_not_be_left_is_found() {
    let stage = Stage::new();
    let key = b"-----BEGIN PRIVATE KEY-----\nMIIEv\n";
    let at_the_end = [vec![0xff; 20 << 20], key.to_vec()].concat();
    let found: &[(&str, &[u8], &str)] = &[
        ("build.env", b"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfi", "a credential"),
        ("etc/ssl/private/x.key", key, "a private key"),
        ("home/a/.aws/credentials", b"[default]\n", "a file of credentials"),
        ("opt/notes", b"key AKIAIOSFODNN7EXAMPLE\n", "an AWS access key"),
        ("srv/.netrc", b"machine", "a file of credentials"),
        ("usr/lib/tenon/image/plan.json", b"{\"token\": \"0123456789abcdef\"}", "a token"),
        ("usr/local/etc/kubeconfig", b"    token: 0123456789abcdef\n", "a token"),
        ("var/lib/disk.raw", &at_the_end, "a private key"),
    ];
    for (path, bytes, _) in found {
        stage.write(path, bytes);
    }
    stage.write("usr/share/doc/x/example.key", key);
    stage.write("usr/lib/python3/test/x.pem", key);
    let sealed = seal(&stage.root(), false).unwrap();
    let expected: Vec<_> =
        found.iter().map(|(path, _, what)| (format!("/{path}"), *what)).collect();
    assert_eq!(sealed.left, expected);
}

#[test]
fn a_stub_kubelet_is_for_tests() {
    let stage = Stage::new();
    stage.write("usr/bin/kubelet", b"#!/bin/sh\n# tenon stub kubelet\n");
    let problem = seal(&stage.root(), false).unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (6, "TN06819"));
    assert!(seal(&stage.root(), true).is_ok());
}

/// Live effects on a pretended kernel: told, made, recorded with what was there.
#[test]
fn live_changes_what_differs_and_only_that() {
    let profile = "about = 'x'\n[[sysctl]]\nkey = 'kernel.panic'\nvalue = '10'\nreason = 'r'\n\
        [[sysctl]]\nkey = 'kernel.pid_max'\nfloor = 100\nreason = 'r'\n\
        [[module]]\nname = 'overlay'\nstate = 'loaded'\nreason = 'r'\n";
    let kernel = tempfile::tempdir().unwrap();
    let at = |path: &str| kernel.path().join(path);
    fs::create_dir_all(at("proc/sys/kernel")).unwrap();
    fs::create_dir_all(at("sys/module/overlay")).unwrap();
    fs::write(at("proc/sys/kernel/panic"), "00\n").unwrap();
    fs::write(at("proc/sys/kernel/pid_max"), "200\n").unwrap();
    let root = Root::open(kernel.path()).unwrap();
    let effects = live::effects(&plan(profile), &root);
    assert!(fs::read_to_string(at("proc/sys/kernel/panic")).unwrap().starts_with("00"));
    live::change(&effects, &root).unwrap();
    assert_eq!(effects.len(), 1);
    assert_eq!((effects[0].before.as_str(), effects[0].after.as_str()), ("00", "10"));
    assert!(fs::read_to_string(at("proc/sys/kernel/panic")).unwrap().starts_with("10"));
    assert_eq!(live::effects(&plan(profile), &root), []);
    let mut record = Record::default();
    record.before_live.insert(effects[0].name.clone(), effects[0].before.clone());
    fs::create_dir_all(at("usr/lib/tenon/image")).unwrap();
    fs::write(at("usr/lib/tenon/image/record.json"), record.to_json().to_string()).unwrap();
    assert_eq!(live::restore(&root).unwrap().len(), 1);
    assert!(fs::read_to_string(at("proc/sys/kernel/panic")).unwrap().starts_with("00"));
    assert_eq!(live::restore(&root).unwrap(), [], "once");
    let stage = Stage::new();
    let options = Options { cache: None, live: true, files_only: false, probe: &|_| Ok(()) };
    let problem = apply::apply(&stage.plan, &stage.root(), options).unwrap_err();
    assert_eq!(problem.page.code, "TN06820");
}
