//! `eks:DescribeCluster`: endpoint, CA and service range of a cluster.

use std::time::Duration;

use ipnet::IpNet;
use serde_json::Value;
use tenon_core::codes::facts::CLOUD_ANSWER;
use tenon_core::facts::DescribedCluster;
use tenon_core::problem::Problem;

use super::Cloud;
use super::endpoint::Service;
use super::transport::Call;

const BOUND: Duration = Duration::from_secs(60);

/// Asks EKS for a cluster.
pub fn describe_cluster(cloud: &mut Cloud<'_>, name: &str) -> Result<DescribedCluster, Problem> {
    parse(&answer(cloud, name)?)
}

/// The whole answer as JSON text, for the desk.
pub fn answer(cloud: &mut Cloud<'_>, name: &str) -> Result<String, Problem> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !plain || name.is_empty() {
        return Err(Problem::new(&CLOUD_ANSWER, "the cluster's name cannot be part of an address"));
    }
    cloud.call(&Call {
        service: Service::Eks,
        action: "eks:DescribeCluster",
        method: "GET",
        path: format!("/clusters/{name}"),
        body: String::new(),
        bound: BOUND,
    })
}

fn parse(body: &str) -> Result<DescribedCluster, Problem> {
    let lacks = |what: &str| {
        Problem::new(&CLOUD_ANSWER, format!("eks:DescribeCluster answered without {what}"))
            .why("the cluster may still be in creation; its values exist once it is active")
    };
    let answer: Value = serde_json::from_str(body).map_err(|_| lacks("JSON"))?;
    let cluster = &answer["cluster"];
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let network = &cluster["kubernetesNetworkConfig"];
    let cidr = text(&network["serviceIpv6Cidr"]).or_else(|| text(&network["serviceIpv4Cidr"]));
    let cidr: IpNet =
        cidr.and_then(|text| text.parse().ok()).ok_or_else(|| lacks("a service range"))?;
    let on_outpost = !cluster["outpostConfig"].is_null();
    Ok(DescribedCluster {
        endpoint: text(&cluster["endpoint"]).ok_or_else(|| lacks("an endpoint"))?,
        certificate_authority: text(&cluster["certificateAuthority"]["data"])
            .ok_or_else(|| lacks("a certificate authority"))?,
        cidr: cidr.trunc(),
        outpost_id: if on_outpost { text(&cluster["id"]) } else { None },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_families_and_outposts_are_read() {
        let answer = |network: Value, outpost: Value| {
            json!({"cluster": {
                "name": "demo", "id": "1234", "endpoint": "https://x.eks.amazonaws.com",
                "certificateAuthority": {"data": "LS0t"},
                "kubernetesNetworkConfig": network, "outpostConfig": outpost,
            }})
            .to_string()
        };
        let v4 = parse(&answer(json!({"serviceIpv4Cidr": "10.100.0.0/16"}), Value::Null)).unwrap();
        assert_eq!((v4.cidr.to_string().as_str(), v4.outpost_id), ("10.100.0.0/16", None));
        let v6 = json!({"serviceIpv4Cidr": null, "serviceIpv6Cidr": "fd5a:77c0:1b2e::/108"});
        let v6 = parse(&answer(v6, json!({"outpostArns": []}))).unwrap();
        assert_eq!(v6.cidr.to_string(), "fd5a:77c0:1b2e::/108");
        assert_eq!(v6.outpost_id.as_deref(), Some("1234"));
    }

    #[test]
    fn a_cluster_in_creation_is_named_as_incomplete() {
        let body = r#"{"cluster": {"status": "CREATING", "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16"}}}"#;
        let problem = parse(body).unwrap_err();
        assert_eq!(problem.exit(), 10);
        assert!(problem.what.contains("an endpoint"), "{}", problem.what);
    }
}
