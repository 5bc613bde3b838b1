//! The answer of `eks:DescribeCluster`, with or without the outer `cluster`.

use serde_json::Value;

use super::version;
use crate::codes::userdata as pages;
use crate::problem::{Finding, Place, Problem};
use crate::userdata::{Cluster, IpFamily};

/// Reads the answer. Fields that nodes do not need are left alone.
pub fn read(text: &str, source: &str) -> Result<Cluster, Vec<Finding>> {
    let bad = |what: String, path: &str| {
        let place = Place { source: source.to_owned(), path: path.to_owned(), ..Place::default() };
        vec![Finding::error(Problem::new(&pages::BAD_INPUT, what).at(place))]
    };
    let json: Value = serde_json::from_str(text).map_err(|error| {
        bad(format!("not JSON at line {}, column {}", error.line(), error.column()), "")
    })?;
    let cluster = json.get("cluster").unwrap_or(&json);
    if !cluster["name"].is_string() {
        return Err(bad("no cluster with a name in this JSON".into(), "name"));
    }
    let text = |pointer: &str| cluster.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let ip_family = match text("/kubernetesNetworkConfig/ipFamily").as_deref() {
        Some("ipv6") => Some(IpFamily::V6),
        Some("ipv4") => Some(IpFamily::V4),
        _ => None,
    };
    let pointer = match ip_family {
        Some(IpFamily::V6) => "/kubernetesNetworkConfig/serviceIpv6Cidr",
        _ => "/kubernetesNetworkConfig/serviceIpv4Cidr",
    };
    let service_cidr = match text(pointer) {
        None => None,
        Some(cidr) => Some(cidr.parse().map_err(|_| {
            bad("the service range is not a network".into(), &pointer[1..].replace('/', "."))
        })?),
    };
    Ok(Cluster {
        name: text("/name"),
        endpoint: text("/endpoint"),
        certificate_authority: text("/certificateAuthority/data"),
        service_cidr,
        version: text("/version").as_deref().and_then(version),
        id: text("/id"),
        outpost: cluster["outpostConfig"].is_object(),
        ip_family,
        region: text("/arn")
            .and_then(|arn| arn.split(':').nth(3).map(str::to_owned))
            .filter(|region| !region.is_empty()),
        auth_mode: text("/accessConfig/authenticationMode"),
        security_group: text("/resourcesVpcConfig/clusterSecurityGroupId"),
        vpc: text("/resourcesVpcConfig/vpcId"),
        status: text("/status"),
        ..Cluster::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"cluster": {"name": "c", "arn": "arn:aws:eks:eu-west-1:111122223333:cluster/c",
        "version": "1.33", "endpoint": "https://x", "status": "ACTIVE",
        "certificateAuthority": {"data": "QQ=="},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16", "ipFamily": "ipv4"},
        "accessConfig": {"authenticationMode": "API"},
        "resourcesVpcConfig": {"clusterSecurityGroupId": "sg-1", "vpcId": "vpc-1"}}}"#;

    #[test]
    fn reads_both_forms() {
        let outer = read(ANSWER, "x").unwrap();
        let inner: Value = serde_json::from_str(ANSWER).unwrap();
        assert_eq!(read(&inner["cluster"].to_string(), "x").unwrap(), outer);
        assert_eq!(outer.region.as_deref(), Some("eu-west-1"));
        assert_eq!(outer.version, Some((1, 33)));
        assert_eq!(outer.service_cidr.unwrap().to_string(), "10.100.0.0/16");
        assert!(!outer.outpost);
    }

    #[test]
    fn ipv6_takes_the_other_range() {
        let text = r#"{"name": "c", "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.0.0.0/16",
            "serviceIpv6Cidr": "fd00:1::/108", "ipFamily": "ipv6"}}"#;
        assert!(read(text, "x").unwrap().is_ipv6());
    }

    #[test]
    fn other_json_is_refused() {
        for text in ["", "[]", "{}", "{\"cluster\": 1}"] {
            assert!(read(text, "x").is_err(), "{text}");
        }
    }
}
