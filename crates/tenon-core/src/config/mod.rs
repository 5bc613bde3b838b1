//! What the user asked for: one internal [`Config`], whatever kind and however many documents
//! it came from.
//!
//! Both document kinds convert into patches on this type; patches merge in the order of their
//! sources; defaults apply last. Everything downstream sees the result only.
//!
//! ```text
//! schema, fields   what a field is; the table of all fields
//! grammar, flags   what texts must look like
//! chain            load: sources → Config, with every finding
//! document, read   a text → a document → a typed patch
//! merge, cross     patches → one tree; checks over several fields
//! versions         checks that need the kubelet's version
//! build, dump      the tree → Config; Config → a document again
//! cache, redact    the config cache; documents without their secrets
//! reference        the table in words; json_schema for editors
//! ```

pub(crate) mod build;
pub mod cache;
mod chain;
mod cross;
mod document;
mod dump;
pub mod fields;
mod flags;
mod free;
pub mod grammar;
mod items;
mod json_schema;
pub mod kubelet_table;
pub mod legacy;
mod merge;
pub(crate) mod node;
pub(crate) mod read;
pub mod redact;
pub mod reference;
pub mod schema;
mod versions;

pub use chain::{Loaded, Options, SourceRead, load};
pub use dump::{Dumped, dump, dump_best, full_hash, public_hash};
pub use json_schema::{json_schema, machine_schema};
pub use schema::Kind;

use std::collections::BTreeMap;
use std::time::Duration;

use ipnet::IpNet;
use serde_json::{Map, Value};

use crate::facts::DescribedCluster;
use crate::secret::Secret;

/// The pause image that every EKS node image has cached, under a name that no registry serves.
pub const PAUSE_IMAGE: &str = "localhost/kubernetes/pause:latest";

/// The merged, validated wish for this node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// `metadata`, kept for `config dump`, otherwise unused.
    pub metadata: Map<String, Value>,
    pub aws_api: AwsApi,
    pub cluster: Cluster,
    pub node: Node,
    pub kubelet: Kubelet,
    pub containerd: Containerd,
    pub instance: Instance,
    pub hooks: Hooks,
    /// `featureGates.FastImagePull`: pull images with the SOCI snapshotter where the machine is
    /// large enough for it.
    pub fast_image_pull: bool,
}

/// When EC2 and EKS may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AwsApi {
    Never,
    #[default]
    IfNeeded,
    Verify,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cluster {
    pub name: String,
    /// Empty until discovered when the config leaves it out.
    pub api_server_endpoint: String,
    /// The decoded bytes, verbatim.
    pub certificate_authority: Vec<u8>,
    /// The service range, masked to its network address.
    pub cidr: Option<IpNet>,
    pub id: String,
    /// Whether the cluster is a local one on Outposts; None leaves it to the cluster's own
    /// description, where that is asked for.
    pub enable_outpost: Option<bool>,
    pub outpost: Outpost,
}

impl Cluster {
    /// The settings for Outposts, if the cluster is there.
    pub fn on_outpost(&self, described: Option<&DescribedCluster>) -> Option<&Outpost> {
        let by_description = || described.is_some_and(|cluster| cluster.outpost_id.is_some());
        self.enable_outpost.unwrap_or_else(by_description).then_some(&self.outpost)
    }
}

/// How a node finds and authenticates to a local cluster on Outposts.
#[derive(Debug, Clone, PartialEq)]
pub struct Outpost {
    pub authenticator: Authenticator,
    pub pin_endpoint: bool,
}

