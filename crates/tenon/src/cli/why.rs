//! `tenon explain --why`: the chain of reasons behind a value on this node.

use serde_json::json;
use tenon_core::codes;
use tenon_core::config::reference;
use tenon_core::plan::step::Reason;
use tenon_core::problem::Problem;
use tenon_host::job::{Job, Prepared};

use super::Global;
use super::node_args::{self, NodeArgs};
use crate::output::{self, Outcome};

/// Which chains of the plan answer for which fields; the longest prefix wins.
const CHAINS: &[(&str, &[&str])] = &[
    ("spec.cluster.cidr", &["clusterDNS", "nodeIp"]),
    ("spec.containerd.sandboxImage", &["sandboxImage"]),
    ("spec.featureGates", &["fastImagePull"]),
    ("spec.kubelet.flags", &["kubeletFlags"]),
    ("spec.kubelet.maxPods", &["maxPods"]),
    ("spec.kubelet.maxPodsExpression", &["maxPods"]),
    ("spec.kubelet.reserved", &["kubeReserved.memory"]),
    ("spec.node.name", &["nodeName"]),
];

/// One value with its chain, oldest decision first.
struct Chain {
    name: String,
    reasons: Vec<(String, String)>,
}

pub fn run(subject: &str, node: &NodeArgs, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let mut job = Job::new(&root, node.order(global)?);
    let loaded = job.config()?;
    let prepared = job.prepare(loaded)?;
    let chains = chains(&whole_path(subject), &prepared);
    if chains.is_empty() {
        let problem = Problem::new(&codes::usage::BAD_USAGE, "nothing is known about this value");
        let known: Vec<_> = prepared.plan.reasons.keys().map(String::as_str).collect();
        let fix = format!("name a field of the config, or one of: {}", known.join(", "));
        return Err(problem.fix(fix).into());
    }
    match global.json() {
        true => {
            let list: Vec<_> = chains
                .iter()
                .map(|chain| json!({"value": chain.name, "because": chain.reasons}))
                .collect();
            output::answer_json(&json!({"schema": "tenon.why/1", "chains": list}))
        }
        false => output::answer(&chains.iter().map(text).collect::<String>()),
    }
}

/// The subject as documents name it: `spec.` may be left out, as without `--why`.
fn whole_path(subject: &str) -> String {
    let below_spec = format!("spec.{subject}");
    match reference::explain(subject) {
        Ok(field) if below_spec.starts_with(&field.path) => below_spec,
        _ => subject.to_owned(),
    }
}

fn text(chain: &Chain) -> String {
    let mut text = format!("{}\n", chain.name);
    for (rank, reason) in &chain.reasons {
        text.push_str(&format!("  {rank:<9} {reason}\n"));
    }
    text
}

/// The plan's own chain for the value, and where the config says something about it.
fn chains(subject: &str, prepared: &Prepared) -> Vec<Chain> {
    let mut chains: Vec<_> =
        names(subject).into_iter().filter_map(|name| planned(name, prepared)).collect();
    let written = written(subject, prepared);
    match chains.first_mut() {
        Some(first) => first.reasons.extend(written),
        None if !written.is_empty() => {
            chains.push(Chain { name: subject.to_owned(), reasons: written });
        }
        None => {}
    }
    chains
}

fn names(subject: &str) -> Vec<&str> {
    let matching = CHAINS.iter().filter(|(field, _)| {
        subject == *field || subject.strip_prefix(field).is_some_and(|rest| rest.starts_with('.'))
    });
    match matching.max_by_key(|(field, _)| field.len()) {
        Some((_, names)) => names.to_vec(),
        None => vec![subject],
    }
}

fn planned(name: &str, prepared: &Prepared) -> Option<Chain> {
    let reasons = prepared.plan.reasons.get(name)?;
    let pair = |reason: &Reason| (reason.rank.to_owned(), reason.text.clone());
    Some(Chain { name: name.to_owned(), reasons: reasons.iter().map(pair).collect() })
}

/// Every value at or below the field that a document set, with its place.
fn written(subject: &str, prepared: &Prepared) -> Vec<(String, String)> {
    let below = |path: &str| {
        path.strip_prefix(subject)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let origins = prepared.loaded.origins().into_iter();
    origins
        .filter(|(path, _)| below(path))
        .map(|(_, place)| ("written".to_owned(), place.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_may_be_left_out() {
        for (subject, path) in [
            ("kubelet.flags", "spec.kubelet.flags"),
            ("kubelet.flags[1]", "spec.kubelet.flags[1]"),
            ("spec.kubelet.flags", "spec.kubelet.flags"),
            ("metadata", "metadata"),
            ("nodeName", "nodeName"),
        ] {
            assert_eq!(whole_path(subject), path, "{subject}");
        }
    }

    #[test]
    fn a_field_finds_its_chain() {
        for (subject, expected) in [
            ("spec.kubelet.maxPods", vec!["maxPods"]),
            ("spec.kubelet.maxPods.mode", vec!["maxPods"]),
            ("spec.kubelet.maxPodsExpression", vec!["maxPods"]),
            ("spec.cluster.cidr", vec!["clusterDNS", "nodeIp"]),
            ("nodeName", vec!["nodeName"]),
            ("spec.kubelet.maxPodsX", vec!["spec.kubelet.maxPodsX"]),
        ] {
            assert_eq!(names(subject), expected, "{subject}");
        }
    }
}
