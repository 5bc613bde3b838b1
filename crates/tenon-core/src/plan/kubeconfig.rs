//! How the kubelet reaches the API server and who it says it is.

use super::json_text::quoted;
use super::node::Node;
use super::step::FileBody;
use super::{Draft, Owner, kubelet};
use crate::config::Authenticator;

pub(crate) const PATH: &str = "/var/lib/kubelet/kubeconfig";
/// On Outposts the kubelet bootstraps TLS with this one and writes [`PATH`] itself.
pub(crate) const BOOTSTRAP_PATH: &str = "/var/lib/kubelet/bootstrap-kubeconfig";

/// Plans the kubeconfig.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    let outpost = node.config.cluster.outpost.is_some();
    let path = if outpost { BOOTSTRAP_PATH } else { PATH };
    let file = FileBody::new(path, 0o600, document(node));
    draft.file(Owner::Kubelet, file, "access to the API server");
}

fn document(node: &Node) -> String {
    let (command, arguments) = exec(node);
    let arguments: String =
        arguments.iter().map(|argument| format!("          - {}\n", quoted(argument))).collect();
    format!(
        r#"apiVersion: "v1"
kind: "Config"
clusters:
  - name: "kubernetes"
    cluster:
      certificate-authority: {authority}
      server: {server}
current-context: "kubelet"
contexts:
  - name: "kubelet"
    context:
      cluster: "kubernetes"
      user: "kubelet"
users:
  - name: "kubelet"
    user:
      exec:
        apiVersion: "client.authentication.k8s.io/v1beta1"
        command: {command}
        args:
{arguments}"#,
        authority = quoted(kubelet::CA_PATH),
        server = quoted(&node.cluster.endpoint),
        command = quoted(command),
    )
}

/// The program that signs the kubelet's token, and its arguments.
fn exec<'a>(node: &'a Node) -> (&'static str, Vec<&'a str>) {
    let cluster = &node.config.cluster;
    let region = node.facts.instance.region.as_str();
    match &cluster.outpost {
        None => ("aws", token(&cluster.name, region)),
        Some(outpost) => match outpost.authenticator {
            Authenticator::Aws => ("aws", token(&node.cluster.id, region)),
            Authenticator::AwsIamAuthenticator => {
                ("aws-iam-authenticator", vec!["token", "-i", &node.cluster.id, "--region", region])
            }
        },
    }
}

fn token<'a>(cluster: &'a str, region: &'a str) -> Vec<&'a str> {
    vec!["eks", "get-token", "--cluster-name", cluster, "--region", region]
}
