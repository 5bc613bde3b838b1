//! Tenon and kubeadm take over each other's files.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::plane::Plane;
use super::verify::openssl_in;
use super::{Lab, NODE, must_tenon};
use crate::lab::KUBERNETES_1_34;

/// Runs a phase of `kubeadm init` on the files below a root.
fn phase(lab: &Lab, plane: &Plane, root: &Path, words: &[&str]) -> anyhow::Result<String> {
    let kubernetes = root.join("etc/kubernetes");
    fs::create_dir_all(&kubernetes)?;
    let config = format!(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {{advertiseAddress: 10.0.0.4}}\nnodeRegistration: {{name: {NODE}, criSocket: \"unix:///run/containerd/containerd.sock\"}}\n---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.0\ncontrolPlaneEndpoint: api.example.com:6443\ncertificatesDir: {}\nnetworking: {{serviceSubnet: 10.96.0.0/12}}\n",
        kubernetes.join("pki").display()
    );
    let path = plane.place.join("kubeadm.yaml");
    fs::write(&path, config)?;
    let program = KUBERNETES_1_34.ready(&lab.cache)?.join("kubeadm");
    let output = Command::new(program)
        .args(["init", "phase"])
        .args(words)
        .arg("--config")
        .arg(&path)
        .output()
        .context("starting kubeadm")?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "kubeadm {words:?}: {said}");
    Ok(said)
}

const IDENTITY: &str =
    "--advertise-address 10.0.0.4 --endpoint api.example.com:6443 --node-name cp-1";

fn make(lab: &Lab, plane: &Plane, root: &Path) -> anyhow::Result<String> {
    let certificates = phase(lab, plane, root, &["certs", "all"])?;
    let directory = root.join("etc/kubernetes").display().to_string();
    let words = ["kubeconfig", "all", "--kubeconfig-dir", directory.as_str()];
    Ok(certificates + &phase(lab, plane, root, &words)?)
}

/// kubeadm uses every file that Tenon made, and makes none.
pub fn takes_over(lab: &Lab, plane: &Plane) -> anyhow::Result<usize> {
    let root = plane.place.join("tenon-first");
    fs::create_dir_all(&root)?;
    must_tenon(lab, &root, &format!("pki init {IDENTITY}"))?;
    let said = make(lab, plane, &root)?;
    let kept = said.lines().filter(|line| line.to_lowercase().contains("existing")).count();
    ensure!(kept == 11 + 5 && !said.contains("Generating"), "{said}");
    Ok(kept)
}

/// Tenon keeps what kubeadm made, RSA keys and all, and renews it.
pub fn is_taken_over(lab: &Lab, plane: &Plane) -> anyhow::Result<usize> {
    let root = plane.place.join("kubeadm-first");
    make(lab, plane, &root)?;
    must_tenon(lab, &root, &format!("pki check {IDENTITY}"))?;
    let kept = must_tenon(lab, &root, &format!("pki init {IDENTITY}"))?;
    ensure!(kept.lines().all(|line| line.starts_with("kept")), "{kept}");
    for how in ["", "--new-key"] {
        let renewed = must_tenon(lab, &root, &format!("pki renew --all {how}"))?;
        ensure!(renewed.lines().count() == 12, "{renewed}");
        must_tenon(lab, &root, &format!("pki check {IDENTITY}"))?;
        let pki = root.join("etc/kubernetes/pki");
        openssl_in(&pki, "verify -purpose sslserver -CAfile ca.crt apiserver.crt")?;
        openssl_in(&pki, "verify -purpose sslclient -CAfile etcd/ca.crt etcd/peer.crt")?;
    }
    Ok(4)
}
