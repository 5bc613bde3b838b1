//! The real Kubernetes programs, built as ordinary Go modules at pinned versions and checksums
//! (`e2e/kubernetes`).

use std::path::Path;

use anyhow::Context;

use super::{go_build, source};

const PROGRAMS: &[&str] =
    &["kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeadm"];

pub(super) fn recipe(minor: &str) -> anyhow::Result<String> {
    let (module, sums) = (source(&pinned(minor, "go.mod"))?, source(&pinned(minor, "go.sum"))?);
    Ok(format!("{module}\n{sums}\n{}", link_options(minor)?))
}

fn pinned(minor: &str, file: &str) -> String {
    format!("e2e/kubernetes/{minor}/{file}")
}

/// Leaves the programs.
pub(super) fn build(minor: &str, place: &Path) -> anyhow::Result<()> {
    let packages: Vec<_> =
        PROGRAMS.iter().map(|name| format!("k8s.io/kubernetes/cmd/{name}")).collect();
    go_build(&pinned(minor, ""), &link_options(minor)?, &packages, place)
}

/// `1.34.10`, from the line that requires it.
pub(super) fn version(minor: &str) -> anyhow::Result<String> {
    let text = source(&pinned(minor, "go.mod"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("require k8s.io/kubernetes v"));
    Ok(line.context("go.mod names no version of Kubernetes")?.trim().to_owned())
}

/// What the project's own build stamps into its programs; without it they call themselves 0.0.0.
fn link_options(minor: &str) -> anyhow::Result<String> {
    let version = version(minor)?;
    let minor = minor.trim_start_matches("1.");
    let stamp = |package: &str| {
        format!(
            " -X {package}.gitVersion=v{version} -X {package}.gitMajor=1 -X {package}.gitMinor={minor}"
        )
    };
    let packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    Ok(format!("-s -w{}", packages.map(stamp).concat()))
}
