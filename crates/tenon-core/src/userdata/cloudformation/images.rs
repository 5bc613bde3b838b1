//! Where AWS, Bottlerocket and Canonical publish the ids of their images.

use crate::max_pods::{self, Arch};
use crate::userdata::instance_name::{self, Accelerator, Architecture};
use crate::userdata::{Cluster, Family, Group};

/// What the image must be made for; None when the types of the group do not agree.
pub fn architecture(group: &Group) -> Option<Architecture> {
    let mut all = group.instance_types.iter().map(|name| architecture_of(name));
    let first = all.next().unwrap_or(Architecture::X86);
    all.all(|other| other == first).then_some(first)
}

/// The table knows; for a type newer than the table its name tells.
fn architecture_of(name: &str) -> Architecture {
    match max_pods::find(name).map(|row| row.arch) {
        Some(Arch::Arm64) => Architecture::Arm,
        Some(_) => Architecture::X86,
        None => instance_name::architecture(name),
    }
}

pub fn accelerator(group: &Group) -> Accelerator {
    let all = group.instance_types.iter().map(|name| instance_name::accelerator(name));
    all.max().unwrap_or(Accelerator::None)
}

/// The public parameter with the image's id; None where nobody publishes one.
pub fn parameter(cluster: &Cluster, group: &Group) -> Option<String> {
    let (major, minor) = cluster.version?;
    let version = format!("{major}.{minor}");
    let arm = architecture(group)? == Architecture::Arm;
    let accelerator = accelerator(group);
    let arch = if arm { "arm64" } else { "x86_64" };
    match group.family {
        Family::AmazonLinux2023 => {
            let variant = match accelerator {
                Accelerator::None => "standard",
                Accelerator::Nvidia => "nvidia",
                Accelerator::Neuron => "neuron",
            };
            Some(format!(
                "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{arch}/{variant}/recommended/image_id"
            ))
        }
        Family::AmazonLinux2 if (major, minor) <= (1, 32) => {
            let suffix = match (accelerator, arm) {
                (Accelerator::None, true) => "-arm64",
                (Accelerator::None, false) => "",
                _ => "-gpu",
            };
            Some(format!(
                "/aws/service/eks/optimized-ami/{version}/amazon-linux-2{suffix}/recommended/image_id"
            ))
        }
        Family::Bottlerocket { fips } => {
            let nvidia = if accelerator == Accelerator::Nvidia { "-nvidia" } else { "" };
            let fips = if fips { "-fips" } else { "" };
            Some(format!(
                "/aws/service/bottlerocket/aws-k8s-{version}{nvidia}{fips}/{arch}/latest/image_id"
            ))
        }
        Family::Windows { year, full } if !arm => {
            let flavour = if full { "Full" } else { "Core" };
            Some(format!(
                "/aws/service/ami-windows-latest/Windows_Server-{year}-English-{flavour}-EKS_Optimized-{version}/image_id"
            ))
        }
        Family::Ubuntu { release, pro } => {
            let line = if pro { "eks-pro" } else { "eks" };
            let arch = if arm { "arm64" } else { "amd64" };
            let disk = if release <= 2204 { "ebs-gp2" } else { "ebs-gp3" };
            let release = format!("{:02}.{:02}", release / 100, release % 100);
            Some(format!(
                "/aws/service/canonical/ubuntu/{line}/{release}/{version}/stable/current/{arch}/hvm/{disk}/ami-id"
            ))
        }
        _ => None,
    }
}

/// The image type of a managed group; None where EKS has none.
pub fn managed_type(group: &Group) -> Option<String> {
    let arm = architecture(group)? == Architecture::Arm;
    let accelerator = accelerator(group);
    let arch = if arm { "ARM_64" } else { "x86_64" };
    let variant = match accelerator {
        Accelerator::None => "",
        Accelerator::Nvidia => "_NVIDIA",
        Accelerator::Neuron => "_NEURON",
    };
    match group.family {
        Family::AmazonLinux2023 => {
            let variant = if variant.is_empty() { "_STANDARD" } else { variant };
            Some(format!("AL2023_{arch}{variant}"))
        }
        Family::AmazonLinux2 => match accelerator {
            Accelerator::None => Some(format!("AL2_{arch}")),
            _ => Some("AL2_x86_64_GPU".to_owned()),
        },
        Family::Bottlerocket { fips } => {
            let fips = if fips { "_FIPS" } else { "" };
            let variant = if variant == "_NVIDIA" { variant } else { "" };
            Some(format!("BOTTLEROCKET_{arch}{variant}{fips}"))
        }
        Family::Windows { year, full } if !arm => {
            Some(format!("WINDOWS_{}_{year}_x86_64", if full { "FULL" } else { "CORE" }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::userdata::Kind;
    use crate::userdata::samples::{cluster, group};

    #[test]
    fn paths_follow_their_publishers() {
        let cases = [
            (
                "AmazonLinux2023",
                "m5.large",
                "/aws/service/eks/optimized-ami/1.32/amazon-linux-2023/x86_64/standard/recommended/image_id",
            ),
            (
                "AmazonLinux2023",
                "g5.xlarge",
                "/aws/service/eks/optimized-ami/1.32/amazon-linux-2023/x86_64/nvidia/recommended/image_id",
            ),
            (
                "AmazonLinux2",
                "m6g.large",
                "/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id",
            ),
            (
                "BottlerocketFips",
                "m7g.large",
                "/aws/service/bottlerocket/aws-k8s-1.32-fips/arm64/latest/image_id",
            ),
            (
                "WindowsServer2022CoreContainer",
                "m5.large",
                "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.32/image_id",
            ),
            (
                "Ubuntu2204",
                "m5.large",
                "/aws/service/canonical/ubuntu/eks/22.04/1.32/stable/current/amd64/hvm/ebs-gp2/ami-id",
            ),
            (
                "UbuntuPro2404",
                "m6g.large",
                "/aws/service/canonical/ubuntu/eks-pro/24.04/1.32/stable/current/arm64/hvm/ebs-gp3/ami-id",
            ),
        ];
        for (family, instance_type, path) in cases {
            let group = Group {
                instance_types: vec![instance_type.into()],
                ..group(family, Kind::SelfManaged)
            };
            assert_eq!(parameter(&cluster(), &group).as_deref(), Some(path));
        }
        assert_eq!(parameter(&cluster(), &group("Flatcar", Kind::SelfManaged)), None);
    }

    #[test]
    fn mixed_architectures_have_no_image() {
        let types = vec!["m5.large".into(), "m6g.large".into()];
        let group = Group { instance_types: types, ..group("AmazonLinux2023", Kind::SelfManaged) };
        assert_eq!(parameter(&cluster(), &group), None);
    }

    #[test]
    fn managed_types_have_their_names() {
        for (family, instance_type, name) in [
            ("AmazonLinux2023", "m5.large", "AL2023_x86_64_STANDARD"),
            ("AmazonLinux2023", "m6g.large", "AL2023_ARM_64_STANDARD"),
            ("AmazonLinux2", "g5.xlarge", "AL2_x86_64_GPU"),
            ("Bottlerocket", "g5.xlarge", "BOTTLEROCKET_x86_64_NVIDIA"),
            ("WindowsServer2019FullContainer", "m5.large", "WINDOWS_FULL_2019_x86_64"),
        ] {
            let group = Group {
                instance_types: vec![instance_type.into()],
                ..group(family, Kind::Managed)
            };
            assert_eq!(managed_type(&group).as_deref(), Some(name));
        }
    }
}
