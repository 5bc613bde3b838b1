//! Static pods: a command line with probes, mounts and the marks that tell whose it is.

use serde_json::{Value, json};

use super::cluster::{Cluster, Component, Etcd, Phase};
use super::flags::{self, BOOTSTRAP_CONTROLLER_PORT, Flags};
use super::patch::{self, Patch};
use super::{
    API_PORT, BOOTSTRAP_API_PORT, BOOTSTRAP_SECRETS, ControlPlaneFile, MANIFEST_MARK, MANIFESTS,
    PKI, audit, encryption,
};
use crate::hex::sha256;
use crate::kube_version::NAMED_PROBE_PORT;
use crate::problem::Problem;
use crate::yaml;

/// The priority of pods without which there is no node.
const CRITICAL: u32 = 2_000_001_000;

/// A static pod, ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub component: Component,
    pub phase: Phase,
    pub pod: Value,
}

impl Manifest {
    /// `kube-apiserver`, or `bootstrap-kube-apiserver`.
    pub fn name(&self) -> String {
        name(self.component, self.phase)
    }

    pub fn path(&self) -> String {
        format!("{MANIFESTS}/{}.yaml", self.name())
    }

    /// The digest that the pod carries.
    pub fn digest(&self) -> &str {
        self.pod["metadata"]["annotations"][MANIFEST_MARK].as_str().unwrap_or_default()
    }

    pub fn file(&self) -> ControlPlaneFile {
        ControlPlaneFile { path: self.path(), mode: 0o600, body: yaml::emit(&self.pod) }
    }
}

/// The name of a component's pod.
pub fn name(component: Component, phase: Phase) -> String {
    match phase {
        Phase::Bootstrap => format!("bootstrap-{}", component.name()),
        Phase::Final => component.name().to_owned(),
    }
}

/// The ports that a component listens on; nobody else may.
pub fn ports(component: Component, phase: Phase) -> &'static [u16] {
    match (component, phase) {
        (Component::Etcd, _) => &[2379, 2380, 2381],
        (Component::ApiServer, Phase::Final) => &[API_PORT],
        (Component::ApiServer, Phase::Bootstrap) => &[BOOTSTRAP_API_PORT],
        (Component::ControllerManager, Phase::Final) => &[10257],
        (Component::ControllerManager, Phase::Bootstrap) => &[BOOTSTRAP_CONTROLLER_PORT],
        (Component::Scheduler, _) => &[10259],
    }
}

/// Builds the static pod of a component, patches it and marks it.
pub fn manifest(
    cluster: &Cluster,
    component: Component,
    phase: Phase,
    patches: &[Patch],
) -> Result<Manifest, Problem> {
    let flags = flags::flags(cluster, component, phase);
    let mut pod = pod(cluster, component, phase, &flags);
    for patch in patches.iter().filter(|patch| patch.target == component.name()) {
        patch::apply(patch, &mut pod)?;
    }
    mark(&mut pod);
    Ok(Manifest { component, phase, pod })
}

/// Puts the digest of everything else into the pod.
fn mark(pod: &mut Value) {
    let digits = sha256(pod.to_string().as_bytes());
    pod["metadata"]["annotations"][MANIFEST_MARK] = format!("sha256:{digits}").into();
}

fn pod(cluster: &Cluster, component: Component, phase: Phase, flags: &Flags) -> Value {
    let mounts = mounts(cluster, component, phase);
    let probes = Probes::of(cluster, component, phase);
    let mut container = json!({
        // The same in both phases, so that a patch finds it.
        "name": component.name(),
        "command": flags::command(component, flags),
        "image": cluster.image(component),
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": probes.port, "name": "probe-port", "protocol": "TCP"}],
        "resources": {"requests": requests(component)},
        "livenessProbe": probes.probe(probes.live, 10, 10, 8),
        "startupProbe": probes.probe(probes.start, 10, 10, 24),
        "volumeMounts": mounts.iter().map(Mount::in_container).collect::<Vec<_>>(),
    });
    if let Some(path) = probes.ready {
        container["readinessProbe"] = probes.probe(path, 0, 1, 3);
    }
    if !NAMED_PROBE_PORT.is_open(cluster.version) {
        remove(&mut container, "ports");
    }
    if !cluster.proxy.is_empty() {
        let variable = |(name, value): (&String, &String)| json!({"name": name, "value": value});
        container["env"] = cluster.proxy.iter().map(variable).collect();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name(component, phase),
            "namespace": "kube-system",
            "labels": {"component": name(component, phase), "tier": "control-plane"},
            "annotations": annotations(cluster, component, phase),
        },
        "spec": {
            "containers": [container],
            "hostNetwork": true,
            "priority": CRITICAL,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": mounts.iter().map(Mount::in_pod).collect::<Vec<_>>(),
        },
    })
}

fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}

/// What kubeadm reads back when it upgrades or joins.
fn annotations(cluster: &Cluster, component: Component, phase: Phase) -> Value {
    match (component, phase) {
        (Component::ApiServer, Phase::Final) => {
            let address = std::net::SocketAddr::new(cluster.advertise_address, API_PORT);
            json!({"kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint": address.to_string()})
        }
        (Component::Etcd, _) => {
            let url = Cluster::url(cluster.advertise_address, 2379);
            json!({"kubeadm.kubernetes.io/etcd.advertise-client-urls": url})
        }
        _ => json!({}),
    }
}

fn requests(component: Component) -> Value {
    match component {
        Component::ApiServer => json!({"cpu": "250m"}),
        Component::ControllerManager => json!({"cpu": "200m"}),
        Component::Scheduler => json!({"cpu": "100m"}),
        Component::Etcd => json!({"cpu": "100m", "memory": "100Mi"}),
    }
}

/// Where and how a component is asked whether it is well.
struct Probes {
    host: String,
    port: u16,
    port_name: Value,
    scheme: &'static str,
    live: &'static str,
    /// The controller manager has no such question.
    ready: Option<&'static str>,
    start: &'static str,
}

impl Probes {
    fn of(cluster: &Cluster, component: Component, phase: Phase) -> Self {
        let loopback = || "127.0.0.1".to_owned();
        let port = if component == Component::Etcd { 2381 } else { ports(component, phase)[0] };
        let named = NAMED_PROBE_PORT.is_open(cluster.version);
        let (host, live, ready, start) = match (component, phase) {
            (Component::ApiServer, Phase::Final) => {
                (cluster.advertise_address.to_string(), "/livez", Some("/readyz"), "/livez")
            }
            (Component::ControllerManager, _) => (loopback(), "/healthz", None, "/healthz"),
            (Component::Etcd, _) => {
                (cluster.loopback().to_string(), "/livez", Some("/readyz"), "/readyz")
            }
            _ => (loopback(), "/livez", Some("/readyz"), "/livez"),
        };
        let scheme = if component == Component::Etcd { "HTTP" } else { "HTTPS" };
        let port_name = if named { json!("probe-port") } else { json!(port) };
        Probes { host, port, port_name, scheme, live, ready, start }
    }

    fn probe(&self, path: &str, delay: u32, period: u32, threshold: u32) -> Value {
        let mut probe = json!({
            "httpGet": {
                "host": self.host, "path": path, "port": self.port_name, "scheme": self.scheme,
            },
            "failureThreshold": threshold,
            "periodSeconds": period,
            "timeoutSeconds": 15,
        });
        if delay > 0 {
            probe["initialDelaySeconds"] = delay.into();
        }
        probe
    }
}

/// A directory or file of the host inside a container, under the same path.
struct Mount {
    name: String,
    path: String,
    kind: &'static str,
    read_only: bool,
}

impl Mount {
    fn directory(name: &str, path: &str) -> Self {
        Mount { name: name.into(), path: path.into(), kind: "DirectoryOrCreate", read_only: true }
    }

    fn file(name: &str, path: &str) -> Self {
        Mount { kind: "FileOrCreate", ..Mount::directory(name, path) }
    }

    fn writable(self) -> Self {
        Mount { read_only: false, ..self }
    }

