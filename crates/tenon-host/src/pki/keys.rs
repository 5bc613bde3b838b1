//! Private keys: made here, or read in the forms that other tools write.

use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tenon_core::codes::usage::BUG;
use tenon_core::pki::pem::{self, Block};
use tenon_core::problem::Problem;

/// The kinds of keys that are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    P256,
    P384,
}

/// A new key.
pub(super) fn generate(algorithm: Algorithm) -> Result<KeyPair, Problem> {
    let kind = match algorithm {
        Algorithm::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
        Algorithm::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
    };
    KeyPair::generate_for(kind).map_err(|error| Problem::new(&BUG, "making a key").cause(error))
}

/// The key of a PEM file: PKCS #8, or the older forms of RSA and EC keys.
pub(super) fn read(text: &str) -> Option<KeyPair> {
    let blocks = pem::blocks(text)?;
    let key = blocks.iter().find_map(pkcs8)?;
    KeyPair::try_from(&PrivatePkcs8KeyDer::from(key)).ok()
}

pub(super) fn is_rsa(key: &KeyPair) -> bool {
    key.algorithm() == &rcgen::PKCS_RSA_SHA256
}

/// The key's public half, as certificates hold it.
pub(super) fn public(key: &KeyPair) -> Vec<u8> {
    key.subject_public_key_info()
}

const RSA: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
const EC: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const CURVES: [&[u8]; 2] =
    [&[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], &[6, 5, 0x2b, 0x81, 4, 0, 0x22]];

/// The key as PKCS #8; older forms are wrapped into it.
fn pkcs8(block: &Block) -> Option<Vec<u8>> {
    let algorithm = match block.label.as_str() {
        "PRIVATE KEY" => return Some(block.der.clone()),
        "RSA PRIVATE KEY" => RSA.to_vec(),
        "EC PRIVATE KEY" => {
            let names = |curve: &&&[u8]| block.der.windows(curve.len()).any(|at| at == **curve);
            [EC, CURVES.iter().find(names)?].concat()
        }
        _ => return None,
    };
    let version = value(2, &[0]);
    Some(value(0x30, &[version, value(0x30, &algorithm), value(4, &block.der)].concat()))
}

/// One DER value.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let short = content.len() < 128;
    let count = u8::try_from(length.len()).unwrap_or_default();
    let head = match short {
        true => vec![tag, u8::try_from(content.len()).unwrap_or_default()],
        false => [vec![tag, 0x80 | count], length].concat(),
    };
    [head, content.to_vec()].concat()
}
