//! Bytes and their hashes, in hexadecimal.

use sha2::{Digest, Sha256};

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// sha256 of some bytes.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_out() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
        assert!(sha256(b"").starts_with("e3b0c442"));
    }
}
