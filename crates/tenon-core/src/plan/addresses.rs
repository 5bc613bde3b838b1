//! Addresses that follow from the cluster's service range: the DNS address and the node's own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::codes;
use crate::facts::Instance;
use crate::problem::{Place, Problem};

/// The cluster's DNS service is the tenth address of the service range, by convention of EKS.
const DNS_OFFSET: u8 = 10;

/// Computes the address of the cluster's DNS service.
pub(crate) fn cluster_dns(cidr: IpNet) -> Result<IpAddr, Problem> {
    let room = cidr.max_prefix_len() - cidr.prefix_len();
    if room < 4 {
        let what = format!("a service range of /{} has no room for DNS", cidr.prefix_len());
        return Err(
            Problem::new(&codes::plan::NO_ROOM_FOR_DNS, what).at(Place::field("spec.cluster.cidr"))
        );
    }
    // The network address is a multiple of 16, so adding ten cannot overflow.
    Ok(match cidr.network() {
        IpAddr::V4(net) => IpAddr::V4(Ipv4Addr::from(u32::from(net) + u32::from(DNS_OFFSET))),
        IpAddr::V6(net) => IpAddr::V6(Ipv6Addr::from(u128::from(net) + u128::from(DNS_OFFSET))),
    })
}

/// Chooses the node's address: the family of the service range decides, and of several IPv6
/// addresses the first counts.
pub(crate) fn node_ip(cidr: IpNet, instance: &Instance) -> Result<IpAddr, Problem> {
    let (found, family, path) = match cidr {
        IpNet::V4(_) => (instance.local_ipv4.map(IpAddr::V4), "IPv4", "local-ipv4".to_owned()),
        IpNet::V6(_) => {
            let path = format!("network/interfaces/macs/{}/ipv6s", instance.mac);
            (instance.ipv6.first().copied().map(IpAddr::V6), "IPv6", path)
        }
    };
    found.ok_or_else(|| {
        let what = format!("the machine has no {family} address on {}", instance.mac);
        Problem::new(&codes::plan::NO_NODE_ADDRESS, what)
            .at(Place::field("spec.cluster.cidr"))
            .cause(format!("nothing at meta-data/{path}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dns_is_the_tenth_address() {
        let cases = [
            ("10.100.0.0/16", "10.100.0.10"),
            ("172.20.128.0/17", "172.20.128.10"),
            ("10.100.5.128/25", "10.100.5.138"),
            ("10.100.7.9/16", "10.100.0.10"),
            ("10.0.0.16/28", "10.0.0.26"),
            ("fd5a:77c0:1b2e::/108", "fd5a:77c0:1b2e::a"),
            ("fd00:1:2:3:4:5:6:0/112", "fd00:1:2:3:4:5:6:a"),
            ("fd00::10/124", "fd00::1a"),
        ];
        for (cidr, dns) in cases {
            let cidr: IpNet = cidr.parse().unwrap();
            let found = cluster_dns(cidr).unwrap();
            assert_eq!(found.to_string(), dns, "{cidr}");
            assert!(cidr.contains(&found), "{cidr}");
        }
        for cidr in ["10.0.0.0/29", "10.0.0.0/32", "fd00::/125"] {
            assert!(cluster_dns(cidr.parse().unwrap()).is_err(), "{cidr}");
        }
    }

    proptest! {
        #[test]
        fn fault_70_dns_lies_in_the_range(v4: u32, v6: u128, len4 in 0u8..=28, len6 in 0u8..=124) {
            for (address, length) in [(IpAddr::from(v4.to_be_bytes()), len4), (v6.to_be_bytes().into(), len6)] {
                let cidr = IpNet::new(address, length).unwrap();
                prop_assert!(cidr.contains(&cluster_dns(cidr).unwrap()), "{}", cidr);
            }
        }
    }

    #[test]
    fn the_family_of_the_range_decides_the_node_address() {
        let mut instance = Instance {
            mac: "0a:00:00:00:00:01".into(),
            local_ipv4: Some("10.0.0.1".parse().unwrap()),
            ipv6: vec!["2600::2".parse().unwrap(), "2600::1".parse().unwrap()],
            ..Instance::default()
        };
        let (v4, v6) = ("10.100.0.0/16".parse().unwrap(), "fd00::/108".parse().unwrap());
        assert_eq!(node_ip(v4, &instance).unwrap().to_string(), "10.0.0.1");
        assert_eq!(node_ip(v6, &instance).unwrap().to_string(), "2600::2");
        instance.ipv6.clear();
        instance.local_ipv4 = None;
        assert!(node_ip(v4, &instance).unwrap_err().causes[0].contains("local-ipv4"));
        assert!(node_ip(v6, &instance).unwrap_err().causes[0].contains("0a:00:00:00:00:01/ipv6s"));
    }
}
