//! Cluster facts out of a kubeconfig.

use super::reader::Reader;
use crate::codes::userdata as pages;
use crate::kubeconfig;
use crate::problem::{Finding, Place, Problem};
use crate::tree::Dialect;
use crate::userdata::Cluster;

/// Reads the one cluster of a kubeconfig, or the one of its current context.
pub fn read(text: &str, source: &str) -> Result<Cluster, Vec<Finding>> {
    let mut reader = Reader::new(source);
    let Some(tree) = reader.document(text) else { return Err(reader.findings) };
    let json = tree.to_json(Dialect::Yaml12);
    let current = kubeconfig::current_context(&json).and_then(|it| it["cluster"].as_str());
    let only = kubeconfig::entry(&json, "clusters", None);
    let entry = only.or_else(|| kubeconfig::entry(&json, "clusters", Some(current?)));
    let Some(entry) = entry else {
        let what = "the kubeconfig has not exactly one cluster, and its current context names none";
        let place =
            Place { source: source.to_owned(), path: "clusters".into(), ..Place::default() };
        return Err(vec![Finding::error(Problem::new(&pages::BAD_INPUT, what).at(place))]);
    };
    let text = |key: &str| entry["cluster"][key].as_str().map(str::to_owned);
    let (region, name) = entry["name"].as_str().and_then(from_arn).unzip();
    Ok(Cluster {
        name,
        region,
        endpoint: text("server").map(|server| server.trim_end_matches('/').to_owned()),
        certificate_authority: text("certificate-authority-data"),
        ..Cluster::default()
    })
}

/// Region and name out of `arn:aws:eks:REGION:ACCOUNT:cluster/NAME`, as the AWS CLI names
/// entries.
fn from_arn(arn: &str) -> Option<(String, String)> {
    let words: Vec<_> = arn.splitn(6, ':').collect();
    let [_, _, "eks", region, _, resource] = words[..] else { return None };
    Some((region.to_owned(), resource.strip_prefix("cluster/")?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_aws_cli_writes() {
        let text = "apiVersion: v1\nkind: Config\nclusters:\n- name: arn:aws:eks:eu-west-1:1:cluster/c\n  cluster:\n    server: https://x\n    certificate-authority-data: QQ==\n";
        let cluster = read(text, "x").unwrap();
        assert_eq!(
            (cluster.name.as_deref(), cluster.region.as_deref()),
            (Some("c"), Some("eu-west-1"))
        );
        assert_eq!(cluster.endpoint.as_deref(), Some("https://x"));
    }

    #[test]
    fn the_current_context_chooses() {
        let text = "clusters:\n- {name: a, cluster: {server: https://a}}\n- {name: b, cluster: {server: https://b}}\ncontexts:\n- {name: x, context: {cluster: b}}\ncurrent-context: x\n";
        assert_eq!(read(text, "x").unwrap().endpoint.as_deref(), Some("https://b"));
        assert!(read(&text.replace("current-context: x", ""), "x").is_err());
    }
}
