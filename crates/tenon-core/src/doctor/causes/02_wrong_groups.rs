//! The role is mapped, but not as a node.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 2,
    slug: "wrong-groups",
    title: "the role is mapped with the wrong groups or user name",
    step: Step::Identity,
    on_api: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["nodes is forbidden: User", "cannot create resource \"nodes\""], CAPS)
            .without("User \"system:node:"),
        Signal::confirmed(Log::Kubelet, &["is forbidden: User", "cannot get resource \"nodes\""], CAPS)
            .without("User \"system:node:"),
    ],
    support: &[SYMPTOMS[1], Signal::confirmed(Log::Kubelet, &["leases.coordination.k8s.io", "is forbidden: User"], CAPS)],
    checks: &[Check::proves("self-subject-review", groups)],
    why: "the API server knows the caller, but a node must be `system:node:NAME` in the group `system:nodes`; any other user or group may not register nodes",
    fix: "map the role to the groups system:bootstrappers and system:nodes with the user name system:node:{{EC2PrivateDNSName}}, or use an access entry of type EC2_LINUX",
    command: "kubectl -n kube-system get configmap aws-auth -o yaml",
    ..Cause::BLANK
};

fn groups(view: &View) -> Found {
    let Some(identity) = &view.node.probes.identity else {
        return Found::Unknown("the API server did not say who we are");
    };
    let grouped = identity.groups.iter().any(|group| group == "system:nodes");
    if grouped && identity.user.starts_with("system:node:") {
        return Found::Pass;
    }
    let text = format!("user {}, groups {}", identity.user, identity.groups.join(", "));
    Found::fail(Evidence::probe("identity", text).field("user", &identity.user))
}
