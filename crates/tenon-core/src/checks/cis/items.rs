//! The items of each benchmark as a table.

use crate::checks::Severity::{self, High, Low, Medium};

/// One row of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// As the benchmark numbers it; extra items have a word.
    pub id: &'static str,
    pub title: &'static str,
    pub severity: Severity,
    pub rule: Rule,
}

/// The kinds of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// No wider than this mode.
    Mode(Role, u32),
    /// root:root
    Owner(Role),
    /// What the kubelet is told, by its files and as it runs.
    Kubelet(Ask),
    /// `IPAddressDeny=any` with an allow list.
    AddressFilter,
    /// kube-proxy's metrics on loopback.
    ProxyMetrics,
    /// No secret in the user data that the machine keeps.
    UserData,
    /// The sandbox of Tenon's own units.
    OwnUnits,
    /// The kubelet was started after its files became what they are, with the flags they have.
    Restart,
    /// No directory above an owned file that others can write to.
    Parents,
    /// Only a person, or another command, can tell: what to look at.
    Elsewhere(Seat, &'static str),
}

/// Questions about the kubelet's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// A setting of the kubelet.
    Value(&'static str, Want),
    /// The client CA is set, exists and parses.
    ClientCa,
    /// The gate for rotation of serving certificates, and the setting that uses it.
    ServingRotation,
    /// A pair of files, or rotation instead.
    ServingCertificate,
    /// The benchmark's suites, and no protocol older than TLS 1.2.
    Ciphers,
    /// `--hostname-override` is absent.
    HostnameOverride,
}

/// Who can tell what Tenon cannot see on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    Person,
    Image,
}

/// Files that an item is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Kubeconfig,
    /// The config file and its drop-ins.
    Config,
    /// The unit's fragment and its drop-ins.
    Service,
    ProxyKubeconfig,
    ClientCa,
}

/// What a setting must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    Is(bool),
    /// Absent or true.
    NotFalse,
    /// Any mode but this one; `fix` replaces it.
    Not {
        word: &'static str,
        fix: &'static str,
    },
    Zero,
    NotZeroTime {
        fix: &'static str,
    },
    AtLeast {
        least: i64,
        fix: i64,
    },
    /// Above zero; nobody chose a value on a fresh node, for this reason.
    Chosen {
        fix: i64,
        unset: &'static str,
    },
    /// True; nobody switched it on on a fresh node, for this reason.
    On {
        unset: &'static str,
    },
    /// A subset of the benchmark's cipher suites.
    Suites,
    /// TLS 1.2 or newer; the compiled default is 1.2.
    NotOldTls,
}

const fn item(id: &'static str, severity: Severity, title: &'static str, rule: Rule) -> Item {
    Item { id, title, severity, rule }
}

const ANONYMOUS: Rule =
    Rule::Kubelet(Ask::Value("authentication.anonymous.enabled", Want::Is(false)));
const AUTHORIZATION: Rule = Rule::Kubelet(Ask::Value(
    "authorization.mode",
    Want::Not { word: "AlwaysAllow", fix: "Webhook" },
));
const READ_ONLY_PORT: Rule = Rule::Kubelet(Ask::Value("readOnlyPort", Want::Zero));
const IDLE_TIMEOUT: Rule = Rule::Kubelet(Ask::Value(
    "streamingConnectionIdleTimeout",
    Want::NotZeroTime { fix: "4h0m0s" },
));
const UTIL_CHAINS: Rule = Rule::Kubelet(Ask::Value("makeIPTablesUtilChains", Want::Is(true)));
const EVENT_RATE: Rule =
    Rule::Kubelet(Ask::Value("eventRecordQPS", Want::AtLeast { least: 0, fix: 50 }));
const CLIENT_ROTATION: Rule = Rule::Kubelet(Ask::Value("rotateCertificates", Want::NotFalse));
const SERVER_GATE: Rule =
    Rule::Kubelet(Ask::Value("featureGates.RotateKubeletServerCertificate", Want::NotFalse));

/// CIS Amazon EKS, section 3, in the numbering of versions 1.5 to 1.8.
pub static EKS: &[Item] = &[
    item("3.1.1", Medium, "mode of the kubelet's kubeconfig", Rule::Mode(Role::Kubeconfig, 0o644)),
    item("3.1.2", Medium, "owner of the kubelet's kubeconfig", Rule::Owner(Role::Kubeconfig)),
    item("3.1.3", Medium, "mode of the kubelet's config", Rule::Mode(Role::Config, 0o644)),
    item("3.1.4", Medium, "owner of the kubelet's config", Rule::Owner(Role::Config)),
    item("3.2.1", High, "anonymous access to the kubelet is off", ANONYMOUS),
    item("3.2.2", High, "the kubelet authorizes requests", AUTHORIZATION),
    item("3.2.3", High, "the kubelet has a client CA", Rule::Kubelet(Ask::ClientCa)),
    item("3.2.4", High, "the read-only port is closed", READ_ONLY_PORT),
    item("3.2.5", Low, "idle streams end", IDLE_TIMEOUT),
    item("3.2.6", Low, "the kubelet manages its iptables chains", UTIL_CHAINS),
    item("3.2.7", Low, "the rate of events is chosen", EVENT_RATE),
    item("3.2.8", Medium, "client certificates rotate", CLIENT_ROTATION),
    item("3.2.9", Medium, "serving certificates rotate", Rule::Kubelet(Ask::ServingRotation)),
];

