//! The disks of the two machines: Debian, containerd, a kubelet, Tenon and its config.

use std::path::Path;

use serde_json::json;
use tenon_core::control_plane::kubelet::{Node, configuration};

use super::super::machine::Disk;
use super::super::stage::Stage;
use crate::lab::{IMAGE_REPOSITORY, IMAGES_1_34, KUBERNETES_1_34};

pub const MASTER: &str = "cp-1";
pub const MASTER_ADDRESS: &str = "10.0.0.10";
pub const WORKER: &str = "worker-1";
pub const WORKER_ADDRESS: &str = "10.0.0.20";
pub const TOKEN_ID: &str = "abcdef";
const TOKEN: &str = "abcdef.0123456789abcdef";
pub const IMAGES: &[&str] =
    &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// What the master's config leaves open: versions of the lab's programs. Some of it is owed to the
/// host that the lab runs on, which has cgroup v1.
const CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: first-master
  cluster:
    name: lab
    endpoint: https://10.0.0.10:6443
    kubernetesVersion: {kubernetes}
    serviceCidrs: [10.96.0.0/16]
    podCidrs: [10.244.0.0/16]
  node: {name: cp-1, ip: 10.0.0.10}
  bootstrapToken: {token: abcdef.0123456789abcdef, ttlHours: 2}
  kubelet: {failCgroupV1: false}
  controlPlane:
    images: {repository: {repository}, etcdTag: {etcd}}
    extraArgs: {etcd: {unsafe-no-fsync: \"true\"}}
";

const CONTAINERD: &str = "version = 2
[plugins.\"io.containerd.grpc.v1.cri\"]
  sandbox_image = \"localhost/kubernetes/pause:latest\"
  restrict_oom_score_adj = true
  [plugins.\"io.containerd.grpc.v1.cri\".cni]
    bin_dir = \"/usr/lib/cni\"
  [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]
    runtime_type = \"io.containerd.runc.v2\"
    [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]
      SystemdCgroup = true
";

const KUBELET: &str = "[Unit]
Description=kubelet
Wants=containerd.service
After=containerd.service
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet/config.yaml \\
  --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \\
  --kubeconfig=/etc/kubernetes/kubelet.conf --hostname-override={name} --node-ip={address}
Restart=always
RestartSec=2s
KillMode=process
Delegate=yes
[Install]
WantedBy=multi-user.target
";

/// An add-on of every sort: a definition and an object of it, a namespace, a Deployment.
const ADDON: &str = "apiVersion: lab.tenon.dev/v1
kind: Widget
metadata: {name: first, namespace: shop}
spec: {size: 3}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      containers:
        - {name: front, image: \"localhost/kubernetes/pause:latest\", imagePullPolicy: Never, args: [hello, \"6000\"]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
";
const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.lab.tenon.dev}
spec:
  group: lab.tenon.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {size: {type: integer}}}}
";

/// The disk of the machine that starts the cluster.
pub fn master(stage: &Stage) -> anyhow::Result<Disk> {
    let disk = node(stage, MASTER, MASTER_ADDRESS, true)?;
    let images = IMAGES_1_34.ready(&stage.cache)?;
    for name in IMAGES {
        disk.install(&images.join(format!("{name}.tar")), &format!("opt/{name}.tar"))?;
    }
    let tag = |name: &str| std::fs::read_to_string(images.join(name));
    let config = CONFIG
        .replace("{kubernetes}", &tag("kubernetes.tag")?)
        .replace("{etcd}", &tag("etcd.tag")?)
        .replace("{repository}", IMAGE_REPOSITORY);
    disk.write("etc/tenon/config.yaml", &config)?;
    disk.write("var/lib/tenon/done/prepare", "")?;
    disk.write("var/lib/tenon/trigger/bootstrap", "")?;
    // By name the object comes before the definition that it needs.
    disk.write("var/lib/tenon/assets/addons/10-shop.yaml", ADDON)?;
    disk.write("var/lib/tenon/assets/addons/20-widgets.yaml", DEFINITION)?;
    Ok(disk)
}

/// The disk of a machine that joins by token: it knows the CA and nothing else.
pub fn worker(stage: &Stage, authority: &str) -> anyhow::Result<Disk> {
    let disk = node(stage, WORKER, WORKER_ADDRESS, false)?;
    disk.write("etc/kubernetes/pki/ca.crt", authority)?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {
            "server": format!("https://{MASTER_ADDRESS}:6443"),
            "certificate-authority": "/etc/kubernetes/pki/ca.crt",
        }}],
        "users": [{"name": "token", "user": {"token": TOKEN}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "token"}}],
        "current-context": "lab",
    });
    disk.write("etc/kubernetes/bootstrap-kubelet.conf", &kubeconfig.to_string())?;
    let address = json!({
        "type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}],
    });
    let network = json!({
        "cniVersion": "0.4.0",
        "name": "lab",
        "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": address}],
    });
    disk.write("etc/cni/net.d/10-lab.conflist", &network.to_string())?;
    Ok(disk)
}

/// What both have: a runtime and a kubelet that starts by itself.
fn node(stage: &Stage, name: &str, address: &str, control_plane: bool) -> anyhow::Result<Disk> {
    let disk = Disk::new(stage, name)?;
    // The units of an image that is a node of EKS.
    disk.remove("etc/systemd/system/multi-user.target.wants/tenon-config.service")?;
    disk.remove("etc/systemd/system/graphical.target.wants/tenon-run.service")?;
    disk.write("etc/cloud/cloud-init.disabled", "")?;
    disk.write("etc/containerd/config.toml", CONTAINERD)?;
    let unit = KUBELET.replace("{name}", name).replace("{address}", address);
    disk.write("etc/systemd/system/kubelet.service", &unit)?;
    disk.link(
        "etc/systemd/system/multi-user.target.wants/kubelet.service",
        Path::new("/etc/systemd/system/kubelet.service"),
    )?;
    disk.install(&KUBERNETES_1_34.ready(&stage.cache)?.join("kubelet"), "usr/bin/kubelet")?;
    let services = ["10.96.0.0/16".parse()?];
    let mut config = configuration(&Node {
        service_cidrs: &services,
        dns_domain: "cluster.local",
        control_plane,
        resolv_conf: None,
        fail_cgroup_v1: Some(false),
    });
    config["failSwapOn"] = false.into();
    disk.write("etc/kubernetes/kubelet/config.yaml", &config.to_string())?;
    Ok(disk)
}
