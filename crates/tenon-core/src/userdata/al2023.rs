//! AL2023: a message of scripts and NodeConfig documents, which the image's nodeadm reads.

use serde_json::{Map, Value, json};

use super::document::NodeFile;
use super::group::MaxPodsPolicy;
use super::mime_write::{self, Part};
use super::signal::{self, Sender};
use super::{Cluster, Document, Draft, Group, Options, kubelet_args};
use crate::codes::userdata as pages;
use crate::problem::{Finding, Problem};
use crate::yaml;

pub const API_VERSION: &str = "node.eks.aws/v1alpha1";
/// The units of nodeadm: the first reads the config, the second starts the daemons.
pub const JOIN_UNITS: &str = "nodeadm-config.service,nodeadm-run.service";

pub(crate) fn draft(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<Draft> {
    let mut parts = pre_parts(group);
    parts.extend(later_part(group));
    let spec = spec(cluster, group, options, findings);
    if !spec.is_empty() {
        parts.push(Part::new(mime_write::NODE_CONFIG, document(spec), "NodeConfig"));
    }
    if let Some(text) = &group.override_command {
        match override_document(text) {
            true => parts.push(Part::new(
                mime_write::NODE_CONFIG,
                ended(text),
                "overrideBootstrapCommand",
            )),
            false => {
                let what = "overrideBootstrapCommand is not a NodeConfig document";
                let problem = Problem::new(&pages::BAD_OVERRIDE, what)
                    .at(group.at("overrideBootstrapCommand"));
                findings.push(Finding::error(problem));
                return None;
            }
        }
    }
    let document = if parts.is_empty() { Document::Empty } else { Document::Mime(parts) };
    let mut draft = Draft::from(document);
    if group.ami.is_some() {
        draft.notes.push("the image must contain nodeadm with its two units".into());
    }
    Some(draft)
}

/// One script part for each command before the join.
pub(crate) fn pre_parts(group: &Group) -> Vec<Part> {
    let commands = group.pre_commands.iter().enumerate();
    commands
        .map(|(index, text)| Part::script(text, format!("preBootstrapCommands[{index}]")))
        .collect()
}

/// The script that lays down what runs after the join. Scripts end before the kubelet starts,
/// so this work is put into units that wait for nodeadm.
fn later_part(group: &Group) -> Option<Part> {
    let sender = Sender { source: JOIN_UNITS, after: "nodeadm-run.service" };
    let (mut files, mut units) = (Vec::new(), Vec::new());
    if !group.post_commands.is_empty() {
        files.extend(post_files(group));
        files.push(NodeFile::new(
            "/etc/systemd/system/tenon-post.service",
            0o644,
            post_unit(group, sender.after),
        ));
        units.push("tenon-post.service");
    }
    if let Some(wish) = &group.signal {
        files.push(NodeFile::new(signal::SCRIPT_PATH, 0o755, signal::SCRIPT));
        files.push(NodeFile::new(
            "/etc/systemd/system/tenon-signal.service",
            0o644,
            signal::unit(wish, &sender),
        ));
        units.push("tenon-signal.service");
    }
    if units.is_empty() {
        return None;
    }
    let start =
        format!("systemctl daemon-reload\nsystemctl start --no-block {}\n", units.join(" "));
    Some(Part::script(&signal::install_script(&files, &start), "post-bootstrap and signal units"))
}

/// One executable file for each command after the join.
pub(crate) fn post_files(group: &Group) -> Vec<NodeFile> {
    script_files("post", &group.post_commands)
}

/// `/opt/tenon/post-00.sh` and so on.
pub(crate) fn script_files(name: &str, commands: &[String]) -> Vec<NodeFile> {
    let numbered = commands.iter().enumerate();
    numbered
        .map(|(index, text)| {
            let body = Part::script(text, "").body;
            NodeFile::new(format!("/opt/tenon/{name}-{index:02}.sh"), 0o755, body)
        })
        .collect()
}

/// A oneshot that runs the commands in order, once the unit before it has ended.
pub(crate) fn post_unit(group: &Group, after: &str) -> String {
    let starts: String =
        post_files(group).iter().map(|file| format!("ExecStart={}\n", file.path)).collect();
    format!(
        "[Unit]\nDescription=Commands after the node has joined\nAfter={after}\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\n{starts}\n\
         [Install]\nWantedBy=multi-user.target\n"
    )
}

fn override_document(text: &str) -> bool {
    let has = |line: &str| text.lines().any(|found| found.trim_end() == line);
    has(&format!("apiVersion: {API_VERSION}")) && has("kind: NodeConfig")
        || serde_json::from_str::<Value>(text)
            .is_ok_and(|json| json["kind"] == "NodeConfig" && json["apiVersion"] == API_VERSION)
}

fn ended(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}

/// A NodeConfig document as YAML.
pub(crate) fn document(spec: Map<String, Value>) -> String {
    yaml::emit(&json!({"apiVersion": API_VERSION, "kind": "NodeConfig", "spec": spec}))
}

/// The `spec` of the NodeConfig; empty when there is nothing to say.
pub(crate) fn spec(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Map<String, Value> {
    let mut spec = Map::new();
    let mut put = |key: &str, value: Map<String, Value>| {
        if !value.is_empty() {
            spec.insert(key.to_owned(), Value::Object(value));
        }
    };
    if !group.joined_by_eks() {
        put("cluster", cluster_block(cluster));
    }
    put("kubelet", kubelet_block(cluster, group, options, findings));
    put("instance", instance_block(group));
    put("containerd", text_block("config", group.containerd_config.as_deref()));
    let gates = group.feature_gates.iter().map(|(key, on)| (key.clone(), json!(on)));
    put("featureGates", gates.collect());
    spec
}

fn text_block(key: &str, text: Option<&str>) -> Map<String, Value> {
    text.into_iter().map(|text| (key.to_owned(), json!(text))).collect()
}

fn cluster_block(cluster: &Cluster) -> Map<String, Value> {
    let pairs = [
        ("name", cluster.name.clone()),
        ("apiServerEndpoint", cluster.endpoint.clone()),
        ("certificateAuthority", cluster.certificate_authority.clone()),
        ("cidr", cluster.cidr_text()),
        ("id", cluster.id.clone().filter(|_| cluster.outpost)),
    ];
    let present =
        pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?))));
    let mut block: Map<String, Value> = present.collect();
    if cluster.outpost {
        block.insert("enableOutpost".into(), json!(true));
    }
    block
}

