//! kubelet and API server are too far apart.

use super::*;
use crate::kube_version::Version;

/// A kubelet may be this many minors older than its API server.
const MOST_MINORS: u32 = 3;

pub(super) static CAUSE: Cause = Cause {
    number: 28,
    slug: "version-skew",
    title: "the kubelet's version does not fit the API server's",
    step: Step::Identity,
    alone: true,
    checks: &[Check::proves("version-skew", skew)],
    why: "a kubelet must not be newer than its API server, nor more than three minors older",
    fix: "use a node image of the cluster's Kubernetes version",
    ..Cause::BLANK
};

fn skew(view: &View) -> Found {
    let server = view.node.probes.server_version.as_deref().and_then(Version::parse);
    let (Some(server), Some(kubelet)) = (server, view.kubelet_version()) else {
        return Found::Unknown("one of the two versions is not known");
    };
    let newer = (kubelet.major, kubelet.minor) > (server.major, server.minor);
    let older = kubelet.minor + MOST_MINORS < server.minor;
    match newer || older {
        true => Found::fail(Evidence::probe("version", format!("kubelet {kubelet}, API server {server}"))),
        false => Found::Pass,
    }
}
