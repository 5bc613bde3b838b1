//! `ec2:DescribeInstances` and `ec2:DescribeInstanceTypes`.

use std::time::Duration;

use serde_json::Value;
use tenon_core::codes::facts::CLOUD_ANSWER;
use tenon_core::facts::InstanceLimits;
use tenon_core::problem::Problem;

use super::endpoint::Service;
use super::transport::Call;
use super::{Cloud, xml};

const VERSION: &str = "2016-11-15";
/// Bounds of the calls that a node makes while it joins.
const NAME_BOUND: Duration = Duration::from_secs(10);
const LIMITS_BOUND: Duration = Duration::from_secs(5);
/// Bound of one page of the whole list, for the generator of the instance table.
const PAGE_BOUND: Duration = Duration::from_secs(60);

/// EC2's own name of an instance; None while EC2 has none, as right after the launch.
pub fn private_dns_name(cloud: &mut Cloud<'_>, id: &str) -> Result<Option<String>, Problem> {
    let parameters = [("InstanceId.1", id)];
    let answer = query(cloud, "ec2:DescribeInstances", &parameters, NAME_BOUND)?;
    let instance = &answer["ReservationSet"][0]["InstancesSet"][0];
    Ok(instance["PrivateDnsName"].as_str().map(str::to_owned))
}

/// What the pod formula needs of an instance type; None if EC2 does not know it.
pub fn instance_limits(
    cloud: &mut Cloud<'_>,
    instance_type: &str,
) -> Result<Option<InstanceLimits>, Problem> {
    let parameters = [("InstanceType.1", instance_type)];
    let answer = query(cloud, "ec2:DescribeInstanceTypes", &parameters, LIMITS_BOUND)?;
    Ok(limits(&answer["InstanceTypeSet"][0]))
}

/// Every instance type of the region, page by page, with the member names of the API's JSON
/// form (`InstanceType`, `VCpuInfo`, `NetworkInfo`, …), sorted by type.
pub fn describe_instance_types(cloud: &mut Cloud<'_>) -> Result<Vec<Value>, Problem> {
    let mut types: Vec<Value> = Vec::new();
    let mut token = String::new();
    loop {
        let mut parameters = vec![("MaxResults", "100")];
        if !token.is_empty() {
            parameters.push(("NextToken", token.as_str()));
        }
        let answer = query(cloud, "ec2:DescribeInstanceTypes", &parameters, PAGE_BOUND)?;
        types.extend(answer["InstanceTypeSet"].as_array().into_iter().flatten().cloned());
        match answer["NextToken"].as_str() {
            // A token that repeats would page for ever.
            Some(next) if next != token => token = next.to_owned(),
            _ => break,
        }
    }
    types.sort_by(|a, b| a["InstanceType"].as_str().cmp(&b["InstanceType"].as_str()));
    Ok(types)
}

/// The regions that the account can use, sorted; for the generator of the instance table.
pub fn regions(cloud: &mut Cloud<'_>) -> Result<Vec<String>, Problem> {
    let answer = query(cloud, "ec2:DescribeRegions", &[], PAGE_BOUND)?;
    let list = answer["RegionInfo"].as_array().into_iter().flatten();
    let mut names: Vec<String> =
        list.filter_map(|region| region["RegionName"].as_str().map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

fn limits(described: &Value) -> Option<InstanceLimits> {
    let network = &described["NetworkInfo"];
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let default_card = network["DefaultNetworkCardIndex"].as_u64().unwrap_or(0);
    let cards = network["NetworkCards"].as_array();
    let card = cards.and_then(|cards| {
        cards.iter().find(|card| card["NetworkCardIndex"].as_u64() == Some(default_card))
    });
    Some(InstanceLimits {
        default_enis: number(&card.unwrap_or(network)["MaximumNetworkInterfaces"])?,
        ipv4_per_eni: number(&network["Ipv4AddressesPerInterface"])?,
        vcpu: number(&described["VCpuInfo"]["DefaultVCpus"])?,
    })
}

/// Makes a call of the query protocol and gives the content of its answer.
fn query(
    cloud: &mut Cloud<'_>,
    action: &'static str,
    parameters: &[(&str, &str)],
    bound: Duration,
) -> Result<Value, Problem> {
    let name = action.trim_start_matches("ec2:");
    let mut body = format!("Action={name}&Version={VERSION}");
    for (key, value) in parameters {
        body.push_str(&format!("&{key}={}", encode(value)));
    }
    let path = "/".to_owned();
    let call = Call { service: Service::Ec2, action, method: "POST", path, body, bound };
    let mut answer = xml::parse(&cloud.call(&call)?)?;
    match answer.get_mut(format!("{name}Response")) {
        Some(content) => Ok(content.take()),
        None => Err(Problem::new(&CLOUD_ANSWER, format!("{action} answered another document"))),
    }
}

/// Percent-encodes everything but unreserved characters.
pub(crate) fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_percent_encoded() {
        assert_eq!(encode("a-b_c.~ /+=é"), "a-b_c.~%20%2F%2B%3D%C3%A9");
    }

    #[test]
    fn limits_are_those_of_the_default_card() {
        let described = serde_json::json!({
            "VCpuInfo": {"DefaultVCpus": 192},
            "NetworkInfo": {
                "MaximumNetworkInterfaces": 64, "Ipv4AddressesPerInterface": 50,
                "DefaultNetworkCardIndex": 0,
                "NetworkCards": [
                    {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 1},
                    {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 2},
                ],
            },
        });
        let expected = InstanceLimits { default_enis: 2, ipv4_per_eni: 50, vcpu: 192 };
        assert_eq!(limits(&described), Some(expected));
        assert_eq!(limits(&Value::Null), None);
    }
}