fn kubelet_block(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Map<String, Value> {
    let mut config = group.kubelet_config.clone();
    let mut flags = Vec::new();
    if !group.joined_by_eks() {
        if let Some(dns) = dns(cluster, group, findings) {
            config.entry("clusterDNS").or_insert(json!([dns]));
        }
        flags = kubelet_args::flags(group);
        if options.taints_in_config && !group.taints.is_empty() {
            flags.retain(|flag| !flag.starts_with("--register-with-taints"));
            config.insert("registerWithTaints".into(), taint_objects(group));
        }
    }
    flags.extend(group.kubelet_flags.iter().cloned());
    let mut block = Map::new();
    let ceiling = group.max_pods.filter(|_| group.max_pods_policy == MaxPodsPolicy::Min);
    match (ceiling, group.max_pods) {
        (Some(most), _) => {
            block.insert(
                "maxPodsExpression".into(),
                json!(format!("max_pods < {most} ? max_pods : {most}")),
            );
        }
        (None, Some(pods)) => {
            config.insert("maxPods".into(), json!(pods));
        }
        (None, None) => {
            block.extend(text_block("maxPodsExpression", group.max_pods_expression.as_deref()))
        }
    }
    if !config.is_empty() {
        block.insert("config".into(), Value::Object(config));
    }
    if !flags.is_empty() {
        block.insert("flags".into(), json!(flags));
    }
    block
}

/// The group's DNS address, or the one of the service range.
pub(crate) fn dns(cluster: &Cluster, group: &Group, findings: &mut Vec<Finding>) -> Option<String> {
    if let Some(address) = group.cluster_dns {
        return Some(address.to_string());
    }
    match cluster.dns() {
        Ok(address) => address.map(|address| address.to_string()),
        Err(problem) => {
            findings.push(Finding::error(problem));
            None
        }
    }
}

/// Taints as objects of the kubelet's config.
pub(crate) fn taint_objects(group: &Group) -> Value {
    let taints = group.taints.iter();
    let objects: Vec<_> = taints
        .map(|taint| {
            let mut object = json!({"key": taint.key, "effect": taint.effect});
            if !taint.value.is_empty() {
                object["value"] = json!(taint.value);
            }
            object
        })
        .collect();
    json!(objects)
}

fn instance_block(group: &Group) -> Map<String, Value> {
    let mut block = Map::new();
    if let Some(store) = &group.instance_store {
        let mut storage = json!({"strategy": store.strategy_name()});
        if let Some(path) = &store.mount_path {
            storage["mountPath"] = json!(path);
        }
        if !store.disabled_mounts.is_empty() {
            storage["disabledMounts"] = json!(store.disabled_mounts);
        }
        block.insert("localStorage".into(), storage);
    }
    let mut environment = group.environment.clone();
    if let Some(proxy) = &group.proxy {
        for service in ["containerd", "kubelet"] {
            environment.entry(service.to_owned()).or_default().extend(proxy.variables());
        }
    }
    if !environment.is_empty() {
        block.insert("environment".into(), json!(environment));
    }
    block
}
