//! Our static pods beside kubeadm's own, field by field: what differs must be on a list, with the
//! reason. This is how a drift of the flags shows that no golden of ours could.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;
use tenon_core::tree::Dialect;
use tenon_core::yaml;

use super::Lab;
use crate::lab::{KUBERNETES_1_34, KUBERNETES_1_36, Part, must};

/// What we have and kubeadm has not, with the reason.
const OURS: &[(&str, &str)] = &[
    ("metadata.annotations.tenon.dev/manifest", "whose the pod is, and its digest"),
    ("spec.containers[etcd].command --initial-cluster-token", "the claim names the cluster"),
];

/// What kubeadm has and we have not: FlexVolume, which it dropped in 1.36. Its directory cannot be
/// made where `/usr` is read-only, and the program in a distroless image has no use for it.
const THEIRS: &[&str] = &["volumeMounts[flexvolume-dir]", "spec.volumes[flexvolume-dir]"];

const COMPONENTS: &[&str] =
    &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

const KUBEADM: &str = "apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: \"{address}\", bindPort: 6443}
nodeRegistration: {name: cp-1, criSocket: \"unix:///run/containerd/containerd.sock\"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {version}
clusterName: lab
controlPlaneEndpoint: api.example:6443
networking: {serviceSubnet: \"{services}\", podSubnet: \"{pods}\", dnsDomain: cluster.local}
";

/// The same cluster in our words, without what kubeadm does not have.
const TENON: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: first-master
  cluster: {name: lab, endpoint: \"https://api.example:6443\", kubernetesVersion: {version}, serviceCidrs: [\"{services}\"], podCidrs: [\"{pods}\"]}
  node: {name: cp-1, ip: \"{address}\"}
  controlPlane: {audit: none, encryption: {provider: none}}
";

/// Addresses of the two families: the node's, its services' and its pods'.
const FAMILIES: &[[&str; 3]] =
    &[["10.0.0.4", "10.96.0.0/16", "10.244.0.0/16"], ["fd00::4", "fd00:1::/108", "fd00:2::/56"]];

/// Puts version and addresses into a config.
fn filled(config: &str, version: &str, [address, services, pods]: &[&str; 3]) -> String {
    config
        .replace("{version}", version)
        .replace("{address}", address)
        .replace("{services}", services)
        .replace("{pods}", pods)
}

pub fn refuse(_lab: &Lab) -> Option<String> {
    let root = nix::unistd::geteuid().is_root();
    (!root).then(|| "needs root: kubeadm changes its root directory".into())
}

pub fn run(lab: &Lab) -> anyhow::Result<usize> {
    let mut cases = 0;
    for (part, minor) in [(KUBERNETES_1_34, "1.34"), (KUBERNETES_1_36, "1.36")] {
        for family in FAMILIES {
            let context = || format!("Kubernetes {minor} at {}", family[0]);
            cases += compare(lab, &part, minor, family).with_context(context)?;
        }
    }
    Ok(cases)
}

fn compare(lab: &Lab, part: &Part, minor: &str, family: &[&str; 3]) -> anyhow::Result<usize> {
    let work = tempfile::tempdir()?;
    let kubeadm = part.ready(&lab.cache)?.join("kubeadm");
    let shown = Command::new(&kubeadm).args(["version", "-o", "short"]).output()?;
    let version = String::from_utf8(shown.stdout)?.trim().to_owned();
    ensure!(version.starts_with(&format!("v{minor}.")), "kubeadm says {version}");
    let theirs = theirs(work.path(), &kubeadm, &filled(KUBEADM, &version, family))?;
    let ours = ours(lab, work.path(), &filled(TENON, &version, family))?;
    for name in COMPONENTS {
        let read = |place: &Path| -> anyhow::Result<BTreeMap<String, Value>> {
            let text = fs::read_to_string(place.join(format!("{name}.yaml")))?;
            let trees = yaml::parse(&text).map_err(|syntax| anyhow::anyhow!("{}", syntax.what))?;
            let mut leaves = BTreeMap::new();
            flatten("", &trees[0].to_json(Dialect::Yaml12), &mut leaves);
            Ok(leaves)
        };
        let (ours, theirs) = (read(&ours)?, read(&theirs)?);
        let surprising = |path: &&&String| {
            !OURS.iter().any(|(known, _)| *known == path.as_str())
                && !THEIRS.iter().any(|known| path.contains(known))
        };
        let names: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
        let differing = names.iter().filter(|path| ours.get(**path) != theirs.get(**path));
        let differing: Vec<_> = differing
            .filter(surprising)
            .map(|path| {
                format!("{path}: ours {:?}, theirs {:?}", ours.get(*path), theirs.get(*path))
            })
            .collect();
        ensure!(differing.is_empty(), "{name}:\n{}", differing.join("\n"));
    }
    println!("  {version} at {}: {} static pods are as kubeadm's", family[0], COMPONENTS.len());
    Ok(COMPONENTS.len())
}

/// Lets kubeadm write into a root of its own, without a network.
fn theirs(work: &Path, kubeadm: &Path, config: &str) -> anyhow::Result<std::path::PathBuf> {
    let root = work.join("theirs");
    fs::create_dir_all(root.join("etc"))?;
    fs::write(root.join("config.yaml"), config)?;
    for phase in [["control-plane", "all"], ["etcd", "local"]] {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount"]).arg(kubeadm).args(["init", "phase"]).args(phase);
        must(command.arg("--rootfs").arg(&root).args(["--config", "/config.yaml"]))?;
    }
    Ok(root.join("etc/kubernetes/manifests"))
}

fn ours(lab: &Lab, work: &Path, text: &str) -> anyhow::Result<std::path::PathBuf> {
    let (config, out, root) = (work.join("machine.yaml"), work.join("ours"), work.join("empty"));
    fs::create_dir(&root)?;
    fs::write(&config, text)?;
    let mut command = lab.command();
    command.args(["control-plane", "render", "--config"]).arg(config);
    must(command.arg("--out").arg(&out).arg("--root").arg(root))?;
    Ok(out.join("etc/kubernetes/manifests"))
}

/// Every leaf by its path. Lists whose items have names go by these, flags by theirs.
fn flatten(path: &str, value: &Value, leaves: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, leaves);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                match (item["name"].as_str(), item.as_str()) {
                    (Some(name), _) => flatten(&format!("{path}[{name}]"), item, leaves),
                    (None, Some(word)) => {
                        let (flag, value) = word.split_once('=').unwrap_or((word, ""));
                        leaves.insert(format!("{path} {flag}"), value.into());
                    }
                    _ => flatten(&format!("{path}[{index}]"), item, leaves),
                }
            }
        }
        leaf => drop(leaves.insert(path.to_owned(), leaf.clone())),
    }
}
