//! A node config, of either kind, as a group and a cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::flags;
use crate::config::{Config, DisabledMount, Hook, HookWork, MaxPodsMode, NameRule};
use crate::userdata::group::{InstanceStore, MaxPodsPolicy, Proxy};
use crate::userdata::quote::shell;
use crate::userdata::{Cluster, Group};

/// What the merged config says about the cluster.
pub fn cluster(config: &Config) -> Cluster {
    let given = &config.cluster;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let authority = &given.certificate_authority;
    Cluster {
        name: text(&given.name),
        endpoint: text(&given.api_server_endpoint),
        certificate_authority: (!authority.is_empty()).then(|| STANDARD.encode(authority)),
        service_cidr: given.cidr,
        id: text(&given.id),
        outpost: given.on_outpost(None).is_some(),
        ..Cluster::default()
    }
}

/// What it says about the node.
pub fn group(config: &Config, name: &str) -> Group {
    let mut group = Group {
        name: name.to_owned(),
        labels: config.node.labels.clone(),
        taints: config.node.taints.clone(),
        kubelet_config: config.kubelet.config.clone(),
        containerd_config: Some(config.containerd.config.clone()).filter(|text| !text.is_empty()),
        pre_commands: commands(&config.hooks.pre_bootstrap),
        post_commands: commands(&config.hooks.post_join),
        ..Group::default()
    };
    match &config.kubelet.max_pods.mode {
        MaxPodsMode::Eni => {}
        MaxPodsMode::Fixed(pods) => group.max_pods = Some(*pods),
        MaxPodsMode::Min(pods) => {
            (group.max_pods, group.max_pods_policy) = (Some(*pods), MaxPodsPolicy::Min);
        }
        MaxPodsMode::Expression { text, .. } => group.max_pods_expression = Some(text.clone()),
    }
    for flag in &config.kubelet.flags {
        take_flag(&mut group, &flag.text);
    }
    take_fields(&mut group);
    take_instance(&mut group, config);
    if config.node.name == NameRule::InstanceId {
        group.feature_gates.insert("InstanceIdNodeName".into(), true);
    }
    if config.fast_image_pull {
        group.feature_gates.insert("FastImagePull".into(), true);
    }
    group
}

/// A pod limit and one DNS address among the kubelet's fields are the group's own settings.
fn take_fields(group: &mut Group) {
    let pods = group.kubelet_config.get("maxPods").and_then(serde_json::Value::as_u64);
    if let Some(pods) = pods.and_then(|pods| u32::try_from(pods).ok()) {
        group.kubelet_config.remove("maxPods");
        group.max_pods.get_or_insert(pods);
    }
    let dns =
        group.kubelet_config.get("clusterDNS").and_then(|list| match list.as_array()?.as_slice() {
            [one] => one.as_str()?.parse().ok(),
            _ => None,
        });
    if dns.is_some() {
        group.kubelet_config.remove("clusterDNS");
        group.cluster_dns = dns;
    }
}

/// Labels, taints and the pod limit given as flags are the same settings; a flag beats the
/// config in the kubelet too. Other flags stay flags.
fn take_flag(group: &mut Group, flag: &str) {
    if let Some(labels) = flag.strip_prefix("--node-labels=").and_then(flags::labels) {
        group.labels.extend(labels);
    } else if let Some(taints) =
        flag.strip_prefix("--register-with-taints=").and_then(flags::taints)
    {
        group.taints.extend(taints);
    } else if let Some(pods) = flag.strip_prefix("--max-pods=").and_then(|text| text.parse().ok()) {
        group.max_pods = Some(pods);
    } else {
        group.kubelet_flags.push(flag.to_owned());
    }
}

fn take_instance(group: &mut Group, config: &Config) {
    let storage = &config.instance.local_storage;
    group.instance_store = storage.strategy.map(|strategy| InstanceStore {
        strategy,
        mount_path: Some(storage.mount_path.clone()).filter(|path| path != "/mnt/k8s-disks"),
        disabled_mounts: storage
            .disabled_mounts
            .iter()
            .map(|mount| mount_name(*mount).to_owned())
            .collect(),
    });
    group.proxy = config.instance.proxy.as_ref().map(|proxy| Proxy {
        http: proxy.http.as_ref().map(|url| url.expose().to_owned()),
        https: proxy.https.as_ref().map(|url| url.expose().to_owned()),
        no_proxy: proxy.no_proxy.clone(),
    });
    for (service, variables) in &config.instance.environment {
        let pairs = variables.iter().map(|(key, value)| (key.clone(), value.expose().to_owned()));
        group.environment.insert(service.clone(), pairs.collect());
    }
}

fn mount_name(mount: DisabledMount) -> &'static str {
    match mount {
        DisabledMount::Containerd => "Containerd",
        DisabledMount::PodLogs => "PodLogs",
        DisabledMount::Soci => "SOCI",
        DisabledMount::Kubelet => "Kubelet",
        DisabledMount::All => "All",
    }
}

fn commands(hooks: &[Hook]) -> Vec<String> {
    hooks
        .iter()
        .map(|hook| match &hook.work {
            HookWork::Script(text) => text.expose().to_owned(),
            HookWork::Argv(words) => {
                words.iter().map(|word| shell::literal(word)).collect::<Vec<_>>().join(" ")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flag;

    #[test]
    fn flags_of_labels_become_labels() {
        let mut config = Config::default();
        config.kubelet.config =
            serde_json::json!({"maxPods": 9, "clusterDNS": ["10.0.0.10"], "podPidsLimit": 7})
                .as_object()
                .cloned()
                .unwrap_or_default();
        for text in [
            "--node-labels=a=b,c=d",
            "--register-with-taints=k=v:NoSchedule",
            "--v=4",
            "--max-pods=58",
        ] {
            config.kubelet.flags.push(Flag { text: text.into(), verbatim: true });
        }
        let group = group(&config, "x");
        assert_eq!(group.labels.len(), 2);
        assert_eq!(group.taints[0].key, "k");
        assert_eq!(group.kubelet_flags, ["--v=4"]);
        assert_eq!(group.max_pods, Some(58));
        assert_eq!(group.cluster_dns.unwrap().to_string(), "10.0.0.10");
        assert_eq!(group.kubelet_config.len(), 1);
    }
}
