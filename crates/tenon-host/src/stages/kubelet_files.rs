//! The kubelet's files: configuration, CA, and how it introduces itself.

use std::time::{SystemTime, UNIX_EPOCH};

use tenon_core::codes::stages as pages;
use tenon_core::kubeconfig::{Credential, Kubeconfig};
use tenon_core::pki::Identity;
use tenon_core::problem::Problem;
use tenon_core::stages::machine::Role;
use tenon_core::stages::{kubelet, paths};

use super::prepare::{Prepare, authority};
use super::{Run, disk};
use crate::pki::{External, Options, Pki};

const RESOLVED: &str = "/run/systemd/resolve/resolv.conf";
const PKI: &str = "/etc/kubernetes/pki";

/// Writes the files. Credentials that are there already are kept.
pub fn write(_: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    disk::make(run.root, "/etc/kubernetes/manifests", 0o755)?;
    disk::make(run.root, kubelet::DROP_INS, 0o755)?;
    take_bundle_keys(run)?;
    let host = kubelet::Host { resolved: run.root.exists(RESOLVED), ..kubelet::Host::default() };
    run.write(kubelet::CONFIG, 0o644, kubelet::config(&run.machine, &host).as_bytes())?;
    match run.machine.role {
        Role::FirstMaster => own_identity(run),
        _ => introduce(run),
    }
}

pub fn verify(_: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let credential = match run.machine.role {
        Role::FirstMaster => kubelet::KUBECONFIG,
        _ => kubelet::BOOTSTRAP_KUBECONFIG,
    };
    for path in [kubelet::CONFIG, kubelet::CA, credential] {
        if !run.root.exists(path) {
            let what = format!("{path} was written and is not there");
            return Err(Problem::new(&pages::STEP_NOT_PROVEN, what));
        }
    }
    Ok(())
}

/// Copies the CA pairs of the bundle, on machines that run a control plane.
fn take_bundle_keys(run: &Run<'_>) -> Result<(), Problem> {
    if !run.machine.role.is_control_plane() {
        return Ok(());
    }
    for directory in ["", "/etcd"] {
        let from = format!("{}/pki{directory}", paths::ASSETS);
        for name in run.root.list(&from).unwrap_or_default() {
            let target = format!("{PKI}{directory}/{name}");
            let Ok(Some(body)) = run.root.read(&format!("{from}/{name}"), 1 << 20) else {
                continue;
            };
            if !run.root.exists(&target) {
                let mode = if name.ends_with(".key") { 0o600 } else { 0o644 };
                run.write(&target, mode, &body)?;
            }
        }
    }
    Ok(())
}

/// A joining machine shows its token once and gets a certificate of its own for it.
fn introduce(run: &Run<'_>) -> Result<(), Problem> {
    let authority = authority(run)?
        .ok_or_else(|| Problem::new(&pages::WAITING_INPUTS, "the cluster's CA has not arrived"))?;
    run.write(kubelet::CA, 0o644, &authority)?;
    let token = run.machine.token.as_ref().ok_or_else(|| {
        Problem::new(&pages::MACHINE_INCOMPLETE, "there is no bootstrap token to join with")
    })?;
    let config = Kubeconfig::new(
        &run.machine.cluster.name,
        &run.machine.cluster.endpoint,
        authority,
        "kubelet-bootstrap",
        Credential::Token(token.token.clone()),
    );
    run.write(kubelet::BOOTSTRAP_KUBECONFIG, 0o600, config.write().as_bytes())
}

/// The first master has nobody to introduce itself to: it makes the CA and its own certificate.
fn own_identity(run: &Run<'_>) -> Result<(), Problem> {
    let name = run.output("nodeName").unwrap_or_default();
    let address = run.output("nodeIp").and_then(|text| text.parse().ok());
    let identity = Identity::of(&run.machine, name, address)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let pki = Pki::new(run.root, Options::of(&run.machine, now));
    let external = External { asked: false, requests: run.machine.pki.csr_directory.clone() };
    pki.init(&identity, &["ca".to_owned()], &external)?;
    pki.kubeconfigs(&identity, true, &["kubelet.conf".to_owned()], &external).map(drop)
}
