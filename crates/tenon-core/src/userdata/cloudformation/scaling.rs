//! The Auto Scaling group: sizes, tags, and updates that wait for the nodes' signals.

use serde_json::{Value, json};

use super::{Stack, attribute, network, role};
use crate::userdata::group::Distribution;
use crate::userdata::{Cluster, Group};

/// What an Auto Scaling group takes.
pub const MOST_TAGS: usize = 50;
const OWN_TAGS: usize = 4;
/// Processes that would disturb an update, suspended while it runs.
const SUSPENDED: [&str; 5] =
    ["HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", "ScheduledActions"];

pub struct Sizes {
    pub min: u32,
    pub desired: u32,
    pub max: u32,
}

/// The group's sizes, with 1, 2 and 4 where it names none.
pub fn sizes(group: &Group) -> Sizes {
    let launch = &group.launch;
    let desired = launch.desired_capacity.or(launch.min_size).unwrap_or(2);
    let min = launch.min_size.unwrap_or(desired.min(1));
    let max = launch.max_size.unwrap_or(desired.max(3) + 1);
    Sizes { min, desired, max }
}

/// How many tags the group will have.
pub fn tag_count(cluster: &Cluster, group: &Group) -> usize {
    let more =
        if group.launch.propagate_tags { group.labels.len() + group.taints.len() } else { 0 };
    OWN_TAGS + cluster.tags.len() + group.launch.tags.len() + more
}

pub fn group(stack: &Stack) -> Value {
    let mut resource = json!({
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "Properties": properties(stack),
        "DependsOn": dependencies(stack),
    });
    if stack.options.signals {
        if sizes(stack.group).desired > 0 {
            resource["CreationPolicy"] = json!({
                "AutoScalingCreationPolicy": {"MinSuccessfulInstancesPercent": 100},
                "ResourceSignal": {"Count": {"Ref": "DesiredCapacity"}, "Timeout": {"Ref": "SignalTimeout"}},
            });
        }
        resource["UpdatePolicy"] = update_policy(stack);
    }
    resource
}

fn dependencies(stack: &Stack) -> Vec<&'static str> {
    let entry = role::has_access_entry(stack).then_some("NodeAccessEntry");
    entry.into_iter().chain(network::RULES).collect()
}

fn update_policy(stack: &Stack) -> Value {
    let more = stack.group.launch.suspended_processes.iter().map(String::as_str);
    let mut processes: Vec<&str> = SUSPENDED.to_vec();
    processes.extend(more.filter(|name| !SUSPENDED.contains(name)));
    json!({
        "AutoScalingRollingUpdate": {
            "MaxBatchSize": {"Ref": "MaxBatchSize"},
            "MinInstancesInService": {"Ref": "DesiredCapacity"},
            "MinSuccessfulInstancesPercent": 100,
            "PauseTime": {"Ref": "SignalTimeout"},
            "SuspendProcesses": processes,
            "WaitOnResourceSignals": true,
        },
        "AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": true},
    })
}

fn properties(stack: &Stack) -> Value {
    let launch = &stack.group.launch;
    let template = json!({
        "LaunchTemplateId": {"Ref": "NodeLaunchTemplate"},
        "Version": attribute("NodeLaunchTemplate", "LatestVersionNumber"),
    });
    let mut properties = json!({
        "MinSize": {"Ref": "MinSize"},
        "MaxSize": {"Ref": "MaxSize"},
        "DesiredCapacity": {"Ref": "DesiredCapacity"},
        "VPCZoneIdentifier": {"Ref": "Subnets"},
        "Tags": tags(stack),
    });
    match &launch.distribution {
        None => properties["LaunchTemplate"] = template,
        Some(mixed) => {
            properties["MixedInstancesPolicy"] = mixed_policy(stack.group, mixed, &template)
        }
    }
    if let Some(seconds) = launch.max_instance_lifetime {
        properties["MaxInstanceLifetime"] = json!(seconds);
    }
    properties
}

fn mixed_policy(group: &Group, mixed: &Distribution, template: &Value) -> Value {
    let overrides: Vec<_> =
        group.instance_types.iter().map(|name| json!({"InstanceType": name})).collect();
    let mut distribution = json!({});
    let pairs = [
        ("OnDemandBaseCapacity", mixed.on_demand_base.map(Value::from)),
        ("OnDemandPercentageAboveBaseCapacity", mixed.on_demand_percent.map(Value::from)),
        ("SpotAllocationStrategy", mixed.spot_strategy.clone().map(Value::from)),
        ("SpotInstancePools", mixed.spot_pools.map(Value::from)),
        ("SpotMaxPrice", mixed.max_price.clone().map(Value::from)),
    ];
    for (key, value) in pairs {
        if let Some(value) = value {
            distribution[key] = value;
        }
    }
    json!({
        "InstancesDistribution": distribution,
        "LaunchTemplate": {"LaunchTemplateSpecification": template, "Overrides": overrides},
    })
}

fn tags(stack: &Stack) -> Vec<Value> {
    let tag =
        |key: Value, value: Value| json!({"Key": key, "Value": value, "PropagateAtLaunch": true});
    let mut tags: Vec<_> = stack
        .tags()
        .into_iter()
        .map(|pair| tag(pair["Key"].clone(), pair["Value"].clone()))
        .collect();
    tags.push(tag(json!("k8s.io/cluster-autoscaler/enabled"), json!("true")));
    tags.push(tag(stack.sub("k8s.io/cluster-autoscaler/${ClusterName}"), json!("owned")));
    if stack.group.launch.propagate_tags {
        let prefix = "k8s.io/cluster-autoscaler/node-template";
        let labels = stack.group.labels.iter();
        tags.extend(
            labels.map(|(key, value)| tag(json!(format!("{prefix}/label/{key}")), json!(value))),
        );
        tags.extend(stack.group.taints.iter().map(|taint| {
            let value = format!("{}:{}", taint.value, taint.effect);
            tag(json!(format!("{prefix}/taint/{}", taint.key)), json!(value))
        }));
    }
    tags
}
