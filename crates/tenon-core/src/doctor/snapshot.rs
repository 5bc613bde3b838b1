//! What was seen of a node: plain data, the same from a live machine, a mounted volume or a
//! bundle, and from a fixture.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Everything that the doctor may look at.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Snapshot {
    pub kind: Kind,
    /// The clock of the node: live the machine's own, else the newest entry of the journal.
    pub now_us: Option<u64>,
    /// Seconds since the boot, where neither uptime nor the whole journal is at hand.
    pub age_s: Option<u64>,
    /// When the configuration was last changed.
    pub changed_us: Option<u64>,
    /// Text of each file that was found, by its path on the node.
    pub files: BTreeMap<String, String>,
    /// Names in each directory that was found.
    pub folders: BTreeMap<String, Vec<String>>,
    /// Paths that could not be read although they are there.
    pub denied: Vec<String>,
    /// The `e_machine` of each program's ELF header.
    pub programs: BTreeMap<String, u16>,
    /// State of units; empty when no service manager was asked.
    pub units: BTreeMap<String, Unit>,
    pub disks: Vec<Disk>,
    pub journal: Vec<Line>,
    pub probes: Probes,
}

/// Where a snapshot comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Live,
    #[default]
    Root,
    Bundle,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Live => "live",
            Kind::Root => "root",
            Kind::Bundle => "bundle",
        }
    }
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Line {
    /// Microseconds since 1970; 0 when the log has no times.
    pub time_us: u64,
    /// The boot it belongs to; empty when unknown.
    pub boot: String,
    /// The unit that it is about.
    pub unit: String,
    /// Who wrote it: `kubelet`, `systemd`, `kernel`.
    pub identifier: String,
    pub message: String,
}

/// A unit in the service manager's words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Unit {
    /// `loaded`, `not-found`, `masked`
    pub load: String,
    /// `active`, `inactive`, `activating`, `failed`
    pub active: String,
    pub sub: String,
    pub result: String,
    pub restarts: u32,
}

/// Room on one file system.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Disk {
    pub path: String,
    pub bytes: u64,
    pub free_bytes: u64,
    pub inodes: u64,
    pub free_inodes: u64,
    /// Size of the disk or partition below it, when known.
    pub device_bytes: u64,
}

/// Results of the live probes. None: not asked, which is never the same as fine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Probes {
    pub lookup: Option<Lookup>,
    /// To the API server without a proxy.
    pub direct: Option<Reach>,
    /// To the API server through the kubelet's proxy, when it has one.
    pub proxied: Option<Reach>,
    /// The kubelet would use the proxy for the API server.
    pub uses_proxy: bool,
    /// Status of `/livez` without credentials.
    pub anonymous: Option<Access>,
    // Names that say "secret" would be redacted with their values in a bundle.
    #[serde(rename = "client")]
    pub credentials: Option<Credentials>,
    /// The first request with the kubelet's own credentials.
    pub authenticated: Option<Access>,
    pub identity: Option<Identity>,
    pub node: Option<NodeAnswer>,
    /// `gitVersion` of `/version`.
    pub server_version: Option<String>,
    /// Server's clock minus this machine's.
    pub clock_offset_s: Option<i64>,
    pub clock: Option<Clock>,
    pub metadata: Option<Metadata>,
    /// Regional services: `ec2`, `sts`, `ecr`, `s3`.
    pub services: BTreeMap<String, Reach>,
    /// Ports on loopback: true when something listens.
    pub ports: BTreeMap<u16, bool>,
    /// Milliseconds of each probe.
    pub took_ms: BTreeMap<String, u64>,
}

/// What the resolver said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lookup {
    pub host: String,
    pub result: Resolution,
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    #[serde(default)]
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    Found,
    NoSuchName,
    Timeout,
    Error,
}

/// How far a connection came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reach {
    pub tcp: Tcp,
    #[serde(default)]
    pub tls: Option<Tls>,
    #[serde(default)]
    pub trust: Option<Trust>,
    #[serde(default)]
    pub chain: Vec<Certificate>,
    /// The program's own words about what went wrong.
    #[serde(default)]
    pub detail: String,
}

impl Reach {
    /// A TLS connection came about.
    pub fn is_up(&self) -> bool {
        self.tls == Some(Tls::Up)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tcp {
    Connected,
    Refused,
    Reset,
    Timeout,
    Unreachable,
    /// The name did not resolve.
    NoAddress,
    /// The proxy did not open the tunnel; its status is in the detail.
    ProxyRefused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tls {
    Up,
    Alert,
    Closed,
    Timeout,
    /// What answered does not speak TLS.
    NotTls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    Good,
    UnknownAuthority,
    WrongName,
    Expired,
    NotYetValid,
    /// There is no CA that could be used.
    NoAuthority,
    Other,
}

/// A presented certificate in a few words.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Certificate {
    pub subject: String,
    pub issuer: String,
    pub names: Vec<String>,
    pub not_before: u64,
    pub not_after: u64,
    pub sha256: String,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Access {
    pub status: u16,
    pub message: String,
    /// The answer looks like one of a Kubernetes API server.
    pub kubernetes: bool,
}

/// What the kubelet would authenticate with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Credentials {
    /// `certificate`, `exec`, `token`
    pub kind: String,
    pub usable: bool,
    pub detail: String,
}

/// Who the API server takes us for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Identity {
    pub user: String,
    pub groups: Vec<String>,
}

/// What the API server says about our Node object.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeAnswer {
    pub status: u16,
    pub name: String,
    pub provider_id: String,
    /// None: there is no such condition yet.
    pub ready: Option<bool>,
    pub reason: String,
    pub message: String,
}

/// How the clock is kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Clock {
    pub synchronised: bool,
    pub reference: String,
    pub offset_ms: i64,
}

/// What the metadata service gave. A status is an HTTP status; 0 means no answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    #[serde(rename = "sessionStatus")]
    pub token_status: u16,
    pub detail: String,
    #[serde(rename = "roleStatus")]
    pub credentials_status: u16,
    /// Of the instance profile, from `iam/info`.
    pub profile_arn: String,
    /// The role's name, from `iam/security-credentials/`.
    pub role: String,
    pub account: String,
    pub instance_id: String,
    pub region: String,
    pub architecture: String,
    pub local_hostname: Option<String>,
    pub local_ipv4: String,
    /// Status of the list of IPv6 addresses.
    pub ipv6_status: u16,
    pub vpc_cidrs: Vec<String>,
    pub public_ipv4: bool,
    /// None: tags are not offered by the metadata service.
    pub tags: Option<Vec<String>>,
    /// `spot/instance-action`, when there is one.
    pub spot_action: String,
}
