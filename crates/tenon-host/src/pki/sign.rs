//! Certificates and requests, out of what the table wants.

use rcgen::string::{Ia5String, PrintableString};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, SanType,
    SerialNumber,
};
use tenon_core::codes::pki as pages;
use tenon_core::codes::usage::BUG;
use tenon_core::pki::certificate::{NamePart, Text};
use tenon_core::pki::{Certificate, DAY_SECONDS, SKEW_SECONDS, San, Usage, Wanted};
use tenon_core::problem::Problem;
use time::OffsetDateTime;

use super::keys;
use crate::random;

/// A CA that can sign.
pub(super) struct Signer {
    pub(super) certificate: Certificate,
    params: CertificateParams,
    key: KeyPair,
}

impl Signer {
    /// Refuses a CA whose time is over, or whose name cannot be repeated exactly.
    pub(super) fn new(
        name: &str,
        certificate: Certificate,
        key: KeyPair,
        now: u64,
    ) -> Result<Self, Problem> {
        in_time(name, &certificate, now)?;
        let unusable = |what: String| Problem::new(&pages::CA_UNUSABLE, what);
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished(&certificate.subject)
            .ok_or_else(|| unusable(format!("the subject of {name} cannot be repeated")))?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = AUTHORITY_USAGES.to_vec();
        if let Some(identifier) = &certificate.key_identifier {
            params.key_identifier_method = KeyIdMethod::PreSpecified(identifier.clone());
        }
        Ok(Signer { certificate, params, key })
    }

    /// Signs a leaf for this key. It does not outlive its CA.
    pub(super) fn sign(
        &self,
        wanted: &Wanted,
        key: &KeyPair,
        seconds: u64,
        now: u64,
    ) -> Result<String, Problem> {
        let mut params = leaf(wanted, key)?;
        let end = now.saturating_add(seconds).min(self.certificate.not_after);
        dated(&mut params, now, end)?;
        let issuer = Issuer::from_params(&self.params, &self.key);
        Ok(params.signed_by(key, &issuer).map_err(bug)?.pem())
    }
}

/// The problem of a CA that is not valid now.
pub(super) fn in_time(name: &str, certificate: &Certificate, now: u64) -> Result<(), Problem> {
    let until = &certificate.not_after_text;
    if now > certificate.not_after {
        return Err(Problem::new(&pages::CA_EXPIRED, format!("{name} expired at {until}")));
    }
    if now < certificate.not_before {
        return Err(Problem::new(&pages::CA_NOT_YET_VALID, format!("{name} is not valid yet")));
    }
    Ok(())
}

const AUTHORITY_USAGES: [KeyUsagePurpose; 3] =
    [KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];

/// A CA that signs itself, PEM.
pub(super) fn authority(
    wanted: &Wanted,
    key: &KeyPair,
    days: u32,
    now: u64,
) -> Result<String, Problem> {
    let mut params = subject(wanted)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = AUTHORITY_USAGES.to_vec();
    dated(&mut params, now, now.saturating_add(u64::from(days) * DAY_SECONDS))?;
    Ok(params.self_signed(key).map_err(bug)?.pem())
}

/// A request for a leaf, to be signed elsewhere, PEM.
pub(super) fn request(wanted: &Wanted, key: &KeyPair) -> Result<String, Problem> {
    leaf(wanted, key)?.serialize_request(key).and_then(|request| request.pem()).map_err(bug)
}

fn leaf(wanted: &Wanted, key: &KeyPair) -> Result<CertificateParams, Problem> {
    let mut params = subject(wanted)?;
    // Says in words that it is no CA, and has a key identifier of its own.
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    if keys::is_rsa(key) {
        params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
    }
    let usage = |usage: &Usage| match usage {
        Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
        Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
    };
    params.extended_key_usages = wanted.usages.iter().map(usage).collect();
    Ok(params)
}

fn subject(wanted: &Wanted) -> Result<CertificateParams, Problem> {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    if let Some(organization) = wanted.organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, wanted.common_name.as_str());
    params.distinguished_name = name;
    for san in &wanted.names {
        params.subject_alt_names.push(match san {
            San::Ip(address) => SanType::IpAddress(*address),
            San::Dns(name) => SanType::DnsName(name.as_str().try_into().map_err(bug)?),
        });
    }
    Ok(params)
}

fn dated(params: &mut CertificateParams, now: u64, end: u64) -> Result<(), Problem> {
    let at = |seconds: u64| {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        OffsetDateTime::from_unix_timestamp(seconds)
            .map_err(|error| Problem::new(&BUG, "a time beyond the calendar").cause(error))
    };
    params.not_before = at(now.saturating_sub(SKEW_SECONDS))?;
    params.not_after = at(end)?;
    params.serial_number = Some(SerialNumber::from_slice(&random::bytes::<16>()?));
    params.use_authority_key_identifier_extension = true;
    Ok(())
}

/// The name of a CA as it must stand in what it signs; None when that cannot be written.
fn distinguished(parts: &[NamePart]) -> Option<DistinguishedName> {
    let mut name = DistinguishedName::new();
    for part in parts {
        let arcs: Vec<u64> = part.oid.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
        let kind = DnType::from_oid(&arcs);
        // One of a kind: the second organizational unit of a name would replace the first.
        if name.get(&kind).is_some() {
            return None;
        }
        name.push(kind, text(&part.text)?);
    }
    Some(name)
}

fn text(text: &Text) -> Option<DnValue> {
    Some(match text {
        Text::Utf8(text) => DnValue::Utf8String(text.clone()),
        Text::Printable(text) => {
            DnValue::PrintableString(PrintableString::try_from(text.as_str()).ok()?)
        }
        Text::Ia5(text) => DnValue::Ia5String(Ia5String::try_from(text.as_str()).ok()?),
        Text::Other => return None,
    })
}

fn bug(error: rcgen::Error) -> Problem {
    Problem::new(&BUG, "writing a certificate").cause(error)
}

/// True when the issuer's key made the certificate's signature.
pub(super) fn is_signed_by(certificate: &Certificate, issuer: &Certificate) -> bool {
    let (signed, key) = (&certificate.signed, &issuer.signed);
    let provider = rustls::crypto::ring::default_provider();
    let fitting = provider.signature_verification_algorithms.all.iter().filter(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == key.key_algorithm
            && algorithm.signature_alg_id().as_ref() == signed.algorithm
    });
    certificate.issuer_text == issuer.subject_text
        && fitting.into_iter().any(|algorithm| {
            algorithm.verify_signature(&key.key_bits, &signed.message, &signed.signature).is_ok()
        })
}
