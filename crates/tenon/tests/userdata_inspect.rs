//! `tenon userdata inspect`, `decode`, `convert`, `merge` and `lint` from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const BLOBS: &str = "../tenon-core/src/userdata/inspect/blobs";

fn tenon(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .arg("userdata")
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no input may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn blob(name: &str) -> String {
    format!("{BLOBS}/{name}")
}

fn content(name: &str) -> String {
    let path = format!("{}/{BLOBS}/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn inspect_shows_tree_and_settings() {
    let output = tenon(&["inspect", &blob("eksctl-al2.yaml")], b"");
    assert_eq!(code(&output), 0);
    let text = stdout(&output);
    for line in [
        "cloud-config  ",
        "write_files[1]  environment file",
        "  cluster.name: ironman-2022  [",
        "  taints.special.NoSchedule: true  [/etc/eksctl/kubelet.env]",
        "  bootstrap.kubelet-extra-args: set at run time",
        "  join: /etc/eks/bootstrap.sh",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

#[test]
fn inspect_reads_standard_input_and_answers_json() {
    let output = tenon(&["inspect", "--output", "json"], content("bottlerocket.toml").as_bytes());
    let json = answer(&output);
    assert_eq!(json["tree"]["kind"], "Bottlerocket settings");
    let values = json["documents"][0]["settings"]["values"].as_array().unwrap().clone();
    assert!(values.iter().any(|v| v["key"] == "maxPods" && v["value"] == 58));
}

#[test]
fn inspect_hides_secrets_unless_asked() {
    let hidden = tenon(&["inspect", &blob("al2023.mime")], b"");
    assert!(!stdout(&hidden).contains("hunter2") && !stderr(&hidden).contains("hunter2"));
    assert!(stdout(&hidden).contains("environment.default.HTTPS_PROXY: ***"));
    let shown = tenon(&["inspect", &blob("al2023.mime"), "--show-secrets"], b"");
    assert!(stdout(&shown).contains("hunter2"));
}

#[test]
fn templates_take_parameters() {
    let stack = blob("stack.yaml");
    let output = tenon(&["inspect", &stack, "--parameter", "ClusterName=prod"], b"");
    assert!(stdout(&output).contains("cluster.name: prod"), "{}", stdout(&output));
    assert!(stdout(&output).contains("Effective settings of Resources.NodeLaunchTemplate"));
    let wrong = tenon(&["inspect", &stack, "--parameter", "ClusterName"], b"");
    assert_eq!(code(&wrong), 3);
}

#[test]
fn decode_prints_one_part_and_writes_many() {
    let one = tenon(&["decode", &blob("al2.sh")], b"");
    assert_eq!(stdout(&one), content("al2.sh"));
    let several = tenon(&["decode", &blob("al2023.mime")], b"");
    assert_eq!(code(&several), 3);
    assert!(stderr(&several).contains("2 part-2.yaml"), "{}", stderr(&several));
    let second = tenon(&["decode", &blob("al2023.mime"), "--part", "2"], b"");
    assert!(stdout(&second).starts_with("apiVersion: node.eks.aws/v1alpha1\n"));
    assert_eq!(code(&tenon(&["decode", &blob("al2.sh"), "--part", "9"], b"")), 3);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let written = tenon(&["decode", &blob("eksctl-al2.yaml"), "--out-dir", path], b"");
    assert_eq!(code(&written), 0, "{}", stderr(&written));
    let env = directory.path().join("files/etc/eksctl/kubelet.env");
    assert!(std::fs::read_to_string(env).unwrap().contains("CLUSTER_NAME=ironman-2022"));
    let again = tenon(&["decode", &blob("eksctl-al2.yaml"), "--out-dir", path], b"");
    assert_eq!(code(&again), 7, "files that are there are not overwritten");
}

#[test]
fn decode_stays_below_its_directory() {
    let hostile = "#cloud-config\nwrite_files:\n- {path: ../../escape, content: x}\n- {path: /etc/../../y, content: z}\n";
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("a/b");
    let output = tenon(&["decode", "--out-dir", inner.to_str().unwrap()], hostile.as_bytes());
    assert_eq!(code(&output), 0);
    let outside: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(outside.len(), 1);
}

/// The blob with a CA that is one.
fn with_authority(name: &str) -> String {
    let pem = include_str!("../../tenon-core/src/userdata/samples-ca.pem");
    use base64::Engine as _;
    let authority = base64::engine::general_purpose::STANDARD.encode(pem);
    content(name).replace("LS0tLS1CRUdJTg==", &authority)
}

#[test]
fn convert_prints_the_result_and_the_account() {
    let arguments = ["convert", "--to", "AmazonLinux2023", "--service-cidr", "10.100.0.0/16"];
    let output = tenon(&arguments, with_authority("al2.sh").as_bytes());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("kind: NodeConfig"), "{}", stdout(&output));
    assert!(stderr(&output).contains("carried      cluster.name\n"), "{}", stderr(&output));
}

#[test]
fn convert_refuses_losses_unless_allowed() {
    let input = with_authority("al2.sh");
    let arguments = ["convert", "--to", "Bottlerocket"];
    let refused = tenon(&arguments, input.as_bytes());
    assert_eq!((code(&refused), stdout(&refused).as_str()), (1, ""));
    assert!(stderr(&refused).contains("lost         preCommands"), "{}", stderr(&refused));
    let allowed = tenon(&["convert", "--to", "Bottlerocket", "--allow-loss"], input.as_bytes());
    assert_eq!(code(&allowed), 0);
    assert!(stdout(&allowed).contains("[settings.kubernetes"), "{}", stdout(&allowed));
    let json = tenon(&["convert", "--to", "Bottlerocket", "--output", "json"], input.as_bytes());
    assert_eq!(code(&json), 1);
    assert_eq!(answer(&json)["losses"].as_array().unwrap().len(), 2);
    assert_eq!(code(&tenon(&["convert", "--to", "Debian"], b"#!/bin/sh\n")), 3);
}

#[test]
fn merge_keeps_comments_and_lists_what_it_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let custom = directory.path().join("mine.toml");
    std::fs::write(&custom, "# mine\n[settings.kubernetes]\nmax-pods = 5\n").unwrap();
    let (custom, ours) = (custom.to_str().unwrap().to_owned(), blob("bottlerocket.toml"));
    let arguments = ["merge", &ours, "--custom", &custom, "--family", "Bottlerocket"];
    let output = tenon(&arguments, b"");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).starts_with("# mine\n[settings.kubernetes]\nmax-pods = 58\n"));
    assert_eq!(stderr(&output), "note: settings.kubernetes.max-pods is replaced by ours\n");
    let json = tenon(&[&arguments[..], &["--output", "json"]].concat(), b"");
    assert_eq!(answer(&json)["replaced"][0], "settings.kubernetes.max-pods");
    let wrong =
        tenon(&["merge", &ours, "--custom", &blob("al2.sh"), "--family", "Bottlerocket"], b"");
    assert_eq!(code(&wrong), 3);
    let place = [&arguments[..], &["--ours", "middle"]].concat();
    assert_eq!(code(&tenon(&place, b"")), 3);
}

