//! Tenon's certificates, kubeconfigs, tokens and approvals before their real readers: openssl,
//! kubeadm, etcd with mutual TLS, an API server and a controller manager, all on loopback.

mod api;
mod kubeadm;
mod plane;
mod verify;

use std::path::Path;
use std::process::Output;

use anyhow::{Context, ensure};

use self::plane::Plane;
use super::Lab;

pub const NODE: &str = "cp-1";

pub fn refuse(_lab: &Lab) -> Option<String> {
    None
}

pub fn run(lab: &Lab) -> anyhow::Result<usize> {
    let place = tempfile::tempdir()?;
    let plane = Plane::prepare(lab, place.path())?;
    let mut cases = verify::with_openssl(&plane)?;
    println!("  openssl: {cases} questions");
    cases += kubeadm::takes_over(lab, &plane)?;
    cases += kubeadm::is_taken_over(lab, &plane)?;
    let mut plane = plane.start_etcd(lab)?;
    cases += verify::mutual_tls(&plane)?;
    plane.start_api_server(lab)?;
    plane.start_controller_manager(lab)?;
    println!("  API server and controller manager run on Tenon's certificates");
    cases += api::administrators(&plane)?;
    cases += api::server_side_apply(&plane)?;
    cases += api::tokens(lab, &plane)?;
    cases += api::discovery(lab, &plane)?;
    cases += api::serving_certificates(lab, &plane)?;
    Ok(cases)
}

/// Runs tenon on the root of the test.
fn tenon(lab: &Lab, root: &Path, line: &str) -> anyhow::Result<Output> {
    let mut command = lab.command();
    command.env_remove("KUBECONFIG");
    command.args(line.split_whitespace()).arg("--root").arg(root);
    command.output().context("starting tenon")
}

/// The same, where it must end with 0; gives what it printed.
fn must_tenon(lab: &Lab, root: &Path, line: &str) -> anyhow::Result<String> {
    let output = tenon(lab, root, line)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "tenon {line}: {} {said}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}
