//! The kubelet's own files: the CA, `config.json`, the drop-in with the user's settings, the
//! environment file with its arguments.

use serde_json::{Map, Value, json};

use super::json_text::{Json, object, pretty, strings};
use super::node::Node;
use super::step::FileBody;
use super::{Draft, Owner, credential_provider, kubeconfig, kubelet_args, pods, soci};
use crate::codes;
use crate::config::{ConfigMode, Fips};
use crate::kube_version as gates;
use crate::problem::{Finding, Place, Problem};
use crate::secret::NAME_PARTS;

pub(crate) const CA_PATH: &str = "/etc/kubernetes/pki/ca.crt";
pub(crate) const CONFIG_PATH: &str = "/etc/kubernetes/kubelet/config.json";
pub(crate) const CONFIG_DIR: &str = "/etc/kubernetes/kubelet/config.json.d";
pub(crate) const DROP_IN_PATH: &str = "/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf";
pub(crate) const ENVIRONMENT_PATH: &str = "/etc/eks/kubelet/environment";
pub(crate) const KIND: &str = "KubeletConfiguration";
pub(crate) const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";

/// Suites of TLS 1.2, most wanted first. The pair with ChaCha20 is not FIPS approved.
const CIPHER_SUITES: [&str; 8] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
];

/// What a node cannot run without, kept under `configMode: replace`: trust in the API server,
/// the runtime's socket and cgroup driver, the cluster's DNS, the machine's identity and limit,
/// and what the config asks for by name.
const ESSENTIAL: [&str; 13] = [
    "authentication",
    "cgroupDriver",
    "clusterDNS",
    "clusterDomain",
    "containerRuntimeEndpoint",
    "imageServiceEndpoint",
    "maxPods",
    "providerID",
    "registerWithTaints",
    "reservedSystemCPUs",
    "systemReserved",
    "kind",
    "apiVersion",
];

/// Plans the kubelet's files for this node.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    check_reserved_cpus(node, draft);
    let authority = node.cluster.certificate_authority.clone();
    let file = FileBody::new(CA_PATH, 0o644, authority);
    draft.file(Owner::Kubelet, file, "trust in the API server");
    let config = pretty(&document(node, draft), 4) + "\n";
    let file = FileBody::new(CONFIG_PATH, 0o600, config);
    draft.file(Owner::Kubelet, file, "the kubelet's config");
    if let Some(file) = drop_in(&node.config.kubelet.config) {
        draft.file(Owner::Kubelet, file, "spec.kubelet.config");
    }
    let file = environment(node, draft);
    draft.file(Owner::Kubelet, file, "the kubelet's arguments");
}

/// The whole KubeletConfiguration, in the order people know.
fn document(node: &Node, draft: &mut Draft) -> Json {
    let mut document = full_document(node);
    if node.config.kubelet.config_mode == ConfigMode::Replace
        && let Json::Object(pairs) = &mut document
    {
        let (kept, dropped): (Vec<_>, Vec<_>) =
            pairs.drain(..).partition(|(key, _)| ESSENTIAL.contains(&key.as_str()));
        *pairs = kept;
        let names: Vec<String> = dropped.into_iter().map(|(key, _)| key).collect();
        let what = "configMode is replace: the kubelet's own defaults hold for the rest";
        let problem = Problem::new(&codes::plan::CONFIG_REPLACED, what)
            .at(Place::field("spec.kubelet.configMode"))
            .details([format!("left out: {}", names.join(", "))]);
        draft.findings.push(Finding::warning(problem));
    }
    document
}

fn full_document(node: &Node) -> Json {
    let text = |value: &str| Some(Json::from(value));
    let flag = |value: bool| Some(Json::from(value));
    let graceful = gates::GRACEFUL_SHUTDOWN.is_open(node.kubelet_version);
    let cgroups = !has_reserved_cpus(node);
    let pairs: [(&str, Option<Json>); 30] = [
        ("address", text("0.0.0.0")),
        ("authentication", Some(authentication())),
        ("authorization", Some(authorization())),
        ("cgroupDriver", text("systemd")),
        ("cgroupRoot", text("/")),
        ("clusterDNS", Some(strings(&[&node.dns.to_string()]))),
        ("clusterDomain", text("cluster.local")),
        ("containerRuntimeEndpoint", text("unix:///run/containerd/containerd.sock")),
        ("imageServiceEndpoint", node.soci.then(|| Json::from(soci::ENDPOINT))),
        ("evictionHard", Some(eviction())),
        ("featureGates", Some(feature_gates(node))),
        ("hairpinMode", text("hairpin-veth")),
        ("kubeReserved", Some(kube_reserved(node))),
        ("kubeReservedCgroup", cgroups.then(|| Json::from("/runtime"))),
        ("logging", Some(json!({"verbosity": 2}).into())),
        ("maxPods", Some(Value::from(node.pods.computed).into())),
        ("protectKernelDefaults", flag(true)),
        ("providerID", text(&provider_id(node))),
        ("readOnlyPort", Some(Value::from(0).into())),
        ("registerWithTaints", taints(node)),
        ("reservedSystemCPUs", node.config.kubelet.reserved.system_cpus.as_deref().map(Json::from)),
        ("serializeImagePulls", flag(false)),
        ("serverTLSBootstrap", flag(true)),
        ("shutdownGracePeriod", graceful.then(|| Json::from("2m30s"))),
        ("shutdownGracePeriodCriticalPods", graceful.then(|| Json::from("30s"))),
        ("systemReserved", system_reserved(node)),
        ("systemReservedCgroup", cgroups.then(|| Json::from("/system"))),
        ("tlsCipherSuites", Some(strings(&cipher_suites(node.config.instance.fips)))),
        ("kind", text(KIND)),
        ("apiVersion", text(API_VERSION)),
    ];
    let present = pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Json::Object(present.collect())
}

