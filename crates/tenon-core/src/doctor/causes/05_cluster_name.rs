//! The token is made for another cluster.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 5,
    slug: "wrong-cluster-name",
    title: "the kubelet asks for tokens of another cluster",
    step: Step::Authn,
    on_api: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["Unable to register node with API server", "Unauthorized"], NODE_STATUS),
    ],
    checks: &[Check::proves("cluster-tag", tag), Check::excludes("cluster-name", known)],
    why: "an EKS token carries the name of its cluster inside the signature; with a wrong name the signature does not verify, and the answer is 401 although the role is mapped",
    fix: "correct `spec.cluster.name`",
    ..Cause::BLANK
};

/// Without a name to compare with, a 401 says nothing about names.
fn known(view: &View) -> Found {
    match other_cluster(view) {
        Some(_) => Found::Pass,
        None => Found::fail(Evidence::metadata("no other name is known")),
    }
}

fn tag(view: &View) -> Found {
    let seen = CAUSE.signals.iter().any(|signal| view.seen(signal, Step::Authn, true).is_some());
    if !is_unauthorized(view) && !seen {
        return Found::NotApplicable;
    }
    Found::maybe(other_cluster(view))
}
