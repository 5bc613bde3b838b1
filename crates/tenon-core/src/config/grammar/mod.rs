//! What the texts of a config must look like, each by the narrowest grammar that its
//! destination allows.
//!
//! A check answers with [`Fault`]s that describe the shape, never with the value.

mod ca;
mod kube;
mod machine;
mod net;
mod system;

pub use ca::{certificates, decode as decode_ca};
pub use kube::{duration, kubelet_may_set, label_key, label_value};
pub use net::{cidr, endpoint};
pub use system::normal_path;

use super::schema::Kind;
use crate::codes::{self, Page};
use crate::problem::Class;

/// The grammars of the field table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    Address,
    Argument,
    AssetSource,
    Audit,
    BootstrapToken,
    CaBundle,
    Cidr,
    ClusterId,
    ClusterName,
    CpuSet,
    Domain,
    Duration,
    Endpoint,
    EnvKey,
    EnvValue,
    Expression,
    FilePath,
    Flag,
    FlagName,
    Gate,
    HookName,
    HostName,
    Image,
    KubeVersion,
    LabelKey,
    LabelValue,
    MirrorUrl,
    MountPath,
    Nameserver,
    NoProxy,
    ProxyUrl,
    Quantity,
    RegistryHost,
    ReservedKey,
    Script,
    ServiceName,
    Sha256,
    TaintKey,
    Toml,
}

/// What is wrong with a text. The message completes "`path` …".
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub page: &'static Page,
    pub what: String,
    pub fix: Option<String>,
    /// How bad it is in `node.eks.aws` and in `tenon.dev`.
    pub eks: Class,
    pub tenon: Class,
    /// Byte offset in the text, when the fault is at one point of it.
    pub offset: Option<usize>,
}

impl Fault {
    /// A fault that stops both kinds.
    pub fn error(page: &'static Page, what: impl Into<String>) -> Self {
        let (eks, tenon) = (Class::Error, Class::Error);
        Fault { page, what: what.into(), fix: None, eks, tenon, offset: None }
    }

    /// A fault that nodeadm ignores.
    pub fn tolerated(page: &'static Page, what: impl Into<String>) -> Self {
        Fault { eks: Class::Tolerated, ..Fault::error(page, what) }
    }

    /// A fault that only `tenon.dev` refuses.
    pub fn doubtful(page: &'static Page, what: impl Into<String>) -> Self {
        Fault { eks: Class::Warning, ..Fault::error(page, what) }
    }

    pub fn warning(page: &'static Page, what: impl Into<String>) -> Self {
        Fault { tenon: Class::Warning, ..Fault::doubtful(page, what) }
    }

    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub fn class(&self, kind: Kind) -> Class {
        match kind {
            Kind::Eks => self.eks,
            Kind::Tenon => self.tenon,
        }
    }
}

/// The outcome of a grammar: fine, or what is wrong.
pub type Check = Result<(), Fault>;

