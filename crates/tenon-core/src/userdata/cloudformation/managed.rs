//! The managed variant: `AWS::EKS::Nodegroup` with a launch template. EKS watches the nodes, so
//! nothing signals.

use serde_json::{Map, Value, json};

use super::{Stack, attribute, images, launch_template, role};
use crate::userdata::group::Amount;

pub fn resources(stack: &Stack) -> Map<String, Value> {
    let mut resources = role::resources(stack);
    resources.insert("NodeLaunchTemplate".into(), template(stack));
    resources.insert("ManagedNodeGroup".into(), group(stack));
    resources
}

pub fn outputs() -> Map<String, Value> {
    let outputs = [
        ("ManagedNodeGroup", json!({"Ref": "ManagedNodeGroup"})),
        ("NodeLaunchTemplate", json!({"Ref": "NodeLaunchTemplate"})),
        ("NodeLaunchTemplateVersion", attribute("NodeLaunchTemplate", "LatestVersionNumber")),
    ];
    outputs.into_iter().map(|(name, value)| (name.to_owned(), json!({"Value": value}))).collect()
}

fn template(stack: &Stack) -> Value {
    let launch = &stack.group.launch;
    let values = launch_template::Values {
        image: stack.image().filter(|_| stack.needs_image()),
        instance_type: None,
        key_name: Some(stack.key_name()),
        security_groups: launch.security_groups.iter().map(|id| json!(id)).collect(),
        instance_profile: None,
        hop_limit: json!({"Ref": "HttpPutResponseHopLimit"}),
        volume_gib: json!({"Ref": "VolumeSize"}),
        user_data: stack.user_data.clone(),
        tags: stack.tags(),
    };
    let data = launch_template::data(stack.group, values);
    json!({"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}})
}

fn group(stack: &Stack) -> Value {
    let group = stack.group;
    let launch = &group.launch;
    let mut properties = json!({
        "ClusterName": stack.cluster_name(),
        "NodegroupName": stack.sub("${NodeGroupName}"),
        "NodeRole": role::arn(stack),
        "Subnets": {"Ref": "Subnets"},
        "ScalingConfig": {
            "MinSize": {"Ref": "MinSize"},
            "MaxSize": {"Ref": "MaxSize"},
            "DesiredSize": {"Ref": "DesiredCapacity"},
        },
        "LaunchTemplate": {
            "Id": {"Ref": "NodeLaunchTemplate"},
            "Version": attribute("NodeLaunchTemplate", "LatestVersionNumber"),
        },
        "CapacityType": if launch.spot { "SPOT" } else { "ON_DEMAND" },
    });
    let labels = (!group.labels.is_empty()).then(|| json!(group.labels));
    let own_image = stack.needs_image();
    let tags: Map<_, _> = stack
        .cluster
        .tags
        .iter()
        .chain(&launch.tags)
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    let optional = [
        ("Labels", labels),
        ("Taints", taints(stack)),
        ("AmiType", images::managed_type(group).filter(|_| !own_image).map(Value::from)),
        ("ReleaseVersion", launch.release_version.clone().filter(|_| !own_image).map(Value::from)),
        ("InstanceTypes", (!group.instance_types.is_empty()).then(|| json!(group.instance_types))),
        (
            "UpdateConfig",
            launch.max_unavailable.map(|amount| match amount {
                Amount::Count(count) => json!({"MaxUnavailable": count}),
                Amount::Percent(percent) => json!({"MaxUnavailablePercentage": percent}),
            }),
        ),
        ("NodeRepairConfig", launch.node_repair.map(|enabled| json!({"Enabled": enabled}))),
        ("Tags", (!tags.is_empty()).then_some(Value::Object(tags))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            properties[key] = value;
        }
    }
    json!({"Type": "AWS::EKS::Nodegroup", "Properties": properties})
}

/// Taints with the effects that the resource spells in its own way.
fn taints(stack: &Stack) -> Option<Value> {
    let taints = &stack.group.taints;
    let list: Vec<_> = taints
        .iter()
        .map(|taint| {
            let effect = match taint.effect.as_str() {
                "NoSchedule" => "NO_SCHEDULE",
                "PreferNoSchedule" => "PREFER_NO_SCHEDULE",
                _ => "NO_EXECUTE",
            };
            let mut entry = json!({"Key": taint.key, "Effect": effect});
            if !taint.value.is_empty() {
                entry["Value"] = json!(taint.value);
            }
            entry
        })
        .collect();
    (!list.is_empty()).then(|| json!(list))
}
