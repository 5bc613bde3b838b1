//! The kubelet's files on a staged machine: its configuration, and the environment that opens
//! the gate.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::machine::Machine;
use crate::codes::config::BAD_FLAG;
use crate::codes::stages as pages;
use crate::hex::sha256;
use crate::kube_version::Version;
use crate::problem::{Place, Problem};
use crate::yaml;

pub const CONFIG: &str = "/etc/kubernetes/kubelet/config.yaml";
pub const DROP_INS: &str = "/etc/kubernetes/kubelet/config.d";
pub const BOOTSTRAP_KUBECONFIG: &str = "/etc/kubernetes/bootstrap-kubelet.conf";
pub const KUBECONFIG: &str = "/etc/kubernetes/kubelet.conf";
pub const CA: &str = "/etc/kubernetes/pki/ca.crt";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// How the first line of an environment of ours begins.
const HEADER: &str = "# Written by tenon stage prepare, sha256:";
/// The tenth address of a service range is the cluster's DNS.
const DNS_INDEX: u32 = 10;

/// What the machine adds to its config.
#[derive(Debug, Clone, Default)]
pub struct Host {
    pub node_ip: Option<IpAddr>,
    /// systemd-resolved answers on the stub address, so pods need its real file.
    pub resolved: bool,
    pub boot_id: String,
}

/// What the kubelets of all nodes of a cluster have in common.
pub fn shared_config(service_cidrs: &[IpNet], dns_domain: &str) -> Value {
    let dns: Vec<String> = service_cidrs.iter().filter_map(dns).collect();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": CA},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "clusterDNS": dns,
        "clusterDomain": dns_domain,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248,
        "readOnlyPort": 0,
        "rotateCertificates": true,
        "serverTLSBootstrap": true,
        "staticPodPath": "/etc/kubernetes/manifests",
    })
}

/// Keeps ordinary pods off the control plane.
pub fn control_plane_taint() -> Value {
    json!({"key": CONTROL_PLANE, "effect": "NoSchedule"})
}

/// The `KubeletConfiguration` as YAML: ours, with the user's fields laid over it.
pub fn config(machine: &Machine, host: &Host) -> String {
    let mut value = shared_config(&machine.cluster.service_cidrs, &machine.cluster.dns_domain);
    let taints = taints(machine);
    if !taints.is_empty() {
        value["registerWithTaints"] = Value::Array(taints);
    }
    if host.resolved {
        value["resolvConf"] = "/run/systemd/resolve/resolv.conf".into();
    }
    if let Some(fails) = machine.kubelet.fail_cgroup_v1 {
        value["failCgroupV1"] = fails.into();
    }
    if let Value::Object(map) = &mut value {
        lay_over(map, &machine.kubelet.config);
    }
    yaml::emit(&value)
}

fn taints(machine: &Machine) -> Vec<Value> {
    let own = control_plane_taint();
    let mut list: Vec<Value> = machine.role.is_control_plane().then_some(own).into_iter().collect();
    list.extend(machine.node.taints.iter().map(|taint| {
        let mut value = json!({"key": taint.key, "effect": taint.effect});
        if !taint.value.is_empty() {
            value["value"] = taint.value.as_str().into();
        }
        value
    }));
    list
}

