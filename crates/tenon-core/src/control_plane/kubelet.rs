//! KubeletConfiguration of the nodes of a cluster that Tenon started.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{MANIFESTS, PKI};

/// The DNS service has the tenth address of each service range.
const DNS_OFFSET: u8 = 10;

/// What decides a node's kubelet config.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    pub service_cidrs: &'a [IpNet],
    pub dns_domain: &'a str,
    /// The first master takes no ordinary pods.
    pub control_plane: bool,
    /// systemd-resolved's real file when it is in use.
    pub resolv_conf: Option<&'a str>,
    /// For hosts that cannot leave cgroup v1; None keeps the kubelet's default.
    pub fail_cgroup_v1: Option<bool>,
}

/// The kubelet's config, complete.
pub fn configuration(node: &Node<'_>) -> Value {
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": format!("{PKI}/ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "clusterDNS": node.service_cidrs.iter().map(|net| dns_address(*net).to_string()).collect::<Vec<_>>(),
        "clusterDomain": node.dns_domain,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248,
        "readOnlyPort": 0,
        "rotateCertificates": true,
        "serverTLSBootstrap": true,
        "staticPodPath": MANIFESTS,
    });
    if node.control_plane {
        config["registerWithTaints"] = json!([taint()]);
    }
    if let Some(path) = node.resolv_conf {
        config["resolvConf"] = path.into();
    }
    if let Some(fail) = node.fail_cgroup_v1 {
        config["failCgroupV1"] = fail.into();
    }
    config
}

/// Keeps ordinary pods off the control plane.
pub fn taint() -> Value {
    json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"})
}

/// The tenth address of a service range; the config's check holds that it has one.
pub fn dns_address(range: IpNet) -> IpAddr {
    match range.network() {
        IpAddr::V4(net) => {
            Ipv4Addr::from(u32::from(net).wrapping_add(u32::from(DNS_OFFSET))).into()
        }
        IpAddr::V6(net) => {
            Ipv6Addr::from(u128::from(net).wrapping_add(u128::from(DNS_OFFSET))).into()
        }
    }
}
