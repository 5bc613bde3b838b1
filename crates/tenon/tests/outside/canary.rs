//! A config full of markers goes through every command: no marker may come out where it is not
//! asked for, and each may lie in its own file only.

use std::collections::BTreeSet;
use std::process::Output;

use tenon_host::rehearsal::SAMPLE;
use tenon_host::simulator::faults::{Faults, Rule};

use crate::desk::{Desk, TENON, code, files_below, profile, stderr};

/// Every marker begins like this and goes on with the name of its place.
const MARKER: &str = "CANARY-";

/// A valid config with a marker in every place that may hold a secret.
fn valid() -> String {
    let sample = SAMPLE
        .replace("node.eks.aws/v1alpha1", "tenon.dev/v1alpha1")
        .replace("30s\n", "30s\n      staticPodURLHeader: {X-Token: [CANARY-header]}\n");
    format!(
        "{sample}  instance:
    environment:
      default: {{A_PASSWORD: CANARY-default}}
      kubelet: {{B: CANARY-kubelet-environment}}
      my-agent: {{C: \"CANARY-agent\\nCANARY-agent-second-line\"}}
    proxy:
      http: http://user:CANARY-proxy@proxy.corp:3128
      https: http://CANARY-proxy-user:x@proxy.corp:3128
  hooks:
    preBootstrap: [{{name: pre, script: \"echo CANARY-pre-hook\\n\"}}]
    postConfig: [{{name: post, script: \"echo CANARY-post-hook >&2; exit 3\\n\", onFailure: warn}}]
    postJoin: [{{name: join, argv: [/bin/echo, --token=CANARY-argv]}}]
"
    )
}

/// Configs with a secret in a wrong place, in a wrong form, or both.
fn broken() -> Vec<String> {
    let kept = |from: &str, to: &str| {
        let text = valid().replace(from, to);
        assert!(text.contains(to), "{to}");
        text
    };
    let authority = SAMPLE.lines().find(|line| line.contains("certificateAuthority")).unwrap();
    let authority = authority.trim().to_owned();
    vec![
        kept("name: rehearsal", "name: CANARY name"),
        kept("name: rehearsal", "name: [CANARY-list]"),
        kept("https://0123456789", "ftp://user:CANARY-endpoint@0123456789"),
        kept(&authority, "certificateAuthority: CANARY-not-base64!"),
        kept(&authority, "certificateAuthority: Q0FOQVJZLWluLWJhc2U2NA=="),
        kept("cidr: 10.100.0.0/16", "cidr: CANARY-cidr"),
        kept("shutdownGracePeriod: 30s", "shutdownGracePeriod: CANARY-period"),
        kept("shutdownGracePeriod: 30s", "staticPodURL: {CANARY-key: CANARY-value}"),
        kept("team=web", "team=CANARY label value"),
        kept("- --node-labels", "- \"--token=CANARY-flag\\nsecond\"\n      - --node-labels"),
        kept("- --node-labels", "- CANARY-no-flag\n      - --node-labels"),
        kept("A_PASSWORD: CANARY-default", "A-B: CANARY-bad-name"),
        kept("A_PASSWORD: CANARY-default", "A_PASSWORD: \"CANARY\\u0007bell\""),
        kept("http: http://user:CANARY-proxy@", "http: proxy-CANARY://user:CANARY-proxy@"),
        kept("name: pre, script", "name: pre, argv: [relative/CANARY-path], script"),
        kept("onFailure: warn", "onFailure: CANARY-word"),
        kept("onFailure: warn", "timeout: CANARY-time"),
        kept("  hooks:\n", "  containerd: {config: \"[CANARY-toml\\n\"}\n  hooks:\n"),
        kept("  hooks:\n", "  node: {labels: {a: \"CANARY bad\"}, name: CANARY-name}\n  hooks:\n"),
        kept("  hooks:\n", "  kubelet: CANARY-duplicate\n  hooks:\n"),
        kept("  hooks:\n", "  hooks: \"CANARY-open-quote\n"),
        kept("kind: NodeConfig", "kind: CANARY kind"),
        kept("tenon.dev/v1alpha1", "tenon.dev/CANARY version"),
        "CANARY-only-text\n".to_owned(),
        "#!/bin/sh\nexport TOKEN=CANARY-script\n".to_owned(),
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=CANARY-boundary\n\nCANARY-part\n"
            .to_owned(),
        "{\"kind\": \"NodeConfig\", \"CANARY-json\"".to_owned(),
    ]
}

/// A marker may stand in its own words only where the fields of a config are named.
#[track_caller]
fn assert_silent(output: &Output, what: &str) {
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = String::from_utf8_lossy(bytes);
        let found: Vec<_> = text.lines().filter(|line| tells(line)).collect();
        assert!(found.is_empty(), "{what}: {stream} tells {found:#?}");
    }
}

fn tells(line: &str) -> bool {
    ["CANARY", "Q0FOQVJZ"].iter().any(|marker| line.contains(marker))
}

/// Every way to talk: volumes and formats.
const MANNERS: &[&[&str]] = &[&[], &["--quiet"], &["--output", "json"]];

/// The commands that take a config, as they stand before `-c FILE`.
const COMMANDS: &[&[&str]] = &[
    &["init", "--skip", "run"],
    &["plan"],
    &["plan", "--diff"],
    &["config", "check"],
    &["config", "check", "--lenient"],
    &["rehearse"],
    &["rehearse", "--faults"],
    &["explain", "spec.kubelet.flags", "--why"],
    &["explain", "spec.instance", "--why"],
    &["max-pods", "--from-imds", "--config"],
];

/// Runs a command on a config in one manner, told as loudly as possible.
fn run(desk: &Desk, command: &[&str], config: &str, manner: &[&str]) -> Output {
    let mut arguments = vec!["--development"];
    arguments.extend(command);
    if !command.ends_with(&["--config"]) {
        arguments.push("-c");
    }
    arguments.push(config);
    if command[0] != "rehearse" && command[0] != "config" {
        arguments.extend(["--root", desk.root()]);
    }
    arguments.extend(manner);
    desk.run(&arguments)
}

#[test]
fn a_valid_config_tells_nothing() {
    let desk = Desk::new();
    let config = desk.file("valid.yaml", &valid());
    for command in COMMANDS {
        for manner in MANNERS {
            let output = run(&desk, command, &config, manner);
            assert_eq!(code(&output), 0, "{command:?} {manner:?} {}", stderr(&output));
            assert_silent(&output, &format!("{command:?} {manner:?}"));
        }
    }
    for command in ["facts", "status", "undo"] {
        for manner in MANNERS {
            let mut arguments = vec!["--development", command, "--root", desk.root()];
            arguments.extend(*manner);
            assert_silent(&desk.run(&arguments), command);
        }
    }
}

#[test]
fn a_broken_config_tells_where_and_not_what() {
    let desk = Desk::new();
    for (number, text) in broken().iter().enumerate() {
        let config = desk.file("broken.yaml", text);
        for command in COMMANDS {
            let output = run(&desk, command, &config, &[]);
            assert_silent(&output, &format!("{command:?} on broken config {number}:\n{text}"));
        }
        for command in [&["config", "dump"][..], &["config", "convert"], &["init", "--skip", "run"]]
        {
            let output = run(&desk, command, &config, &["--output", "json"]);
            let what = format!("{command:?} on broken config {number}:\n{text}");
            match code(&output) {
                // Printing the config is its purpose; what it tells besides is not.
                0 if command[0] == "config" => {
                    assert_silent(&Output { stdout: Vec::new(), ..output }, &what);
                }
                _ => assert_silent(&output, &what),
            }
        }
    }
}

#[test]
fn printing_on_purpose_shows_the_values() {
    let desk = Desk::new();
    let config = desk.file("valid.yaml", &valid());
    let root = desk.root();
    for arguments in [
        &["config", "dump", "-c", &config][..],
        &["config", "convert", "-c", &config],
        &["plan", "--diff", "--show-secrets", "-c", &config, "--root", root],
        &["plan", "--show-secrets", "-c", &config, "--root", root, "--output", "json"],
    ] {
        let output = desk.run(arguments);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("CANARY-default") && text.contains("CANARY-proxy"), "{text}");
        assert_silent(&Output { stdout: Vec::new(), ..output }, &format!("{arguments:?}"));
    }
}

/// The markers in a text.
fn markers(bytes: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(bytes);
    let word = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len());
        rest[..end].to_owned()
    };
    text.split(MARKER).skip(1).map(word).collect()
}

/// Where each marker belongs, and the mode of that file.
const DESTINATIONS: &[(&str, u32, &[&str])] = &[
    ("etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf", 0o600, &["header"]),
    ("etc/eks/proxy.env", 0o600, &["proxy", "proxy-user"]),
    ("etc/systemd/system.conf.d/environment.conf", 0o600, &["default"]),
    ("etc/systemd/system/kubelet.service.d/environment.conf", 0o600, &["kubelet-environment"]),
    (
        "etc/systemd/system/my-agent.service.d/environment.conf",
        0o600,
        &["agent", "agent-second-line"],
    ),
];

#[test]
fn each_marker_lies_in_its_own_file_only() {
    let desk = Desk::new();
    let config = desk.file("valid.yaml", &valid());
    assert_eq!(code(&desk.init(&["-c", &config])), 0);
    let files = files_below(desk.root.path());
    for (path, mode, expected) in DESTINATIONS {
        let (held, body) = files.get(*path).unwrap_or_else(|| panic!("{path} is missing"));
        let expected: BTreeSet<_> = expected.iter().map(ToString::to_string).collect();
        assert_eq!((held, markers(body)), (mode, expected), "{path}");
    }
    let own: BTreeSet<_> = DESTINATIONS.iter().map(|row| row.0).collect();
    for (path, (mode, body)) in &files {
        if own.contains(path.as_str()) {
            continue;
        }
        assert!(markers(body).is_empty(), "{path} holds {:?}", markers(body));
        if path.starts_with("var/lib/tenon") {
            assert_eq!(*mode, 0o600, "{path}");
        }
    }
    // What a later run replaces is kept for `undo`, for root's eyes alone.
    let other = desk.file("other.yaml", &valid().replace("CANARY-default", "CANARY-later"));
    assert_eq!(code(&desk.init(&["-c", &other])), 0);
    for (path, (mode, _)) in files_below(&desk.path("var/lib/tenon")) {
        assert_eq!(mode, 0o600, "{path}");
    }
    let undo = desk.run(&["--development", "undo", "--root", desk.root()]);
    assert_eq!(code(&undo), 0);
    assert_silent(&undo, "undo");
}

#[test]
fn a_log_bundle_holds_no_marker() {
    let desk = Desk::new();
    let config = desk.file("valid.yaml", &valid());
    assert_eq!(code(&desk.init(&["-c", &config])), 0);
    desk.machine_file(
        "var/log/messages",
        "said CANARY_token=CANARY-log and password=CANARY-pass\n",
    );
    let bundle = desk.named("bundle.tar.gz").display().to_string();
    let collect = desk.run(&["logs", "collect", "--root", desk.root(), "--out", &bundle]);
    assert_eq!(code(&collect), 1, "no journal on a desk: {}", stderr(&collect));
    assert!(stderr(&collect).contains("secrets replaced"));
    let found = desk.run(&["logs", "grep", &bundle, MARKER]);
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found, "", "markers in the bundle");
    let kept = desk.run(&["logs", "show", &bundle, "kubelet/config/config.json"]);
    assert_eq!(code(&kept), 0, "{}", stderr(&kept));
}

#[test]
fn faults_tell_nothing() {
    let user_data = || profile().with_user_data(valid().into_bytes());
    let rules = [
        Rule { truncate: Some(900), ..Rule::on("*/user-data") },
        Rule { status: Some(500), body: Some("CANARY-answer".into()), ..Rule::on("*/user-data") },
        Rule { body: Some("<p>CANARY-html</p>".into()), ..Rule::on("*/document") },
        Rule {
            status: Some(302),
            location: Some("http://CANARY-elsewhere/".into()),
            ..Rule::on("*/token")
        },
    ];
    for rule in rules {
        let what = format!("{rule:?}");
        let desk = Desk::of(&user_data(), Faults::of([rule]));
        for command in ["init", "plan"] {
            let mut arguments =
                vec!["--development", command, "--root", desk.root(), "--imds-timeout", "150ms"];
            if command == "init" {
                arguments.extend(["--skip", "run"]);
            }
            let output = desk.run(&arguments);
            assert_eq!(code(&output), 5, "{what} {}", stderr(&output));
            assert_silent(&output, &what);
        }
    }
}

#[test]
fn the_environment_of_the_process_is_not_told() {
    let desk = Desk::new();
    for (name, value) in [
        ("HTTPS_PROXY", "http://user:CANARY-proxy@127.0.0.1:1"),
        ("AWS_SECRET_ACCESS_KEY", "CANARY-key"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://user:CANARY-password@[bad"),
        ("AWS_ENDPOINT_URL_EKS", "CANARY-endpoint"),
        ("SERVICE_IPV4_CIDR", "CANARY-cidr"),
    ] {
        for command in [
            &["facts"][..],
            &["plan"],
            &["bootstrap", "web", "--apiserver-endpoint", "https://a.b", "--print-config"],
        ] {
            let mut arguments = vec!["--development", "--root", desk.root()];
            arguments.extend(command);
            let output = desk.command(TENON, &arguments).env(name, value).output().unwrap();
            assert_silent(&output, &format!("{name} {command:?}"));
        }
    }
}

#[test]
fn arguments_of_bootstrap_sh_are_not_told() {
    let desk = Desk::new();
    for arguments in [
        &["web", "--kubelet-extra-args", "--token=CANARY-flag --bad='CANARY-open"][..],
        &["web", "--b64-cluster-ca", "CANARY-authority", "--apiserver-endpoint", "https://a.b"],
        &["web", "--docker-config-json", "{\"auth\": \"CANARY-docker\"}", "--cluster-id", "x"],
        &["web", "--ip-family", "CANARY-family"],
        &["web", "--dns-cluster-ip", "CANARY-address"],
    ] {
        let mut command =
            desk.command(TENON, &["--development", "--root", desk.root(), "bootstrap"]);
        let output = command.args(arguments).env("AWS_MAX_ATTEMPTS", "1").output().unwrap();
        assert_ne!(code(&output), 0, "{arguments:?}");
        assert_silent(&output, &format!("{arguments:?}"));
        let line = arguments.join(" ");
        let convert = desk.run(&["config", "convert", "--bootstrap-args", &line]);
        // Printing the document is its purpose; what it tells besides is not.
        assert_silent(&Output { stdout: Vec::new(), ..convert }, &line);
    }
}

#[test]
fn the_values_of_a_facts_file_are_not_told() {
    let desk = Desk::new();
    let facts = std::fs::read_to_string(desk.facts()).unwrap();
    for text in [
        facts.replacen("\"id\": \"i-", "\"id\": [\"CANARY-", 1),
        facts.replacen("\"onlineCpus\": 2", "\"onlineCpus\": \"CANARY-cpus\"", 1),
        "CANARY-no-json".to_owned(),
    ] {
        let file = desk.file("facts.json", &text);
        let config = desk.file("sample.yaml", SAMPLE);
        let arguments = ["--development", "plan", "--facts", &file, "-c", &config];
        let output = desk.run(&arguments);
        assert_ne!(code(&output), 0);
        assert_silent(&output, &text);
    }
}
