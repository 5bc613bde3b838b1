//! `tenon config` and `tenon explain` from outside: answers, findings with places, exit codes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const MISTAKES: &str = "tests/fixtures/mistakes.yaml";

fn tenon(arguments: &[&str]) -> Output {
    tenon_with_input(arguments, "")
}

fn tenon_with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // Nothing answers there: a test that asks the metadata service by mistake fails.
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no input may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
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

/// Slug, class, line and column of every mistake in the fixture.
const FOUND: &[(&str, &str, u64, u64)] = &[
    ("bad-cluster-name", "E", 5, 11),
    ("bad-endpoint", "E", 6, 24),
    ("bad-ca", "E", 7, 27),
    ("small-cidr", "E", 8, 11),
    ("wrong-type", "E", 9, 20),
    ("unknown-field", "T", 10, 3),
    ("unknown-field", "T", 12, 3),
    ("unknown-gate", "T", 14, 5),
    ("bad-toml", "E", 18, 22),
    ("unknown-runtime-field", "T", 20, 7),
    ("unknown-word", "E", 23, 17),
    ("bad-path", "E", 24, 18),
    ("unknown-word", "T", 25, 24),
    ("bad-service-key", "E", 27, 7),
    ("bad-variable-name", "E", 30, 9),
    ("bad-nameserver", "E", 32, 21),
    ("bad-domain", "E", 33, 17),
    ("unknown-kubelet-field", "T", 36, 7),
    ("unknown-flag", "T", 38, 9),
    ("control-character-in-value", "E", 39, 9),
    ("bad-expression", "T", 40, 34),
    ("not-in-this-kind", "T", 41, 3),
];

#[test]
fn every_mistake_is_found_at_its_line_and_column() {
    let output = tenon(&["config", "check", "-c", MISTAKES, "--output", "json"]);
    assert_eq!(code(&output), 3);
    let answer = answer(&output);
    assert_eq!(answer["result"], "failed");
    let findings = answer["findings"].as_array().unwrap();
    let found: Vec<_> = findings
        .iter()
        .map(|one| {
            let place = &one["where"];
            let number = |name: &str| place[name].as_u64().unwrap();
            (
                one["slug"].as_str().unwrap(),
                one["class"].as_str().unwrap(),
                number("line"),
                number("column"),
            )
        })
        .collect();
    assert_eq!(found, FOUND);
    for finding in findings {
        assert!(!finding["fix"].as_str().unwrap().is_empty(), "{finding}");
        assert!(finding["where"]["source"].as_str().unwrap().ends_with("mistakes.yaml"));
    }
}

#[test]
fn the_text_points_at_the_place() {
    let output = tenon(&["config", "check", "-c", MISTAKES]);
    assert_eq!(code(&output), 3);
    let text = stderr(&output);
    assert!(text.contains("error TN03001: unknown field `spec.kublet`"), "{text}");
    assert!(text.contains("line 10, column 3"));
    assert!(text.contains("did you mean `kubelet`?"));
    assert!(text.contains("`flags` belongs under `spec.kubelet`"));
    assert!(text.contains("^^^^^^"));
    for value in ["not-base64", "dns.corp", "127.0.0.1:1338", "my cluster"] {
        assert!(!text.contains(value), "{value} is echoed");
    }
}

const GOOD: &str = "apiVersion: tenon.dev/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {name: prod}\n  instance: {environment: {default: {A: s3cret}}}\n";

const TOLERATED: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {name: prod}\n  kublet: {}\n";

#[test]
fn a_good_config_passes() {
    let output = tenon_with_input(&["config", "check", "-c", "-"], GOOD);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), "config is valid\n");
}

#[test]
fn lenient_turns_tolerated_findings_into_warnings() {
    let strict = tenon_with_input(&["config", "check", "-c", "-"], TOLERATED);
    assert_eq!(code(&strict), 3);
    let lenient = tenon_with_input(&["config", "check", "-c", "-", "--lenient"], TOLERATED);
    assert_eq!(code(&lenient), 0);
    assert!(stderr(&lenient).contains("warning TN03001"));
}

#[test]
fn nothing_to_read_is_exit_4_and_a_missing_file_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let empty = tenon(&["config", "check", "-c", path]);
    assert_eq!(code(&empty), 4);
    assert!(stderr(&empty).contains("TN04001"));
    let missing = tenon(&["config", "check", "-c", &format!("{path}/none.yaml")]);
    assert_eq!(code(&missing), 7);
    let facts = tenon(&["config", "check", "--facts", "facts.json"]);
    assert_eq!(code(&facts), 64);
}

