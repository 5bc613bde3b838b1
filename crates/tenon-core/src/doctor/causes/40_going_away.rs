//! The machine is leaving, or nothing supports it any more.

use super::*;
use crate::kube_version::Version;

/// The first minor that this version of Tenon makes nodes for.
const OLDEST: Version = Version::new(1, 29, 0);

pub(super) static CAUSE: Cause = Cause {
    number: 40,
    slug: "going-away",
    title: "the instance is being taken away, or its Kubernetes version is not supported",
    step: Step::Platform,
    alone: true,
    checks: &[Check::proves("spot-action", spot), Check::proves("supported-version", version)],
    why: "a spot instance with an interruption notice ends within two minutes; a minor that is out of support is not accepted by new clusters",
    fix: "let the group replace the instance; use an image with a supported Kubernetes version",
    ..Cause::BLANK
};

fn spot(view: &View) -> Found {
    match &view.node.probes.metadata {
        None => Found::Unknown("the metadata service was not asked"),
        Some(metadata) if !metadata.spot_action.is_empty() => {
            Found::fail(Evidence::metadata(format!("spot action: {}", metadata.spot_action)))
        }
        Some(_) => Found::Pass,
    }
}

fn version(view: &View) -> Found {
    match view.kubelet_version() {
        None => Found::Unknown("the kubelet's version is not known"),
        Some(version) if version < OLDEST => {
            Found::fail(Evidence::file("/etc/eks/kubelet-version.txt", format!("kubelet {version}")))
        }
        Some(_) => Found::Pass,
    }
}
