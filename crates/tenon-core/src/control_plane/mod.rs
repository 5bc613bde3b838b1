//! The control plane of a cluster as files and objects, in kubeadm's layout.
//!
//! ```text
//! cluster     what the rest is made from
//! machine     the cluster that a machine's config describes
//! flags       the command line of each component
//! pod         static pods around those command lines
//! patch       the user's patches over them
//! encryption  Secrets at rest
//! audit       the audit policy
//! objects     what the API must hold before anybody may ask it
//! addons      the user's objects: order, labels, when one is ready
//! ```
//!
//! Names and places equal kubeadm's on purpose: a cluster that Tenon started can be handed to it.

pub mod addons;
pub mod audit;
pub mod cluster;
pub mod encryption;
mod flags;
pub mod machine;
pub mod objects;
pub mod patch;
pub mod pod;
#[cfg(test)]
mod tests;

pub use cluster::{Cluster, Component, Etcd, Phase};
pub use pod::{Manifest, manifest};

use crate::problem::Problem;
use patch::Patch;

/// Where the kubelet looks for static pods.
pub const MANIFESTS: &str = "/etc/kubernetes/manifests";
/// Keys and certificates.
pub const PKI: &str = "/etc/kubernetes/pki";
/// Credentials of the bootstrap phase; gone when it is over.
pub const BOOTSTRAP_SECRETS: &str = "/etc/kubernetes/bootstrap-secrets";
/// Says whose a static pod is and carries the digest of its manifest; the kubelet copies it to
/// the mirror pod.
pub const MANIFEST_MARK: &str = "tenon.dev/manifest";
/// The first master's certificate names it.
pub const API_PORT: u16 = 6443;
/// The API server of the bootstrap phase, on loopback alone.
pub const BOOTSTRAP_API_PORT: u16 = 6444;

/// One file of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlaneFile {
    pub path: String,
    pub mode: u32,
    pub body: String,
}

/// The static pods of one phase, patched.
pub fn manifests(
    cluster: &Cluster,
    phase: Phase,
    patches: &[Patch],
) -> Result<Vec<Manifest>, Problem> {
    let components = match (phase, &cluster.etcd) {
        (Phase::Bootstrap, _) => &[Component::ApiServer, Component::ControllerManager][..],
        (Phase::Final, Etcd::External(_)) => &Component::ALL[1..],
        (Phase::Final, Etcd::Local(_)) => Component::ALL,
    };
    components.iter().map(|component| manifest(cluster, *component, phase, patches)).collect()
}

/// Every file of the final form but keys, certificates and kubeconfigs, sorted by path. The
/// encryption key is the caller's to make; without one its file is left out.
pub fn files(
    cluster: &Cluster,
    patches: &[Patch],
    encryption_key: Option<&[u8; 32]>,
) -> Result<Vec<ControlPlaneFile>, Problem> {
    let mut files = Vec::new();
    for manifest in manifests(cluster, Phase::Final, patches)? {
        files.push(manifest.file());
    }
    files.extend(supports(cluster, encryption_key));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// The files that the API server reads besides its keys.
pub fn supports(cluster: &Cluster, encryption_key: Option<&[u8; 32]>) -> Vec<ControlPlaneFile> {
    let policy = cluster.audit.policy().map(|body| (audit::POLICY, body));
    let config = encryption::config(&cluster.encryption, encryption_key);
    let config = config.map(|body| (encryption::CONFIG, body));
    let file =
        |(path, body): (&str, String)| ControlPlaneFile { path: path.into(), mode: 0o600, body };
    policy.into_iter().chain(config).map(file).collect()
}
