//! The subnet has no addresses left.

use super::*;

const EC2: &str = "AWS EC2 API reference, error codes; aws/amazon-vpc-cni-k8s pkg/awsutils";

pub(super) static CAUSE: Cause = Cause {
    number: 27,
    slug: "subnet-full",
    title: "the subnet has no free addresses for pods",
    step: Step::Cni,
    signals: &[
        Signal::confirmed(Log::Cni, &["InsufficientFreeAddressesInSubnet"], EC2),
        Signal::confirmed(Log::Cni, &["InsufficientCidrBlocks"], EC2),
    ],
    support: &[
        Signal::confirmed(Log::Kubelet, &["failed to assign an IP address to container"], "aws/amazon-vpc-cni-k8s cmd/routed-eni-cni-plugin/cni.go"),
        Signal::confirmed(Log::Kubelet, &["NetworkPluginNotReady"], "kubernetes pkg/kubelet/runtime.go"),
    ],
    why: "the CNI asks EC2 for addresses or prefixes, and the subnet has none, or no block of 16 in a row",
    fix: "use a larger subnet, reserve a range for prefixes, or give pods other subnets with custom networking",
    command: "aws ec2 describe-subnets --subnet-ids SUBNET --query 'Subnets[].AvailableIpAddressCount'",
    ..Cause::BLANK
};
