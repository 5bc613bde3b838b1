//! A certificate authority in a few words: whose, until when, which.

use serde_json::{Value, json};

use crate::config::grammar::{certificates, decode_ca};
use crate::hex::sha256;

/// What can be said about a CA without showing it whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub subject: String,
    /// `2034-09-22T14:00:00Z`
    pub expires: String,
    pub expires_unix: u64,
    /// Of the decoded PEM text.
    pub sha256: String,
    pub certificates: usize,
}

/// Describes a CA given as base64 of PEM; None when it is not that.
pub fn describe(encoded: &str) -> Option<Authority> {
    let pem = decode_ca(encoded)?;
    let list = certificates(&pem)?;
    // The earliest end counts: from then on some node will not be trusted.
    let first = list.first()?.tbs_certificate();
    let ends = list.iter().map(|certificate| certificate.tbs_certificate().validity().not_after);
    let end = ends.min_by_key(|end| end.to_unix_duration())?;
    Some(Authority {
        subject: first.subject().to_string(),
        expires: end.to_date_time().to_string(),
        expires_unix: end.to_unix_duration().as_secs(),
        sha256: sha256(&pem),
        certificates: list.len(),
    })
}

impl Authority {
    pub fn to_json(&self) -> Value {
        json!({
            "subject": self.subject, "expires": self.expires, "sha256": self.sha256,
            "certificates": self.certificates,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ca_is_described_and_anything_else_is_not() {
        let encoded = crate::userdata::samples::cluster().certificate_authority.unwrap();
        let authority = describe(&encoded).unwrap();
        assert_eq!(authority.certificates, 1);
        assert_eq!(authority.sha256.len(), 64);
        assert!(authority.expires.ends_with('Z') && !authority.subject.is_empty());
        for wrong in ["", "***", "aGVsbG8=", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="] {
            assert_eq!(describe(wrong), None, "{wrong}");
        }
    }
}
