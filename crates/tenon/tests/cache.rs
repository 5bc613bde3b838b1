//! The config cache from outside: `init --config-cache` against a simulated instance, one test
//! per rule of the cache.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenon_host::simulator::Simulator;
use tenon_host::simulator::faults::Faults;
use tenon_host::simulator::machine::{MachineProfile, populate};
use tenon_host::simulator::profile::Profile;

const CACHE: &str = "/run/eks/nodeadm/config.json";

/// A machine below a directory, and its metadata service.
struct Node {
    root: TempDir,
    config: PathBuf,
    simulator: Simulator,
    profile: Profile,
}

impl Node {
    fn new() -> Self {
        Node::with_profile(Profile::new("m5.large"))
    }

    fn with_profile(profile: Profile) -> Self {
        let root = tempfile::tempdir().unwrap();
        let machine = MachineProfile {
            cpus: 2,
            memory_mib: 8192,
            kubelet_version: "v1.34.1-eks-113cf36".into(),
            containerd_version: "2.1.5".into(),
            hostname: profile.hostname.clone(),
            mac: profile.mac.clone(),
            nvidia: false,
        };
        populate(root.path(), &machine).unwrap();
        let simulator = Simulator::start(&profile, Faults::default()).unwrap();
        let config = root.path().join("node.yaml");
        let node = Node { root, config, simulator, profile };
        node.set_config("cluster", "");
        node
    }

    fn set_config(&self, cluster: &str, more: &str) {
        fs::write(&self.config, document(cluster, more)).unwrap();
    }

    fn cache(&self) -> PathBuf {
        self.root.path().join(CACHE.trim_start_matches('/'))
    }

    fn put_cache(&self, text: &str) {
        fs::create_dir_all(self.cache().parent().unwrap()).unwrap();
        fs::write(self.cache(), text).unwrap();
    }

    /// nodeadm's own cache of a config, as written on an instance.
    fn put_peers_cache(&self, cluster: &str, id: &str, name: &str) {
        let spec = yaml_spec(&document(cluster, ""));
        let instance = json!({"id": id, "region": "eu-west-1", "privateDnsName": name});
        let cache = json!({"metadata": {}, "spec": spec, "status": {"instance": instance}});
        self.put_cache(&cache.to_string());
    }

    fn init(&self, source: &str, arguments: &[&str]) -> Output {
        self.run(&["init", "-c", source, "--skip", "run"], arguments)
    }

    fn init_file(&self, arguments: &[&str]) -> Output {
        self.init(self.config.to_str().unwrap(), arguments)
    }

    fn run(&self, command: &[&str], arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tenon"))
            .args(command)
            .args(["--config-cache", CACHE, "--output", "json", "--root"])
            .arg(self.root.path())
            .args(arguments)
            .env_clear()
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", self.simulator.endpoint())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn kubeconfig(&self) -> String {
        let path = self.root.path().join("var/lib/kubelet/kubeconfig");
        fs::read_to_string(path).unwrap_or_default()
    }
}

fn document(cluster: &str, more: &str) -> String {
    let ca = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==";
    format!(
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: {cluster}\n    \
         apiServerEndpoint: https://a.example\n    certificateAuthority: {ca}\n    cidr: 10.100.0.0/16\n{more}"
    )
}

fn yaml_spec(text: &str) -> Value {
    let tree = tenon_core::yaml::parse(text).unwrap().remove(0);
    tree.to_json(tenon_core::tree::Dialect::Yaml12)["spec"].clone()
}

