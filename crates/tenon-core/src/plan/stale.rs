//! Files of earlier runs that are no longer planned.

use std::collections::{BTreeMap, BTreeSet};

use super::node::Node;
use super::step::{Ownership, Removal};
use super::{Owner, containerd, environment, kubeconfig, kubelet, resolved, soci};

/// Names that only Tenon and nodeadm use: ours even without a record.
fn fixed_names() -> Vec<(String, Ownership)> {
    let certain = [kubelet::DROP_IN_PATH, soci::DROP_IN_PATH, resolved::PATH];
    let certain = certain.iter().map(|path| ((*path).to_owned(), Ownership::Certain));
    let services = ["containerd", "kubelet", "soci-snapshotter"].map(environment::drop_in_path);
    let shaped = [environment::MANAGER_PATH.to_owned()].into_iter().chain(services);
    certain.chain(shaped.map(|path| (path, Ownership::EnvironmentShape))).collect()
}

/// Lists what to remove: everything of ours that is not planned.
pub(crate) fn removals(node: &Node, planned: &BTreeSet<String>) -> Vec<(Owner, Removal)> {
    let mut found: BTreeMap<String, Ownership> = fixed_names().into_iter().collect();
    for path in node.facts.last_run_here().into_iter().flat_map(|run| run.files.keys()) {
        found.insert(path.clone(), Ownership::Certain);
    }
    if node.cluster.outpost.is_some() {
        // The kubelet's own after TLS bootstrap.
        found.remove(kubeconfig::PATH);
    }
    found
        .into_iter()
        .filter(|(path, _)| !planned.contains(path))
        .map(|(path, proof)| (owner(&path), Removal { path, proof }))
        .collect()
}

/// A daemon that this run leaves alone keeps its files.
fn owner(path: &str) -> Owner {
    let containerd = ["/etc/containerd/", "/etc/soci-snapshotter-grpc/", soci::DROP_IN_PATH];
    let kubelet = [
        "/etc/kubernetes/",
        "/etc/eks/kubelet/",
        "/var/lib/kubelet/",
        "/etc/eks/image-credential-provider/",
    ];
    match path {
        path if containerd.iter().any(|root| path.starts_with(root)) => Owner::Containerd,
        path if kubelet.iter().any(|root| path.starts_with(root)) => Owner::Kubelet,
        containerd::MIGRATION_INPUT => Owner::Containerd,
        _ => Owner::Node,
    }
}
