//! Whom certificates name, and what that depends on.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::codes::pki::PKI_INPUT;
use crate::problem::Problem;
use crate::stages::Machine;

/// The port of the API server when the endpoint names none.
const PORT: u16 = 6443;

/// One subject alternative name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum San {
    Dns(String),
    Ip(IpAddr),
}

impl San {
    /// Reads an address or a host name, which may begin with `*.`.
    pub fn parse(text: &str) -> Option<San> {
        if let Ok(address) = text.parse() {
            return Some(San::Ip(address));
        }
        is_host(text.strip_prefix("*.").unwrap_or(text)).then(|| San::Dns(text.to_owned()))
    }
}

impl fmt::Display for San {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            San::Dns(name) => out.write_str(name),
            San::Ip(address) => address.fmt(out),
        }
    }
}

/// RFC 1123: labels of letters, digits and inner dashes.
fn is_host(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// What the certificates of one control-plane node depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub node_name: String,
    /// Where this node's API server is reached by others.
    pub advertise: IpAddr,
    /// Where the cluster's API is reached: `HOST` or `HOST:PORT`.
    pub endpoint: String,
    /// One per address family.
    pub service_cidrs: Vec<IpNet>,
    /// `cluster.local`
    pub domain: String,
    /// More names of the API server.
    pub extra_sans: Vec<San>,
    /// More names of this node's etcd member.
    pub etcd_sans: Vec<San>,
    /// True when etcd runs elsewhere and brings its own certificates.
    pub external_etcd: bool,
}

impl Identity {
    /// The identity of a machine. Its own host name and address count where the config is silent.
    pub fn of(
        machine: &Machine,
        host_name: &str,
        address: Option<IpAddr>,
    ) -> Result<Self, Problem> {
        let plane = &machine.control_plane;
        let lacks = |what: &str| Problem::new(&PKI_INPUT, what);
        let names = |list: &[String]| -> Result<Vec<San>, Problem> {
            let name = |text: &String| {
                San::parse(text)
                    .ok_or_else(|| lacks("an extra name is neither an address nor a host name"))
            };
            list.iter().map(name).collect()
        };
        let advertise = plane.advertise_address.or(machine.node.ip).or(address);
        Ok(Identity {
            node_name: machine.node_name(host_name).to_owned(),
            advertise: advertise.ok_or_else(|| lacks("no advertise address is known"))?,
            endpoint: machine.cluster.endpoint.clone(),
            service_cidrs: machine.cluster.service_cidrs.clone(),
            domain: machine.cluster.dns_domain.clone(),
            extra_sans: names(&plane.extra_sans)?,
            etcd_sans: names(&plane.etcd_extra_sans)?,
            external_etcd: plane.external_etcd.is_some(),
        })
    }

    /// Refuses what cannot be a part of a certificate.
    pub fn check(&self) -> Result<(), Problem> {
        let refuse = |what: &str| Err(Problem::new(&PKI_INPUT, what));
        if !is_host(&self.node_name) || self.node_name.bytes().any(|b| b.is_ascii_uppercase()) {
            return refuse("the node name is not a lower-case host name");
        }
        if self.endpoint_parts().is_none() {
            return refuse("the endpoint is not HOST or HOST:PORT");
        }
        if self.service_cidrs.is_empty() {
            return refuse("no service range (--service-cidr) is given");
        }
        if !is_host(&self.domain) {
            return refuse("the cluster domain is not a domain name");
        }
        Ok(())
    }

    /// The server of kubeconfigs that go through the cluster's endpoint.
    pub fn endpoint_url(&self) -> String {
        match self.endpoint_parts() {
            Some((host, port)) => format!("https://{}:{port}", bracketed(&host)),
            None => String::new(),
        }
    }

    /// The server of kubeconfigs that stay on this node.
    pub fn local_url(&self) -> String {
        format!("https://{}:{PORT}", bracketed(&San::Ip(self.advertise)))
    }

    fn endpoint_parts(&self) -> Option<(San, u16)> {
        let text = self.endpoint.strip_prefix("https://").unwrap_or(&self.endpoint);
        let text = text.trim_end_matches('/');
        if let Some(inner) = text.strip_prefix('[') {
            let (address, rest) = inner.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            let port = rest.strip_prefix(':').map_or(Some(PORT), |port| port.parse().ok())?;
            return Some((San::Ip(address.into()), port));
        }
        match text.rsplit_once(':') {
            // A bare IPv6 address has colons of its own.
            Some((host, _)) if host.contains(':') => Some((San::Ip(text.parse().ok()?), PORT)),
            Some((host, port)) => Some((San::parse(host)?, port.parse().ok()?)),
            None => Some((San::parse(text)?, PORT)),
        }
    }

