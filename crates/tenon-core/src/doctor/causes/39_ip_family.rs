//! The cluster speaks one family of addresses, the node another.

use std::net::IpAddr;

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 39,
    slug: "ip-family",
    title: "node and cluster use different IP families",
    step: Step::Route,
    alone: true,
    checks: &[Check::proves("node-address", address), Check::proves("ipv6-address", ipv6)],
    why: "an IPv6 cluster needs nodes with IPv6 addresses, and the kubelet's address and its cluster DNS must be of one family",
    fix: "give the subnet an IPv6 range and the interface an address of it, or correct `spec.cluster.cidr` (ipFamily)",
    ..Cause::BLANK
};

/// The family of the cluster's DNS address: true for IPv6.
fn cluster_is_v6(view: &View) -> Option<bool> {
    let address: IpAddr = view.kubelet["clusterDNS"][0].as_str()?.parse().ok()?;
    Some(address.is_ipv6())
}

fn address(view: &View) -> Found {
    let own = view.flags.get("node-ip").and_then(|text| text.split(',').next()?.parse::<IpAddr>().ok());
    let (Some(own), Some(v6)) = (own, cluster_is_v6(view)) else {
        return Found::Unknown("the addresses of node or cluster are not known");
    };
    match own.is_ipv6() == v6 || own.is_unspecified() {
        true => Found::Pass,
        false => Found::fail(Evidence::file(
            "/etc/eks/kubelet/environment",
            format!("--node-ip={own}, and the cluster DNS is of the other family"),
        )),
    }
}

fn ipv6(view: &View) -> Found {
    match (&view.node.probes.metadata, cluster_is_v6(view)) {
        (Some(metadata), Some(true)) if metadata.ipv6_status == 404 => {
            Found::fail(Evidence::metadata("the cluster is IPv6, and this interface has no IPv6 address"))
        }
        (None, Some(true)) => Found::Unknown("the metadata service was not asked"),
        _ => Found::Pass,
    }
}
