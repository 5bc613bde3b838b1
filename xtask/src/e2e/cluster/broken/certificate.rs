//! Certificates with odd dates, which `openssl req` does not make.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use time::{Duration, OffsetDateTime};

/// Something that signs.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
pub struct Leaf {
    certificate: String,
    key: String,
}

impl Authority {
    pub fn new(name: &str) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name, None);
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key)?.pem();
        Ok(Authority { pem, issuer: Issuer::new(params, key) })
    }

    pub fn read(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let pem = fs::read_to_string(certificate)?;
        let key = KeyPair::from_pem(&fs::read_to_string(key)?)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = named("kubernetes", None);
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Ok(Authority { pem, issuer: Issuer::new(params, key) })
    }

    pub fn pem(&self) -> String {
        self.pem.clone()
    }

    /// A certificate that is valid between two times, counted from now.
    pub fn issue(
        &self,
        name: &str,
        address: Option<&str>,
        from: Duration,
        until: Duration,
    ) -> anyhow::Result<Leaf> {
        let now = OffsetDateTime::now_utc();
        let key = KeyPair::generate()?;
        let names: Vec<_> = address.iter().map(|address| (*address).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = named(name, address.is_none().then_some("system:nodes"));
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        (params.not_before, params.not_after) = (now + from, now + until);
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Leaf { certificate, key: key.serialize_pem() })
    }
}

impl Leaf {
    /// Writes both and gives their paths.
    pub fn write(&self, place: &Path, name: &str) -> anyhow::Result<(String, String)> {
        let path = |end: &str| place.join(format!("{name}.{end}")).display().to_string();
        fs::write(path("crt"), &self.certificate)?;
        fs::write(path("key"), &self.key)?;
        Ok((path("crt"), path("key")))
    }
}

/// A node's kubeconfig with a client certificate.
pub fn kubeconfig(leaf: &Leaf) -> String {
    let user = serde_json::json!({
        "client-certificate-data": STANDARD.encode(&leaf.certificate),
        "client-key-data": STANDARD.encode(&leaf.key),
    });
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {
            "server": format!("https://{}:6443", crate::e2e::network::INFRA),
            "certificate-authority": "/etc/kubernetes/pki/ca.crt",
        }}],
        "users": [{"name": "kubelet", "user": user}],
        "contexts": [{"name": "kubelet", "context": {"cluster": "lab", "user": "kubelet"}}],
        "current-context": "kubelet",
    })
    .to_string()
}

fn named(name: &str, group: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, name);
    subject
}
