//! The instance has no role.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 11,
    slug: "no-instance-profile",
    title: "the instance has no instance profile",
    step: Step::Authn,
    alone: true,
    signals: &[
        Signal::confirmed(Log::Bootstrap, &["no EC2 IMDS role found"], "aws-sdk-go-v2 credentials/ec2rolecreds/provider.go"),
        Signal::confirmed(Log::Kubelet, &["no EC2 IMDS role found"], "aws-sdk-go-v2 credentials/ec2rolecreds/provider.go"),
        Signal::confirmed(Log::Bootstrap, &["TN10005"], "tenon-core/src/codes/facts.rs"),
    ],
    support: SYMPTOMS,
    checks: &[Check::proves("instance-profile", profile)],
    why: "the node proves who it is with the role of its instance profile; without one there is nothing to sign with",
    fix: "attach an instance profile whose role is a node of this cluster",
    command: "aws ec2 associate-iam-instance-profile --instance-id ID --iam-instance-profile Name=PROFILE",
    ..Cause::BLANK
};

pub(super) fn profile(view: &View) -> Found {
    match &view.node.probes.metadata {
        Some(metadata) if metadata.token_status == 200 => match metadata.credentials_status {
            404 => Found::fail(Evidence::metadata("iam/security-credentials/ answers 404")),
            _ => Found::Pass,
        },
        _ => Found::Unknown("the metadata service was not asked"),
    }
}
