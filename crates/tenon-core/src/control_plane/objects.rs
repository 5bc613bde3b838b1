//! What the API must hold before anybody may ask it: roles and bindings, the bootstrap token,
//! discovery, and the notes that kubeadm reads.
//!
//! Names equal kubeadm's, so that its nodes can join and it can upgrade the cluster later.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::cluster::{Cluster, Component, Etcd, networks};
use super::{flags, pod};
use crate::kube_version;
use crate::secret::Secret;
use crate::stages::kubelet::shared_config;
use crate::yaml;

/// The group of nodes that have nothing but a bootstrap token.
pub const BOOTSTRAPPERS: &str = "system:bootstrappers:kubeadm:default-node-token";
const NODES: &str = "system:nodes";
/// Holds the nonce of the claim.
pub const CLAIM_NAME: &str = "tenon-bootstrap";

/// A token with which nodes join.
#[derive(Debug, Clone)]
pub struct BootstrapToken {
    /// Six letters and digits, public.
    pub id: String,
    /// Sixteen letters and digits.
    pub secret: Secret,
    /// RFC 3339.
    pub expiration: String,
}

/// Every object of a new cluster, in the order in which they are applied.
pub fn objects(cluster: &Cluster, ca_pem: &str, token: Option<&BootstrapToken>) -> Vec<Value> {
    let mut objects = vec![
        cluster_binding("kubeadm:cluster-admins", "cluster-admin", group("kubeadm:cluster-admins")),
        cluster_binding(
            "kubeadm:apiserver-kubelet-client",
            "system:kubelet-api-admin",
            user("kube-apiserver-kubelet-client"),
        ),
        cluster_binding(
            "kubeadm:kubelet-bootstrap",
            "system:node-bootstrapper",
            group(BOOTSTRAPPERS),
        ),
        cluster_binding(
            "kubeadm:node-autoapprove-bootstrap",
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
            group(BOOTSTRAPPERS),
        ),
        cluster_binding(
            "kubeadm:node-autoapprove-certificate-rotation",
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            group(NODES),
        ),
        json!({
            "apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "kubeadm:get-nodes"},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
        }),
        cluster_binding("kubeadm:get-nodes", "kubeadm:get-nodes", group(BOOTSTRAPPERS)),
    ];
    let signer = "kubeadm:bootstrap-signer-clusterinfo";
    objects.extend(reader("kube-public", signer, "cluster-info", &[user("system:anonymous")]));
    let nodes = [group(BOOTSTRAPPERS), group(NODES)];
    objects.extend(reader("kube-system", "kubeadm:nodes-kubeadm-config", "kubeadm-config", &nodes));
    objects.extend(reader("kube-system", "kubeadm:kubelet-config", "kubelet-config", &nodes));
    objects.push(cluster_info(cluster, ca_pem));
    objects.push(config_map(
        "kube-system",
        "kubeadm-config",
        "ClusterConfiguration",
        &kubeadm(cluster),
    ));
    let config = shared_config(&cluster.service_cidrs, &cluster.dns_domain);
    objects.push(config_map("kube-system", "kubelet-config", "kubelet", &config));
    objects.extend(token.map(token_secret));
    objects
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn user(name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
}

fn group(name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name})
}

fn cluster_binding(name: &str, role: &str, subject: Value) -> Value {
    json!({
        "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    })
}

/// A role that may read one ConfigMap, and its binding.
fn reader(namespace: &str, name: &str, config_map: &str, subjects: &[Value]) -> [Value; 2] {
    let metadata = json!({"name": name, "namespace": namespace});
    [
        json!({
            "apiVersion": RBAC, "kind": "Role", "metadata": metadata,
            "rules": [{
                "apiGroups": [""], "resources": ["configmaps"],
                "resourceNames": [config_map], "verbs": ["get"],
            }],
        }),
        json!({
            "apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": subjects,
        }),
    ]
}

fn config_map(namespace: &str, name: &str, key: &str, document: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: yaml::emit(document)},
    })
}

/// What a joining node fetches first. The controller manager adds a signature for each token.
fn cluster_info(cluster: &Cluster, ca_pem: &str) -> Value {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "", "cluster": {
            "certificate-authority-data": STANDARD.encode(ca_pem),
            "server": cluster.endpoint_url(),
        }}],
        "contexts": null,
        "current-context": "",
        "users": null,
    });
    config_map("kube-public", "cluster-info", "kubeconfig", &kubeconfig)
}

/// What kubeadm must know about a component so that its next upgrade keeps it.
fn component(cluster: &Cluster, component: Component) -> Value {
    let mut flags = match component {
        Component::ApiServer => flags::options(cluster),
        _ => BTreeMap::new(),
    };
    let own = cluster.extra_args.get(&component).into_iter().flatten();
    // kubeadm cannot take a flag of its own away; a patch must do that there.
    flags.extend(own.filter(|(_, value)| !value.is_empty()).map(|(k, v)| (k.clone(), v.clone())));
    let mut entry = json!({});
    if !flags.is_empty() {
        let row = |(name, value): (&String, &String)| json!({"name": name, "value": value});
        entry["extraArgs"] = flags.iter().map(row).collect();
    }
    let volumes = pod::kubeadm_volumes(cluster);
    if component == Component::ApiServer && !volumes.is_empty() {
        entry["extraVolumes"] = volumes.into();
    }
    entry
}

/// etcd in kubeadm's words. A tag that is not the release's own is pinned.
fn kubeadm_etcd(cluster: &Cluster) -> Value {
    match &cluster.etcd {
        Etcd::Local(etcd) => {
            let mut local = component(cluster, Component::Etcd);
            local["dataDir"] = etcd.data_dir.clone().into();
            let released = kube_version::release(cluster.version).map(|release| release.etcd);
            if released != Some(etcd.tag.as_str()) {
                local["imageTag"] = etcd.tag.clone().into();
            }
            json!({"local": local})
        }
        Etcd::External(etcd) => json!({"external": {
            "endpoints": etcd.endpoints, "caFile": etcd.ca_file,
            "certFile": etcd.cert_file, "keyFile": etcd.key_file,
        }}),
    }
}

/// The cluster in kubeadm's words.
fn kubeadm(cluster: &Cluster) -> Value {
    let mut networking = json!({
        "dnsDomain": cluster.dns_domain, "serviceSubnet": networks(&cluster.service_cidrs),
    });
    if !cluster.pod_cidrs.is_empty() {
        networking["podSubnet"] = networks(&cluster.pod_cidrs).into();
    }
    json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "apiServer": component(cluster, Component::ApiServer),
        "certificatesDir": super::PKI,
        "clusterName": cluster.name,
        "controlPlaneEndpoint": cluster.endpoint,
        "controllerManager": component(cluster, Component::ControllerManager),
        "encryptionAlgorithm": "ECDSA-P256",
        "etcd": kubeadm_etcd(cluster),
        "imageRepository": cluster.image_repository,
        "kubernetesVersion": cluster.tag(),
        "networking": networking,
        "scheduler": component(cluster, Component::Scheduler),
    })
}

/// The Secret of a bootstrap token.
pub fn token_secret(token: &BootstrapToken) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("bootstrap-token-{}", token.id), "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": token.id,
            "token-secret": token.secret.expose(),
            "expiration": token.expiration,
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": BOOTSTRAPPERS,
            "description": "made by tenon when the cluster was started",
        },
    })
}

/// Says which bootstrap filled this cluster.
pub fn claim(nonce: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": CLAIM_NAME, "namespace": "kube-system"},
        "data": {"nonce": nonce},
    })
}
