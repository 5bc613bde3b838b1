//! `tenon pki`, `token`, `csr` and `eks-token` from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const NODE: &str = "--advertise-address 10.0.0.4 --endpoint api.example.com --node-name cp-1";

fn tenon(root: &TempDir, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(line.split_whitespace())
        .arg("--root")
        .arg(root.path())
        .env_remove("KUBECONFIG")
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn assert_exit(output: &Output, exit: i32, code: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{text}");
    assert!(text.contains(code), "{code}: {text}");
}

fn made() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    assert_exit(&tenon(&root, &format!("pki init {NODE}")), 0, "");
    root
}

#[test]
fn a_control_plane_is_made_once_and_shown() {
    let root = tempfile::tempdir().unwrap();
    assert_exit(&tenon(&root, "pki show"), 3, "TN03601");
    assert_exit(&tenon(&root, "pki init"), 3, "--advertise-address");
    let first = json(&tenon(&root, &format!("pki init {NODE} --output json")));
    assert_eq!((&first["schema"], &first["changed"]), (&"tenon.pki.init/1".into(), &true.into()));
    let second = json(&tenon(&root, &format!("pki init {NODE} --output json")));
    assert_eq!(second["changed"], false);
    let shown = json(&tenon(&root, "pki show --output json"));
    assert_eq!(shown["certificates"].as_array().unwrap().len(), 15);
    // Whole days: the second in which it was made may be over.
    let left = shown["certificates"][1]["daysLeft"].as_i64().unwrap();
    assert!((364..=365).contains(&left), "{left}");
    assert!(String::from_utf8_lossy(&tenon(&root, "pki show").stdout).contains("api.example.com"));
}

#[test]
fn faults_are_found_with_their_fix() {
    let root = made();
    assert_exit(&tenon(&root, &format!("pki check {NODE}")), 0, "");
    assert_exit(&tenon(&root, "pki check"), 0, "TN01609");
    let moved = "--advertise-address 10.0.0.9 --endpoint api.example.com --node-name cp-1";
    let output = tenon(&root, &format!("pki check {moved}"));
    assert_exit(&output, 1, "tenon pki renew --only apiserver");
    let findings = json(&tenon(&root, &format!("pki check {moved} --output json")));
    assert_eq!(findings["result"], "findings");
    assert_exit(&tenon(&root, &format!("pki renew --all {moved}")), 0, "");
    assert_exit(&tenon(&root, &format!("pki check {moved}")), 0, "");
    let key = root.path().join("etc/kubernetes/pki/ca.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert_exit(&tenon(&root, "pki check"), 1, "chmod 600 /etc/kubernetes/pki/ca.key");
}

#[test]
fn what_is_there_is_never_overwritten() {
    let root = made();
    fs::remove_file(root.path().join("etc/kubernetes/pki/apiserver.key")).unwrap();
    assert_exit(&tenon(&root, &format!("pki init {NODE}")), 12, "TN12600");
    assert_exit(&tenon(&root, "pki renew --only ca"), 3, "TN03602");
    assert_exit(&tenon(&root, "pki renew --only apiserve"), 64, "did you mean `apiserver`?");
    assert_exit(&tenon(&root, "pki renew"), 64, "--within");
    assert_exit(&tenon(&root, "pki renew --only apiserver"), 12, "--new-key");
    assert_exit(&tenon(&root, "pki renew --only apiserver --new-key"), 0, "");
    assert_exit(&tenon(&root, &format!("pki init {NODE}")), 0, "");
}

#[test]
fn the_config_of_a_machine_is_enough() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("etc/tenon")).unwrap();
    let config = "apiVersion: tenon.dev/v1alpha1\nkind: MachineConfig\nspec:\n  role: first-master\n  cluster:\n    name: prod\n    endpoint: https://api.prod.example:6443\n    kubernetesVersion: v1.34.2\n  node: {name: cp-2, ip: 10.0.0.5}\n  pki: {algorithm: ecdsa-p384}\n";
    let path = root.path().join("etc/tenon/config.yaml");
    fs::write(&path, config.replace("name: prod", "nam: prod")).unwrap();
    assert_exit(&tenon(&root, "pki init"), 3, "did you mean `name`?");
    assert!(!root.path().join("etc/kubernetes").exists());
    fs::write(&path, config).unwrap();
    assert_exit(&tenon(&root, "pki init"), 0, "");
    let shown = String::from_utf8(tenon(&root, "pki show").stdout).unwrap();
    assert!(shown.contains("api.prod.example") && shown.contains("10.0.0.5"), "{shown}");
    assert_exit(&tenon(&root, "pki check"), 0, "");
    assert_exit(&tenon(&root, "pki init --config /nowhere.yaml"), 7, "/nowhere.yaml");
    // A path of the desk, as everywhere; below the root there is no such file.
    let desk = tempfile::tempdir().unwrap();
    let file = desk.path().join("machine.yaml");
    fs::write(&file, config.replace("10.0.0.5", "10.0.0.6")).unwrap();
    let check = tenon(&root, &format!("pki check --config {}", file.display()));
    assert_exit(&check, 1, "10.0.0.6");
}

