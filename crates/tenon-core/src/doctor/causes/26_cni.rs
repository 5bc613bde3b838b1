//! The node joined, and its pod network is not there.

use super::*;

const RUNTIME: &str = "kubernetes pkg/kubelet/runtime.go; containerd internal/cri/server/status.go";

pub(super) static CAUSE: Cause = Cause {
    number: 26,
    slug: "cni-not-ready",
    title: "the CNI plugin is not initialised",
    step: Step::Cni,
    vague: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["NetworkPluginNotReady"], RUNTIME).early(),
        Signal::confirmed(Log::Kubelet, &["cni plugin not initialized"], RUNTIME).early(),
    ],
    checks: &[
        Check::proves("node-condition", condition),
        Check::supports("cni-config", config),
        Check::supports("ipamd-port", port),
        Check::excludes("cni-works", works),
    ],
    why: "the pod that writes the CNI configuration has not come so far: it is not scheduled, cannot pull its image, or lacks permissions or addresses",
    fix: "look at the CNI pod of this node: its events and its log name the reason",
    command: "kubectl -n kube-system get pods -o wide --field-selector spec.nodeName=NODE",
    ..Cause::BLANK
};

fn condition(view: &View) -> Found {
    match &view.node.probes.node {
        None => Found::Unknown("the Node object was not asked for"),
        Some(node) if node.ready == Some(false) && node.message.contains("cni plugin not initialized") => {
            Found::fail(Evidence::probe("node", format!("Ready is false: {}", node.message)))
        }
        Some(_) => Found::Pass,
    }
}

fn config(view: &View) -> Found {
    match view.names("/etc/cni/net.d") {
        None => Found::Unknown("/etc/cni/net.d is not there"),
        Some([]) => Found::fail(Evidence::file("/etc/cni/net.d", "is empty")),
        Some(_) => Found::Pass,
    }
}

fn port(view: &View) -> Found {
    match view.node.probes.ports.get(&61679) {
        None => Found::Unknown("the port of the address manager was not tried"),
        Some(true) => Found::Pass,
        Some(false) => Found::fail(Evidence::probe("cni", "nothing listens on 127.0.0.1:61679")),
    }
}

/// The API server names another reason, and the plugin is configured.
fn works(view: &View) -> Found {
    let other = view.node.probes.node.as_ref().filter(|node| {
        node.ready == Some(false) && !node.message.is_empty() && !node.message.contains("cni")
    });
    match (other, view.names("/etc/cni/net.d")) {
        (Some(node), Some([_, ..])) => Found::fail(Evidence::probe("node", &node.message)),
        _ => Found::Pass,
    }
}
