//! The binary under the names of the tools that it stands in for.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use tenon_host::rehearsal::SAMPLE;
use tenon_host::simulator::faults::Faults;
use tenon_host::simulator::profile::Profile;

use crate::desk::{Desk, code, files_below, json, profile, skipped, stderr, stdout};

const ENDPOINT: &str = "https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com";

/// The files that a run made: everything that the machine did not have before.
fn made(desk: &Desk) -> BTreeMap<String, (u32, Vec<u8>)> {
    let bare = tempfile::tempdir().unwrap();
    crate::desk::furnish(bare.path());
    let before = files_below(bare.path());
    let mut files = files_below(desk.root.path());
    files.retain(|path, file| before.get(path) != Some(file) && !path.starts_with("var/lib/tenon"));
    files
}

fn run_as(desk: &Desk, name: &str, arguments: &[&str]) -> Output {
    desk.command(desk.named(name), arguments).output().unwrap()
}

fn certificate() -> &'static str {
    let line = SAMPLE.lines().find(|line| line.contains("certificateAuthority")).unwrap();
    line.split_once(": ").unwrap().1
}

#[test]
fn nodeadm_makes_the_files_that_tenon_makes() {
    let ours = Desk::new();
    assert_eq!(code(&ours.init(&[])), 0);
    let expected = made(&ours);
    assert!(expected.len() >= 8, "{:?}", expected.keys());
    for flags in [
        &["init", "-c", "imds://user-data", "--skip", "run", "--root"][..],
        &["init", "--config-source", "imds://user-data", "-s", "run", "--root"],
        &["-d", "init", "-s", "run", "--root"],
        &["--development", "init", "-d", "kubelet", "-d", "containerd", "--skip", "run", "--root"],
    ] {
        let desk = Desk::new();
        let mut arguments = flags.to_vec();
        arguments.push(desk.root());
        let output = run_as(&desk, "nodeadm", &arguments);
        assert_eq!(code(&output), 0, "{flags:?} {}", stderr(&output));
        assert_eq!(made(&desk), expected, "{flags:?}");
        let development = flags[0] != "init";
        assert_eq!(stderr(&output).contains("DEBUG"), development, "{flags:?}");
    }
}

#[test]
fn nodeadm_takes_files_directories_and_a_cache() {
    let bare = Profile { user_data: None, ..profile() };
    let ours = Desk::new();
    assert_eq!(code(&ours.init(&[])), 0);
    for source in ["file://FILE", "FILE", "file://DIRECTORY", "DIRECTORY"] {
        let desk = Desk::of(&bare, Faults::default());
        let file = desk.file("node.yaml", SAMPLE);
        let directory = desk.side.path().to_str().unwrap().to_owned();
        let source = source.replace("FILE", &file).replace("DIRECTORY", &directory);
        let cache = "/run/eks/nodeadm/config.json";
        let arguments =
            ["init", "-c", &source, "--config-cache", cache, "-s", "run", "--root", desk.root()];
        let output = run_as(&desk, "nodeadm", &arguments);
        assert_eq!(code(&output), 0, "{source} {}", stderr(&output));
        let mut files = made(&desk);
        let (mode, cached) = files.remove("run/eks/nodeadm/config.json").unwrap();
        assert_eq!((mode, cached.first(), cached.ends_with(b"\n")), (0o600, Some(&b'{'), true));
        assert_eq!(files, made(&ours), "{source}");
    }
}

#[test]
fn nodeadm_checks_a_config() {
    let desk = Desk::new();
    let good = desk.file("good.yaml", SAMPLE);
    let bad = desk.file("bad.yaml", &SAMPLE.replace("cidr: 10.100.0.0/16", "cidr: ten"));
    for (file, exit) in [(&good, 0), (&bad, 1)] {
        let source = format!("file://{file}");
        let output = run_as(&desk, "nodeadm", &["config", "check", "-c", &source]);
        assert_eq!(code(&output), exit, "{}", stderr(&output));
    }
    assert!(desk.simulator.log().is_empty(), "checking a file asks nobody");
}

#[test]
fn nodeadm_dumps_a_config_in_its_own_kind() {
    let desk = Desk::new();
    let expected = run_as(&desk, "nodeadm", &["config", "dump", "-c", "imds://user-data"]);
    assert_eq!(code(&expected), 0, "{}", stderr(&expected));
    assert_eq!(json(&expected)["apiVersion"], "node.eks.aws/v1alpha1");
    let file = desk.side.path().join("dumped.json");
    let arguments = ["config", "dump", "--config-output", file.to_str().unwrap()];
    let output = run_as(&desk, "nodeadm", &arguments);
    assert_eq!((code(&output), output.stdout.len()), (0, 0), "{}", stderr(&output));
    assert_eq!(std::fs::read(&file).unwrap(), expected.stdout);
}

#[test]
fn the_second_phase_of_an_image_uses_the_cache_of_the_first() {
    let desk = Desk::new();
    let cache = "/run/eks/nodeadm/config.json";
    let phase = |skip: &str| {
        let before = desk.simulator.log().len();
        let arguments =
            ["init", "--skip", skip, "--config-cache", cache, "-d", "", "--root", desk.root()];
        let output = run_as(&desk, "nodeadm", &arguments);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        desk.simulator.log().len() - before
    };
    let first = phase("run");
    if !rustix::process::geteuid().is_root() {
        return skipped("the run phase", "it needs root");
    }
    let second = phase("config");
    // A token, the user data, which may have changed, and whether this is still the machine.
    assert_eq!(second, 3);
    assert!(first + second <= 10, "{first} and {second} requests over both phases");
    assert!(desk.path("run/nodeadm/init").exists());
}

