//! A certificate or a request for one, read into what is asked about it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Encode, Tag, Tagged};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    BasicConstraints, ExtendedKeyUsage, SubjectAltName, SubjectKeyIdentifier,
};
use x509_cert::name::Name;
use x509_cert::request::{CertReq, ExtensionReq};
use x509_cert::time::Time;

use super::names::San;
use super::pem;

const COMMON_NAME: &str = "2.5.4.3";
const ORGANIZATION: &str = "2.5.4.10";
const EXTENSION_REQUEST: &str = "1.2.840.113549.1.9.14";

/// One part of a subject or issuer: object identifier, kind of text, text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePart {
    pub oid: String,
    pub text: Text,
}

/// How a part of a name is written down; a signer must repeat it as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    Utf8(String),
    Printable(String),
    Ia5(String),
    /// Another kind, or several parts in one place.
    Other,
}

impl Text {
    fn as_str(&self) -> &str {
        match self {
            Text::Utf8(text) | Text::Printable(text) | Text::Ia5(text) => text,
            Text::Other => "",
        }
    }
}

/// Alternative names, with those that no certificate here should have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AltNames {
    pub names: Vec<San>,
    /// E-mail addresses, URIs and anything else.
    pub others: usize,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    pub der: Vec<u8>,
    pub common_name: String,
    pub organizations: Vec<String>,
    pub subject: Vec<NamePart>,
    /// The subject as people read it.
    pub subject_text: String,
    pub issuer_text: String,
    pub alt: AltNames,
    /// Object identifiers of the extended usages.
    pub purposes: Vec<String>,
    pub is_authority: bool,
    /// Seconds since 1970.
    pub not_before: u64,
    pub not_after: u64,
    /// `2034-09-22T14:00:00Z`
    pub not_after_text: String,
    pub key_identifier: Option<Vec<u8>>,
    /// SubjectPublicKeyInfo, DER.
    pub public_key: Vec<u8>,
    pub signed: Signed,
}

/// What was signed, and by what; for whoever can check signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    pub message: Vec<u8>,
    pub signature: Vec<u8>,
    /// Content of the AlgorithmIdentifier.
    pub algorithm: Vec<u8>,
    /// Content of the AlgorithmIdentifier of the certificate's own public key, and its bits.
    pub key_algorithm: Vec<u8>,
    pub key_bits: Vec<u8>,
}

/// A request for a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub common_name: String,
    pub organizations: Vec<String>,
    /// True when the subject has parts besides common name and organizations.
    pub more_subject: bool,
    pub alt: AltNames,
}

impl Certificate {
    /// The first certificate of a PEM text.
    pub fn from_pem(text: &str) -> Option<Self> {
        let blocks = pem::blocks(text)?;
        let block = blocks.iter().find(|block| block.label == "CERTIFICATE")?;
        Certificate::from_der(&block.der)
    }

    pub fn from_der(der: &[u8]) -> Option<Self> {
        let read = x509_cert::Certificate::from_der(der).ok()?;
        let tbs = read.tbs_certificate();
        let extensions = tbs.extensions().map(Vec::as_slice).unwrap_or_default();
        let info = tbs.subject_public_key_info();
        let subject = parts(tbs.subject());
        let (_, after) = (tbs.validity().not_before, tbs.validity().not_after);
        Some(Certificate {
            der: der.to_vec(),
            common_name: values(&subject, COMMON_NAME).into_iter().next().unwrap_or_default(),
            organizations: values(&subject, ORGANIZATION),
            subject_text: tbs.subject().to_string(),
            issuer_text: tbs.issuer().to_string(),
            subject,
            alt: alt_names(extensions),
            purposes: purposes(extensions),
            is_authority: extension::<BasicConstraints>(extensions).is_some_and(|it| it.ca),
            not_before: seconds(&tbs.validity().not_before),
            not_after: seconds(&after),
            not_after_text: after.to_date_time().to_string(),
            key_identifier: extension::<SubjectKeyIdentifier>(extensions)
                .map(|identifier| identifier.0.as_bytes().to_vec()),
            public_key: info.to_der().ok()?,
            signed: Signed {
                message: tbs.to_der().ok()?,
                signature: read.signature().as_bytes()?.to_vec(),
                algorithm: content(read.signature_algorithm().to_der().ok()?),
                key_algorithm: content(info.algorithm.to_der().ok()?),
                key_bits: info.subject_public_key.as_bytes()?.to_vec(),
            },
        })
    }

    /// The certificate as PEM.
    pub fn pem(&self) -> String {
        pem::armour("CERTIFICATE", &self.der)
    }

    /// Whole days until it expires; negative when it has.
    pub fn days_left(&self, now: u64) -> i64 {
        let left = i128::from(self.not_after) - i128::from(now);
        i64::try_from(left.div_euclid(i128::from(super::DAY_SECONDS))).unwrap_or(i64::MAX)
    }
}

