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
    let outpost = node.cluster.outpost.is_some();
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
    let region = node.facts.instance.region.as_str();
    match &node.cluster.outpost {
        None => ("aws", token(&node.config.cluster.name, region)),
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

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::super::{Draft, Node};
    use super::*;
    use crate::tree::{Tree, Written};
    use crate::yaml;
    use proptest::prelude::*;

    /// Every scalar of a document, in order.
    fn scalars(tree: &Tree) -> Vec<&str> {
        match &tree.value {
            Written::Scalar(scalar) => vec![scalar.text.as_str()],
            Written::List(items) => items.iter().flat_map(scalars).collect(),
            Written::Map(entries) => {
                entries.iter().flat_map(|entry| scalars(&entry.value)).collect()
            }
        }
    }

    proptest! {
        #[test]
        fn any_name_stays_one_value(name in "[ -~é]{1,12}") {
            let (mut config, facts) = (fixture::config(), fixture::facts());
            config.cluster.name = name.clone();
            let node = Node::resolve(&config, &facts, &mut Draft::default()).unwrap();
            let trees = yaml::parse(&document(&node)).unwrap();
            let found = scalars(&trees[0]);
            let last = &found[found.len() - 6..];
            prop_assert_eq!(last, ["eks", "get-token", "--cluster-name", &name, "--region", "us-west-2"]);
        }
    }
}
