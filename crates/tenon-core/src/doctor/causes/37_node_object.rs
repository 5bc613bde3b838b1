//! The Node object cannot be made or belongs to another machine.

use super::*;
use crate::config::grammar;

pub(super) static CAUSE: Cause = Cause {
    number: 37,
    slug: "node-object",
    title: "a label that nodes may not set, or a Node object of another machine",
    step: Step::NodeObject,
    alone: true,
    signals: &[Signal::confirmed(
        Log::Kubelet,
        &["labels specified with --node-labels"],
        "kubernetes cmd/kubelet/app/options/options.go",
    )],
    checks: &[Check::proves("node-labels", labels), Check::proves("provider-id", provider), RESTARTS],
    why: "the kubelet ends when a label of the kubernetes.io families is not one that nodes may set; and a Node of the same name with another provider id is a machine that is gone",
    fix: "use a prefix of your own, or node.kubernetes.io/; delete a stale Node object: `kubectl delete node NAME`",
    ..Cause::BLANK
};

fn labels(view: &View) -> Found {
    let Some(labels) = view.flags.get("node-labels") else { return Found::NotApplicable };
    let keys = labels.split(',').filter_map(|label| label.split('=').next());
    let refused = keys.filter(|key| !grammar::kubelet_may_set(key));
    let evidence = refused.map(|key| {
        Evidence::file("/etc/eks/kubelet/environment", format!("--node-labels sets {key}"))
            .fix(format!("take out {key}, or use a prefix that is not of kubernetes.io"))
    });
    Found::of(evidence.collect())
}

fn provider(view: &View) -> Found {
    let Some(node) = &view.node.probes.node else { return Found::Unknown("the Node object was not asked for") };
    let own = view.kubelet["providerID"].as_str().unwrap_or_default();
    match node.status == 200 && !own.is_empty() && !node.provider_id.is_empty() && node.provider_id != own {
        true => Found::fail(
            Evidence::probe("node", format!("the Node object is of {}, this machine is {own}", node.provider_id))
                .fix(format!("delete the stale object: `kubectl delete node {}`", node.name)),
        ),
        false => Found::Pass,
    }
}
