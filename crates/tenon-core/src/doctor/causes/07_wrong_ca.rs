//! The configured CA did not sign the API server's certificate.

use sha2::{Digest as _, Sha256};

use super::*;
use crate::config::grammar;
use crate::hex::hex;

pub(super) static CAUSE: Cause = Cause {
    number: 7,
    slug: "wrong-ca",
    title: "the configured CA is not the API server's, or is damaged",
    step: Step::Ca,
    on_api: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["x509: certificate signed by unknown authority"], GO_X509).on_api(),
        Signal::confirmed(Log::Kubelet, &["unable to load root certificates"], "kubernetes staging/src/k8s.io/client-go/transport/transport.go"),
        Signal::confirmed(Log::Kubelet, &["unable to load client CA file"], "kubernetes cmd/kubelet/app/server.go"),
    ],
    support: SYMPTOMS,
    checks: &[
        Check::proves("ca-parses", parses),
        Check::proves("ca-verifies", verifies),
        Check::excludes("services-trusted", |view| match untrusted_service(view) {
            Some(_) => Found::fail(Evidence::probe("tls", "other services are not trusted either")),
            None => Found::Pass,
        }),
    ],
    why: "the kubelet trusts exactly the CA in its kubeconfig; with another cluster's CA, or a damaged one, it does not talk to the API server at all",
    fix: "replace `spec.cluster.certificateAuthority` by the one of this cluster",
    command: "aws eks describe-cluster --name CLUSTER --query cluster.certificateAuthority.data",
    ..Cause::BLANK
};

fn fingerprint(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..8])
}

fn parses(view: &View) -> Found {
    let Some((path, pem)) = view.authority() else {
        return Found::Unknown("the kubeconfig names no CA that could be read");
    };
    match pem {
        Err(why) => Found::fail(Evidence::file(&path, why)),
        Ok(pem) if grammar::certificates(pem.as_bytes()).is_none() => {
            Found::fail(Evidence::file(path, "holds no certificates that parse"))
        }
        Ok(_) => Found::Pass,
    }
}

fn verifies(view: &View) -> Found {
    let Some(reach) = network::reach(view) else {
        return Found::Unknown("no connection to the API server was tried");
    };
    if reach.trust != Some(Trust::UnknownAuthority) {
        return Found::Pass;
    }
    let presented = reach.chain.last().map_or("unknown", |certificate| certificate.sha256.as_str());
    let configured = view.authority().and_then(|(_, pem)| pem.ok()).map(|pem| fingerprint(pem.as_bytes()));
    let text = format!(
        "presented by {} ({presented}), configured CA {}",
        issuer(reach),
        configured.as_deref().unwrap_or("unknown")
    );
    Found::fail(Evidence::probe("ca", text).field("presented", presented))
}
