//! The way back: documents from a config, hashes, redaction and the cache.

use serde_json::{Value, json};

use super::*;
use crate::config::cache;
use crate::facts::Facts;

/// A document of each kind that sets every field of the table somewhere.
const EVERYTHING_EKS: &str = r#"{
  "cluster": {"name": "a", "apiServerEndpoint": "https://a.example", "certificateAuthority": "YQ==",
    "cidr": "10.100.0.0/16", "enableOutpost": true, "id": "x"},
  "containerd": {"config": "[debug]\nlevel = 'info'\n", "baseRuntimeSpec": {"hostname": "h"}},
  "instance": {
    "localStorage": {"strategy": "RAID0", "mountPath": "/mnt/a", "disabledMounts": ["PodLogs"]},
    "environment": {"default": {"A": "b c", "E": ""}},
    "network": {"nameservers": ["10.0.0.2"], "domains": ["corp.example"]}},
  "kubelet": {"config": {"maxPods": 5, "evictionHard": {"memory.available": "1Gi"}},
    "flags": ["--v=2", "--node-labels='a=b' --v=3"], "maxPodsExpression": "max_pods - 1"},
  "featureGates": {"InstanceIdNodeName": true, "FastImagePull": true}
}"#;

const EVERYTHING_TENON: &str = r#"{
  "aws": {"api": "verify"},
  "cluster": {"name": "a", "enableOutpost": true, "id": "x",
    "outpost": {"authenticator": "aws-iam-authenticator", "pinEndpoint": false}},
  "node": {"name": "hostname", "labels": {"a": "b"},
    "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]},
  "kubelet": {"configMode": "replace", "config": {"maxPods": 5}, "flags": ["--node-labels=a b"],
    "maxPods": {"mode": "min", "value": 40, "prefixDelegation": true, "customNetworking": true,
      "maxEnis": 2, "cap": "none", "onUnknownInstance": "refuse"},
    "reserved": {"basis": "computed", "kube": {"cpu": "100m"}, "system": {"memory": "1Gi"},
      "systemCPUs": "0-1"}},
  "containerd": {"sandboxImage": "a/b:c",
    "registries": [{"host": "docker.io", "mirrors": [
      {"url": "https://m", "capabilities": ["pull"], "overridePath": true, "caFile": "/etc/m.pem"}]}]},
  "instance": {"fips": "require", "proxy": {"http": "http://p:1", "https": "http://p:2", "noProxy": [".a"]},
    "localStorage": {"strategy": "Mount", "disabledMounts": ["All"], "existingData": "wipe"}},
  "hooks": {"preBootstrap": [{"name": "a", "argv": ["/a", "b"], "timeout": "90s", "onFailure": "warn", "run": "everyBoot"}],
    "postConfig": [{"name": "b", "script": "true\n"}], "postJoin": [{"name": "c", "argv": ["/c"]}]},
  "featureGates": {"FastImagePull": true}
}"#;

fn whole(kind: Kind, spec: &str) -> Value {
    let spec: Value = serde_json::from_str(spec).unwrap();
    json!({"apiVersion": kind.api_version(), "kind": "NodeConfig", "metadata": {"name": "n"}, "spec": spec})
}

fn config_of(document: &Value) -> Config {
    load_partial(&[document.to_string()])
        .unwrap_or_else(|found| panic!("{:?}", summary(&found)))
        .config
}

#[test]
fn a_config_of_either_kind_survives_the_way_there_and_back() {
    for (kind, spec) in [(Kind::Eks, EVERYTHING_EKS), (Kind::Tenon, EVERYTHING_TENON)] {
        let document = whole(kind, spec);
        let config = config_of(&document);
        let dumped = dump_best(&config);
        assert_eq!((dumped.kind, dumped.lost.len()), (kind, 0), "{:?}", dumped.lost);
        assert_eq!(config_of(&dumped.document), config);
    }
}

#[test]
fn a_compatible_config_comes_back_word_for_word() {
    let document = whole(Kind::Eks, EVERYTHING_EKS);
    assert_eq!(dump_best(&config_of(&document)).document, document);
}