#[test]
fn dump_merges_and_tells_origins() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.yaml"), TOLERATED).unwrap();
    std::fs::write(dir.path().join("b.yaml"), TOLERATED.replace("prod", "test")).unwrap();
    let path = dir.path().to_str().unwrap();
    let output = tenon(&["config", "dump", "-c", path]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output).lines().count(), 1);
    let config = answer(&output);
    assert_eq!(config["apiVersion"], "node.eks.aws/v1alpha1");
    assert_eq!(config["spec"], json!({"cluster": {"name": "test"}}));
    let origins = answer(&tenon(&["config", "dump", "-c", path, "--origins"]));
    let place = origins["origins"]["spec.cluster.name"].as_str().unwrap();
    assert!(place.ends_with("b.yaml, line 4, column 19"), "{place}");
}

#[test]
fn dump_writes_a_private_file() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.json");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let output =
        tenon_with_input(&["config", "dump", "-c", "-", "-o", path.to_str().unwrap()], GOOD);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let dumped: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(dumped["apiVersion"], "tenon.dev/v1alpha1");
}

#[test]
fn dump_refuses_a_kind_that_does_not_fit() {
    let output = tenon_with_input(&["config", "dump", "-c", "-", "--kind", "node.eks.aws"], GOOD);
    assert_eq!(code(&output), 3);
    assert!(stderr(&output).contains("spec.kubelet.reserved.basis"));
    assert!(output.stdout.is_empty());
}

#[test]
fn convert_goes_to_either_kind() {
    let eks = TOLERATED.replace("  kublet: {}\n", "  kubelet: {maxPodsExpression: max_pods - 1}\n");
    let output = tenon_with_input(&["config", "convert", "-c", "-", "--output", "json"], &eks);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = answer(&output);
    assert_eq!(document["apiVersion"], "tenon.dev/v1alpha1");
    assert_eq!(document["spec"]["kubelet"]["maxPods"]["mode"], "expression");
    assert_eq!(document["spec"]["kubelet"]["reserved"]["basis"], "computed");
    let lossy = ["config", "convert", "-c", "-", "--kind", "node.eks.aws", "--lossy"];
    let output = tenon_with_input(&lossy, GOOD);
    assert_eq!(code(&output), 0);
    assert!(stdout(&output).starts_with("apiVersion: node.eks.aws/v1alpha1\n"));
    assert!(stderr(&output).contains("warning TN03072"));
}

#[test]
fn convert_reads_bootstrap_arguments() {
    let output = tenon(&["config", "convert", "--bootstrap-args", "prod --use-max-pods false"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("name: prod") && text.contains("mode: fixed"), "{text}");
    assert_ne!(code(&tenon(&["config", "convert", "--bootstrap-args", "prod --nope x"])), 0);
}

#[test]
fn schema_is_json_schema_of_both_kinds() {
    let schema = answer(&tenon(&["config", "schema"]));
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["oneOf"].as_array().unwrap().len(), 2);
    let one = answer(&tenon(&["config", "schema", "--kind", "node.eks.aws"]));
    assert!(one["properties"]["spec"]["properties"].get("node").is_none());
}

#[test]
fn explain_knows_fields_and_codes() {
    let text = stdout(&tenon(&["explain", "spec.kubelet.maxPods.mode"]));
    assert!(text.contains("default  eni") && text.contains("example"), "{text}");
    let text = stdout(&tenon(&["explain", "tn03001"]));
    assert!(text.starts_with("TN03001 unknown-field\n"), "{text}");
    let wrong = tenon(&["explain", "spec.kublet"]);
    assert_eq!(code(&wrong), 64);
    assert!(stderr(&wrong).contains("did you mean `spec.kubelet`?"));
}

#[test]
fn secrets_do_not_reach_messages_at_any_volume() {
    for arguments in [
        &["-d", "config", "check", "-c", "-"][..],
        &["-d", "config", "check", "-c", "-", "--output", "json"],
        &["-d", "config", "convert", "-c", "-", "--kind", "node.eks.aws"],
    ] {
        let output = tenon_with_input(arguments, GOOD);
        assert!(!stdout(&output).contains("s3cret") && !stderr(&output).contains("s3cret"));
    }
}
