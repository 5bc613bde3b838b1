//! Keys of repositories: the fingerprint of an OpenPGP key, which a plan pins.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
/// The packet of a key that others sign.
const PUBLIC_KEY: u8 = 6;

/// A fingerprint as it is compared: without blanks, in capitals.
pub fn plain(fingerprint: &str) -> String {
    fingerprint.split_whitespace().collect::<String>().to_ascii_uppercase()
}

/// The fingerprint of the one key in a file, armoured or not. None if it holds no key, more than
/// one, or something that is no key file: each further key would be trusted as well.
pub fn fingerprint(file: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(file).unwrap_or_default();
    let bytes = match text.find(BEGIN) {
        Some(at) => unarmoured(&text[at + BEGIN.len()..])?,
        None => file.to_vec(),
    };
    let mut rest = bytes.as_slice();
    let mut keys = Vec::new();
    while !rest.is_empty() {
        let (tag, body, after) = packet(rest)?;
        if tag == PUBLIC_KEY {
            keys.push(body);
        }
        rest = after;
    }
    let [key] = keys[..] else { return None };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    match key.first()? {
        4 => {
            let length = u16::try_from(key.len()).ok()?.to_be_bytes();
            Some(hex(&sha1(&[&[0x99], &length[..], key].concat())))
        }
        6 => {
            let length = u32::try_from(key.len()).ok()?.to_be_bytes();
            Some(hex(&Sha256::digest([&[0x9b], &length[..], key].concat())))
        }
        _ => None,
    }
}

/// The bytes between head and checksum of an armoured block.
fn unarmoured(text: &str) -> Option<Vec<u8>> {
    let lines = text.lines().map(str::trim).skip_while(|line| !line.is_empty());
    let body: String = lines.skip(1).take_while(|line| !line.starts_with(['=', '-'])).collect();
    STANDARD.decode(body).ok()
}

/// Tag and body of the first packet, and what follows it.
fn packet(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if first & 0x80 == 0 {
        return None;
    }
    let big = |bytes: &[u8]| bytes.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
    let (tag, width, length) = match first & 0x40 {
        0 => {
            let width = match first & 3 {
                0 => 1,
                1 => 2,
                2 => 4,
                _ => return None,
            };
            (first >> 2 & 0xf, width, big(rest.get(..width)?))
        }
        _ => {
            let tag = first & 0x3f;
            match *rest.first()? {
                one @ 0..=191 => (tag, 1, usize::from(one)),
                one @ 192..=223 => {
                    (tag, 2, ((usize::from(one) - 192) << 8) + usize::from(*rest.get(1)?) + 192)
                }
                255 => (tag, 5, big(rest.get(1..5)?)),
                _ => return None,
            }
        }
    };
    let body = rest.get(width..)?;
    (length <= body.len()).then(|| (tag, &body[..length], &body[length..]))
}

/// SHA-1, which names keys of version 4 and is used for nothing else.
fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        }
        for at in 16..80 {
            let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
            words[at] = mixed.rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.into_iter().enumerate() {
            let (mixed, constant) = match at / 20 {
                0 => (b & c | !b & d, 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let sum =
                [mixed, e, constant, word].into_iter().fold(a.rotate_left(5), u32::wrapping_add);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\
        mDMEavprNhYJKwYBBAHaRw8BAQdArrgCLYo6RF0+6D46+xB6zVFaJ83DO9pCvlIk\n\
        WpzDLPa0FWxhYiA8bGFiQGV4YW1wbGUuY29tPoiQBBMWCAA4FiEE1m+jVqWWhU9u\n\
        58Ui0HkIgdYqz9QFAmr6azYCGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ\n\
        0HkIgdYqz9QE6AEAzKjz6J9S0pVOMOanGw/DtXP8Te2Nf1DcO+S3kXKkeuoBALD7\n\
        9jcC7pa+wok8kBnef47uQthYt8U+V7kXirg/68MO\n=s5ez\n\
        -----END PGP PUBLIC KEY BLOCK-----\n";
    const FINGERPRINT: &str = "D66FA356A596854F6EE7C522D0790881D62ACFD4";

    /// The key and its fingerprint are those of GnuPG.
    #[test]
    fn a_key_is_known_by_its_fingerprint() {
        assert_eq!(fingerprint(KEY.as_bytes()).as_deref(), Some(FINGERPRINT));
        assert_eq!(plain("d66fa356 a596854F 6EE7C522 D0790881 D62ACFD4"), FINGERPRINT);
        let binary = unarmoured(&KEY[BEGIN.len()..]).unwrap();
        assert_eq!(fingerprint(&binary).as_deref(), Some(FINGERPRINT));
        let mut changed = binary.clone();
        changed[20] ^= 1;
        assert_ne!(fingerprint(&changed).as_deref(), Some(FINGERPRINT));
        assert_eq!(fingerprint(&[binary.clone(), binary.clone()].concat()), None, "two keys");
        for wrong in [&binary[..40], b"", b"<html>", &[0x99, 0, 1, 3]] {
            assert_eq!(fingerprint(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn sha1_is_that_of_the_standard() {
        for (message, digest) in [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (&"a".repeat(55), "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
            (&"a".repeat(56), "c2db330f6083854c99d4b5bfb6e8f29f201be699"),
            (&"a".repeat(64), "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
        ] {
            let found: String =
                sha1(message.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(found, digest, "{} bytes", message.len());
        }
    }
}
