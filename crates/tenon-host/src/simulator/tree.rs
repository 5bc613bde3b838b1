//! The paths that EC2 shows to an instance, for what nodes, cloud-init and agents read.

use std::collections::BTreeMap;

use serde_json::json;

use super::profile::Profile;

/// Values by their path below `/latest/`.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// Lays out the tree of an instance.
pub fn build(profile: &Profile) -> Tree {
    let mut tree = Tree::new();
    let mut put = |path: String, value: String| {
        tree.insert(path, value.into_bytes());
    };
    put("dynamic/instance-identity/document".into(), document(profile));
    for (name, value) in instance_values(profile) {
        put(format!("meta-data/{name}"), value);
    }
    for (name, value) in interface_values(profile) {
        put(format!("meta-data/network/interfaces/macs/{}/{name}", profile.mac), value);
    }
    for (name, value) in role_values(profile) {
        put(format!("meta-data/iam/{name}"), value);
    }
    for (name, value) in &profile.tags {
        put(format!("meta-data/tags/instance/{name}"), value.clone());
    }
    if let Some(user_data) = &profile.user_data {
        tree.insert("user-data".into(), user_data.clone());
    }
    tree
}

/// The names directly below a path, directories with a slash; None if there is no such path.
pub fn listing(tree: &Tree, path: &str) -> Option<Vec<u8>> {
    let path = path.trim_end_matches('/');
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let mut names: Vec<String> = Vec::new();
    for below in tree.range(prefix.clone()..).map_while(|(key, _)| key.strip_prefix(&prefix)) {
        let name = match below.split_once('/') {
            Some((directory, _)) => format!("{directory}/"),
            None => below.to_owned(),
        };
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { None } else { Some(names.join("\n").into_bytes()) }
}

fn document(profile: &Profile) -> String {
    let document = json!({
        "accountId": profile.account,
        "architecture": profile.architecture,
        "availabilityZone": profile.zone,
        "billingProducts": null,
        "devpayProductCodes": null,
        "imageId": profile.image_id,
        "instanceId": profile.id,
        "instanceType": profile.instance_type,
        "kernelId": null,
        "marketplaceProductCodes": null,
        "pendingTime": "2025-01-01T00:00:00Z",
        "privateIp": profile.ipv4,
        "ramdiskId": null,
        "region": profile.region,
        "version": "2017-09-30",
    });
    format!("{document:#}")
}

fn instance_values(profile: &Profile) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("ami-id", profile.image_id.clone()),
        ("ami-launch-index", "0".into()),
        ("ami-manifest-path", "(unknown)".into()),
        ("block-device-mapping/ami", "/dev/xvda".into()),
        ("block-device-mapping/root", "/dev/xvda".into()),
        ("hostname", profile.hostname.clone()),
        ("instance-action", "none".into()),
        ("instance-id", profile.id.clone()),
        ("instance-life-cycle", "on-demand".into()),
        ("instance-type", profile.instance_type.clone()),
        ("local-hostname", profile.hostname.clone()),
        ("mac", profile.mac.clone()),
        ("placement/availability-zone", profile.zone.clone()),
        ("placement/region", profile.region.clone()),
        ("profile", "default-hvm".into()),
        ("reservation-id", "r-0123456789abcdef0".into()),
        ("security-groups", "node".into()),
        ("services/domain", domain(&profile.region).into()),
        ("services/partition", partition(&profile.region).into()),
        ("system", "nitro".into()),
    ];
    if let Some(ipv4) = profile.ipv4 {
        rows.push(("local-ipv4", ipv4.to_string()));
    }
    if let Some(first) = profile.ipv6.first() {
        rows.push(("ipv6", first.to_string()));
    }
    rows
}

fn interface_values(profile: &Profile) -> Vec<(&'static str, String)> {
    let lines = |items: Vec<String>| items.join("\n");
    let mut rows = vec![
        ("device-number", "0".into()),
        ("interface-id", format!("eni-{}", &profile.id[2..])),
        ("local-hostname", profile.hostname.clone()),
        ("mac", profile.mac.clone()),
        ("network-card", "0".into()),
        ("owner-id", profile.account.clone()),
        ("security-groups", "node".into()),
        ("subnet-id", "subnet-0123456789abcdef0".into()),
        ("vpc-id", "vpc-0123456789abcdef0".into()),
    ];
    if let Some(ipv4) = profile.ipv4 {
        rows.push(("local-ipv4s", ipv4.to_string()));
        rows.push(("subnet-ipv4-cidr-block", "10.0.0.0/16".into()));
    }
    if !profile.vpc_cidrs.is_empty() {
        let list = lines(profile.vpc_cidrs.iter().map(ToString::to_string).collect());
        rows.push(("vpc-ipv4-cidr-block", profile.vpc_cidrs[0].to_string()));
        rows.push(("vpc-ipv4-cidr-blocks", list));
    }
    if !profile.ipv6.is_empty() {
        rows.push(("ipv6s", lines(profile.ipv6.iter().map(ToString::to_string).collect())));
        rows.push(("subnet-ipv6-cidr-blocks", "2a05:d018:0:1::/64".into()));
        rows.push(("vpc-ipv6-cidr-blocks", "2a05:d018::/56".into()));
    }
    rows
}

/// A role whose credentials open nothing.
fn role_values(profile: &Profile) -> Vec<(String, String)> {
    let Some(role) = &profile.role else { return Vec::new() };
    let partition = partition(&profile.region);
    let info = json!({
        "Code": "Success",
        "LastUpdated": "2025-01-01T00:00:00Z",
        "InstanceProfileArn": format!("arn:{partition}:iam::{}:instance-profile/{role}", profile.account),
        "InstanceProfileId": "AIPAEXAMPLEEXAMPLE000",
    });
    let credentials = json!({
        "Code": "Success",
        "LastUpdated": "2025-01-01T00:00:00Z",
        "Type": "AWS-HMAC",
        "AccessKeyId": "ASIAEXAMPLEEXAMPLE00",
        "SecretAccessKey": "simulated-secret-key-that-opens-nothing0",
        "Token": "simulated-session-token",
        "Expiration": "2099-01-01T00:00:00Z",
    });
    vec![
        ("info".into(), format!("{info:#}")),
        (format!("security-credentials/{role}"), format!("{credentials:#}")),
    ]
}

fn partition(region: &str) -> &'static str {
    match region {
        _ if region.starts_with("cn-") => "aws-cn",
        _ if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    }
}

fn domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tree: &Tree, path: &str) -> Option<String> {
        listing(tree, path).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn directories_list_their_names() {
        let tree = build(&Profile::new("m5.large").with_user_data("#!/bin/sh\n"));
        assert_eq!(list(&tree, "").unwrap(), "dynamic/\nmeta-data/\nuser-data");
        assert_eq!(list(&tree, "meta-data/iam/security-credentials/").unwrap(), "node-role");
        assert_eq!(list(&tree, "meta-data/placement").unwrap(), "availability-zone\nregion");
        assert_eq!(list(&tree, "meta-data/none"), None);
        let top = list(&tree, "meta-data").unwrap();
        assert!(top.lines().any(|line| line == "network/"), "{top}");
    }

    #[test]
    fn what_the_instance_lacks_is_absent() {
        let mut profile = Profile::new("m5.large");
        profile.ipv4 = None;
        profile.role = None;
        let tree = build(&profile);
        assert!(!tree.contains_key("meta-data/local-ipv4"));
        assert!(!tree.contains_key("user-data"));
        assert_eq!(list(&tree, "meta-data/iam"), None);
    }
}
