//! The pretended instance. Everything but its type has a default derived from the type, so that
//! the same command shows the same instance on every desk.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use sha2::{Digest, Sha256};
use tenon_core::hex::hex;

/// What the service pretends.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub instance_type: String,
    pub region: String,
    pub zone: String,
    pub account: String,
    pub id: String,
    pub image_id: String,
    /// As EC2 spells it: `x86_64`, `arm64`.
    pub architecture: String,
    pub mac: String,
    /// None pretends a subnet without IPv4.
    pub ipv4: Option<Ipv4Addr>,
    pub ipv6: Vec<Ipv6Addr>,
    pub vpc_cidrs: Vec<IpNet>,
    pub hostname: String,
    /// Name of the instance role; None pretends an instance without a profile.
    pub role: Option<String>,
    pub tags: BTreeMap<String, String>,
    pub user_data: Option<Vec<u8>>,
    /// Answer requests that carry no token.
    pub allow_version_1: bool,
}

impl Profile {
    /// An instance of this type with everything else at its default.
    pub fn new(instance_type: &str) -> Self {
        let seed = Sha256::digest(instance_type.as_bytes());
        let hex = hex(&seed);
        let ipv4 = Ipv4Addr::new(10, 0, seed[0], seed[1].clamp(4, 254));
        Profile {
            instance_type: instance_type.to_owned(),
            region: "eu-west-1".into(),
            zone: "eu-west-1a".into(),
            account: "111122223333".into(),
            id: format!("i-0{}", &hex[..16]),
            image_id: format!("ami-0{}", &hex[16..32]),
            architecture: architecture(instance_type).into(),
            mac: format!(
                "0a:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}",
                seed[2], seed[3], seed[4], seed[5], seed[6]
            ),
            ipv4: Some(ipv4),
            ipv6: Vec::new(),
            vpc_cidrs: vec![IpNet::new_assert(Ipv4Addr::new(10, 0, 0, 0).into(), 16)],
            hostname: host_name(ipv4, "eu-west-1"),
            role: Some("node-role".into()),
            tags: BTreeMap::new(),
            user_data: None,
            allow_version_1: false,
        }
    }

    /// Moves the instance to the first zone of another region.
    pub fn in_region(mut self, region: &str) -> Self {
        self.zone = format!("{region}a");
        self.hostname = match self.ipv4 {
            Some(ipv4) => host_name(ipv4, region),
            None => format!("{}.{}", self.id, suffix(region)),
        };
        self.region = region.to_owned();
        self
    }

    /// Adds IPv6 addresses to the primary interface.
    pub fn with_ipv6(mut self) -> Self {
        let last = self.ipv4.map_or(1, |ip| u16::from(ip.octets()[3]));
        self.ipv6 = vec![
            Ipv6Addr::new(0x2a05, 0xd018, 0, 1, 0, 0, 0, last),
            Ipv6Addr::new(0x2a05, 0xd018, 0, 1, 0, 0, 1, last),
        ];
        self
    }

    pub fn with_user_data(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.user_data = Some(bytes.into());
        self
    }
}

fn host_name(ipv4: Ipv4Addr, region: &str) -> String {
    format!("ip-{}.{}", ipv4.to_string().replace('.', "-"), suffix(region))
}

fn suffix(region: &str) -> String {
    if region == "us-east-1" { "ec2.internal".into() } else { format!("{region}.compute.internal") }
}

/// Graviton families carry a `g` behind their generation: `m6g`, `c7gd`, `im4gn`.
fn architecture(instance_type: &str) -> &'static str {
    let family = instance_type.split('.').next().unwrap_or_default();
    let behind = family.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let options = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    if options.contains('g') || family == "a1" { "arm64" } else { "x86_64" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_type_is_the_same_instance() {
        assert_eq!(Profile::new("m5.large"), Profile::new("m5.large"));
        assert_ne!(Profile::new("m5.large").id, Profile::new("m5.xlarge").id);
    }

    #[test]
    fn the_architecture_follows_from_the_family() {
        let arm =
            ["m6g.large", "c7gd.2xlarge", "im4gn.large", "t4g.nano", "g5g.xlarge", "a1.large"];
        let intel = ["m5.large", "g5.xlarge", "p5.48xlarge", "c6i.metal", "u-6tb1.112xlarge"];
        arm.iter().for_each(|name| assert_eq!(architecture(name), "arm64", "{name}"));
        intel.iter().for_each(|name| assert_eq!(architecture(name), "x86_64", "{name}"));
    }

    #[test]
    fn a_region_moves_zone_and_host_name() {
        let moved = Profile::new("m5.large").in_region("us-east-1");
        assert_eq!(moved.zone, "us-east-1a");
        assert!(moved.hostname.ends_with(".ec2.internal"), "{}", moved.hostname);
    }
}
