//! The node calls itself otherwise than its identity allows.

use super::*;

const AUTHORIZER: &str = "kubernetes plugin/pkg/auth/authorizer/node/node_authorizer.go";

pub(super) static CAUSE: Cause = Cause {
    number: 3,
    slug: "node-name",
    title: "the node's name is not the one that its identity may use",
    step: Step::NodeName,
    on_api: true,
    signals: &[
        Signal::confirmed(
            Log::Kubelet,
            &["is not allowed to modify node"],
            "kubernetes plugin/pkg/admission/noderestriction/admission.go",
        ),
        Signal::confirmed(Log::Kubelet, &["cannot read", "only its own Node object"], AUTHORIZER),
        Signal::confirmed(
            Log::Kubelet,
            &["can only access node lease with the same name as the requesting node"],
            AUTHORIZER,
        ),
    ],
    support: SYMPTOMS,
    checks: &[Check::proves("identity-name", identity), Check::supports("private-dns-name", private_dns)],
    why: "a node may only change its own Node object; the name in its identity comes from EC2's private DNS name, and the kubelet was told another one (a host name override, or a host name from a custom DHCP domain)",
    fix: "remove --hostname-override from the kubelet's flags, or set `spec.node.name` to the rule that the role mapping uses",
    ..Cause::BLANK
};

fn identity(view: &View) -> Found {
    let user = view.node.probes.identity.as_ref().map(|identity| identity.user.as_str());
    let Some(allowed) = user.and_then(|user| user.strip_prefix("system:node:")) else {
        return Found::Unknown("the API server did not say who we are");
    };
    let name = view.node_name().unwrap_or_default();
    if name == allowed {
        return Found::Pass;
    }
    let text = format!("the identity is for {allowed}, the kubelet registers {name}");
    Found::fail(Evidence::probe("identity", text))
}

/// The name that EC2 gives, as far as the bootstrap or the metadata service told.
fn private_dns(view: &View) -> Found {
    let recorded = view.status["instance"]["privateDnsName"].as_str();
    let Some(expected) = recorded.filter(|name| !name.is_empty()) else {
        return Found::Unknown("EC2's name for this machine is not known");
    };
    match view.flags.get("hostname-override") {
        Some(name) if name != expected => Found::fail(Evidence::file(
            "/etc/eks/kubelet/environment",
            format!("--hostname-override={name}, EC2 says {expected}"),
        )),
        _ => Found::Pass,
    }
}