impl Default for Outpost {
    fn default() -> Self {
        Outpost { authenticator: Authenticator::Aws, pin_endpoint: true }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authenticator {
    #[default]
    Aws,
    AwsIamAuthenticator,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    pub name: NameRule,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameRule {
    #[default]
    Ec2PrivateDns,
    InstanceId,
    Hostname,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Kubelet {
    /// Free-form KubeletConfiguration, goes to the drop-in.
    pub config: Map<String, Value>,
    pub config_mode: ConfigMode,
    pub flags: Vec<Flag>,
    pub max_pods: MaxPods,
    pub reserved: Reserved,
}

/// What happens with `kubelet.config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConfigMode {
    /// A drop-in over Tenon's own kubelet config.
    #[default]
    Merge,
    /// Tenon's own config keeps only what the node cannot run without.
    Replace,
}

/// One entry of `kubelet.flags`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    pub text: String,
    /// From a `node.eks.aws` document: placed as written, so that one entry may hold several
    /// words and the user's own quotes reach the word splitter.
    pub verbatim: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MaxPods {
    pub mode: MaxPodsMode,
    pub prefix_delegation: bool,
    pub custom_networking: bool,
    /// 0 means no limit.
    pub max_enis: u32,
    pub cap: Cap,
    pub on_unknown_instance: OnUnknown,
}

impl Default for MaxPods {
    fn default() -> Self {
        MaxPods {
            mode: MaxPodsMode::Eni,
            prefix_delegation: false,
            custom_networking: false,
            max_enis: 0,
            cap: Cap::Auto,
            on_unknown_instance: OnUnknown::UseDefault,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaxPodsMode {
    Eni,
    Fixed(u32),
    Min(u32),
    /// `lenient`: from a `node.eks.aws` document, where a failing expression falls back to the
    /// plain formula with a warning.
    Expression {
        text: String,
        lenient: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// 110 up to 30 vCPUs, else 250, with prefix delegation only.
    Auto,
    None,
    At(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknown {
    UseDefault,
    Refuse,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reserved {
    pub basis: Basis,
    /// Replaces single values of `kubeReserved`.
    pub kube: BTreeMap<String, String>,
    /// `systemReserved`; empty means not set.
    pub system: BTreeMap<String, String>,
    pub system_cpus: Option<String>,
}

/// Which pod limit the memory reservation is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Basis {
    /// The value the kubelet ends up with.
    #[default]
    Effective,
    /// The mode's own result, as nodeadm does it.
    Computed,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Containerd {
    /// User TOML, verbatim when it came from one document.
    pub config: String,
    pub base_runtime_spec: Map<String, Value>,
    pub sandbox_image: Option<String>,
    pub registries: Vec<Registry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    pub host: String,
    pub mirrors: Vec<Mirror>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub url: String,
    pub capabilities: Vec<String>,
    pub override_path: bool,
    pub ca_file: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Instance {
    pub local_storage: LocalStorage,
    /// Service name (or `default`) to variables.
    pub environment: BTreeMap<String, BTreeMap<String, Secret>>,
    pub nameservers: Vec<String>,
    pub domains: Vec<String>,
    pub proxy: Option<Proxy>,
    pub fips: Fips,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LocalStorage {
    /// None: leave the disks alone.
    pub strategy: Option<DiskStrategy>,
    pub mount_path: String,
    pub disabled_mounts: Vec<DisabledMount>,
    pub existing_data: ExistingData,
}

impl Default for LocalStorage {
    fn default() -> Self {
        LocalStorage {
            strategy: None,
            mount_path: "/mnt/k8s-disks".into(),
            disabled_mounts: Vec::new(),
            existing_data: ExistingData::Keep,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskStrategy {
    Raid0,
    Raid10,
    Mount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisabledMount {
    Containerd,
    PodLogs,
    Soci,
    Kubelet,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingData {
    Keep,
    Refuse,
    Wipe,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Proxy {
    pub http: Option<Secret>,
    pub https: Option<Secret>,
    pub no_proxy: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fips {
    #[default]
    Auto,
    Require,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hooks {
    pub pre_bootstrap: Vec<Hook>,
    pub post_config: Vec<Hook>,
    pub post_join: Vec<Hook>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    pub name: String,
    pub work: HookWork,
    pub timeout: Duration,
    pub on_failure: OnFailure,
    pub run: HookRun,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HookWork {
    Argv(Vec<String>),
    /// Run with `/bin/sh -eu`.
    Script(Secret),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    Abort,
    Warn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRun {
    OncePerInstance,
    EveryBoot,
}

#[cfg(test)]
mod tests;
