//! Certificates in a few words: whose, by whom, from when to when.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Describes every certificate of a text; keys beside them are passed over.
pub fn describe_all(text: &str) -> Vec<Value> {
    let blocks = text.split(BEGIN).skip(1).map(|rest| rest.split(END).next().unwrap_or_default());
    blocks
        .map(|block| describe(block).unwrap_or_else(|| json!({"error": "does not parse"})))
        .collect()
}

fn describe(block: &str) -> Option<Value> {
    let dense: String = block.split_whitespace().collect();
    let certificate = Certificate::from_der(&STANDARD.decode(dense).ok()?).ok()?;
    let inner = certificate.tbs_certificate();
    let validity = inner.validity();
    Some(json!({
        "subject": inner.subject().to_string(),
        "issuer": inner.issuer().to_string(),
        "notBefore": validity.not_before.to_date_time().to_string(),
        "notAfter": validity.not_after.to_date_time().to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::grammar::decode_ca;

    #[test]
    fn certificates_are_described_and_keys_are_not_shown() {
        let encoded = crate::userdata::samples::cluster().certificate_authority.unwrap();
        let pem = String::from_utf8(decode_ca(&encoded).unwrap()).unwrap();
        let text = format!(
            "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n{pem}{BEGIN}\nxx\n{END}"
        );
        let found = describe_all(&text);
        assert_eq!(found.len(), 2);
        assert!(found[0]["subject"].as_str().unwrap().starts_with("CN="));
        assert!(found[0]["notAfter"].as_str().unwrap().ends_with('Z'));
        assert_eq!(found[1]["error"], "does not parse");
        assert!(!json!(found).to_string().contains("CANARY"));
    }
}
