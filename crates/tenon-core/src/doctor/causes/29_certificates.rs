//! The kubelet's own certificates are refused, expired or not made yet.

use super::*;
use crate::config::grammar;

const CLIENT: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";

pub(super) static CAUSE: Cause = Cause {
    number: 29,
    slug: "certificates",
    title: "the kubelet's certificate is expired, refused or not signed",
    step: Step::Authn,
    on_api: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["ertificate request was not signed"], "kubernetes staging/src/k8s.io/client-go/util/certificate/certificate_manager.go"),
        Signal::confirmed(Log::Kubelet, &["no serving certificate available for the kubelet"], "kubernetes pkg/kubelet/certificate/kubelet.go"),
        Signal::confirmed(Log::Kubelet, &["existing bootstrap client certificate", "is expired"], "kubernetes pkg/kubelet/certificate/bootstrap/bootstrap.go"),
    ],
    support: SYMPTOMS,
    checks: &[Check::proves("client-certificate-valid", valid), Check::proves("client-certificate-accepted", accepted)],
    why: "nobody approved the certificate request of this node, its certificate ended while it was off, or the API server does not trust the CA that signed it",
    fix: "approve the request, or see why the approver does not: `kubectl get csr`; an expired client certificate is made anew after a bootstrap with a token",
    command: "kubectl get csr",
    ..Cause::BLANK
};

/// Where the certificate stands, and its text: named by the kubeconfig, inside it, or the one
/// that the kubelet keeps for itself.
fn certificate(view: &View) -> Option<(String, String)> {
    let user = &view.kubeconfig["users"][0]["user"];
    if let Some(data) = user["client-certificate-data"].as_str() {
        let text = match data.starts_with("<certificate: ") {
            true => data.to_owned(),
            false => String::from_utf8(grammar::decode_ca(data)?).ok()?,
        };
        return Some((view.kubeconfig_path.clone(), text));
    }
    let path = user["client-certificate"].as_str().unwrap_or(CLIENT);
    Some((path.to_owned(), view.file(path)?.to_owned()))
}

fn valid(view: &View) -> Found {
    let Some((path, pem)) = certificate(view) else { return Found::NotApplicable };
    if let Some(known) = pem.strip_prefix("<certificate: ") {
        return shown(view, &path, known);
    }
    let pem = super::super::wanted::certificates_only(&pem);
    let Some(list) = grammar::certificates(pem.as_bytes()) else {
        return Found::fail(Evidence::file(path, "holds no certificate that parses"));
    };
    let now = view.now_us / 1_000_000;
    let Some(leaf) = list.first().filter(|_| now > 0) else {
        return Found::Unknown("the time on the node is not known");
    };
    let validity = leaf.tbs_certificate().validity();
    let end = validity.not_after;
    match end.to_unix_duration().as_secs() < now {
        true => Found::fail(Evidence::file(path, format!("expired on {}", end.to_date_time()))),
        false => Found::Pass,
    }
}

/// A bundle has the subject and the end of a certificate in its place: `CN=x, expires DATE>`.
fn shown(view: &View, path: &str, known: &str) -> Found {
    let end = known.rsplit_once("expires ").map(|(_, end)| end.trim_end_matches('>'));
    match end.filter(|end| view.now_us > 0 && **end < *super::super::text::timestamp(view.now_us)) {
        Some(end) => Found::fail(Evidence::file(path, format!("expired on {end}"))),
        None => Found::Pass,
    }
}

fn accepted(view: &View) -> Found {
    match has_certificate(view) && is_unauthorized(view) {
        true => Found::fail(Evidence::probe("authn", "the request with the client certificate is answered with 401")),
        false => Found::Pass,
    }
}
