//! The arithmetic of pod limits: interfaces, addresses, caps. Saturating, so that no table can
//! make it overflow.

use super::question::Network;

/// Pods that use the host's network: the CNI itself and kube-proxy. They need no address.
const HOST_PODS: u64 = 2;

/// Addresses of a /28 prefix.
const PREFIX_SIZE: u64 = 16;

/// Where the default cap steps up, and its two values.
const LARGE_VCPU: u32 = 30;
const SMALL_CAP: u32 = 110;
const LARGE_CAP: u32 = 250;

/// The limit where nothing is known: what Kubernetes itself recommends.
pub const DEFAULT_PODS: u32 = 110;

/// The kubelet's `maxPods` is a signed 32-bit number.
const MOST: u64 = 2_147_483_647;

/// Interfaces that serve pods.
pub(super) fn used_enis(enis: u32, network: &Network) -> u32 {
    let limited = if network.max_enis > 0 { enis.min(network.max_enis) } else { enis };
    limited.saturating_sub(u32::from(network.custom_networking))
}

/// One address for each pod.
pub(super) fn secondary(used_enis: u32, ipv4_per_eni: u32) -> u32 {
    pods(used_enis, ipv4_per_eni, 1)
}

/// A /28 prefix in the place of each address.
pub(super) fn prefix(used_enis: u32, ipv4_per_eni: u32) -> u32 {
    pods(used_enis, ipv4_per_eni, PREFIX_SIZE)
}

fn pods(used_enis: u32, ipv4_per_eni: u32, addresses: u64) -> u32 {
    // The first address of an interface is its own.
    let usable = u64::from(ipv4_per_eni.saturating_sub(1));
    let pods = u64::from(used_enis).saturating_mul(usable).saturating_mul(addresses);
    u32::try_from(pods.saturating_add(HOST_PODS).min(MOST)).unwrap_or(u32::MAX)
}

/// The plain limit of a type: every interface of the default card, one address for each pod.
pub fn plain(enis: u32, ipv4_per_eni: u32) -> u32 {
    secondary(enis, ipv4_per_eni)
}

/// 110 up to 30 vCPUs, else 250.
pub(super) fn cap_by_vcpu(vcpu: u32) -> u32 {
    if vcpu > LARGE_VCPU { LARGE_CAP } else { SMALL_CAP }
}
