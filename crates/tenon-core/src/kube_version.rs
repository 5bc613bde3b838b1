//! Every version gate, named, with since and until.
//!
//! A gate is a fact about the kubelet, containerd, the control plane or etcd: from this version on, until that one, a
//! thing is done. No other file compares versions.

use std::fmt;

/// A version as far as gates care: the build suffix is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Version { major, minor, patch }
    }

    /// Finds the first `v?N.N.N` in a stamp or in what `--version` prints, so that
    /// `v1.34.1-eks-113cf36` and `containerd example.org/containerd/v2 v2.1.4 75cb2b7` both work.
    pub fn parse(text: &str) -> Option<Self> {
        Version::find(text).map(|(version, _)| version)
    }

    /// The version, and the word that it stands in with its suffix.
    pub fn find(text: &str) -> Option<(Self, &str)> {
        let words = text.split_whitespace().map(|word| word.trim_end_matches(','));
        words.filter_map(|word| Some((Version::from_word(word)?, word))).next()
    }

    fn from_word(word: &str) -> Option<Self> {
        let word = word.strip_prefix('v').unwrap_or(word);
        let core = word.split(['-', '+', '~']).next()?;
        let mut parts = core.split('.').map(number);
        let version = Version::new(parts.next()??, parts.next()??, parts.next()??);
        parts.next().is_none().then_some(version)
    }
}

/// Digits only: `u32::from_str` would take `+1` too.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Whose version a gate looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    Kubelet,
    Containerd,
    ControlPlane,
    Etcd,
}

/// One boundary.
#[derive(Debug, PartialEq, Eq)]
pub struct Gate {
    pub name: &'static str,
    pub component: Component,
    /// First version that has it; None: every version up to `until`.
    pub since: Option<Version>,
    /// First version that no longer has it.
    pub until: Option<Version>,
    pub effect: &'static str,
}

impl Gate {
    pub fn is_open(&self, version: Version) -> bool {
        self.since.is_none_or(|since| version >= since)
            && self.until.is_none_or(|until| version < until)
    }
}

const fn since(
    name: &'static str,
    component: Component,
    minor: (u32, u32),
    effect: &'static str,
) -> Gate {
    let since = Some(Version::new(minor.0, minor.1, 0));
    Gate { name, component, since, until: None, effect }
}

/// The drop-in directory was alpha and needed an environment variable.
/// <https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/>
pub static DROP_IN_DIR_ALPHA: Gate = Gate {
    name: "drop-in-dir-alpha",
    component: Component::Kubelet,
    since: None,
    until: Some(Version::new(1, 30, 0)),
    effect: "KUBELET_CONFIG_DROPIN_DIR_ALPHA=on with --config-dir",
};
/// Device plugins hand out CDI names. <https://github.com/cncf-tags/container-device-interface>
pub static CDI: Gate = since("cdi", Component::Kubelet, (1, 32), "containerd enable_cdi = true");
pub static ECR_PUBLIC_AWS: Gate = since(
    "ecr-public-aws",
    Component::Kubelet,
    (1, 32),
    "the credential provider also matches ecr-public.aws.com",
);
/// <https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/>
pub static DYNAMIC_RESOURCE_ALLOCATION: Gate = since(
    "dynamic-resource-allocation",
    Component::Kubelet,
    (1, 33),
    "feature gate DynamicResourceAllocation",
);
/// <https://kubernetes.io/docs/concepts/storage/storage-limits/>
pub static MUTABLE_CSI_ALLOCATABLE: Gate = since(
    "mutable-csi-allocatable",
    Component::Kubelet,
    (1, 34),
    "feature gate MutableCSINodeAllocatableCount",
);
/// <https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/>
pub static GRACEFUL_SHUTDOWN: Gate = since(
    "graceful-shutdown",
    Component::Kubelet,
    (1, 34),
    "shutdownGracePeriod and shutdownGracePeriodCriticalPods",
);
pub static NVIDIA_LABEL: Gate = since(
    "nvidia-label",
    Component::Kubelet,
    (1, 35),
    "label nvidia.com/gpu.present=true with an NVIDIA device",
);
/// The kubelet does not start on cgroup v1 unless `failCgroupV1` is false.
/// <https://kubernetes.io/docs/concepts/architecture/cgroups/>
pub static CGROUP_V1_REFUSED: Gate =
    since("cgroup-v1-refused", Component::Kubelet, (1, 35), "cgroup v1 stops the kubelet");
/// <https://github.com/containerd/containerd/blob/main/docs/cri/config.md>
pub static SCHEMA_3: Gate =
    since("containerd-schema-3", Component::Containerd, (2, 0), "config schema 3");
/// What the project is tested with; outside of it the plan carries a warning.
pub static KUBELET_TESTED: Gate = Gate {
    name: "kubelet-tested",
    component: Component::Kubelet,
    since: Some(Version::new(1, 29, 0)),
    until: Some(Version::new(1, 37, 0)),
    effect: "no warning about an untested kubelet",
};
pub static CONTAINERD_TESTED: Gate = Gate {
    name: "containerd-tested",
    component: Component::Containerd,
    since: Some(Version::new(1, 6, 0)),
    until: Some(Version::new(3, 0, 0)),
    effect: "no warning about an untested containerd",
};
/// Probes of static pods name their port.
/// <https://github.com/kubernetes/kubernetes/blob/master/CHANGELOG/CHANGELOG-1.34.md>
pub static NAMED_PROBE_PORT: Gate = since(
    "named-probe-port",
    Component::ControlPlane,
    (1, 34),
    "probes of static pods use the port name probe-port",
);
/// <https://etcd.io/docs/v3.6/feature-gates/>
pub static ETCD_FEATURE_GATES: Gate =
    since("etcd-feature-gates", Component::Etcd, (3, 6), "feature-gates, not experimental-* flags");

