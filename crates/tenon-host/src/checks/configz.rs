//! The kubelet's own word about its settings, where it gives it to us.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tenon_core::checks::kubelet::{self, Effective};
use tenon_core::checks::snapshot::Snapshot;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

const PATIENCE: Duration = Duration::from_secs(3);
/// The certificate that a kubelet without an exec plugin presents itself with.
const CLIENT: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
/// An answer is some 10 KiB.
const LARGEST: u64 = 1 << 20;
const PORT: u64 = 10250;

/// What a request to the kubelet needs.
pub(super) struct Access {
    url: String,
    client: String,
    authority: String,
}

/// Finds address, CA and client certificate; an error says what is missing.
pub(super) fn access(snapshot: &Snapshot) -> Result<Access, String> {
    let client = snapshot.text(CLIENT)?.ok_or(
        "the kubelet tells its settings to holders of a client certificate only, and this node \
         has none",
    )?;
    let (arguments, source) = kubelet::arguments(snapshot)?;
    let kubelet = Effective::of(snapshot, arguments, source);
    let authority = kubelet.get("authentication.x509.clientCAFile")?;
    let authority = authority.value.as_str().unwrap_or_default().to_owned();
    let authority = snapshot.text(&authority)?.unwrap_or_default();
    let address = kubelet.flag("node-ip").ok_or("the node's address is not among the flags")?;
    let host = if address.contains(':') { format!("[{address}]") } else { address };
    let port = kubelet.get("port")?.value.as_u64().unwrap_or(PORT);
    Ok(Access { url: format!("https://{host}:{port}/configz"), client, authority })
}

/// Asks the kubelet. Any answer but its settings is a reason.
pub(super) fn ask(access: &Access) -> Result<Value, String> {
    let (mut certificates, mut key) = (Vec::new(), None);
    for item in parse_pem(access.client.as_bytes()) {
        match item.map_err(|_| "the client certificate does not parse".to_owned())? {
            PemItem::Certificate(certificate) => certificates.push(certificate),
            PemItem::PrivateKey(found) => key = Some(found),
            _ => {}
        }
    }
    let key = key.ok_or("the client certificate has no key")?;
    let answer = send(access, &certificates, key).map_err(|error| error.to_string())?;
    let (status, body) = answer;
    if status != 200 {
        return Err(format!("the kubelet answers {status} on /configz"));
    }
    let settings: Value = serde_json::from_slice(&body).map_err(|_| "not JSON".to_owned())?;
    settings.get("kubeletconfig").cloned().ok_or_else(|| "no settings in the answer".to_owned())
}

fn send(
    access: &Access,
    certificates: &[Certificate<'static>],
    key: PrivateKey<'static>,
) -> Result<(u16, Vec<u8>), ureq::Error> {
    let authorities: Vec<Certificate<'static>> = parse_pem(access.authority.as_bytes())
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::new_with_certs(&authorities))
        .client_cert(Some(ClientCert::new_with_certs(certificates, key)))
        .build();
    let agent = ureq::Agent::config_builder()
        .tls_config(tls)
        .proxy(None)
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(PATIENCE))
        .build()
        .new_agent();
    let mut answer = agent.get(&access.url).call()?;
    let body = answer.body_mut().with_config().limit(LARGEST).read_to_vec()?;
    Ok((answer.status().as_u16(), body))
}
