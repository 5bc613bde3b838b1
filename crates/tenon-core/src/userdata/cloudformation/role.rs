//! The nodes' role, its profile and its way into the cluster.

use serde_json::{Map, Value, json};

use super::{AccessEntry, Stack, attribute};
use crate::userdata::Kind;

const SIGNAL_RESOURCE: &str = "arn:${AWS::Partition}:cloudformation:${AWS::Region}:${AWS::AccountId}:stack/${AWS::StackName}/*";

pub fn resources(stack: &Stack) -> Map<String, Value> {
    let launch = &stack.group.launch;
    let mut map = Map::new();
    let self_managed = stack.group.kind == Kind::SelfManaged;
    if !is_given(stack) {
        map.insert("NodeInstanceRole".into(), role(stack));
    }
    if self_managed && launch.instance_profile_arn.is_none() {
        let role = match &launch.instance_role_arn {
            Some(arn) => json!(arn.rsplit('/').next()),
            None => json!({"Ref": "NodeInstanceRole"}),
        };
        let profile = json!({"Type": "AWS::IAM::InstanceProfile", "Properties": {"Path": "/", "Roles": [role]}});
        map.insert("NodeInstanceProfile".into(), profile);
    }
    if has_access_entry(stack) {
        let kind = if stack.group.family.is_windows() { "EC2_WINDOWS" } else { "EC2_LINUX" };
        let entry = json!({
            "Type": "AWS::EKS::AccessEntry",
            "Properties": {"ClusterName": stack.cluster_name(), "PrincipalArn": arn(stack), "Type": kind},
        });
        map.insert("NodeAccessEntry".into(), entry);
    }
    map
}

/// True when role or profile exist already.
fn is_given(stack: &Stack) -> bool {
    let launch = &stack.group.launch;
    launch.instance_role_arn.is_some() || launch.instance_profile_arn.is_some()
}

/// The role's ARN; null when only a profile is known.
pub fn arn(stack: &Stack) -> Value {
    match &stack.group.launch.instance_role_arn {
        Some(arn) => json!(arn),
        None if is_given(stack) => Value::Null,
        None => attribute("NodeInstanceRole", "Arn"),
    }
}

pub fn profile_arn(stack: &Stack) -> Value {
    match &stack.group.launch.instance_profile_arn {
        Some(arn) => json!(arn),
        None => attribute("NodeInstanceProfile", "Arn"),
    }
}

/// Managed groups get their entry from EKS.
pub fn has_access_entry(stack: &Stack) -> bool {
    let known = !arn(stack).is_null() && stack.group.kind == Kind::SelfManaged;
    known
        && match stack.options.access_entry {
            AccessEntry::Always => true,
            AccessEntry::Never => false,
            AccessEntry::Auto => {
                matches!(stack.cluster.auth_mode.as_deref(), Some("API" | "API_AND_CONFIG_MAP"))
            }
        }
}

fn role(stack: &Stack) -> Value {
    let managed =
        |name: &str| json!({"Fn::Sub": format!("arn:${{AWS::Partition}}:iam::aws:policy/{name}")});
    let mut policies = vec![
        managed("AmazonEKSWorkerNodePolicy"),
        managed("AmazonEC2ContainerRegistryPullOnly"),
        managed("AmazonSSMManagedInstanceCore"),
    ];
    if stack.options.cni_policy {
        policies.push(managed("AmazonEKS_CNI_Policy"));
    }
    policies.extend(stack.group.launch.policy_arns.iter().map(|arn| json!(arn)));
    let trust = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": {"Fn::Sub": "ec2.${AWS::URLSuffix}"}},
        }],
    });
    let mut properties =
        json!({"AssumeRolePolicyDocument": trust, "ManagedPolicyArns": policies, "Path": "/"});
    if stack.options.signals && stack.group.kind == Kind::SelfManaged {
        properties["Policies"] = json!([{
            "PolicyName": "signal",
            "PolicyDocument": {
                "Version": "2012-10-17",
                "Statement": [{
                    "Effect": "Allow",
                    "Action": "cloudformation:SignalResource",
                    "Resource": {"Fn::Sub": SIGNAL_RESOURCE},
                }],
            },
        }]);
    }
    json!({"Type": "AWS::IAM::Role", "Properties": properties})
}
