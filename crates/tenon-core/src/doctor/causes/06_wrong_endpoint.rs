//! What is called the API server is not it.

use super::super::snapshot::Resolution;
use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 6,
    slug: "wrong-endpoint",
    title: "the endpoint is not this cluster's API server",
    step: Step::Dns,
    signals: &[Signal::confirmed(Log::Kubelet, &["x509: certificate is valid for", ", not "], GO_X509)],
    support: SYMPTOMS,
    checks: &[
        Check::proves("endpoint-name", name),
        Check::proves("certificate-name", certificate),
        Check::proves("api-server-answers", answer),
    ],
    why: "the name of the endpoint does not exist, or the server behind it has a certificate for other names, or it answers as no API server would",
    fix: "correct `spec.cluster.apiServerEndpoint`: it is printed by `aws eks describe-cluster`",
    command: "aws eks describe-cluster --name CLUSTER --query cluster.endpoint",
    ..Cause::BLANK
};

fn name(view: &View) -> Found {
    match &view.node.probes.lookup {
        None => Found::Unknown("the resolver was not asked"),
        Some(lookup) if lookup.result == Resolution::NoSuchName && !nothing_resolves(view) => {
            let text = format!("{} does not exist, and the resolver works", lookup.host);
            Found::fail(Evidence::probe("dns", text))
        }
        Some(_) => Found::Pass,
    }
}

fn certificate(view: &View) -> Found {
    match network::reach(view) {
        None => Found::Unknown("no connection to the API server was tried"),
        Some(reach) if reach.trust == Some(Trust::WrongName) => {
            let names = reach.chain.first().map(|leaf| leaf.names.join(", ")).unwrap_or_default();
            let host = view.api.as_ref().map_or("", |api| api.host.as_str());
            Found::fail(Evidence::probe("tls", format!("the certificate is for {names}, not for {host}")))
        }
        Some(_) => Found::Pass,
    }
}

fn answer(view: &View) -> Found {
    // Who lets us in is our API server, whatever its answers look like.
    if network::passed(view).is_some_and(|step| step >= Step::Authn) {
        return Found::Pass;
    }
    match &view.node.probes.anonymous {
        None => Found::Unknown("no request was made"),
        Some(access) if access.kubernetes || matches!(access.status, 401 | 403 | 429 | 500..) => Found::Pass,
        Some(access) => {
            let text = format!("answers {} and is no Kubernetes API server", access.status);
            Found::fail(Evidence::probe("anonymous", text))
        }
    }
}