#[test]
fn render_joins_your_own_data() {
    let directory = tempfile::tempdir().unwrap();
    let custom = directory.path().join("mine.toml");
    std::fs::write(&custom, "# mine\n[settings.motd]\nx = 1\n").unwrap();
    let ca = "../tenon-core/src/userdata/samples-ca.pem";
    let arguments = [
        "render",
        "--family",
        "Bottlerocket",
        "--name",
        "ng",
        "--cluster",
        "c",
        "--endpoint",
        "https://e.example.com",
        "--ca-file",
        ca,
        "--custom",
        custom.to_str().unwrap(),
    ];
    let output = tenon(&arguments, b"");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).starts_with("# mine\n[settings.motd]\nx = 1\n"), "{}", stdout(&output));
    assert!(stdout(&output).contains("cluster-name = \"c\""), "{}", stdout(&output));
}

#[test]
fn bytes_are_printed_as_they_are() {
    let script = b"#!/bin/sh\nprintf '\x1b[31mred'\r\n";
    assert_eq!(tenon(&["decode"], script).stdout, script);
}

#[test]
fn lint_answers_with_its_codes() {
    let al2023 = blob("al2023.mime");
    let output = tenon(&["lint", &al2023, "--family", "AmazonLinux2023"], b"");
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).contains("error U005 TN01405: "), "{}", stdout(&output));
    let json = tenon(&["lint", &al2023, "--family", "AmazonLinux2023", "--output", "json"], b"");
    let findings = answer(&json)["findings"].as_array().unwrap().clone();
    assert!(findings.iter().any(|f| f["rule"] == "U008" && f["level"] == "warning"));
    let sarif = tenon(&["lint", &al2023, "--family", "AmazonLinux2023", "--output", "sarif"], b"");
    assert_eq!(answer(&sarif)["version"], "2.1.0");
    assert!(!stdout(&sarif).contains("hunter2"));
}

#[test]
fn lint_is_clean_or_strict() {
    let script = b"#!/bin/bash\neval \"$X\"\n/etc/eks/bootstrap.sh c\n";
    let arguments = ["lint", "--family", "Ubuntu2204"];
    assert_eq!(code(&tenon(&arguments, script)), 0);
    assert_eq!(code(&tenon(&[&arguments[..], &["--strict"]].concat(), script)), 1);
    let clean = tenon(&arguments, b"#!/bin/bash\n/etc/eks/bootstrap.sh c\n");
    assert_eq!((code(&clean), stdout(&clean).as_str()), (0, "no findings\n"));
    assert_eq!(code(&tenon(&["lint", "--family", "Ubuntu2204", "--kind", "x"], script)), 3);
    assert_eq!(code(&tenon(&["lint"], script)), 64);
}

#[test]
fn hostile_input_ends_with_an_exit_code() {
    let bomb: &[u8] = &[b'['; 200_000];
    for (input, expected) in
        [(bomb, 0), (&b"\x1f\x8b\x08"[..], 0), (&b"\xff\xfe\x00"[..], 0), (&b""[..], 0)]
    {
        assert_eq!(code(&tenon(&["inspect"], input)), expected);
    }
    assert_eq!(code(&tenon(&["inspect", "no-such-file"], b"")), 7);
}
