//! What the cluster is, as far as its nodes must know, and what follows from it.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;

use crate::codes::userdata as pages;
use crate::config::Kind;
use crate::config::grammar::Grammar;
use crate::problem::{Finding, Place, Problem};

/// The position of the cluster's DNS service in the service range.
const DNS_POSITION: u128 = 10;

/// Cluster facts; None where the source does not say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cluster {
    pub name: Option<String>,
    pub endpoint: Option<String>,
    /// Base64 of PEM, as the API gives it.
    pub certificate_authority: Option<String>,
    pub service_cidr: Option<IpNet>,
    pub version: Option<(u32, u32)>,
    pub id: Option<String>,
    /// A local cluster on Outposts.
    pub outpost: bool,
    pub ip_family: Option<IpFamily>,
    pub region: Option<String>,
    pub auth_mode: Option<String>,
    pub security_group: Option<String>,
    pub vpc: Option<String>,
    pub status: Option<String>,
    /// The values are parameters of a stack, known only when it is created. The grammar checks
    /// are then the parameters' own patterns.
    pub placeholders: bool,
    /// Tags of the cluster's metadata, copied to the resources of a stack.
    pub tags: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpFamily {
    V4,
    V6,
}

/// Stand-ins for stack parameters: each passes every grammar and every quoting unchanged, so
/// that it can be found in the finished text and replaced by the parameter.
pub const STAND_IN: &str = "TenonSub0";

/// The stand-in of one parameter.
pub fn stand_in(parameter: &str) -> String {
    format!("{STAND_IN}{parameter}0")
}

impl Cluster {
    /// A cluster whose values are stack parameters.
    pub fn parameters(known: &Cluster) -> Cluster {
        Cluster {
            name: Some(stand_in("ClusterName")),
            endpoint: Some(stand_in("ClusterEndpoint")),
            certificate_authority: Some(stand_in("ClusterCertificateAuthority")),
            placeholders: true,
            ..known.clone()
        }
    }

    pub fn is_ipv6(&self) -> bool {
        match self.ip_family {
            Some(family) => family == IpFamily::V6,
            None => matches!(self.service_cidr, Some(IpNet::V6(_))),
        }
    }

    /// The service range as text, or the stand-in for it.
    pub fn cidr_text(&self) -> Option<String> {
        match self.placeholders {
            true => Some(stand_in("ServiceCidr")),
            false => self.service_cidr.map(|cidr| cidr.to_string()),
        }
    }

    /// The address of the cluster's DNS service: the tenth of the service range.
    pub fn dns(&self) -> Result<Option<IpAddr>, Problem> {
        let (Some(cidr), false) = (self.service_cidr, self.placeholders) else { return Ok(None) };
        dns_address(cidr).map(Some)
    }

    /// Requires the values that make a node find its cluster.
    pub fn require(&self, names: &[&str], findings: &mut Vec<Finding>) {
        for name in names {
            let (value, flag) = match *name {
                "name" => (self.name.is_some(), "--cluster"),
                "endpoint" => (self.endpoint.is_some(), "--endpoint"),
                "certificateAuthority" => (self.certificate_authority.is_some(), "--ca-data"),
                "id" => (self.id.is_some(), "--cluster-id"),
                "region" => (self.region.is_some(), "--region"),
                "version" => (self.version.is_some(), "--kubernetes-version"),
                _ => (self.cidr_text().is_some(), "--service-cidr"),
            };
            if !value {
                let what = format!("the cluster's {name} is not known");
                let fix = format!(
                    "give it with {flag}, or with --cluster-json (the answer of DescribeCluster)"
                );
                let problem = Problem::new(&pages::CLUSTER_FACT_MISSING, what)
                    .at(Place::field(format!("cluster.{name}")))
                    .fix(fix);
                findings.push(Finding::error(problem));
            }
        }
    }

    /// Checks every value that is there.
    pub fn check(&self, findings: &mut Vec<Finding>) {
        if !self.placeholders {
            self.check_values(findings);
        }
        if self.outpost && self.id.is_none() {
            self.require(&["id"], findings);
        }
        if let Err(problem) = self.dns() {
            findings.push(Finding::error(problem));
        }
        if let Some(status) = &self.status
            && !["ACTIVE", "UPDATING"].contains(&status.as_str())
        {
            let what = "the cluster is neither ACTIVE nor UPDATING";
            let problem =
                Problem::new(&pages::CLUSTER_STATUS, what).at(Place::field("cluster.status"));
            findings.push(Finding::warning(problem));
        }
    }

