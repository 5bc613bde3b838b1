//! The disks of the two machines: Debian, containerd, a kubelet, Tenon and its config.

use std::process::Command;

use serde_json::json;

use super::super::cluster::base64;
use super::super::machine::Disk;
use super::super::stage::Stage;
use crate::lab::{IMAGE_REPOSITORY, Part, must};

pub const MASTER: &str = "cp-1";
pub const MASTER_ADDRESS: &str = "10.0.0.10";
pub const WORKER: &str = "worker-1";
pub const WORKER_ADDRESS: &str = "10.0.0.20";
pub const TOKEN_ID: &str = "abcdef";
pub const IMAGES: &[&str] =
    &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// What the master's config leaves open: versions of the lab's programs. Some of it is owed to the
/// host that the lab runs on, which has cgroup v1.
const MASTER_CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
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
  kubelet: {failCgroupV1: false, config: {failSwapOn: false}}
  controlPlane:
    bootstrapPhase: {phase}
    images: {repository: {repository}, etcdTag: {etcd}}
    extraArgs: {etcd: {unsafe-no-fsync: \"true\"}}
";

const WORKER_CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: worker
  cluster:
    name: lab
    endpoint: https://10.0.0.10:6443
    kubernetesVersion: {kubernetes}
    serviceCidrs: [10.96.0.0/16]
    certificateAuthority: {authority}
  node: {name: worker-1, ip: 10.0.0.20, labels: {team: web}}
  bootstrapToken: {token: abcdef.0123456789abcdef, ttlHours: 2}
  kubelet: {failCgroupV1: false, config: {failSwapOn: false}}
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

/// Images that a node of a prepared site would find in its registry.
const IMPORT: &str = "[Service]
TimeoutStartSec=300
ExecStartPost=/bin/sh -c 'for image in /opt/*.tar; do ctr --namespace k8s.io images import $image; done'
";

/// An add-on of every sort: an object of a definition that comes later, and its namespace.
const ADDON: &str = "apiVersion: lab.tenon.dev/v1
kind: Widget
metadata: {name: first, namespace: shop}
spec: {size: 3}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
";
const DEPLOYMENT: &str = "apiVersion: apps/v1
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

/// The versions that a cluster is made from.
pub struct Release {
    pub kubernetes: Part,
    pub images: Part,
}

/// The config of the machine that starts the cluster, and its disk with these units enabled.
pub fn master(
    stage: &Stage,
    release: &Release,
    phase: &str,
    units: &[&str],
) -> anyhow::Result<Disk> {
    let images = release.images.ready(&stage.cache)?;
    let tag = |name: &str| std::fs::read_to_string(images.join(name));
    let config = MASTER_CONFIG
        .replace("{kubernetes}", &tag("kubernetes.tag")?)
        .replace("{etcd}", &tag("etcd.tag")?)
        .replace("{repository}", IMAGE_REPOSITORY)
        .replace("{phase}", phase);
    let disk = node(stage, MASTER, release, &config, units)?;
    for name in IMAGES {
        disk.install(&images.join(format!("{name}.tar")), &format!("opt/{name}.tar"))?;
    }
    disk.write("etc/systemd/system/containerd.service.d/20-images.conf", IMPORT)?;
    disk.install(&release.kubernetes.ready(&stage.cache)?.join("kubeadm"), "usr/bin/kubeadm")?;
    disk.write("var/lib/tenon/trigger/bootstrap", "")?;
    disk.write("var/lib/tenon/trigger/addons", "")?;
    // By name the objects come before the definition that one of them needs.
    disk.write("var/lib/tenon/assets/addons/10-shop.yaml", ADDON)?;
    disk.write("var/lib/tenon/assets/addons/20-widgets.yaml", DEFINITION)?;
    Ok(disk)
}

/// A Deployment that only a worker can run.
pub fn with_deployment(disk: &Disk) -> anyhow::Result<()> {
    disk.write("var/lib/tenon/assets/addons/30-front.yaml", DEPLOYMENT)
}

/// The disk of a machine that joins by token: it knows the CA and nothing else.
pub fn worker(stage: &Stage, release: &Release, authority: &str) -> anyhow::Result<Disk> {
    let tag = std::fs::read_to_string(release.images.ready(&stage.cache)?.join("kubernetes.tag"))?;
    let config = WORKER_CONFIG
        .replace("{kubernetes}", &tag)
        .replace("{authority}", &base64(authority.as_bytes()));
    let disk =
        node(stage, WORKER, release, &config, &["k8s-node-bootstrap.service", "kubelet.service"])?;
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

/// What both have: a runtime, a kubelet's program, a config, and the units that Tenon renders.
fn node(
    stage: &Stage,
    name: &str,
    release: &Release,
    config: &str,
    units: &[&str],
) -> anyhow::Result<Disk> {
    let disk = Disk::new(stage, name)?;
    // The units of an image that is a node of EKS.
    disk.remove("etc/systemd/system/multi-user.target.wants/tenon-config.service")?;
    disk.remove("etc/systemd/system/graphical.target.wants/tenon-run.service")?;
    disk.write("etc/cloud/cloud-init.disabled", "")?;
    disk.write("etc/containerd/config.toml", CONTAINERD)?;
    disk.install(&release.kubernetes.ready(&stage.cache)?.join("kubelet"), "usr/bin/kubelet")?;
    disk.write("etc/tenon/config.yaml", config)?;
    let config = disk.path("etc/tenon/config.yaml");
    let directory = disk.path("etc/systemd/system");
    let mut render = Command::new(&stage.tenon);
    render.args(["units", "render", "--binary", "/usr/bin/tenon", "--config"]).arg(config);
    must(render.arg("--dir").arg(directory))?;
    let mut enable = Command::new("systemctl");
    must(enable.arg(format!("--root={}", disk.path("").display())).arg("enable").args(units))?;
    Ok(disk)
}
