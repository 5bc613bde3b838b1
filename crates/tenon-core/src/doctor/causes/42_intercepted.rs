//! A proxy opens TLS and signs with a CA that nobody here knows.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 42,
    slug: "tls-intercepted",
    title: "a proxy intercepts TLS, and its CA is not trusted here",
    step: Step::Ca,
    alone: true,
    signals: &[
        Signal::confirmed(Log::Bootstrap, &["x509: certificate signed by unknown authority"], GO_X509).elsewhere(),
        Signal::confirmed(Log::Containerd, &["x509: certificate signed by unknown authority"], GO_X509).elsewhere(),
    ],
    support: &[Signal::confirmed(Log::Kubelet, &["ErrImagePull", "x509:"], "kubernetes pkg/kubelet/images/types.go")],
    checks: &[Check::proves("services-trusted", services), Check::supports("proxy-set", proxy)],
    why: "connections to services of the cloud end at a proxy that presents certificates of its own; programs refuse them",
    fix: "add the proxy's CA to the system's bundle in the image, or exempt the services from interception",
    command: "update-ca-trust",
    ..Cause::BLANK
};

fn services(view: &View) -> Found {
    match untrusted_service(view) {
        Some((name, reach)) => {
            let text = format!("{name}: presented by {}", issuer(reach));
            let fix = format!("add the CA `{}` to the system's bundle (/etc/pki/ca-trust/source/anchors, then update-ca-trust)", issuer(reach));
            Found::fail(Evidence::probe("services", text).fix(fix))
        }
        None if view.node.probes.services.is_empty() => Found::Unknown("no service of the cloud was asked"),
        None => Found::Pass,
    }
}

fn proxy(view: &View) -> Found {
    let set = view.environment.contains_key("HTTPS_PROXY") || view.environment.contains_key("https_proxy");
    match set {
        true => Found::fail(Evidence::unit("kubelet.service", "goes through a proxy")),
        false => Found::Pass,
    }
}
