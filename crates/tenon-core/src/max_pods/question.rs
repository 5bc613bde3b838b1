//! What is asked: network settings, mode and cap, as the config and the command both mean them.

use crate::config::{self, MaxPodsMode, OnUnknown};

/// Everything besides the instance type that the limit depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub network: Network,
    pub mode: MaxPodsMode,
    pub cap: CapRule,
    pub on_unknown: OnUnknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    pub cni: Cni,
    pub ip_family: IpFamily,
    pub custom_networking: bool,
    pub prefix: Prefix,
    /// The primary interface counts; 0 means no limit.
    pub max_enis: u32,
    pub metal: MetalPrefix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cni {
    /// The VPC CNI; without a version, a current one that can do everything.
    Vpc(Option<CniVersion>),
    /// Addresses are not ours to count.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CniVersion {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl CniVersion {
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        CniVersion { major, minor, patch }
    }

    /// Reads `v1.19.0`, `1.19`, `1.19.0-eksbuild.1`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let core = text.split(['-', '+']).next()?;
        let mut numbers = core.split('.').map(|part| part.parse().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let patch = numbers.next().unwrap_or(Some(0))?;
        numbers.next().is_none().then_some(CniVersion { major, minor, patch })
    }
}

impl std::fmt::Display for CniVersion {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpFamily {
    Ipv4,
    Ipv6,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    Off,
    /// Refused where it is not possible.
    On,
    /// Taken where it is possible.
    Auto,
}

/// Prefix delegation on bare metal: the CNI does it, older calculators deny it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetalPrefix {
    Allow,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapRule {
    /// 110 up to 30 vCPUs, else 250, with prefix delegation only.
    Auto,
    None,
    At(u32),
    /// 110 or 250 in every mode, as the retired calculator had it.
    Always,
}

impl CapRule {
    pub fn name(self) -> &'static str {
        match self {
            CapRule::Auto => "auto",
            CapRule::None => "none",
            CapRule::At(_) => "fixed",
            CapRule::Always => "always",
        }
    }
}

impl From<config::Cap> for CapRule {
    fn from(cap: config::Cap) -> Self {
        match cap {
            config::Cap::Auto => CapRule::Auto,
            config::Cap::None => CapRule::None,
            config::Cap::At(limit) => CapRule::At(limit),
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Network {
            cni: Cni::Vpc(None),
            ip_family: IpFamily::Ipv4,
            custom_networking: false,
            prefix: Prefix::Off,
            max_enis: 0,
            metal: MetalPrefix::Allow,
        }
    }
}

impl From<&config::MaxPods> for Question {
    /// A node does not know the CNI's version and counts IPv4 addresses in every cluster.
    fn from(wish: &config::MaxPods) -> Self {
        let prefix = if wish.prefix_delegation { Prefix::On } else { Prefix::Off };
        Question {
            network: Network {
                custom_networking: wish.custom_networking,
                prefix,
                max_enis: wish.max_enis,
                ..Network::default()
            },
            mode: wish.mode.clone(),
            cap: wish.cap.into(),
            on_unknown: wish.on_unknown_instance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_every_spelling() {
        for (text, expected) in [
            ("v1.19.0", Some((1, 19, 0))),
            ("1.19", Some((1, 19, 0))),
            ("1.19.0-eksbuild.1", Some((1, 19, 0))),
            ("v1.9.3+build", Some((1, 9, 3))),
            ("1", None),
            ("1.x", None),
            ("1.2.3.4", None),
            ("", None),
        ] {
            let expected =
                expected.map(|(major, minor, patch)| CniVersion::new(major, minor, patch));
            assert_eq!(CniVersion::parse(text), expected, "{text}");
        }
    }
}
