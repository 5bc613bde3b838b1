//! A presented certificate in a few words.

use sha2::{Digest as _, Sha256};
use x509_cert::Certificate as X509;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::snapshot::Certificate;
use crate::hex::hex;

/// Describes a certificate in DER; None when it does not parse.
pub fn describe(der: &[u8]) -> Option<Certificate> {
    let parsed = X509::from_der(der).ok()?;
    let body = parsed.tbs_certificate();
    let seconds = |time: &x509_cert::time::Time| time.to_unix_duration().as_secs();
    Some(Certificate {
        subject: body.subject().to_string(),
        issuer: body.issuer().to_string(),
        names: names(&parsed),
        not_before: seconds(&body.validity().not_before),
        not_after: seconds(&body.validity().not_after),
        sha256: hex(&Sha256::digest(der)[..8]),
    })
}

fn names(parsed: &X509) -> Vec<String> {
    let extension = parsed.tbs_certificate().get_extension::<SubjectAltName>();
    let Ok(Some((_, list))) = extension else { return Vec::new() };
    let name = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => address(bytes.as_bytes()),
        _ => None,
    };
    list.0.iter().filter_map(name).collect()
}

fn address(bytes: &[u8]) -> Option<String> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|b| std::net::Ipv4Addr::from(b).to_string()),
        _ => <[u8; 16]>::try_from(bytes).ok().map(|b| std::net::Ipv6Addr::from(b).to_string()),
    }
}
