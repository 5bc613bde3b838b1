//! The name under which the node registers.
//!
//! `ec2-private-dns` must equal EC2's `PrivateDnsName`, because the cluster's role mapping
//! compares it; it is derived from facts without asking EC2.

use super::step::Reason;
use crate::codes;
use crate::config::NameRule;
use crate::facts::Facts;
use crate::problem::{Finding, Place, Problem};

/// A name with the rule that gave it.
#[derive(Debug, PartialEq)]
pub(crate) struct NodeName {
    pub name: String,
    pub reasons: Vec<Reason>,
    pub findings: Vec<Finding>,
}

/// Names the node.
pub(crate) fn resolve(rule: NameRule, facts: &Facts) -> Result<NodeName, Problem> {
    let named = match rule {
        NameRule::Ec2PrivateDns => private_dns(facts),
        NameRule::InstanceId => from_rule("node.name is instance-id", &facts.instance.id),
        NameRule::Hostname => {
            from_rule("node.name is hostname", &facts.machine.hostname.to_ascii_lowercase())
        }
    };
    if is_dns_subdomain(&named.name) {
        return Ok(named);
    }
    let page = match rule {
        NameRule::Hostname => &codes::plan::BAD_HOST_NAME,
        _ => &codes::plan::BAD_NODE_NAME,
    };
    Err(Problem::new(page, "the node's name would not be a DNS name")
        .at(Place::field("spec.node.name")))
}

fn from_rule(rule: &str, name: &str) -> NodeName {
    let reason = Reason { rank: "config", text: format!("{rule} -> {name}") };
    NodeName { name: name.to_owned(), reasons: vec![reason], findings: Vec::new() }
}

/// EC2's own answer wins over the derived name when it was asked for.
fn private_dns(facts: &Facts) -> NodeName {
    let derived = derive(facts);
    let rule = Reason { rank: "default", text: "ec2-private-dns, as EC2 names it".into() };
    let found = Reason {
        rank: "facts",
        text: format!("region {}, {} -> {derived}", facts.instance.region, host_basis(facts)),
    };
    let mut named = NodeName { name: derived, reasons: vec![rule, found], findings: Vec::new() };
    match &facts.instance.private_dns_name {
        Some(ec2) if *ec2 != named.name => {
            let what = format!("EC2 calls this machine {ec2}, the rule gives {}", named.name);
            named.findings.push(Finding::warning(Problem::new(&codes::plan::NAME_DIFFERS, what)));
            named.reasons.push(Reason { rank: "facts", text: format!("EC2 says {ec2}") });
            named.name = ec2.clone();
        }
        _ => {}
    }
    named
}

fn derive(facts: &Facts) -> String {
    let region = &facts.instance.region;
    let suffix = match region.as_str() {
        "us-east-1" => "ec2.internal".to_owned(),
        _ => format!("{region}.compute.internal"),
    };
    let host = match facts.instance.local_ipv4 {
        Some(address) if !is_resource_named(facts) => {
            format!("ip-{}", address.to_string().replace('.', "-"))
        }
        _ => facts.instance.id.clone(),
    };
    format!("{host}.{suffix}")
}

fn host_basis(facts: &Facts) -> &'static str {
    match facts.instance.local_ipv4 {
        None => "no IPv4 address",
        Some(_) if is_resource_named(facts) => "host name begins with the instance id",
        Some(_) => "IPv4 address",
    }
}

/// Only the first label counts: a DHCP domain name changes the rest of the value, but not EC2's
/// `PrivateDnsName`.
fn is_resource_named(facts: &Facts) -> bool {
    let name = facts.instance.local_hostname.as_deref().unwrap_or_default();
    name.split('.').next().is_some_and(|label| label.starts_with("i-"))
}

/// RFC 1123: labels of lower-case letters, digits and inner hyphens.
pub(crate) fn is_dns_subdomain(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    const ID: &str = "i-0abc12345678def90";

    fn facts(region: &str, hostname: Option<&str>, ipv4: Option<&str>) -> Facts {
        let mut facts = fixture::facts();
        facts.instance.id = ID.into();
        facts.instance.region = region.into();
        facts.instance.local_hostname = hostname.map(str::to_owned);
        facts.instance.local_ipv4 = ipv4.map(|text| text.parse().unwrap());
        facts
    }

    #[test]
    fn derives_the_private_dns_name() {
        let cases = [
            (
                "us-east-1",
                Some("ip-10-0-0-1.ec2.internal"),
                Some("10.0.0.1"),
                "ip-10-0-0-1.ec2.internal",
            ),
            (
                "eu-west-1",
                Some("ip-10-0-0-1.corp.example"),
                Some("10.0.0.1"),
                "ip-10-0-0-1.eu-west-1.compute.internal",
            ),
            (
                "us-west-2",
                Some("i-0abc12345678def90.us-west-2.compute.internal"),
                Some("10.0.0.1"),
                "i-0abc12345678def90.us-west-2.compute.internal",
            ),
            (
                "us-east-1",
                Some("i-0abc12345678def90.corp.example"),
                None,
                "i-0abc12345678def90.ec2.internal",
            ),
            ("cn-north-1", None, Some("10.1.2.3"), "ip-10-1-2-3.cn-north-1.compute.internal"),
        ];
        for (region, hostname, ipv4, expected) in cases {
            let facts = facts(region, hostname, ipv4);
            let named = resolve(NameRule::Ec2PrivateDns, &facts).unwrap();
            assert_eq!(named.name, expected);
        }
    }

    #[test]
    fn ec2_wins_over_the_rule_with_a_warning() {
        let mut facts = facts("eu-west-1", None, Some("10.0.0.1"));
        facts.instance.private_dns_name = Some("ip-10-0-0-1.eu-west-1.compute.internal".into());
        assert!(resolve(NameRule::Ec2PrivateDns, &facts).unwrap().findings.is_empty());
        facts.instance.private_dns_name = Some("ip-10-0-0-2.eu-west-1.compute.internal".into());
        let named = resolve(NameRule::Ec2PrivateDns, &facts).unwrap();
        assert_eq!(named.name, "ip-10-0-0-2.eu-west-1.compute.internal");
        assert_eq!(named.findings.len(), 1);
    }

    #[test]
    fn fault_84_host_names_are_lowered_or_refused() {
        let mut facts = facts("eu-west-1", None, Some("10.0.0.1"));
        let long = "a".repeat(64);
        let cases = [
            ("Web-1.Corp", Some("web-1.corp")),
            ("under_score", None),
            ("", None),
            (long.as_str(), None),
        ];
        for (hostname, expected) in cases {
            facts.machine.hostname = hostname.into();
            let named = resolve(NameRule::Hostname, &facts);
            assert_eq!(named.ok().map(|named| named.name).as_deref(), expected, "{hostname}");
        }
        assert_eq!(resolve(NameRule::InstanceId, &facts).unwrap().name, ID);
    }
}
