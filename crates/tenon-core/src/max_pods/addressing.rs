//! How pods get their addresses: what the network settings ask for, and whether the machine and
//! the CNI can do it.

use super::instances::Virt;
use super::question::{Cni, CniVersion, IpFamily, MetalPrefix, Network, Prefix};
use super::subject::Limits;
use crate::codes;
use crate::problem::{Place, Problem};

/// Where prefix delegation begins in the VPC CNI, on each kind of machine.
const PREFIX_SINCE: CniVersion = CniVersion::new(1, 9, 0);
const METAL_PREFIX_SINCE: CniVersion = CniVersion::new(1, 11, 0);
const IPV6_SINCE: CniVersion = CniVersion::new(1, 10, 0);

/// How pods get their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    Secondary,
    Prefix,
    Ipv6Prefix,
    /// Another CNI hands them out.
    Other,
    /// The type is not known.
    Unknown,
}

impl Addressing {
    pub fn name(self) -> &'static str {
        match self {
            Addressing::Secondary => "secondary addresses",
            Addressing::Prefix => "prefix delegation",
            Addressing::Ipv6Prefix => "ipv6 prefixes",
            Addressing::Other => "other cni",
            Addressing::Unknown => "unknown",
        }
    }
}

/// Chooses how pods get their addresses, or says why that is not possible.
pub(super) fn choose(
    network: &Network,
    limits: &Limits<'_>,
    notes: &mut Vec<String>,
) -> Result<Addressing, Problem> {
    let Cni::Vpc(version) = network.cni else { return Ok(Addressing::Other) };
    if network.ip_family == IpFamily::Ipv6 {
        return match ipv6_obstacle(version, limits) {
            None => Ok(Addressing::Ipv6Prefix),
            Some(why) => Err(refused(&codes::max_pods::NO_IPV6, "IPv6 is", limits, &why)),
        };
    }
    match (network.prefix, prefix_obstacle(version, network.metal, limits)) {
        (Prefix::Off, _) => Ok(Addressing::Secondary),
        (_, None) => {
            if limits.virt() == Some(Virt::Metal) {
                notes.push("older calculators deny prefixes on bare metal".to_owned());
            }
            Ok(Addressing::Prefix)
        }
        (Prefix::Auto, Some(why)) => {
            notes.push(format!("secondary addresses taken: {why}"));
            Ok(Addressing::Secondary)
        }
        (Prefix::On, Some(why)) => {
            let page = &codes::max_pods::NO_PREFIX_DELEGATION;
            Err(refused(page, "prefix delegation is", limits, &why)
                .at(Place::field("spec.kubelet.maxPods.prefixDelegation")))
        }
    }
}

fn refused(page: &'static codes::Page, thing: &str, limits: &Limits<'_>, why: &str) -> Problem {
    Problem::new(page, format!("{thing} not possible on {}", limits.name)).cause(why)
}

/// Why prefix delegation is not possible, if it is not.
pub(super) fn prefix_obstacle(
    version: Option<CniVersion>,
    metal: MetalPrefix,
    limits: &Limits<'_>,
) -> Option<String> {
    let since = match limits.virt() {
        Some(Virt::Xen) => return Some("the type runs on the Xen hypervisor".to_owned()),
        Some(Virt::Metal) if metal == MetalPrefix::Deny => {
            return Some("prefixes on bare metal are switched off".to_owned());
        }
        Some(Virt::Metal) => METAL_PREFIX_SINCE,
        Some(Virt::Nitro) | None => PREFIX_SINCE,
    };
    too_old(version, since)
}

fn ipv6_obstacle(version: Option<CniVersion>, limits: &Limits<'_>) -> Option<String> {
    if limits.virt() == Some(Virt::Xen) {
        return Some("the type runs on the Xen hypervisor".to_owned());
    }
    if limits.row.is_some_and(|row| row.ipv6_per_eni == 0) {
        return Some("the type has no IPv6".to_owned());
    }
    too_old(version, IPV6_SINCE)
}

/// An unnamed version counts as a current one.
fn too_old(version: Option<CniVersion>, since: CniVersion) -> Option<String> {
    let version = version.filter(|version| *version < since)?;
    Some(format!("the VPC CNI does it since {since}, and this is {version}"))
}
