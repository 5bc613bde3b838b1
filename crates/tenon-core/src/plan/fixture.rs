//! A machine and a config that unit tests start from.

use crate::config::{Cluster, Config};
use crate::facts::{Facts, Instance, InstanceLimits, Machine, SCHEMA};

pub(crate) fn facts() -> Facts {
    Facts {
        schema: SCHEMA,
        instance: Instance {
            id: "i-0abc12345678def90".into(),
            region: "us-west-2".into(),
            instance_type: "m5.large".into(),
            availability_zone: "us-west-2a".into(),
            mac: "0a:00:00:00:00:01".into(),
            local_ipv4: Some([10, 0, 0, 1].into()),
            local_hostname: Some("ip-10-0-0-1.us-west-2.compute.internal".into()),
            limits: Some(InstanceLimits { default_enis: 3, ipv4_per_eni: 10, vcpu: 2 }),
            ..Instance::default()
        },
        machine: Machine {
            kubelet_version: "v1.34.1-eks-113cf36".into(),
            containerd_version: "containerd example.org/containerd/v2 v2.1.4".into(),
            online_cpus: 2,
            online_memory_bytes: 8 << 30,
            credential_provider: Some(
                "/etc/eks/image-credential-provider/ecr-credential-provider".into(),
            ),
            cgroup_version: 2,
            ..Machine::default()
        },
        cluster: None,
        endpoint_addresses: Vec::new(),
        last_run: None,
    }
}

pub(crate) fn config() -> Config {
    Config {
        cluster: Cluster {
            name: "web".into(),
            api_server_endpoint: "https://abc.gr7.us-west-2.eks.amazonaws.com".into(),
            certificate_authority: b"-----BEGIN CERTIFICATE-----\n".to_vec(),
            cidr: Some("10.100.0.0/16".parse().expect("a network")),
            ..Cluster::default()
        },
        ..Config::default()
    }
}
