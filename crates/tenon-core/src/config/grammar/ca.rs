//! The certificate authority: base64 of PEM certificates, and nothing that is secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::{Check, Fault};
use crate::codes::config as pages;

const MOST_BYTES: usize = 256 * 1024;
const MOST_CERTIFICATES: usize = 64;

/// The bytes that the text encodes. Line breaks and blanks around them do not count.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let dense: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(dense).ok()
}

pub fn check(text: &str) -> Check {
    let refuse = |what: &str| Err(Fault::error(&pages::BAD_CA, what));
    let Some(bytes) = decode(text) else { return refuse("is not base64") };
    if bytes.len() > MOST_BYTES {
        return refuse("is larger than 256 KiB");
    }
    let text = String::from_utf8_lossy(&bytes);
    if text.contains("PRIVATE KEY-----") {
        return Err(Fault::error(&pages::PRIVATE_KEY_IN_CA, "holds a private key"));
    }
    match certificates(&bytes) {
        None => Err(Fault::doubtful(&pages::CA_NOT_PEM, "does not decode to PEM certificates")),
        Some(list) if list.len() > MOST_CERTIFICATES => refuse("has more than 64 certificates"),
        Some(_) => Ok(()),
    }
}

/// The certificates of a PEM file; None if it holds anything else, or none.
pub fn certificates(pem: &[u8]) -> Option<Vec<Certificate>> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let mut rest = std::str::from_utf8(pem).ok()?;
    let mut list = Vec::new();
    while let Some(start) = rest.find("-----BEGIN ") {
        let body = rest[start..].strip_prefix(BEGIN)?;
        let end = body.find(END)?;
        list.push(Certificate::from_der(&decode(&body[..end])?).ok()?);
        rest = &body[end + END.len()..];
    }
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::problem::Class;

    /// A self-signed certificate made for tests; its key was thrown away.
    pub const PEM: &str = include_str!("test-ca.pem");

    pub fn encoded(text: &str) -> String {
        STANDARD.encode(text)
    }

    #[test]
    fn row_68_certificate_authorities() {
        let key = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";
        let many = PEM.repeat(MOST_CERTIFICATES + 1);
        for (text, expected) in [
            (encoded(PEM), Ok(())),
            (encoded(&PEM.repeat(2)), Ok(())),
            (encoded(&many), Err("TN03013")),
            ("not base64!".into(), Err("TN03013")),
            (encoded(&"x".repeat(MOST_BYTES + 1)), Err("TN03013")),
            (encoded("hello"), Err("TN03014")),
            (encoded(&PEM.replace("MII", "AAA")), Err("TN03014")),
            (encoded(&format!("{PEM}{key}")), Err("TN03015")),
        ] {
            assert_eq!(check(&text).map_err(|fault| fault.page.code), expected);
        }
        let fault = check(&encoded("hello")).unwrap_err();
        assert_eq!((fault.eks, fault.tenon), (Class::Warning, Class::Error));
    }

    #[test]
    fn base64_may_be_wrapped() {
        let text = encoded(PEM);
        let (head, tail) = text.split_at(64);
        assert_eq!(check(&format!("{head}\r\n{tail}\n")), Ok(()));
    }
}