    fn in_container(&self) -> Value {
        let mut mount = json!({"name": self.name, "mountPath": self.path});
        if self.read_only {
            mount["readOnly"] = true.into();
        }
        mount
    }

    fn in_pod(&self) -> Value {
        json!({"name": self.name, "hostPath": {"path": self.path, "type": self.kind}})
    }
}

/// What a component sees of the host, sorted by name as kubeadm does it.
fn mounts(cluster: &Cluster, component: Component, phase: Phase) -> Vec<Mount> {
    let mut mounts = match component {
        Component::Etcd => etcd_mounts(cluster),
        Component::ApiServer => api_server_mounts(cluster),
        Component::ControllerManager => controller_manager_mounts(cluster, phase),
        Component::Scheduler => vec![Mount::file("kubeconfig", "/etc/kubernetes/scheduler.conf")],
    };
    if phase == Phase::Bootstrap {
        mounts.push(Mount::directory("bootstrap-secrets", BOOTSTRAP_SECRETS));
    }
    mounts.sort_by(|one, other| one.name.cmp(&other.name));
    mounts
}

fn etcd_mounts(cluster: &Cluster) -> Vec<Mount> {
    let Etcd::Local(etcd) = &cluster.etcd else { return Vec::new() };
    vec![
        Mount::directory("etcd-certs", &format!("{PKI}/etcd")).writable(),
        Mount::directory("etcd-data", &etcd.data_dir).writable(),
    ]
}

/// Keys, and the certificates that the host trusts.
fn trusted_mounts(cluster: &Cluster) -> Vec<Mount> {
    let name = |path: &String| path.trim_start_matches('/').replace('/', "-");
    let more = cluster.ca_directories.iter().map(|path| Mount::directory(&name(path), path));
    let base = [Mount::directory("ca-certs", "/etc/ssl/certs"), Mount::directory("k8s-certs", PKI)];
    base.into_iter().chain(more).collect()
}

fn api_server_mounts(cluster: &Cluster) -> Vec<Mount> {
    let mut mounts = trusted_mounts(cluster);
    if let Etcd::External(etcd) = &cluster.etcd {
        for (number, file) in
            [&etcd.ca_file, &etcd.cert_file, &etcd.key_file].into_iter().enumerate()
        {
            if !file.starts_with(PKI) {
                mounts.push(Mount {
                    kind: "File",
                    ..Mount::file(&format!("etcd-client-{number}"), file)
                });
            }
        }
    }
    mounts.extend(option_mounts(cluster));
    mounts
}

/// What the API server sees because of options that kubeadm does not have.
fn option_mounts(cluster: &Cluster) -> Vec<Mount> {
    let mut mounts = Vec::new();
    if cluster.audit.policy().is_some() {
        mounts.push(Mount { kind: "File", ..Mount::file("audit-policy", audit::POLICY) });
        mounts.push(Mount::directory("audit-log", audit::LOG_DIRECTORY).writable());
    }
    if cluster.encryption.is_on() {
        // The whole directory: a file alone would never show its next version.
        mounts.push(Mount::directory("encryption", encryption::DIRECTORY));
    }
    if let Some(directory) = cluster.encryption.socket_directory() {
        mounts.push(Mount::directory("kms", directory).writable());
    }
    if let Some(file) = &cluster.authorization_config {
        mounts.push(Mount { kind: "File", ..Mount::file("authorization", file) });
    }
    mounts
}

/// The same in kubeadm's words, so that its upgrades keep them.
pub(super) fn kubeadm_volumes(cluster: &Cluster) -> Vec<Value> {
    let volume = |mount: &Mount| {
        json!({
            "name": mount.name, "hostPath": mount.path, "mountPath": mount.path,
            "readOnly": mount.read_only, "pathType": mount.kind,
        })
    };
    option_mounts(cluster).iter().map(volume).collect()
}

fn controller_manager_mounts(cluster: &Cluster, phase: Phase) -> Vec<Mount> {
    let mut mounts = trusted_mounts(cluster);
    if phase == Phase::Final {
        mounts.push(Mount::file("kubeconfig", "/etc/kubernetes/controller-manager.conf"));
    }
    mounts
}
