//! The README's first command, and the drill.

use std::fs;

use tenon_host::rehearsal::SAMPLE;

use crate::desk::{Desk, code, files_below, json, stderr, stdout};

#[test]
fn the_first_command_of_the_readme() {
    let desk = Desk::new();
    let before = files_below(desk.root.path());
    let output = desk.run(&["rehearse"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for word in [
        "+ /etc/kubernetes/kubelet/config.json\n",
        "+ /var/lib/kubelet/kubeconfig\n",
        "6 metadata requests with 1 token",
        "timeline,",
        "second run: 0 changes",
    ] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
    assert!(desk.simulator.log().is_empty(), "a rehearsal has a metadata service of its own");
    assert_eq!(files_below(desk.root.path()), before);
}

#[test]
fn the_fault_drill_passes_with_the_sample() {
    let desk = Desk::new();
    let output = desk.run(&["rehearse", "--faults", "--output", "json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let answer = json(&output);
    let cases = answer["cases"].as_array().unwrap();
    assert!(cases.len() >= 13, "{answer:#}");
    for case in cases {
        assert_eq!(case["exit"], case["expected"], "{case}");
        assert_eq!((&case["cured"], &case["felt"]), (&true.into(), &true.into()), "{case}");
    }
}

#[test]
fn a_rehearsal_leaves_nothing_behind_unless_asked() {
    let desk = Desk::new();
    let place = desk.side.path().join("tmp");
    fs::create_dir(&place).unwrap();
    let entries = || fs::read_dir(&place).unwrap().count();
    let rehearse = |arguments: &[&str]| {
        let mut command = desk.command(crate::desk::TENON, &["rehearse"]);
        let output = command.args(arguments).env("TMPDIR", &place).output().unwrap();
        (code(&output), stderr(&output))
    };
    assert_eq!(rehearse(&[]).0, 0);
    assert_eq!(rehearse(&["--faults"]).0, 0);
    assert_eq!(entries(), 0);
    let (exit, story) = rehearse(&["--keep"]);
    assert_eq!((exit, entries()), (0, 1));
    let kept = story.trim().strip_prefix("the sandbox is ").unwrap();
    assert!(fs::exists(format!("{kept}/etc/kubernetes/kubelet/config.json")).unwrap());
}

#[test]
fn hooks_are_for_the_node_alone() {
    let desk = Desk::new();
    let witness = desk.side.path().join("witness");
    let touch = format!("argv: [/usr/bin/touch, {}]", witness.display());
    let config = SAMPLE.replace("node.eks.aws/v1alpha1", "tenon.dev/v1alpha1")
        + &format!(
            "  hooks:\n    preBootstrap: [{{name: a, {touch}}}]\n    postConfig: [{{name: b, {touch}}}]\n"
        );
    let config = desk.file("hooks.yaml", &config);
    assert_eq!(code(&desk.run(&["rehearse", "-c", &config])), 0);
    let output = desk.init(&["-c", &config]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).contains("not run under --root: hook `b`"), "{}", stderr(&output));
    assert!(!witness.exists(), "a hook ran on the machine of the rehearsal");
}