fn authentication() -> Json {
    object([
        ("x509", object([("clientCAFile", CA_PATH.into())])),
        ("webhook", object([("enabled", true.into()), ("cacheTTL", "2m0s".into())])),
        ("anonymous", object([("enabled", false.into())])),
    ])
}

fn authorization() -> Json {
    let ttl = [("cacheAuthorizedTTL", "5m0s".into()), ("cacheUnauthorizedTTL", "30s".into())];
    object([("mode", "Webhook".into()), ("webhook", object(ttl))])
}

fn eviction() -> Json {
    object([
        ("memory.available", "100Mi".into()),
        ("nodefs.available", "10%".into()),
        ("nodefs.inodesFree", "5%".into()),
    ])
}

fn feature_gates(node: &Node) -> Json {
    let by_version = [
        ("DynamicResourceAllocation", &gates::DYNAMIC_RESOURCE_ALLOCATION),
        ("MutableCSINodeAllocatableCount", &gates::MUTABLE_CSI_ALLOCATABLE),
    ];
    let mut gates = vec![("RotateKubeletServerCertificate".to_owned(), Json::from(true))];
    let open = by_version.iter().filter(|(_, gate)| gate.is_open(node.kubelet_version));
    gates.extend(open.map(|(name, _)| ((*name).to_owned(), true.into())));
    gates.sort_by(|a, b| a.0.cmp(&b.0));
    Json::Object(gates)
}

fn kube_reserved(node: &Node) -> Json {
    let reserved = pods::kube_reserved(node.config, node.facts, node.pods);
    let pairs = reserved.into_iter().map(|(key, value)| (key, Json::from(value.as_str())));
    Json::Object(pairs.collect())
}

fn system_reserved(node: &Node) -> Option<Json> {
    let system = &node.config.kubelet.reserved.system;
    let pairs = system.iter().map(|(key, value)| (key.clone(), Json::from(value.as_str())));
    (!system.is_empty()).then(|| Json::Object(pairs.collect()))
}

/// `aws:///ZONE/ID`, as the cloud controller manager looks instances up.
fn provider_id(node: &Node) -> String {
    let instance = &node.facts.instance;
    format!("aws:///{}/{}", instance.availability_zone, instance.id)
}

fn taints(node: &Node) -> Option<Json> {
    let taints = &node.config.node.taints;
    let entry = |taint: &crate::config::Taint| {
        let mut pairs = vec![("key".to_owned(), Json::from(taint.key.as_str()))];
        if !taint.value.is_empty() {
            pairs.push(("value".to_owned(), Json::from(taint.value.as_str())));
        }
        pairs.push(("effect".to_owned(), Json::from(taint.effect.as_str())));
        Json::Object(pairs)
    };
    (!taints.is_empty()).then(|| Json::List(taints.iter().map(entry).collect()))
}

fn cipher_suites(fips: Fips) -> Vec<&'static str> {
    let allowed = |suite: &&str| fips == Fips::Auto || !suite.contains("CHACHA20");
    CIPHER_SUITES.into_iter().filter(allowed).collect()
}

/// The user's settings as a drop-in; the kubelet lays it over `config.json`.
fn drop_in(config: &Map<String, Value>) -> Option<FileBody> {
    if config.is_empty() {
        return None;
    }
    let mut config = config.clone();
    config.entry("kind").or_insert(KIND.into());
    config.entry("apiVersion").or_insert(API_VERSION.into());
    let secret = names_a_secret(&Value::Object(config.clone()));
    let body = pretty(&Json::from(Value::Object(config)), 4) + "\n";
    Some(FileBody { secret, ..FileBody::new(DROP_IN_PATH, 0o600, body) })
}

/// True if a key anywhere says that its value is not for everyone's eyes.
pub(crate) fn names_a_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            map.iter().any(|(key, value)| is_secret_name(key) || names_a_secret(value))
        }
        Value::Array(items) => items.iter().any(names_a_secret),
        _ => false,
    }
}