#[test]
fn advice_on_a_lost_key_can_be_followed() {
    let root = tempfile::tempdir().unwrap();
    let node = "--advertise-address 10.0.0.4 --endpoint api.example.com --node-name cp-1";
    assert_exit(&tenon(&root, &format!("pki init {node}")), 0, "");
    std::fs::remove_file(root.path().join("etc/kubernetes/pki/apiserver.key")).unwrap();
    assert_exit(&tenon(&root, &format!("pki check {node}")), 1, "move the certificate away");
    assert_exit(&tenon(&root, &format!("pki init {node}")), 12, "TN12600");
    std::fs::remove_file(root.path().join("etc/kubernetes/pki/apiserver.crt")).unwrap();
    assert_exit(&tenon(&root, &format!("pki init {node}")), 0, "");
    assert_exit(&tenon(&root, &format!("pki check {node}")), 0, "");
}

#[test]
fn a_cluster_that_is_not_there() {
    let root = tempfile::tempdir().unwrap();
    assert_exit(&tenon(&root, "token list"), 7, "/etc/kubernetes/admin.conf");
    let node = "--advertise-address 127.0.0.1 --endpoint 127.0.0.1:1 --node-name cp-1";
    assert_exit(&tenon(&root, &format!("pki init {node}")), 0, "");
    for line in [
        "token list",
        "token create",
        "token delete abcdef",
        "csr approve --serving",
        "csr approve x",
    ] {
        assert_exit(&tenon(&root, line), 10, "TN10625");
    }
    assert_exit(&tenon(&root, "token create --ttl 0h"), 64, "--never-expires");
    assert_exit(&tenon(&root, "token create --ttl 5y"), 64, "--never-expires");
    assert_exit(&tenon(&root, "token delete NOT-AN-ID"), 64, "six characters");
    assert_exit(&tenon(&root, "token create --usages other"), 64, "authentication");
    assert_exit(&tenon(&root, "csr approve"), 64, "NAME");
}

fn eks_token(info: Option<&str>) -> Output {
    eks_token_of("prod", "eu-west-1", info)
}

fn eks_token_of(cluster: &str, region: &str, info: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    command.args(["eks-token", "--cluster-name", cluster, "--region", region]);
    command.env_clear();
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "canary");
    command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1");
    if let Some(info) = info {
        command.env("KUBERNETES_EXEC_INFO", info);
    }
    command.output().unwrap()
}

#[test]
fn a_token_is_not_made_for_names_that_cannot_be() {
    assert_exit(&eks_token_of("prod", "eu west", None), 64, "--region");
    assert_exit(&eks_token_of("prod", "x.example/", None), 64, "--region");
    assert_exit(&eks_token_of("a b", "eu-west-1", None), 64, "--cluster-name");
}

/// Without a region the metadata service is asked: not where that is forbidden, and not for long
/// where nobody answers.
#[test]
fn a_region_is_not_waited_for_in_vain() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    for (disabled, most) in [("true", 0), ("false", 4)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        command.args(["eks-token", "--cluster-name", "prod"]).env_clear();
        command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", &endpoint);
        command.env("AWS_EC2_METADATA_DISABLED", disabled);
        let output = command.output().unwrap();
        assert_exit(&output, 5, "--region");
        let asked = std::iter::from_fn(|| silent.accept().ok()).count();
        assert!(asked <= most && (asked > 0) == (most > 0), "{disabled}: asked {asked} times");
    }
}

#[test]
fn a_token_for_eks_is_made_without_asking_anybody() {
    let output = eks_token(None);
    let answer = json(&output);
    assert_eq!(answer["apiVersion"], "client.authentication.k8s.io/v1");
    assert_eq!(answer["kind"], "ExecCredential");
    assert!(answer["status"]["token"].as_str().unwrap().starts_with("k8s-aws-v1."));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("canary"));
    let asked = r#"{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential"}"#;
    assert_eq!(json(&eks_token(Some(asked)))["apiVersion"], "client.authentication.k8s.io/v1beta1");
    assert_exit(&eks_token(Some("{}")), 3, "v1beta1");
}