/// Objects merge deep; any other value replaces.
fn lay_over(base: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => lay_over(base, over),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

fn dns(cidr: &IpNet) -> Option<String> {
    match cidr {
        IpNet::V4(net) => {
            let address = u32::from(net.network()).checked_add(DNS_INDEX)?;
            Some(std::net::Ipv4Addr::from(address).to_string())
        }
        IpNet::V6(net) => {
            let address = u128::from(net.network()).checked_add(DNS_INDEX.into())?;
            Some(std::net::Ipv6Addr::from(address).to_string())
        }
    }
}

/// The environment that the kubelet's unit reads: sorted keys, quoted values, and a header by
/// which Tenon knows its own file.
pub fn environment(machine: &Machine, host: &Host, kubernetes: &str) -> Result<String, Problem> {
    let ip = host.node_ip.map(|ip| ip.to_string()).unwrap_or_default();
    let labels = machine.node.labels.iter();
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    let mut pairs = vec![
        ("KUBELET_EXTRA_ARGS", extra_args(machine)?),
        ("KUBERNETES_VERSION", kubernetes.to_owned()),
        ("NODE_IP", ip),
        ("NODE_LABELS", labels.join(",")),
        ("TENON_PREPARED_BOOT_ID", host.boot_id.clone()),
    ];
    let version = Version::parse(kubernetes);
    if version.is_some_and(|version| crate::kube_version::DROP_IN_DIR_ALPHA.is_open(version)) {
        pairs.push(("KUBELET_CONFIG_DROPIN_DIR_ALPHA", "on".to_owned()));
        pairs.sort();
    }
    let mut body = String::new();
    for (key, value) in pairs {
        if value.contains(['\n', '\r', '"']) {
            let what = format!("the value of {key} cannot stand in an environment file");
            return Err(Problem::new(&pages::BAD_ENVIRONMENT, what));
        }
        body.push_str(&format!("{key}=\"{}\"\n", value.replace('\\', "\\\\")));
    }
    Ok(format!("{HEADER}{}\n{body}", sha256(body.as_bytes())))
}

/// The flags as one text that the unit splits at blanks.
fn extra_args(machine: &Machine) -> Result<String, Problem> {
    let mut args = machine.kubelet.extra_args.clone();
    if let Some(name) = &machine.node.name {
        args.insert(0, format!("--hostname-override={name}"));
    }
    if args.iter().any(|arg| arg.contains(char::is_whitespace)) {
        let what = "a flag with a blank in it would become two arguments";
        let place = Place::field("spec.kubelet.extraArgs");
        return Err(Problem::new(&BAD_FLAG, what).at(place));
    }
    Ok(args.join(" "))
}

/// True for an environment that Tenon wrote and nobody changed.
pub fn is_ours(text: &str) -> bool {
    text.split_once('\n').is_some_and(|(head, body)| {
        head.strip_prefix(HEADER).is_some_and(|digest| digest == sha256(body.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::load;

    const MACHINE: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: first-master
  cluster: {name: prod, endpoint: \"https://api.example:6443\", kubernetesVersion: v1.34.2, serviceCidrs: [10.96.0.0/12, \"fd00:10::/108\"]}
  node: {name: cp-1, labels: {team: web}, taints: [{key: a, effect: NoExecute}]}
  kubelet: {config: {maxPods: 50, authentication: {anonymous: {enabled: true}}}, extraArgs: [--v=2], failCgroupV1: false}
";

    #[test]
    fn the_users_fields_lie_over_ours() {
        let machine = load(MACHINE, "x").unwrap();
        let text = config(&machine, &Host { resolved: true, ..Host::default() });
        for line in [
            "maxPods: 50",
            "10.96.0.10",
            "fd00:10::a",
            "failCgroupV1: false",
            "resolvConf: /run/systemd/resolve/resolv.conf",
            "serverTLSBootstrap: true",
            "key: node-role.kubernetes.io/control-plane",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        assert!(text.contains("anonymous:\n    enabled: true"), "{text}");
        assert!(text.contains("webhook:\n    enabled: true"), "deep: {text}");
    }

    #[test]
    fn the_environment_is_sorted_quoted_and_known_again() {
        let machine = load(MACHINE, "x").unwrap();
        let host =
            Host { node_ip: "10.0.0.4".parse().ok(), boot_id: "b".into(), ..Host::default() };
        let text = environment(&machine, &host, "v1.34.2").unwrap();
        let body: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(
            body,
            [
                "KUBELET_EXTRA_ARGS=\"--hostname-override=cp-1 --v=2\"",
                "KUBERNETES_VERSION=\"v1.34.2\"",
                "NODE_IP=\"10.0.0.4\"",
                "NODE_LABELS=\"team=web\"",
                "TENON_PREPARED_BOOT_ID=\"b\"",
            ]
        );
        assert!(is_ours(&text) && !is_ours(&text.replace("web", "db")) && !is_ours("X=1\n"));
        assert!(
            environment(&machine, &host, "v1.29.4").unwrap().contains("DROPIN_DIR_ALPHA=\"on\"")
        );
    }

    #[test]
    fn what_the_unit_would_split_is_refused() {
        let machine = load(&MACHINE.replace("--v=2", "\"--vmodule=a b\""), "x").unwrap();
        assert_eq!(environment(&machine, &Host::default(), "v1.34.2").unwrap_err().exit(), 3);
    }
}