/// CIS Kubernetes 1.11, section 4.
pub static K8S: &[Item] = &[
    item("4.1.1", Medium, "mode of the kubelet's unit files", Rule::Mode(Role::Service, 0o600)),
    item("4.1.2", Medium, "owner of the kubelet's unit files", Rule::Owner(Role::Service)),
    item(
        "4.1.3",
        Medium,
        "mode of kube-proxy's kubeconfig",
        Rule::Mode(Role::ProxyKubeconfig, 0o600),
    ),
    item("4.1.4", Medium, "owner of kube-proxy's kubeconfig", Rule::Owner(Role::ProxyKubeconfig)),
    item("4.1.5", Medium, "mode of the kubelet's kubeconfig", Rule::Mode(Role::Kubeconfig, 0o600)),
    item("4.1.6", Medium, "owner of the kubelet's kubeconfig", Rule::Owner(Role::Kubeconfig)),
    item("4.1.7", Medium, "mode of the client CA", Rule::Mode(Role::ClientCa, 0o644)),
    item("4.1.8", Medium, "owner of the client CA", Rule::Owner(Role::ClientCa)),
    item("4.1.9", Medium, "mode of the kubelet's config", Rule::Mode(Role::Config, 0o600)),
    item("4.1.10", Medium, "owner of the kubelet's config", Rule::Owner(Role::Config)),
    item("4.2.1", High, "anonymous access to the kubelet is off", ANONYMOUS),
    item("4.2.2", High, "the kubelet authorizes requests", AUTHORIZATION),
    item("4.2.3", High, "the kubelet has a client CA", Rule::Kubelet(Ask::ClientCa)),
    item("4.2.4", High, "the read-only port is closed", READ_ONLY_PORT),
    item("4.2.5", Low, "idle streams end", IDLE_TIMEOUT),
    item("4.2.6", Low, "the kubelet manages its iptables chains", UTIL_CHAINS),
    item("4.2.7", Low, "the node's name is not overridden", Rule::Kubelet(Ask::HostnameOverride)),
    item("4.2.8", Low, "the rate of events is chosen", EVENT_RATE),
    item(
        "4.2.9",
        Medium,
        "the kubelet serves with a certificate",
        Rule::Kubelet(Ask::ServingCertificate),
    ),
    item("4.2.10", Medium, "client certificates rotate", CLIENT_ROTATION),
    item("4.2.11", Medium, "the gate for serving certificates is open", SERVER_GATE),
    item("4.2.12", Medium, "strong cipher suites only", Rule::Kubelet(Ask::Ciphers)),
    item(
        "4.2.13",
        Medium,
        "pods have a limit of processes",
        Rule::Kubelet(Ask::Value(
            "podPidsLimit",
            Want::Chosen {
                fix: 4096,
                unset: "the compiled default: how many processes a pod needs is a choice; \
                        `tenon harden --profile k8s-1.11 --fix` makes it 4096",
            },
        )),
    ),
    item(
        "4.2.14",
        Medium,
        "pods get the runtime's seccomp profile",
        Rule::Kubelet(Ask::Value(
            "seccompDefault",
            Want::On {
                unset: "the compiled default: the profile can stop workloads that run today; \
                        `tenon harden --profile k8s-1.11 --fix` switches it on",
            },
        )),
    ),
    item("4.2.15", Low, "the kubelet accepts known addresses only", Rule::AddressFilter),
    item("4.3.1", Low, "kube-proxy's metrics stay on the machine", Rule::ProxyMetrics),
];

/// What every profile has besides the benchmark.
pub static EXTRA: &[Item] = &[
    item(
        "metadata",
        High,
        "metadata by version 2 only, hop limit 1",
        Rule::Elsewhere(
            Seat::Person,
            "aws ec2 modify-instance-metadata-options --instance-id ID --http-tokens required \
             --http-put-response-hop-limit 1",
        ),
    ),
    item(
        "ssh-keys",
        High,
        "no SSH keys in the image",
        Rule::Elsewhere(Seat::Image, "asked of an image, not of a node that has been started"),
    ),
    item("user-data", High, "no secret in the user data", Rule::UserData),
    item(
        "kernel-defaults",
        Medium,
        "the kubelet refuses other kernel settings",
        Rule::Kubelet(Ask::Value("protectKernelDefaults", Want::Is(true))),
    ),
    item("restart", Medium, "the kubelet runs with its files as they are", Rule::Restart),
    item("own-units", Low, "Tenon's own units are sandboxed", Rule::OwnUnits),
    item(
        "parents",
        High,
        "no owned file below a directory that anyone can write to",
        Rule::Parents,
    ),
];