/// What is released together with a minor version of Kubernetes.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    pub minor: u32,
    /// Tag of etcd's image.
    pub etcd: &'static str,
    pub coredns: &'static str,
    pub pause: &'static str,
}

const fn released(
    minor: u32,
    etcd: &'static str,
    coredns: &'static str,
    pause: &'static str,
) -> Release {
    Release { minor, etcd, coredns, pause }
}

/// The control planes that Tenon can start.
pub static RELEASES: &[Release] = &[
    released(33, "3.5.24-0", "v1.12.0", "3.10"),
    released(34, "3.6.5-0", "v1.12.1", "3.10.1"),
    released(35, "3.6.6-0", "v1.13.1", "3.10.1"),
    released(36, "3.6.8-0", "v1.14.2", "3.10.2"),
];

/// The row of a version; None for minors that Tenon does not know.
pub fn release(version: Version) -> Option<&'static Release> {
    RELEASES.iter().find(|release| version.major == 1 && release.minor == version.minor)
}

/// Every gate, for the table of behaviour by version.
pub static GATES: &[&Gate] = &[
    &KUBELET_TESTED,
    &DROP_IN_DIR_ALPHA,
    &CDI,
    &ECR_PUBLIC_AWS,
    &DYNAMIC_RESOURCE_ALLOCATION,
    &MUTABLE_CSI_ALLOCATABLE,
    &GRACEFUL_SHUTDOWN,
    &NVIDIA_LABEL,
    &CGROUP_V1_REFUSED,
    &CONTAINERD_TESTED,
    &SCHEMA_3,
    &NAMED_PROBE_PORT,
    &ETCD_FEATURE_GATES,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stamps_and_printed_versions() {
        let cases = [
            ("v1.34.1-eks-113cf36", Some((1, 34, 1))),
            ("Kubernetes v1.29.10-eks-94953ac\n", Some((1, 29, 10))),
            ("1.7.27", Some((1, 7, 27))),
            ("containerd example.org/containerd/containerd/v2 2.1.4 75cb2b7", Some((2, 1, 4))),
            ("containerd 2.0.0-rc.1", Some((2, 0, 0))),
            ("runc version 1.2.5, commit v1.2.5-0-g59923ef1", Some((1, 2, 5))),
            ("go1.22.3 unknown", None),
            ("v1.34", None),
            ("1.2.3.4", None),
            ("1.+2.3", None),
            ("1.99999999999.0", None),
            ("", None),
            ("latest", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|(a, b, c)| Version::new(a, b, c));
            assert_eq!(Version::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn gates_open_and_close_at_their_boundaries() {
        // (gate, minors 1.28 … 1.36 at which it is open)
        let cases: [(&Gate, &[u32]); 8] = [
            (&DROP_IN_DIR_ALPHA, &[28, 29]),
            (&CDI, &[32, 33, 34, 35, 36]),
            (&ECR_PUBLIC_AWS, &[32, 33, 34, 35, 36]),
            (&DYNAMIC_RESOURCE_ALLOCATION, &[33, 34, 35, 36]),
            (&MUTABLE_CSI_ALLOCATABLE, &[34, 35, 36]),
            (&GRACEFUL_SHUTDOWN, &[34, 35, 36]),
            (&NVIDIA_LABEL, &[35, 36]),
            (&CGROUP_V1_REFUSED, &[35, 36]),
        ];
        for (gate, open) in cases {
            let found: Vec<u32> =
                (28..=36).filter(|minor| gate.is_open(Version::new(1, *minor, 0))).collect();
            assert_eq!(found, open, "{}", gate.name);
        }
        assert!(DROP_IN_DIR_ALPHA.is_open(Version::new(1, 29, 99)));
        assert!(!SCHEMA_3.is_open(Version::new(1, 7, 27)));
        assert!(SCHEMA_3.is_open(Version::new(2, 0, 0)));
        assert!(SCHEMA_3.is_open(Version::new(3, 1, 0)));
    }

    #[test]
    fn the_documented_table_is_this_one() {
        let documented = include_str!("../../../docs/behaviour-by-version.md");
        let word = |version: Option<Version>, none: &str| {
            version.map_or(none.to_owned(), |version| version.to_string())
        };
        let rows: Vec<String> = GATES
            .iter()
            .map(|gate| {
                let component = match gate.component {
                    Component::Kubelet => "kubelet",
                    Component::Containerd => "containerd",
                    Component::ControlPlane => "control plane",
                    Component::Etcd => "etcd",
                };
                let (since, until) = (word(gate.since, "any"), word(gate.until, "none"));
                format!("| {} | {component} | {since} | {until} | {} |", gate.name, gate.effect)
            })
            .collect();
        let written: Vec<&str> =
            documented.lines().skip_while(|line| !line.starts_with("|---")).skip(1).collect();
        assert_eq!(written, rows);
    }
}
