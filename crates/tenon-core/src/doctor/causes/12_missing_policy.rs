//! The role may not do what a node must.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 12,
    slug: "missing-policy",
    title: "the role lacks policies that a node needs",
    step: Step::Authn,
    signals: &[
        Signal::tentative(Log::Bootstrap, &["UnauthorizedOperation"]),
        Signal::tentative(Log::Bootstrap, &["AccessDeniedException"]),
        Signal::tentative(Log::Cni, &["UnauthorizedOperation"]),
        Signal::tentative(Log::Cni, &["AccessDenied"]),
        Signal::confirmed(Log::Containerd, &["failed to resolve reference", "403 Forbidden"], "containerd core/remotes/docker/resolver.go"),
        Signal::confirmed(Log::Bootstrap, &["TN10001"], "tenon-core/src/codes/facts.rs"),
    ],
    support: &[Signal::confirmed(Log::Kubelet, &["ErrImagePull", "403 Forbidden"], "kubernetes pkg/kubelet/images/types.go")],
    why: "the role of the node may not call an action that its bootstrap, its CNI or its image pulls need",
    fix: "attach AmazonEKSWorkerNodePolicy, AmazonEC2ContainerRegistryPullOnly and, unless the CNI has a role of its own, AmazonEKS_CNI_Policy; the denied actions stand in the evidence",
    command: "aws iam list-attached-role-policies --role-name ROLE",
    ..Cause::BLANK
};