impl Grammar {
    /// The type in words, for the reference.
    pub fn doc(self) -> &'static str {
        match self {
            Grammar::Address => "IP address",
            Grammar::Argument => "text",
            Grammar::AssetSource => "`none`, `push`, file:/PATH, https://…, s3://BUCKET/KEY",
            Grammar::Audit => "`none`, `metadata`, or the absolute path of a policy",
            Grammar::BootstrapToken => "token of six, a dot and sixteen letters or digits",
            Grammar::CaBundle => "base64 of PEM certificates",
            Grammar::Cidr => "IPv4 or IPv6 network (CIDR), /28 or /124 at most",
            Grammar::ClusterId => "text without blanks and quotes",
            Grammar::ClusterName => "1 to 100 letters, digits, `-`, `_`",
            Grammar::CpuSet => "CPU set such as `0-1,4`",
            Grammar::Domain => "DNS name, optionally with `~` in front",
            Grammar::Duration => "duration such as `60s`, at most `15m`",
            Grammar::Endpoint => "https URL",
            Grammar::EnvKey => "variable name",
            Grammar::EnvValue => "text",
            Grammar::Expression => "expression",
            Grammar::FilePath => "absolute path",
            Grammar::Flag => "kubelet flag `--name=value`",
            Grammar::FlagName => "flag name without dashes in front",
            Grammar::Gate => "gate name",
            Grammar::HookName => "lower case letters, digits, `-`, at most 63",
            Grammar::HostName => "DNS name or IP address",
            Grammar::Image => "image reference",
            Grammar::KubeVersion => "version such as v1.34.2",
            Grammar::LabelKey => "label key",
            Grammar::LabelValue => "label value",
            Grammar::MirrorUrl => "http or https URL",
            Grammar::MountPath => "absolute path, not a system directory",
            Grammar::Nameserver => "IP address, optionally with :port, %interface, #name",
            Grammar::NoProxy => "host, .suffix, IP or CIDR",
            Grammar::ProxyUrl => "http or https URL",
            Grammar::Quantity => "Kubernetes quantity",
            Grammar::RegistryHost => "name[:port] or `_default`",
            Grammar::ReservedKey => "`cpu`, `memory`, `ephemeral-storage` or `pid`",
            Grammar::Script => "shell text",
            Grammar::ServiceName => "service name or `default`",
            Grammar::Sha256 => "`sha256:` and 64 hexadecimal digits",
            Grammar::TaintKey => "taint key",
            Grammar::Toml => "TOML text",
        }
    }

    /// A regular expression of about the same language, for grammars where one says much.
    pub fn pattern(self) -> Option<&'static str> {
        Some(match self {
            Grammar::ClusterName => "^([0-9A-Za-z][0-9A-Za-z_-]{0,99})?$",
            Grammar::Endpoint => "^(https?://[^/?#@]+.*)?$",
            Grammar::CaBundle => "^[A-Za-z0-9+/=\\s]*$",
            Grammar::CpuSet => "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$",
            Grammar::Duration => "^([0-9]+(ms|s|m|h))*$",
            Grammar::Sha256 => "^(sha256:[0-9a-f]{64})?$",
            Grammar::FilePath | Grammar::MountPath => "^(/.*)?$",
            Grammar::HookName => "^[a-z0-9][a-z0-9-]{0,62}$",
            Grammar::ProxyUrl | Grammar::MirrorUrl => "^(https?://.+)?$",
            _ => return None,
        })
    }

    /// Checks a text. The empty text means "not set" nearly everywhere and passes.
    pub fn check(self, text: &str, kind: Kind) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.characters(text).err().into_iter().collect();
        if faults.is_empty() && (!text.is_empty() || self.is_key()) {
            faults.extend(self.content(text, kind));
        }
        faults
    }

    fn content(self, text: &str, kind: Kind) -> Vec<Fault> {
        let one = match self {
            Grammar::CaBundle => ca::check(text),
            Grammar::Cidr => return net::check_cidr(text),
            Grammar::Endpoint => return net::check_endpoint(text),
            Grammar::Flag => return super::flags::check(text, kind),
            Grammar::ClusterId => system::cluster_id(text),
            Grammar::ClusterName => system::cluster_name(text),
            Grammar::Address => machine::address(text),
            Grammar::AssetSource => machine::asset_source(text),
            Grammar::Audit => machine::audit(text),
            Grammar::BootstrapToken => machine::token(text),
            Grammar::FlagName => machine::flag_name(text),
            Grammar::HostName => machine::host_name(text),
            Grammar::KubeVersion => machine::version(text),
            Grammar::Sha256 => machine::digest(text),
            Grammar::CpuSet => kube::cpu_set(text),
            Grammar::Domain => net::domain(text),
            Grammar::Duration => kube::check_duration(text),
            Grammar::EnvKey => system::variable(text),
            Grammar::Expression => kube::expression(text, kind),
            Grammar::FilePath => system::path(text),
            Grammar::Gate => kube::gate(text),
            Grammar::HookName => system::hook_name(text),
            Grammar::Image => kube::image(text),
            Grammar::LabelKey => kube::check_label_key(text),
            Grammar::LabelValue => kube::check_label_value(text),
            Grammar::MirrorUrl => net::mirror(text),
            Grammar::MountPath => system::mount_path(text),
            Grammar::Nameserver => net::nameserver(text),
            Grammar::NoProxy => net::no_proxy(text),
            Grammar::ProxyUrl => net::proxy(text),
            Grammar::Quantity => kube::quantity(text),
            Grammar::RegistryHost => net::registry_host(text),
            Grammar::ReservedKey => kube::reserved_key(text),
            Grammar::ServiceName => system::service_name(text),
            Grammar::TaintKey => kube::taint_key(text),
            Grammar::Toml => system::toml(text),
            Grammar::Argument | Grammar::EnvValue | Grammar::Script => Ok(()),
        };
        one.err().into_iter().collect()
    }

    /// True for grammars of map keys, where an empty text is a text like any other.
    fn is_key(self) -> bool {
        matches!(
            self,
            Grammar::EnvKey
                | Grammar::FlagName
                | Grammar::Gate
                | Grammar::LabelKey
                | Grammar::ReservedKey
                | Grammar::ServiceName
        )
    }

    /// Refuses control characters, except the line breaks of texts that may have lines.
    fn characters(self, text: &str) -> Check {
        let lines =
            matches!(self, Grammar::CaBundle | Grammar::EnvValue | Grammar::Script | Grammar::Toml);
        let carriage = matches!(self, Grammar::CaBundle | Grammar::Script | Grammar::Toml);
        let fine = |c: char| match c {
            '\n' | '\t' => lines,
            '\r' => carriage,
            c => !c.is_ascii_control(),
        };
        match text.chars().find(|c| !fine(*c)) {
            None => Ok(()),
            Some(c) => Err(Fault::error(
                &codes::config::CONTROL_CHARACTER,
                format!("holds the control character {}", control_name(c)),
            )),
        }
    }
}

/// A control character in words: it is never printed itself.
pub fn control_name(c: char) -> String {
    match c {
        '\n' => "newline".into(),
        '\t' => "tab".into(),
        '\r' => "carriage return".into(),
        '\0' => "NUL".into(),
        c => format!("0x{:02x}", c as u32),
    }
}