#[test]
fn the_dump_covers_the_whole_table() {
    let texts = [whole(Kind::Eks, EVERYTHING_EKS), whole(Kind::Tenon, EVERYTHING_TENON)]
        .map(|document| dump_best(&config_of(&document)).document.to_string());
    let also = ["expression", "mode"];
    for (path, field) in fields::all() {
        let name = format!("\"{}\"", field.name);
        let there = texts.iter().any(|text| text.contains(&name));
        assert!(there || also.contains(&field.name), "{path} is not in the dump");
    }
}

#[test]
fn what_the_other_kind_cannot_hold_is_named() {
    let lost = dump(&config_of(&whole(Kind::Tenon, EVERYTHING_TENON)), Kind::Eks).lost;
    for path in [
        "spec.aws.api",
        "spec.node.name",
        "spec.node.labels",
        "spec.node.taints",
        "spec.kubelet.configMode",
        "spec.kubelet.flags[0]",
        "spec.kubelet.maxPods.mode",
        "spec.instance.proxy.http",
        "spec.hooks.postJoin",
        "spec.containerd.registries",
        "spec.instance.localStorage.disabledMounts: All",
    ] {
        assert!(lost.contains(&path.to_owned()), "{path}: {lost:?}");
    }
    let defaults =
        dump(&config_of(&whole(Kind::Tenon, "{\"cluster\": {\"name\": \"a\"}}")), Kind::Eks);
    assert_eq!(defaults.lost, ["spec.kubelet.maxPods.cap", "spec.kubelet.reserved.basis"]);
}

#[test]
fn flags_become_single_arguments_in_tenon() {
    let dumped = dump(&config_of(&whole(Kind::Eks, EVERYTHING_EKS)), Kind::Tenon);
    let flags = dumped.document.pointer("/spec/kubelet/flags").unwrap();
    assert_eq!(flags, &json!(["--v=2", "--node-labels=a=b", "--v=3"]));
}