    /// The names of the API server.
    pub(super) fn api_server_names(&self) -> Vec<San> {
        let mut names = vec![San::Dns(self.node_name.clone())];
        let service = ["", ".default", ".default.svc"].map(|end| format!("kubernetes{end}"));
        names.extend(service.map(San::Dns));
        names.push(San::Dns(format!("kubernetes.default.svc.{}", self.domain)));
        names.extend(self.service_cidrs.iter().map(|cidr| San::Ip(first_address(cidr))));
        names.push(San::Ip(self.advertise));
        names.extend(self.endpoint_parts().map(|(host, _)| host));
        names.extend(self.extra_sans.iter().cloned());
        once(names)
    }

    /// The names of this node's etcd member.
    pub(super) fn etcd_names(&self) -> Vec<San> {
        let mut names = vec![
            San::Dns(self.node_name.clone()),
            San::Dns("localhost".into()),
            San::Ip(self.advertise),
            San::Ip(Ipv4Addr::LOCALHOST.into()),
            San::Ip(Ipv6Addr::LOCALHOST.into()),
        ];
        names.extend(self.etcd_sans.iter().cloned());
        once(names)
    }
}

fn bracketed(host: &San) -> String {
    match host {
        San::Ip(IpAddr::V6(address)) => format!("[{address}]"),
        other => other.to_string(),
    }
}

/// The address of the `kubernetes` Service: the first after the network's own.
fn first_address(cidr: &IpNet) -> IpAddr {
    match cidr.network() {
        IpAddr::V4(network) => Ipv4Addr::from(u32::from(network).saturating_add(1)).into(),
        IpAddr::V6(network) => Ipv6Addr::from(u128::from(network).saturating_add(1)).into(),
    }
}

/// Each name once, in the order of its first mention.
pub fn once(names: Vec<San>) -> Vec<San> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn identity() -> Identity {
        Identity {
            node_name: "cp-1".into(),
            advertise: "10.0.0.4".parse().unwrap(),
            endpoint: "api.example.com".into(),
            service_cidrs: vec!["10.96.0.0/12".parse().unwrap(), "fd00:1::/108".parse().unwrap()],
            domain: "cluster.local".into(),
            extra_sans: vec![San::parse("lb.example.com").unwrap()],
            etcd_sans: vec![San::parse("192.0.2.7").unwrap()],
            external_etcd: false,
        }
    }

    fn shown(names: &[San]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_api_server_has_every_name_once() {
        let mut identity = identity();
        let expected = [
            "cp-1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "10.96.0.1",
            "fd00:1::1",
            "10.0.0.4",
            "api.example.com",
            "lb.example.com",
        ];
        assert_eq!(shown(&identity.api_server_names()), expected);
        identity.endpoint = "10.0.0.4:6443".into();
        assert_eq!(shown(&identity.api_server_names()).len(), expected.len() - 1);
        let etcd = ["cp-1", "localhost", "10.0.0.4", "127.0.0.1", "::1", "192.0.2.7"];
        assert_eq!(shown(&identity.etcd_names()), etcd);
    }

    #[test]
    fn endpoints_in_every_spelling() {
        for (endpoint, url) in [
            ("api.example.com", "https://api.example.com:6443"),
            ("api.example.com:443", "https://api.example.com:443"),
            ("https://api.example.com/", "https://api.example.com:6443"),
            ("10.0.0.9:6443", "https://10.0.0.9:6443"),
            ("fd00::1", "https://[fd00::1]:6443"),
            ("[fd00::1]:8443", "https://[fd00::1]:8443"),
        ] {
            let identity = Identity { endpoint: endpoint.into(), ..identity() };
            assert_eq!(identity.endpoint_url(), url);
            identity.check().unwrap();
        }
        assert_eq!(identity().local_url(), "https://10.0.0.4:6443");
    }

    #[test]
    fn what_cannot_be_named_is_refused_without_its_value() {
        let wrong: [fn(&mut Identity); 6] = [
            |it| it.node_name = "canary host".into(),
            |it| it.node_name = "Canary".into(),
            |it| it.endpoint = "canary/path".into(),
            |it| it.endpoint = "host:canary".into(),
            |it| it.service_cidrs.clear(),
            |it| it.domain = "canary..local".into(),
        ];
        for change in wrong {
            let mut identity = identity();
            change(&mut identity);
            let problem = identity.check().unwrap_err();
            assert_eq!(problem.exit(), 3);
            assert!(!problem.render("error").contains("anary"));
        }
    }

    #[test]
    fn sans_are_addresses_or_host_names() {
        assert_eq!(San::parse("::1"), Some(San::Ip("::1".parse().unwrap())));
        assert_eq!(San::parse("*.example.com"), Some(San::Dns("*.example.com".into())));
        for wrong in ["", "a b", "-a", "a_b", "http://x", "*", "a..b"] {
            assert_eq!(San::parse(wrong), None, "{wrong}");
        }
    }
}