#[test]
fn a_cache_that_no_longer_fits_costs_a_full_round() {
    let desk = Desk::new();
    let run = || {
        let before = desk.simulator.log().len();
        assert_eq!(code(&desk.init(&["--config-cache", "/run/cache.json"])), 0);
        desk.simulator.log().len() - before
    };
    assert_eq!((run(), run()), (6, 3));
    desk.simulator.set("user-data", &SAMPLE.replace("team=web", "team=other"));
    assert_eq!(run(), 7, "the new config makes a new look at the machine necessary");
    assert_eq!(run(), 3);
}

/// The arguments of a `bootstrap.sh` line that needs no AWS call.
fn bootstrap_arguments() -> Vec<&'static str> {
    vec![
        "my-cluster",
        "--apiserver-endpoint",
        ENDPOINT,
        "--b64-cluster-ca",
        certificate(),
        "--kubelet-extra-args",
        "--node-labels=team=web,stage=test --register-with-taints='dedicated=web:NoSchedule'",
        "--dns-cluster-ip",
        "10.100.0.10",
        "--use-max-pods=false",
    ]
}

#[test]
fn bootstrap_sh_makes_the_files_of_the_converted_document() {
    let desk = Desk::new();
    let arguments = bootstrap_arguments();
    let mut print = vec!["--root", desk.root()];
    print.extend(&arguments);
    print.push("--print-config");
    let output = run_as(&desk, "bootstrap.sh", &print);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let converted = desk.file("converted.yaml", &stdout(&output));
    assert_eq!(code(&desk.init(&["-c", &converted])), 0);

    let script = Desk::new();
    let mut run = vec!["--root", script.root()];
    run.extend(&arguments);
    let output = run_as(&script, "bootstrap.sh", &run);
    assert_eq!(code(&output), 6, "{}", stderr(&output));
    if !rustix::process::geteuid().is_root() {
        return skipped("the files of bootstrap.sh", "it needs root");
    }
    // Without a service manager the run phase cannot follow; the files are there by then.
    assert!(stderr(&output).contains("TN06006"), "{}", stderr(&output));
    let files = made(&script);
    for (path, file) in made(&desk) {
        assert_eq!(files.get(&path), Some(&file), "{path}");
    }
    let environment = String::from_utf8(files["etc/eks/kubelet/environment"].1.clone()).unwrap();
    for word in ["--node-labels=team=web,stage=test", "dedicated=web:NoSchedule"] {
        assert!(environment.contains(word), "{environment}");
    }
}

#[test]
fn bootstrap_sh_takes_its_options_anywhere_and_in_both_forms() {
    let desk = Desk::new();
    let authority = format!("--b64-cluster-ca={}", certificate());
    let endpoint = format!("--apiserver-endpoint={ENDPOINT}");
    let print = |arguments: &[&str]| {
        let mut all = vec!["--output", "json"];
        all.extend(arguments);
        all.push("--print-config");
        json(&run_as(&desk, "bootstrap.sh", &all))
    };
    let expected = print(&["web", &authority, &endpoint, "--dns-cluster-ip=10.100.0.10"]);
    assert_eq!(expected["spec"]["kubelet"]["config"]["clusterDNS"][0], "10.100.0.10");
    for arguments in [
        &[&authority, &endpoint, "--dns-cluster-ip", "10.100.0.10", "web"][..],
        &["--dns-cluster-ip", "10.100.0.10", "web", &authority, &endpoint],
        &[&authority, "web", "--dns-cluster-ip=10.100.0.10", "--apiserver-endpoint", ENDPOINT],
    ] {
        assert_eq!(print(arguments), expected, "{arguments:?}");
    }
}

#[test]
fn bootstrap_sh_refuses_what_it_does_not_know() {
    let desk = Desk::new();
    let known = bootstrap_arguments();
    for (more, word) in [
        (&["--apiserver-endpiont", "x"][..], "--apiserver-endpoint"),
        (&["--container-runtime", "dockerd"], "dockerd"),
        (&["second-cluster"], "once"),
    ] {
        let mut arguments = known.clone();
        arguments.extend(more);
        let output = run_as(&desk, "bootstrap.sh", &arguments);
        assert_eq!(code(&output), 3, "{more:?} {}", stderr(&output));
        assert!(stderr(&output).contains(word), "{word}: {}", stderr(&output));
    }
    assert!(desk.simulator.log().is_empty());
}

#[test]
fn the_conversion_at_the_desk_is_the_one_on_the_node() {
    let desk = Desk::new();
    let facts = desk.facts();
    let mut arguments = vec!["--facts", &facts, "--output", "json"];
    arguments.extend(bootstrap_arguments());
    arguments.push("--print-config");
    let at_desk = json(&run_as(&desk, "bootstrap.sh", &arguments));
    let on_node: Vec<_> = ["--output", "json"]
        .into_iter()
        .chain(bootstrap_arguments())
        .chain(["--print-config"])
        .collect();
    assert_eq!(at_desk, json(&run_as(&desk, "bootstrap.sh", &on_node)));
    assert_eq!(at_desk["spec"]["cluster"]["name"], "my-cluster");
}

#[test]
fn nodeadm_internal_sets_up_links() {
    let desk = Desk::new();
    let file = Path::new("run/systemd/network/70-eks-ens5.network");
    for (action, there) in [("add", true), ("remove", false)] {
        let arguments =
            ["udev-net-manager", "--action", action, "--interface", "ens5", "--root", desk.root()];
        let output = run_as(&desk, "nodeadm-internal", &arguments);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_eq!(desk.root.path().join(file).exists(), there, "{action}");
    }
}
