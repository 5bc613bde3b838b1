//! What the machine is. Gathered once by `tenon-host`, printed by `tenon facts`, replayed with
//! `--facts FILE`. Nothing after the gathering asks the machine anything.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Everything that the plan may depend on besides the config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Facts {
    pub schema: u32,
    pub instance: Instance,
    pub machine: Machine,
    /// Answer of `eks:DescribeCluster`, when the config left cluster values out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<DescribedCluster>,
    /// Addresses of the API server's host name, sorted; Outposts only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoint_addresses: Vec<IpAddr>,
    /// What the last run left, from its record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
}

/// The schema this binary writes and reads.
pub const SCHEMA: u32 = 1;

/// What the metadata service (and, if opted in, EC2) says about the instance.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Instance {
    pub id: String,
    pub region: String,
    #[serde(rename = "type")]
    pub instance_type: String,
    pub availability_zone: String,
    #[serde(default)]
    pub account: String,
    /// As EC2 spells it: `x86_64`, `arm64`.
    #[serde(default)]
    pub architecture: String,
    #[serde(default)]
    pub image_id: String,
    /// When the instance was last started, by EC2's clock, to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<String>,
    /// MAC of the primary interface, lower case.
    pub mac: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_ipv4: Option<Ipv4Addr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_hostname: Option<String>,
    /// IPv6 addresses of the primary interface, in the order of the metadata service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv6: Vec<Ipv6Addr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vpc_cidrs: Vec<IpNet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services_domain: Option<String>,
    /// EC2's own `PrivateDnsName`, only with `aws.api: verify`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_dns_name: Option<String>,
    /// Limits of a type that the embedded table does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<InstanceLimits>,
}

/// What the pod formula needs of an instance type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceLimits {
    pub default_enis: u32,
    pub ipv4_per_eni: u32,
    pub vcpu: u32,
}

/// What the machine's own files say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Machine {
    /// As stamped or printed: `v1.34.1-eks-113cf36`.
    pub kubelet_version: String,
    pub containerd_version: String,
    pub online_cpus: u32,
    /// Online memory blocks where the plan must know the exact size (SOCI), else what the kernel
    /// manages, which is a few percent less; see `docs/adr/0012-memory-is-counted-when-it-matters.md`.
    pub online_memory_bytes: u64,
    #[serde(default)]
    pub nvidia_device: bool,
    #[serde(default)]
    pub nvidia_runtime: bool,
    #[serde(default)]
    pub neuron_device: bool,
    /// Absolute path of the image credential provider; None if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_provider: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instance_store: Vec<Disk>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrays: Vec<Array>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    #[serde(default)]
    pub hostname: String,
    #[serde(default)]
    pub fips_enabled: bool,
    #[serde(default)]
    pub selinux_enabled: bool,
    /// 1 or 2; 0 when unknown.
    #[serde(default)]
    pub cgroup_version: u32,
    #[serde(default)]
    pub swap_enabled: bool,
    /// `/etc/eks/pause.tar` exists.
    #[serde(default)]
    pub pause_archive: bool,
    /// `/sys/fs/bpf` is mounted.
    #[serde(default)]
    pub bpf_mounted: bool,
    /// Names in `/etc/kubernetes/kubelet/config.json.d` other than Tenon's own, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubelet_drop_ins: Vec<String>,
    /// Which of [`KUBELET_IDENTITY`] exist. Looked at only while no record shows that this
    /// instance made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubelet_identity: Vec<String>,
}

/// What a kubelet leaves behind that names its machine: certificates, and CPUs by number. On an
/// image baked from a used node they are another machine's.
pub const KUBELET_IDENTITY: [&str; 2] =
    ["/var/lib/kubelet/pki", "/var/lib/kubelet/cpu_manager_state"];

/// One instance store disk, found by its stable name, sorted by serial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Disk {
    /// `/dev/nvme1n1`
    pub device: String,
    pub serial: String,
    #[serde(default)]
    pub size_bytes: u64,
    /// `xfs`, `ext4`, `linux_raid_member`, `partition-table`, …; None when the disk is blank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// File system UUID, or the array's UUID for a raid member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Where it is mounted now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mounted_at: Option<String>,
}

/// One assembled md array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Array {
    /// Kernel name: `/dev/md127`.
    pub device: String,
    /// Name in its metadata without the host prefix: `kubernetes`.
    pub name: String,
    /// `raid0`, `raid10`
    pub level: String,
    pub members: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mounted_at: Option<String>,
}

/// One network link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Link {
    pub name: String,
    pub mac: String,
}

impl Facts {
    /// What the last run on this very instance left. A record of another instance came with the
    /// image and says nothing about this one.
    pub fn last_run_here(&self) -> Option<&LastRun> {
        self.last_run.as_ref().filter(|run| run.instance_id == self.instance.id)
    }
}

/// What `eks:DescribeCluster` answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DescribedCluster {
    pub endpoint: String,
    /// Base64, as the API gives it.
    pub certificate_authority: String,
    pub cidr: IpNet,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outpost_id: Option<String>,
}

/// What the record of the last run says, as far as the plan needs it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LastRun {
    pub instance_id: String,
    /// Managed paths with the sha256 (hex) of what was written.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Mount index of each instance store disk, by serial.
    #[serde(default)]
    pub disk_indexes: BTreeMap<String, u32>,
}
