//! Security groups: nodes among themselves, and with the control plane.

use serde_json::{Map, Value, json};

use super::Stack;

/// The kubelet, webhooks and other servers of pods.
const POD_PORTS: (u32, u32) = (1025, 65_535);
const HTTPS: (u32, u32) = (443, 443);

pub fn resources(stack: &Stack) -> Map<String, Value> {
    let node = json!({"Ref": "NodeSecurityGroup"});
    let plane = json!({"Ref": "ClusterSecurityGroup"});
    let group = json!({
        "Type": "AWS::EC2::SecurityGroup",
        "Properties": {
            "GroupDescription": "Nodes of an EKS cluster",
            "VpcId": {"Ref": "VpcId"},
            "Tags": [{"Key": stack.sub("kubernetes.io/cluster/${ClusterName}"), "Value": "owned"}],
        },
    });
    let among = json!({
        "Type": "AWS::EC2::SecurityGroupIngress",
        "Properties": {
            "Description": "Nodes among themselves",
            "GroupId": node,
            "IpProtocol": "-1",
            "SourceSecurityGroupId": node,
        },
    });
    let rules = [
        ("NodeSecurityGroup", group),
        ("NodeIngressFromNodes", among),
        (
            "NodeIngressFromControlPlane",
            ingress("Control plane to kubelets and pods", &node, &plane, POD_PORTS),
        ),
        (
            "NodeIngressFromControlPlaneHttps",
            ingress("Control plane to servers on 443", &node, &plane, HTTPS),
        ),
        ("ControlPlaneIngressFromNodes", ingress("Nodes to the API server", &plane, &node, HTTPS)),
        (
            "ControlPlaneEgressToNodes",
            egress("Control plane to kubelets and pods", &plane, &node, POD_PORTS),
        ),
        (
            "ControlPlaneEgressToNodesHttps",
            egress("Control plane to servers on 443", &plane, &node, HTTPS),
        ),
    ];
    rules.into_iter().map(|(name, rule)| (name.to_owned(), rule)).collect()
}

/// The names of the rules, which nodes need before they start.
pub const RULES: [&str; 6] = [
    "NodeIngressFromNodes",
    "NodeIngressFromControlPlane",
    "NodeIngressFromControlPlaneHttps",
    "ControlPlaneIngressFromNodes",
    "ControlPlaneEgressToNodes",
    "ControlPlaneEgressToNodesHttps",
];

fn ingress(description: &str, group: &Value, from: &Value, ports: (u32, u32)) -> Value {
    json!({
        "Type": "AWS::EC2::SecurityGroupIngress",
        "Properties": {
            "Description": description,
            "GroupId": group,
            "IpProtocol": "tcp",
            "FromPort": ports.0,
            "ToPort": ports.1,
            "SourceSecurityGroupId": from,
        },
    })
}

fn egress(description: &str, group: &Value, to: &Value, ports: (u32, u32)) -> Value {
    json!({
        "Type": "AWS::EC2::SecurityGroupEgress",
        "Properties": {
            "Description": description,
            "GroupId": group,
            "IpProtocol": "tcp",
            "FromPort": ports.0,
            "ToPort": ports.1,
            "DestinationSecurityGroupId": to,
        },
    })
}
