//! What one version of the kubelet would refuse, of fields and flags that other versions know.

use super::flags;
use super::grammar::Fault;
use super::kubelet_table::{self, FieldIssue};
use super::node::{Document, Node};
use crate::codes::config as pages;
use crate::problem::Finding;

const CONFIG: &str = "spec.kubelet.config";
const FLAGS: &str = "spec.kubelet.flags";

/// Checks the merged kubelet config and flags against one version.
pub fn check(tree: &Node, documents: &[Document], version: (u32, u32)) -> Vec<Finding> {
    let mut findings = fields(tree, documents, version);
    findings.extend(unknown_flags(tree, documents, version));
    findings
}

fn fields(tree: &Node, documents: &[Document], version: (u32, u32)) -> Vec<Finding> {
    let Some(config) = tree.find(CONFIG) else { return Vec::new() };
    let value = config.to_value();
    let Some(map) = value.as_object() else { return Vec::new() };
    // What no version knows was found when the document was read.
    let known: Vec<FieldIssue> = kubelet_table::check_config(map, None);
    let issues = kubelet_table::check_config(map, Some(version));
    let finding = |issue: &FieldIssue| {
        let node = issue.path.iter().try_fold(config, |node, key| node.step(key)).unwrap_or(config);
        let path = format!("{CONFIG}.{}", issue.path.join("."));
        let what = format!("is refused by kubelet {}.{}: {}", version.0, version.1, issue.message);
        let fault = Fault::tolerated(&pages::UNKNOWN_KUBELET_FIELD, what);
        documents[node.origin.document].finding(&fault, node.origin.key, &path)
    };
    let new = |issue: &&FieldIssue| !known.iter().any(|other| other.path == issue.path);
    issues.iter().filter(new).map(finding).collect()
}

fn unknown_flags(tree: &Node, documents: &[Document], version: (u32, u32)) -> Vec<Finding> {
    let entries = tree.find(FLAGS).map(Node::list).unwrap_or_default();
    let mut findings = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let document = &documents[entry.origin.document];
        let words =
            flags::arguments(entry.text().unwrap_or_default(), document.kind).unwrap_or_default();
        let gone = |name: &&str| {
            kubelet_table::flag(name).is_some_and(|flag| !flag.known_to(Some(version)))
        };
        for name in words.iter().filter_map(|word| flags::name(word)).filter(gone) {
            let what = format!("holds `--{name}`, which kubelet {}.{} lacks", version.0, version.1);
            let fault = Fault::tolerated(&pages::UNKNOWN_FLAG, what);
            let path = format!("{FLAGS}[{index}]");
            findings.push(document.finding(&fault, entry.origin.span, &path));
        }
    }
    findings
}