/// The list of words that make a setting sensitive. File names of keys are not.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let names_a_file = name.ends_with("file") || name.ends_with("dir") || name.ends_with("config");
    NAME_PARTS.iter().any(|part| name.contains(part)) && !names_a_file
}

/// The kubelet refuses a set of reserved CPUs together with either reserved cgroup.
fn has_reserved_cpus(node: &Node) -> bool {
    node.config.kubelet.reserved.system_cpus.is_some()
        || is_set(node.config.kubelet.config.get("reservedSystemCPUs"))
        || kubelet_args::value_of(&node.arguments, "reserved-cpus").is_some_and(|v| !v.is_empty())
}

fn is_set(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

fn check_reserved_cpus(node: &Node, draft: &mut Draft) {
    let in_config = ["kubeReservedCgroup", "systemReservedCgroup"]
        .iter()
        .any(|key| is_set(node.config.kubelet.config.get(*key)));
    let in_flags = ["kube-reserved-cgroup", "system-reserved-cgroup"]
        .iter()
        .any(|name| kubelet_args::value_of(&node.arguments, name).is_some_and(|v| !v.is_empty()));
    if has_reserved_cpus(node) && (in_config || in_flags) {
        let what = "reserved CPUs and a reserved cgroup are both set";
        let problem = Problem::new(&codes::plan::RESERVED_CONFLICT, what)
            .at(Place::field("spec.kubelet.config"));
        draft.findings.push(Finding::error(problem));
    }
}

/// The environment file that `kubelet.service` reads.
fn environment(node: &Node, draft: &mut Draft) -> FileBody {
    let owned = owned_flags(node);
    explain_repeated_flags(node, &owned, draft);
    let mut words: Vec<String> = owned
        .iter()
        .map(|(name, value)| kubelet_args::quoted(&format!("--{name}={value}")))
        .collect();
    words.extend(kubelet_args::written(&node.config.kubelet.flags));
    let arguments = format!("{}={}\n", kubelet_args::VARIABLE, words.join(" "));
    let alpha = gates::DROP_IN_DIR_ALPHA.is_open(node.kubelet_version) && uses_drop_ins(node);
    let switch = if alpha { "KUBELET_CONFIG_DROPIN_DIR_ALPHA=on\n" } else { "" };
    let secret = kubelet_args::names(&node.arguments).into_iter().any(is_secret_name);
    FileBody { secret, ..FileBody::new(ENVIRONMENT_PATH, 0o600, format!("{switch}{arguments}")) }
}

/// Every flag of ours, in fixed order.
fn owned_flags(node: &Node) -> Vec<(&'static str, String)> {
    let provider = credential_provider::directory(node);
    let optional = |wanted: bool, value: &str| wanted.then(|| value.to_owned());
    let outpost = node.cluster.outpost.is_some();
    let labels = labels(node);
    let flags = [
        ("cloud-provider", Some("external".to_owned())),
        ("hostname-override", Some(node.name.clone())),
        ("node-ip", Some(node.ip.to_string())),
        ("config", Some(CONFIG_PATH.to_owned())),
        ("config-dir", optional(uses_drop_ins(node), CONFIG_DIR)),
        ("kubeconfig", Some(kubeconfig::PATH.to_owned())),
        ("bootstrap-kubeconfig", optional(outpost, kubeconfig::BOOTSTRAP_PATH)),
        ("image-credential-provider-bin-dir", provider),
        ("image-credential-provider-config", Some(credential_provider::CONFIG_PATH.to_owned())),
        ("runtime-cgroups", Some("/runtime.slice/containerd.service".to_owned())),
        ("node-labels", (!labels.is_empty()).then_some(labels)),
    ];
    flags.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Drop-ins of others count too: without the flag the kubelet would not read them.
fn uses_drop_ins(node: &Node) -> bool {
    !node.config.kubelet.config.is_empty() || !node.facts.machine.kubelet_drop_ins.is_empty()
}

fn labels(node: &Node) -> String {
    let mut labels = node.config.node.labels.clone();
    if node.facts.machine.nvidia_device && gates::NVIDIA_LABEL.is_open(node.kubelet_version) {
        labels.entry("nvidia.com/gpu.present".into()).or_insert("true".into());
    }
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// A user's flag stands last and wins, except for labels, which add up. The config's own check
/// warns about it with its place; here the values are known.
fn explain_repeated_flags(node: &Node, owned: &[(&str, String)], draft: &mut Draft) {
    let given = kubelet_args::names(&node.arguments);
    let repeated = owned.iter().filter(|(name, _)| *name != "node-labels" && given.contains(name));
    for (name, value) in repeated {
        let text = format!("--{name}: the config's flag wins over {value}");
        draft.reason("kubeletFlags", "flags", text);
    }
}
