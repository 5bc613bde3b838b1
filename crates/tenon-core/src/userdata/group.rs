//! One node group, whatever described it and whatever family it will run.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Map, Value};

use super::family::{Family, Kind};
use crate::config::{DiskStrategy, Taint};
use crate::problem::Place;

/// What the user wants of a group of nodes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Group {
    pub name: String,
    /// Where the group stands in its source, as the first part of the paths of findings:
    /// `nodeGroups[2]`. Empty for flags.
    pub path: String,
    pub family: Family,
    pub kind: Kind,
    /// Image id, when the group names one.
    pub ami: Option<String>,
    pub instance_types: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub max_pods: Option<u32>,
    pub max_pods_policy: MaxPodsPolicy,
    /// Expression over nodeadm's variables, from a NodeConfig.
    pub max_pods_expression: Option<String>,
    pub cluster_dns: Option<IpAddr>,
    /// KubeletConfiguration fields of the user's.
    pub kubelet_config: Map<String, Value>,
    /// Kubelet flags of the user's, from a NodeConfig or a converted blob.
    pub kubelet_flags: Vec<String>,
    pub container_runtime: Option<String>,
    pub pre_commands: Vec<String>,
    pub override_command: Option<String>,
    pub post_commands: Vec<String>,
    pub bottlerocket: Bottlerocket,
    pub instance_store: Option<InstanceStore>,
    pub proxy: Option<Proxy>,
    /// Service to variables, from a NodeConfig.
    pub environment: BTreeMap<String, BTreeMap<String, String>>,
    pub reboot_before_join: bool,
    pub credential_helper: CredentialHelper,
    pub files: Vec<ExtraFile>,
    /// containerd TOML of the user's.
    pub containerd_config: Option<String>,
    pub feature_gates: BTreeMap<String, bool>,
    pub signal: Option<Signal>,
    /// The user data itself, for family Custom.
    pub user_text: Option<String>,
    pub launch: Launch,
}

impl Group {
    /// The place of one of the group's fields.
    pub fn at(&self, field: &str) -> Place {
        let joint = if self.path.is_empty() { "" } else { "." };
        Place::field(format!("{}{joint}{field}", self.path))
    }

    /// True when EKS itself writes the join: managed, on an EKS image.
    pub fn joined_by_eks(&self) -> bool {
        self.kind == Kind::Managed
    }
}

/// What `maxPodsPerNode` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MaxPodsPolicy {
    #[default]
    Fixed,
    /// A ceiling: the node takes the smaller of it and its computed number.
    Min,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bottlerocket {
    pub settings: toml::Table,
    pub enable_admin_container: Option<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct InstanceStore {
    pub strategy: DiskStrategy,
    pub mount_path: Option<String>,
    pub disabled_mounts: Vec<String>,
}

impl InstanceStore {
    /// The strategy as NodeConfig spells it.
    pub fn strategy_name(&self) -> &'static str {
        match self.strategy {
            DiskStrategy::Raid0 => "RAID0",
            DiskStrategy::Raid10 => "RAID10",
            DiskStrategy::Mount => "Mount",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proxy {
    pub http: Option<String>,
    pub https: Option<String>,
    pub no_proxy: Vec<String>,
}

/// What must never go through a proxy: this machine, the metadata service, the cluster.
const DIRECT: [&str; 8] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "169.254.169.254",
    "fd00:ec2::254",
    ".svc",
    ".cluster.local",
    ".internal",
];

impl Proxy {
    /// The variables that programs look for, sorted.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let given = self.no_proxy.iter().map(String::as_str);
        let more = DIRECT.into_iter().filter(|host| !self.no_proxy.iter().any(|own| own == host));
        let direct: Vec<_> = given.chain(more).collect();
        let pairs = [
            ("HTTP_PROXY", self.http.clone()),
            ("HTTPS_PROXY", self.https.clone()),
            ("NO_PROXY", Some(direct.join(","))),
        ];
        pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

/// What makes the kubelet's tokens in mode `self-contained`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CredentialHelper {
    #[default]
    AwsIamAuthenticator,
    Aws,
    Tenon,
}

impl CredentialHelper {
    pub const ALL: [(&str, CredentialHelper); 3] = [
        ("aws-iam-authenticator", CredentialHelper::AwsIamAuthenticator),
        ("aws", CredentialHelper::Aws),
        ("tenon", CredentialHelper::Tenon),
    ];

    pub fn parse(name: &str) -> Option<Self> {
        CredentialHelper::ALL.iter().find(|(known, _)| *known == name).map(|(_, helper)| *helper)
    }
}

/// A file of the user's that the user data carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraFile {
    pub path: String,
    pub mode: u32,
    pub content: String,
}

/// The stack resource that waits for this group's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    pub stack: String,
    /// Logical id of the Auto Scaling group.
    pub resource: String,
    pub region: String,
    /// How long the stack waits, as `PT15M`; the sender gives up one minute earlier.
    pub timeout: String,
}

/// What concerns the launch template and the group resource, not the user data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Launch {
    pub min_size: Option<u32>,
    pub max_size: Option<u32>,
    pub desired_capacity: Option<u32>,
    pub volume: Volume,
    pub additional_volumes: Vec<Volume>,
    pub key_name: Option<String>,
    pub instance_role_arn: Option<String>,
    pub instance_profile_arn: Option<String>,
    pub policy_arns: Vec<String>,
    pub security_groups: Vec<String>,
    pub subnets: Vec<String>,
    pub tags: BTreeMap<String, String>,
    pub propagate_tags: bool,
    pub suspended_processes: Vec<String>,
    pub max_instance_lifetime: Option<u32>,
    pub spot: bool,
    pub disable_pod_imds: bool,
    pub efa: bool,
    pub placement_group: Option<String>,
    pub cpu_credits: Option<String>,
    pub enclave: bool,
    pub capacity_reservation_id: Option<String>,
    pub detailed_monitoring: bool,
    /// `maxUnavailable`, or its percentage.
    pub max_unavailable: Option<Amount>,
    pub release_version: Option<String>,
    pub node_repair: Option<bool>,
    /// Mixed-instances policy of a self-managed group.
    pub distribution: Option<Distribution>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Count(u32),
    Percent(u32),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Volume {
    pub name: Option<String>,
    pub size_gib: Option<u32>,
    pub kind: Option<String>,
    pub iops: Option<u32>,
    pub throughput: Option<u32>,
    pub kms_key: Option<String>,
    pub snapshot: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Distribution {
    pub on_demand_base: Option<u32>,
    pub on_demand_percent: Option<u32>,
    pub spot_strategy: Option<String>,
    pub spot_pools: Option<u32>,
    pub max_price: Option<String>,
}
