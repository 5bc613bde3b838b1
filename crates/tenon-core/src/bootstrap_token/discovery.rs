//! Finding a cluster with a token: the public `cluster-info` is signed with it, and the CA in
//! there is pinned by its hash.
//!
//! The signature shows that whoever wrote the document knows the token; the hash shows that the
//! CA is the one which the person who handed out the token saw. Neither alone is enough: anybody
//! with a token could sign, and a hash says nothing about the rest of the document.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Token;
use crate::codes::cluster::{BAD_CA_HASH, UNTRUSTED_CLUSTER};
use crate::kubeconfig::{self, Kubeconfig, Material};
use crate::pki::{Certificate, pem};
use crate::problem::Problem;

/// Where the document is.
pub const PATH: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

/// The hash of a CA's public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaHash([u8; 32]);

impl CaHash {
    /// Reads `sha256:` and 64 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let bad = || Problem::new(&BAD_CA_HASH, "that is not the hash of a CA");
        let digits = text.trim().strip_prefix("sha256:").ok_or_else(bad)?;
        if digits.len() != 64 || !digits.is_ascii() {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let pair = digits.get(2 * index..2 * index + 2).unwrap_or_default();
            *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
        }
        Ok(CaHash(bytes))
    }

    pub fn of(certificate: &Certificate) -> Self {
        CaHash(Sha256::digest(&certificate.public_key).into())
    }
}

impl std::fmt::Display for CaHash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// What the document says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterInfo {
    /// The document itself, to be compared with a second reading.
    pub text: String,
    /// `https://HOST:PORT`
    pub server: String,
    /// PEM.
    pub authority: Vec<u8>,
}

/// The document and its signature by this token; None while the cluster has not signed it yet.
pub fn signed<'a>(config_map: &'a Value, token: &Token) -> Option<(&'a str, &'a str)> {
    let data = &config_map["data"];
    let signature = data[format!("jws-kubeconfig-{}", token.id)].as_str()?;
    Some((data["kubeconfig"].as_str()?, signature))
}

fn untrusted(what: &str) -> Problem {
    Problem::new(&UNTRUSTED_CLUSTER, what)
}

/// Checks signature and pin, and reads the document.
pub fn check(
    text: &str,
    signature: &str,
    token: &Token,
    pins: &[CaHash],
) -> Result<ClusterInfo, Problem> {
    if !is_signed(text, signature, token) {
        return Err(untrusted("cluster-info is not signed with this token"));
    }
    let Kubeconfig { server, authority, .. } = kubeconfig::read(text, PATH)?;
    let Some(Material::Inline(authority)) = authority else {
        return Err(untrusted("cluster-info names no CA"));
    };
    let blocks = pem::blocks(&String::from_utf8_lossy(&authority)).unwrap_or_default();
    let mut found = blocks.iter().filter_map(|block| Certificate::from_der(&block.der));
    if !found.any(|certificate| pins.contains(&CaHash::of(&certificate))) {
        return Err(untrusted("the CA in cluster-info is not the one that was pinned"));
    }
    Ok(ClusterInfo { text: text.to_owned(), server, authority })
}

/// A JWS with HS256 whose middle part, the payload, was left out.
fn is_signed(payload: &str, signature: &str, token: &Token) -> bool {
    let parts: Vec<_> = signature.split('.').collect();
    let [header, "", mac] = parts[..] else { return false };
    let head = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    let head: Value = serde_json::from_slice(&head).unwrap_or_default();
    if head["alg"] != "HS256" || head["kid"] != token.id.as_str() {
        return false;
    }
    let (Ok(mac), Ok(mut hmac)) = (
        URL_SAFE_NO_PAD.decode(mac),
        Hmac::<Sha256>::new_from_slice(token.secret.expose().as_bytes()),
    ) else {
        return false;
    };
    hmac.update(format!("{header}.{}", URL_SAFE_NO_PAD.encode(payload)).as_bytes());
    hmac.verify_slice(&mac).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubeconfig::Credential;

    const CA: &str = include_str!("../config/grammar/test-ca.pem");

    fn token() -> Token {
        Token::parse("abcdef.0123456789abcdef").unwrap()
    }

    fn document() -> String {
        let ca = CA.as_bytes().to_vec();
        Kubeconfig::new("", "https://10.0.0.1:6443", ca, "", Credential::None).write()
    }

    /// Signs a document as the cluster does.
    fn sign(payload: &str, token: &Token) -> String {
        let header = serde_json::json!({"alg": "HS256", "kid": token.id}).to_string();
        let header = URL_SAFE_NO_PAD.encode(header);
        let mut hmac = Hmac::<Sha256>::new_from_slice(token.secret.expose().as_bytes()).unwrap();
        hmac.update(format!("{header}.{}", URL_SAFE_NO_PAD.encode(payload)).as_bytes());
        format!("{header}..{}", URL_SAFE_NO_PAD.encode(hmac.finalize().into_bytes()))
    }

    fn pin() -> CaHash {
        CaHash::of(&Certificate::from_pem(CA).unwrap())
    }

    #[test]
    fn signature_and_pin_together_are_trusted() {
        let info = check(&document(), &sign(&document(), &token()), &token(), &[pin()]).unwrap();
        assert_eq!(info.server, "https://10.0.0.1:6443");
        assert_eq!(info.authority, CA.as_bytes());
    }

    #[test]
    fn anything_else_is_not() {
        let (document, token) = (document(), token());
        let signature = sign(&document, &token);
        let other = Token::parse("abcdef.fedcba9876543210").unwrap();
        let other_id = Token::parse("fedcba.0123456789abcdef").unwrap();
        let none = signature.replacen("eyJ", "e30", 1);
        let changed = document.replace("10.0.0.1", "10.0.0.2");
        let wrong = CaHash([0; 32]);
        for (text, signature, token, pins) in [
            (&changed, &signature, &token, vec![pin()]),
            (&document, &sign(&document, &other), &token, vec![pin()]),
            (&document, &sign(&document, &other_id), &token, vec![pin()]),
            (&document, &none, &token, vec![pin()]),
            (&document, &String::new(), &token, vec![pin()]),
            (&document, &signature, &token, vec![wrong]),
            (&document, &signature, &token, vec![]),
        ] {
            let problem = check(text, signature, token, &pins).unwrap_err();
            assert_eq!(problem.page.code, "TN10632");
            assert!(!problem.render("error").contains("0123456789abcdef"));
        }
    }

    #[test]
    fn the_mac_is_that_of_rfc_7515() {
        // Appendix A.1.
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let key = URL_SAFE_NO_PAD.decode(key).unwrap();
        let mut hmac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        let header = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9";
        let payload = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        hmac.update(format!("{header}.{payload}").as_bytes());
        let mac = URL_SAFE_NO_PAD.encode(hmac.finalize().into_bytes());
        assert_eq!(mac, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    }

    #[test]
    fn hashes_have_one_form() {
        let text = pin().to_string();
        assert_eq!(CaHash::parse(&text).unwrap(), pin());
        for wrong in
            ["", "sha256:", "sha256:zz", &text[7..], &text.replace('a', "g"), &format!("{text}0")]
        {
            assert_eq!(CaHash::parse(wrong).unwrap_err().exit(), 3, "{wrong}");
        }
    }
}