#[test]
fn the_public_hash_does_not_know_secrets() {
    let hash = |spec: &str| public_hash(&config_of(&whole(Kind::Tenon, spec)));
    let environment = |value: &str| {
        format!(r#"{{"instance": {{"environment": {{"default": {{"A": "{value}"}}}}}}}}"#)
    };
    assert_eq!(hash(&environment("one")), hash(&environment("two")));
    assert_ne!(
        hash(&environment("one")),
        hash(r#"{"instance": {"environment": {"default": {"B": "one"}}}}"#)
    );
    assert_ne!(hash(r#"{"cluster": {"name": "a"}}"#), hash(r#"{"cluster": {"name": "b"}}"#));
    assert_eq!(hash(r#"{"cluster": {"name": "a"}}"#).len(), 64);
    let full = |spec: &str| full_hash(&config_of(&whole(Kind::Tenon, spec)));
    assert_ne!(full(&environment("one")), full(&environment("two")));
}

#[test]
fn secrets_by_field_and_by_name_are_redacted() {
    let document = json!({"spec": {
        "instance": {"environment": {"default": {"A": "S1"}}, "proxy": {"http": "http://S2", "noProxy": [".a"]}},
        "hooks": {"postJoin": [{"name": "n", "script": "S3"}, {"name": "m", "argv": ["/a", "--token=S6", "x"]}]},
        "containerd": {"config": "[a]\npassword = 'S7'\nlevel = 'info'\n"},
        "kubelet": {"config": {"staticPodURLHeader": {"x-token": "S4"}}, "flags": ["--tls-private-key-file=S5", "--v=2"]},
    }});
    let text = redact::redact(&document).to_string();
    for secret in ["S1", "S2", "S3", "S4", "S5", "S6", "S7"] {
        assert!(!text.contains(secret), "{secret}");
    }
    for kept in [".a", "info", "--token=", "--v=2", "\"A\"", "--tls-private-key-file="] {
        assert!(text.contains(kept), "{kept}");
    }
}

fn facts() -> Facts {
    let mut facts = Facts {
        schema: crate::facts::SCHEMA,
        instance: Default::default(),
        machine: Default::default(),
        cluster: None,
        endpoint_addresses: Vec::new(),
        last_run: None,
    };
    facts.instance.id = "i-0abc12345678def90".into();
    facts.machine.kubelet_version = "1.34.1".into();
    facts
}

#[test]
fn the_cache_holds_config_and_facts() {
    for (kind, spec) in [(Kind::Eks, EVERYTHING_EKS), (Kind::Tenon, EVERYTHING_TENON)] {
        let config = config_of(&whole(kind, spec));
        let text = cache::encode(&config, &facts(), "n", "sha256:00");
        assert_eq!(text.lines().count(), 1);
        let cached = cache::decode("cache", text.as_bytes()).unwrap();
        assert!(cached.holds(&config));
        assert!(!cached.holds(&Config::default()));
        assert_eq!(cached.instance_id, "i-0abc12345678def90");
        assert_eq!(cached.facts, Some(facts()));
        let options = Options { cached: Some(&cached), partial: true };
        let loaded = load(&[user_data("")], options).unwrap();
        assert!(loaded.from_cache && loaded.config == config);
        assert!(loaded.findings.iter().any(|finding| finding.problem.page.code == "TN03071"));
    }
}

#[test]
fn order_and_comments_do_not_make_a_config_differ() {
    let one = document(Kind::Eks, "cluster: {name: a, cidr: 10.0.0.0/16}");
    let two = document(Kind::Eks, "# why\ncluster:\n  cidr: \"10.0.0.0/16\"\n  name: a\n");
    let load = |text: &String| load_partial(std::slice::from_ref(text)).unwrap().config;
    let cached =
        cache::decode("c", cache::encode(&load(&one), &facts(), "n", "").as_bytes()).unwrap();
    assert!(cached.holds(&load(&two)));
}

#[test]
fn a_config_of_both_kinds_equals_its_cache() {
    let old = "cluster: {name: a, apiServerEndpoint: 'http://a', certificateAuthority: YQ==}\nkubelet: {maxPodsExpression: max_pods - 1}";
    let documents = [document(Kind::Eks, old), document(Kind::Tenon, "node: {labels: {a: b}}")];
    let config = load_partial(&documents).unwrap().config;
    let cached = cache::decode("c", cache::encode(&config, &facts(), "n", "").as_bytes()).unwrap();
    assert!(cached.holds(&config));
    let other = Config { fast_image_pull: true, ..config };
    assert!(!cached.holds(&other));
}

#[test]
fn the_peers_cache_is_honoured() {
    let text = r#"{"metadata":{"name":"n"},"spec":{"cluster":{"name":"a","cidr":"10.0.0.0/16"}},
        "status":{"instance":{"id":"i-1","region":"eu-west-1","type":"m5.large","privateDnsName":"ip-10-0-0-1.ec2.internal"},"default":{"sandboxImage":"p"}}}"#;
    let cached = cache::decode("cache", text.as_bytes()).unwrap();
    assert_eq!(cached.instance_id, "i-1");
    assert_eq!(cached.private_dns_name.as_deref(), Some("ip-10-0-0-1.ec2.internal"));
    assert_eq!(cached.facts, None);
    let loaded = load(&[], Options { cached: Some(&cached), partial: true }).unwrap();
    assert_eq!(loaded.config.cluster.name, "a");
    assert!(cached.holds(&loaded.config));
}

#[test]
fn empty_values_of_the_peers_cache_mean_nothing() {
    let text = r#"{"metadata":{"creationTimestamp":null},"spec":{"cluster":{"name":"a","enableOutpost":null,"certificateAuthority":null,"id":""},
        "containerd":{"config":"","baseRuntimeSpec":null},"kubelet":{"config":null,"flags":null},"featureGates":null,
        "instance":{"localStorage":{"strategy":"","mountPath":"","disabledMounts":null},"environment":null}},"status":{"instance":{"id":"i-1"}}}"#;
    let cached = cache::decode("cache", text.as_bytes()).unwrap();
    let config = load_partial(&[document(Kind::Eks, "cluster: {name: a}")]).unwrap().config;
    assert!(cached.holds(&config));
}

#[test]
fn an_unusable_cache_says_why() {
    for (text, why) in [
        ("{", "not JSON"),
        (r#"{"tenon":{"schema":2,"config":{}}}"#, "schema"),
        (r#"{"tenon":{"schema":1}}"#, "no config"),
        (r#"{"tenon":{"schema":1,"config":{},"facts":{"x":1}}}"#, "facts"),
        ("{}", "no spec"),
        (r#"{"spec":{},"status":{}}"#, "on which instance"),
    ] {
        assert!(cache::decode("c", text.as_bytes()).unwrap_err().contains(why), "{text}");
    }
}