    fn check_values(&self, findings: &mut Vec<Finding>) {
        let mut bad = |field: &str, what: &str| {
            let problem = Problem::new(&pages::CLUSTER_FACT_BAD, what.to_owned())
                .at(Place::field(format!("cluster.{field}")));
            findings.push(Finding::error(problem));
        };
        if self.name.as_deref().is_some_and(|name| !is_cluster_name(name)) {
            bad("name", "the cluster's name is not 1 to 100 letters, digits, `-` and `_`");
        }
        if self.endpoint.as_deref().is_some_and(|endpoint| !is_endpoint(endpoint)) {
            bad("endpoint", "the endpoint is not an https URL of a host alone");
        }
        if let Some(what) = self.certificate_authority.as_deref().and_then(authority_fault) {
            bad("certificateAuthority", &what);
        }
        let plain = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        for (field, value) in [("id", &self.id), ("region", &self.region)] {
            if value.as_deref().is_some_and(|text| !plain(text)) {
                bad(
                    field,
                    "the value holds other characters than letters, digits, `-`, `_` and `.`",
                );
            }
        }
    }

    /// The CA as PEM; None when it is absent or does not decode.
    pub fn authority_pem(&self) -> Option<String> {
        let bytes = STANDARD.decode(self.certificate_authority.as_deref()?).ok()?;
        String::from_utf8(bytes).ok()
    }
}

/// Network address plus ten; an error when the range has no eleventh address.
fn dns_address(cidr: IpNet) -> Result<IpAddr, Problem> {
    let small = || {
        Problem::new(&pages::CLUSTER_FACT_BAD, "the service range has fewer than eleven addresses")
            .at(Place::field("cluster.serviceCidr"))
            .fix("check the range: /28 (IPv4) or /124 (IPv6) is the smallest with a DNS address")
    };
    let host_bits = cidr.max_prefix_len() - cidr.prefix_len();
    if host_bits < 4 {
        return Err(small());
    }
    Ok(match cidr.network() {
        IpAddr::V4(network) => IpAddr::V4((u32::from(network) + DNS_POSITION as u32).into()),
        IpAddr::V6(network) => IpAddr::V6((u128::from(network) + DNS_POSITION).into()),
    })
}

fn is_cluster_name(text: &str) -> bool {
    !text.is_empty() && Grammar::ClusterName.check(text, Kind::Tenon).is_empty()
}

/// `https://host[:port]` and nothing more.
fn is_endpoint(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://") else { return false };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let host_fine = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b))
        }
    };
    host_fine && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// What is wrong with the CA by the config's own grammar.
fn authority_fault(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("the certificate authority is empty".to_owned());
    }
    let faults = Grammar::CaBundle.check(text, Kind::Tenon);
    faults.first().map(|fault| format!("the certificate authority {}", fault.what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_is_the_tenth_address() {
        for (cidr, dns) in [
            ("10.100.0.0/16", "10.100.0.10"),
            ("172.20.0.128/25", "172.20.0.138"),
            ("192.168.5.0/28", "192.168.5.10"),
            ("fd12:3456:789a::/108", "fd12:3456:789a::a"),
        ] {
            let found = dns_address(cidr.parse().unwrap()).unwrap();
            assert_eq!(found.to_string(), dns, "{cidr}");
        }
        assert!(dns_address("10.0.0.0/29".parse().unwrap()).is_err());
        assert!(dns_address("fd00::/125".parse().unwrap()).is_err());
    }

    #[test]
    fn endpoints_are_hosts_alone() {
        for good in [
            "https://A.gr7.eu-west-1.eks.amazonaws.com",
            "https://10.0.0.1:6443",
            "https://[fd00::1]:443",
        ] {
            assert!(is_endpoint(good), "{good}");
        }
        for bad in [
            "http://a",
            "https://",
            "https://a/b",
            "https://u@a",
            "https://a?x",
            "https://a:0",
            "https://a'b",
            "https://$(id)",
        ] {
            assert!(!is_endpoint(bad), "{bad}");
        }
    }

    #[test]
    fn names_follow_the_service() {
        assert!(is_cluster_name("ironman-2022"));
        for bad in ["", "-a", "a b", "a'b", "$(x)", &"a".repeat(101)] {
            assert!(!is_cluster_name(bad), "{bad}");
        }
    }

    #[test]
    fn an_authority_is_certificates_only() {
        let encode = |text: &str| STANDARD.encode(text);
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for text in ["%%%".to_owned(), encode("hello"), encode(key), encode(junk), String::new()] {
            assert!(authority_fault(&text).is_some(), "{text}");
        }
        assert_eq!(authority_fault(&encode(crate::userdata::samples::CA)), None);
    }
}
