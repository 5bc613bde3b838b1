//! The role is not known to the cluster.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 1,
    slug: "role-has-no-access",
    title: "role has no access entry and is not in aws-auth",
    step: Step::Authn,
    on_api: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["Unable to register node with API server", "Unauthorized"], NODE_STATUS),
        Signal::confirmed(Log::Kubelet, &["Failed to ensure lease exists", "Unauthorized"], ERRORS),
    ],
    support: &[Signal::confirmed(Log::Kubelet, &["Failed to watch", "Unauthorized"], ERRORS)],
    checks: &[
        Check::proves("authenticated-request", refused),
        Check::supports("role-known", role),
        Check::excludes("has-profile", super::no_profile::profile),
        Check::excludes("same-cluster", |view| Found::maybe(other_cluster(view))),
        Check::excludes("client-certificate", |view| match has_certificate(view) {
            true => Found::fail(Evidence::file("kubeconfig", "authenticates with a certificate")),
            false => Found::Pass,
        }),
    ],
    why: "the API server verified the connection and does not know who is asking: the role of this instance has neither an access entry nor a mapping in aws-auth, or the mapping holds the ARN of the instance profile, or a role ARN with its path",
    fix: "create an access entry of type EC2_LINUX for the role of this instance, without a path in its ARN",
    command: "aws eks create-access-entry --cluster-name CLUSTER --type EC2_LINUX --principal-arn ROLE_ARN",
    ..Cause::BLANK
};

fn refused(view: &View) -> Found {
    if view.node.probes.authenticated.is_none() {
        return Found::Unknown("no request with the kubelet's credentials was made");
    }
    let trusted = network::reach(view).is_some_and(|reach| reach.trust == Some(Trust::Good));
    if !is_unauthorized(view) || !trusted {
        return Found::Pass;
    }
    let mut evidence = Evidence::probe("authn", "TLS ok, CA ok, authenticated request 401");
    if let Some(arn) = role_arn(view) {
        evidence = evidence.fix(format!("create an access entry of type EC2_LINUX for {arn}"));
    }
    Found::fail(evidence)
}

/// The ARN to map: the role's, without the path that the profile's name may carry.
fn role_arn(view: &View) -> Option<String> {
    let metadata = view.node.probes.metadata.as_ref().filter(|metadata| !metadata.role.is_empty())?;
    let partition = metadata.profile_arn.split(':').nth(1).unwrap_or("aws");
    Some(format!("arn:{partition}:iam::{}:role/{}", metadata.account, metadata.role))
}

/// Not a fault: says which role it is, beside what points at the cause.
fn role(view: &View) -> Found {
    match role_arn(view) {
        Some(arn) => Found::fail(Evidence::metadata(format!("role {arn}")).field("role", arn)),
        None => Found::Unknown("the metadata service did not name the role"),
    }
}