impl Request {
    /// Reads a PEM request.
    pub fn from_pem(text: &str) -> Option<Self> {
        let block = pem::blocks(text)?.into_iter().find(|it| it.label == "CERTIFICATE REQUEST")?;
        let read = CertReq::from_der(&block.der).ok()?;
        let subject = parts(&read.info.subject);
        let wanted = ObjectIdentifier::new(EXTENSION_REQUEST).ok()?;
        let asked = read.info.attributes.iter().filter(|attribute| attribute.oid == wanted);
        let mut extensions = Vec::new();
        for value in asked.flat_map(|attribute| attribute.values.iter()) {
            extensions.extend(value.decode_as::<ExtensionReq>().ok()?.0);
        }
        let known = [COMMON_NAME, ORGANIZATION];
        Some(Request {
            common_name: values(&subject, COMMON_NAME).join(","),
            organizations: values(&subject, ORGANIZATION),
            more_subject: subject.iter().any(|part| !known.contains(&part.oid.as_str())),
            alt: alt_names(&extensions),
        })
    }
}

/// The content of a DER value shorter than 128 bytes, as every AlgorithmIdentifier is.
fn content(mut der: Vec<u8>) -> Vec<u8> {
    der.split_off(2.min(der.len()))
}

fn seconds(time: &Time) -> u64 {
    time.to_unix_duration().as_secs()
}

fn parts(name: &Name) -> Vec<NamePart> {
    let several = name.iter_rdn().any(|rdn| rdn.len() != 1);
    let part = |part: &x509_cert::attr::AttributeTypeAndValue| {
        let text = String::from_utf8_lossy(part.value.value()).into_owned();
        NamePart {
            oid: part.oid.to_string(),
            text: match part.value.tag() {
                _ if several => Text::Other,
                Tag::Utf8String => Text::Utf8(text),
                Tag::PrintableString => Text::Printable(text),
                Tag::Ia5String => Text::Ia5(text),
                _ => Text::Other,
            },
        }
    };
    name.iter().map(part).collect()
}

fn values(parts: &[NamePart], oid: &str) -> Vec<String> {
    let wanted = parts.iter().filter(|part| part.oid == oid);
    wanted.map(|part| part.text.as_str().to_owned()).collect()
}

fn extension<'a, T: Decode<'a> + x509_cert::der::oid::AssociatedOid>(
    extensions: &'a [Extension],
) -> Option<T> {
    let found = extensions.iter().find(|extension| extension.extn_id == T::OID)?;
    T::from_der(found.extn_value.as_bytes()).ok()
}

fn purposes(extensions: &[Extension]) -> Vec<String> {
    let usages = extension::<ExtendedKeyUsage>(extensions).map(|usage| usage.0);
    usages.unwrap_or_default().iter().map(ToString::to_string).collect()
}

fn alt_names(extensions: &[Extension]) -> AltNames {
    let present = extensions.iter().any(|it| it.extn_id.to_string() == "2.5.29.17");
    let Some(list) = extension::<SubjectAltName>(extensions) else {
        // Names that cannot be read are names that nobody checked.
        return AltNames { names: Vec::new(), others: usize::from(present) };
    };
    let mut found = AltNames::default();
    for name in &list.0 {
        match name {
            GeneralName::DnsName(name) => found.names.push(San::Dns(name.to_string())),
            GeneralName::IpAddress(bytes) => match address(bytes.as_bytes()) {
                Some(address) => found.names.push(San::Ip(address)),
                None => found.others += 1,
            },
            _ => found.others += 1,
        }
    }
    found
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PEM: &str = include_str!("../config/grammar/test-ca.pem");

    #[test]
    fn a_certificate_is_read_and_written_again() {
        let read = Certificate::from_pem(&format!("a note\n{PEM}")).unwrap();
        assert_eq!(read.pem().lines().collect::<Vec<_>>(), PEM.lines().collect::<Vec<_>>());
        assert!(read.is_authority && read.not_before < read.not_after);
        assert_eq!(read.days_left(read.not_after), 0);
        assert_eq!(read.days_left(read.not_after + 1), -1);
        assert_eq!(read.days_left(read.not_after - 2 * super::super::DAY_SECONDS), 2);
        assert!(read.not_after_text.ends_with('Z'));
        for wrong in ["", "hello", &PEM.replace("CERTIFICATE", "CERTIFICATE REQUEST")] {
            assert!(Certificate::from_pem(wrong).is_none());
        }
        assert!(Request::from_pem(PEM).is_none());
    }

    proptest! {
        #[test]
        fn damaged_certificates_are_read_or_refused(at in 0_usize..1000, byte in any::<u8>()) {
            let mut der = Certificate::from_pem(PEM).unwrap().der;
            let at = at % der.len();
            der[at] = byte;
            let _ = Certificate::from_der(&der);
            let _ = Certificate::from_der(&der[..at]);
            let _ = Request::from_pem(&pem::armour("CERTIFICATE REQUEST", &der));
        }
    }
}