fn story(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn an_equal_config_uses_the_cached_facts() {
    let node = Node::new();
    answer(&node.init_file(&[]));
    let mode = fs::metadata(node.cache()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let cache = read_json(&node.cache());
    assert_eq!(cache["status"]["instance"]["id"], node.profile.id.as_str());
    assert_eq!(cache["status"]["instance"]["privateDnsName"], node.profile.hostname.as_str());
    assert_eq!(cache["status"]["default"]["sandboxImage"], "localhost/kubernetes/pause:latest");
    assert_eq!(cache["spec"]["cluster"]["name"], "cluster");
    let written = fs::metadata(node.cache()).unwrap().ino();
    // The same wish in other words.
    node.set_config("\"cluster\" # a comment", "");
    let again = answer(&node.init_file(&[]));
    assert_eq!(again["changes"], json!([]), "{again}");
    assert!(!gathered(&again), "{again}");
    assert_eq!(fs::metadata(node.cache()).unwrap().ino(), written, "the cache is left alone");
}

/// True when the run looked at the machine itself.
fn gathered(report: &Value) -> bool {
    report["timeline"].to_string().contains("\"machine\"")
}

#[test]
fn fault_47_a_new_address_is_gathered_anew() {
    let node = Node::new();
    assert!(gathered(&answer(&node.init_file(&[]))));
    let mut moved = read_json(&node.cache());
    moved["tenon"]["facts"]["instance"]["localIpv4"] = json!("10.0.0.99");
    node.put_cache(&moved.to_string());
    assert!(gathered(&answer(&node.init_file(&[]))));
}

#[test]
fn an_empty_chain_uses_the_cache_and_warns() {
    let node = Node::new();
    answer(&node.init_file(&[]));
    let output = node.init("imds://user-data", &[]);
    let findings = answer(&output)["findings"].clone();
    let used = findings.as_array().unwrap().iter().any(|one| one["code"] == "TN03071");
    assert!(used, "{findings}");
}

#[test]
fn a_changed_config_is_configured_even_when_that_phase_is_left_out() {
    let node = Node::new();
    answer(&node.init_file(&[]));
    answer(&node.init_file(&["--skip", "config"]));
    node.set_config("other", "");
    let changed = answer(&node.init_file(&["--skip", "config"]));
    assert_ne!(changed["changes"], json!([]));
    assert!(node.kubeconfig().contains("\"other\""), "{}", node.kubeconfig());
    assert_eq!(read_json(&node.cache())["spec"]["cluster"]["name"], "other");
}

#[test]
fn the_phase_stays_left_out_for_an_equal_config() {
    let node = Node::new();
    answer(&node.init_file(&[]));
    fs::remove_file(node.root.path().join("var/lib/kubelet/kubeconfig")).unwrap();
    answer(&node.init_file(&["--skip", "config"]));
    assert_eq!(node.kubeconfig(), "");
}

#[test]
fn a_cache_of_another_instance_is_as_good_as_none() {
    let node = Node::new();
    answer(&node.init_file(&[]));
    let text = fs::read_to_string(node.cache()).unwrap();
    node.put_cache(&text.replace(&node.profile.id, "i-0000000000000000f"));

    let empty = node.init("imds://user-data", &[]);
    assert_eq!(empty.status.code(), Some(4), "{empty:?}");
    assert!(story(&empty).contains("i-0000000000000000f"), "{}", story(&empty));

    assert!(gathered(&answer(&node.init_file(&[]))));
    assert_eq!(read_json(&node.cache())["status"]["instance"]["id"], node.profile.id.as_str());
}

#[test]
fn a_cache_that_cannot_be_read_is_named_and_replaced() {
    let node = Node::new();
    for text in
        ["", "{\"spec\":", "{\"status\":{\"instance\":{\"id\":\"i-1\"}},\"tenon\":{\"schema\":9}}"]
    {
        node.put_cache(text);
        let output = node.init_file(&[]);
        answer(&output);
        assert!(story(&output).contains("config cache ignored"), "{text}: {}", story(&output));
        assert_eq!(read_json(&node.cache())["tenon"]["schema"], 1);
    }
}

#[test]
fn nodeadms_cache_is_honoured() {
    let node = Node::new();
    let name = "ip-10-9-9-9.eu-west-1.compute.internal";
    node.put_peers_cache("cached", &node.profile.id, name);
    // Nothing else holds a config: its spec is used, and the name that EC2 told nodeadm.
    let from_cache = answer(&node.init("imds://user-data", &[]));
    assert!(node.kubeconfig().contains("\"cached\""), "{}", node.kubeconfig());
    assert_eq!(from_cache["node"]["nodeName"], name);

    node.put_peers_cache("cached", "i-0000000000000000f", name);
    assert_eq!(node.init("imds://user-data", &[]).status.code(), Some(4));
}

#[test]
fn an_equal_cache_of_nodeadm_does_not_force_the_config_phase() {
    let node = Node::new();
    node.put_peers_cache("cluster", &node.profile.id, "");
    answer(&node.init_file(&["--skip", "config"]));
    assert_eq!(node.kubeconfig(), "");
    node.set_config("other", "");
    answer(&node.init_file(&["--skip", "config"]));
    assert!(node.kubeconfig().contains("\"other\""));
}

#[test]
fn without_the_option_nothing_is_read_written_or_said() {
    let node = Node::new();
    node.put_cache("{broken");
    let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["-d", "init", "--skip", "run", "-c"])
        .arg(&node.config)
        .arg("--root")
        .arg(node.root.path())
        .env_clear()
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", node.simulator.endpoint())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!story(&output).contains("cache"), "{}", story(&output));
    assert_eq!(fs::read_to_string(node.cache()).unwrap(), "{broken");
}

#[test]
fn broken_user_data_is_passed_over_for_the_cache() {
    let broken = "apiVersion: node.eks.aws/v1alpha1\nkind: [\n";
    let node = Node::with_profile(Profile::new("m5.large").with_user_data(broken));
    assert_eq!(node.init("imds://user-data", &[]).status.code(), Some(3));
    answer(&node.init_file(&[]));
    let output = node.init("imds://user-data", &[]);
    let findings = answer(&output)["findings"].clone();
    let skipped = |one: &Value| one["what"].as_str().unwrap().starts_with("user data skipped");
    assert!(findings.as_array().unwrap().iter().any(skipped), "{findings}");
}

#[test]
fn dump_reads_the_cache_of_the_root() {
    let node = Node::new();
    node.put_peers_cache("cached", "i-1", "");
    let empty = node.root.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let dumped = answer(&node.run(&["config", "dump", "-c", empty.to_str().unwrap()], &[]));
    assert_eq!(dumped["spec"]["cluster"]["name"], "cached");
    node.put_cache("{broken");
    let output = node.run(&["config", "dump", "-c", empty.to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(4));
    assert!(story(&output).contains("config cache ignored"), "{}", story(&output));
}

#[test]
fn a_field_that_this_kubelet_lacks_stops_the_strict_kind_only() {
    let node = Node::new();
    let flag = "  kubelet: {flags: [--keep-terminated-pod-volumes=true]}\n";
    node.set_config("cluster", flag);
    let output = node.init_file(&[]);
    let lacks = |findings: &Value| {
        let names =
            |one: &Value| one["what"].as_str().unwrap().contains("which kubelet 1.34 lacks");
        findings.as_array().unwrap().iter().any(names)
    };
    assert!(lacks(&answer(&output)["findings"]), "{output:?}");
    let strict = "apiVersion: tenon.dev/v1alpha1\nkind: NodeConfig\nspec:\n";
    fs::write(node.root.path().join("strict.yaml"), format!("{strict}{flag}")).unwrap();
    let second = node.root.path().join("strict.yaml");
    let output = node.init_file(&["-c", second.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(lacks(&answer["findings"]), "{answer}");
}
