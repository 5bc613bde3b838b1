//! A service of the cloud that the bootstrap needs is out of reach.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 10,
    slug: "services-unreachable",
    title: "EC2, STS, ECR or S3 cannot be reached",
    step: Step::Tcp,
    alone: true,
    signals: &[
        Signal::confirmed(
            Log::Bootstrap,
            &["retrying request EC2/DescribeInstances"],
            "aws-sdk-go-v2 aws/retry/middleware.go; awslabs/amazon-eks-ami issues",
        ),
        Signal::confirmed(
            Log::Containerd,
            &["failed to resolve reference", "dial tcp", "i/o timeout"],
            "containerd core/remotes/docker/resolver.go",
        ),
        Signal::confirmed(Log::Bootstrap, &["TN10002"], "tenon-core/src/codes/facts.rs"),
    ],
    support: &[Signal::confirmed(Log::Bootstrap, &["context deadline exceeded"], "go src/context/context.go")],
    checks: &[Check::supports("services-connect", connect)],
    why: "a private cluster has no way to the regional services unless the VPC has endpoints for them",
    fix: "create VPC endpoints for ec2, sts, ecr.api, ecr.dkr and s3, or give endpoint, CA and CIDR in the config so that no call is needed",
    ..Cause::BLANK
};

fn connect(view: &View) -> Found {
    let services = &view.node.probes.services;
    if services.is_empty() {
        return Found::Unknown("no service of the cloud was asked");
    }
    // While the API server is out of reach, too, the trouble is a wider one.
    if !api_connects(view) {
        return Found::NotApplicable;
    }
    let bad = services.iter().filter(|(_, reach)| reach.tcp != Tcp::Connected);
    let evidence = bad.map(|(name, reach)| Evidence::probe("services", format!("{name}: {}", words(reach))));
    Found::of(evidence.collect())
}
