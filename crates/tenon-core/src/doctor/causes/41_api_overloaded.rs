//! The API server has no time for us, or somebody in it says no.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 41,
    slug: "api-overloaded",
    title: "the API server is overloaded, or an admission webhook refuses the node",
    step: Step::NodeObject,
    on_api: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["failed calling webhook"], "kubernetes staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go"),
        Signal::confirmed(Log::Kubelet, &["admission webhook", "denied the request"], "kubernetes staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go"),
        Signal::confirmed(Log::Kubelet, &["the server has received too many requests"], ERRORS),
        Signal::confirmed(Log::Kubelet, &["the server is currently unable to handle the request"], ERRORS),
    ],
    support: SYMPTOMS,
    checks: &[Check::proves("api-accepts", accepts)],
    why: "the API server answers with 429 or 5xx, or an admission webhook for nodes denies the request or cannot be reached itself",
    fix: "look at the webhook named in the evidence: `kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations`; an overloaded server needs time, and fewer nodes at once",
    ..Cause::BLANK
};

fn accepts(view: &View) -> Found {
    match &view.node.probes.authenticated {
        None => Found::Unknown("no request with the kubelet's credentials was made"),
        Some(access) if matches!(access.status, 429 | 500..) => {
            Found::fail(Evidence::probe("authn", format!("answered with {}: {}", access.status, access.message)))
        }
        Some(_) => Found::Pass,
    }
}
