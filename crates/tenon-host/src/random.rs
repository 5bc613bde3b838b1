//! Random bytes from the operating system, for keys, serials and tokens.

use tenon_core::codes::usage::BUG;
use tenon_core::problem::Problem;

/// Fresh random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).map_err(|_| {
        Problem::new(&BUG, "the operating system gave no random bytes")
            .fix("check that getrandom(2) or /dev/urandom works on this machine")
    })?;
    Ok(bytes)
}

/// Text of `length` letters and digits, each of the 36 equally likely.
pub fn letters(length: usize) -> Result<String, Problem> {
    const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut text = String::new();
    while text.len() < length {
        // 252 is the largest multiple of 36 in a byte: what is above would favour the first letters.
        let fair = bytes::<32>()?.into_iter().filter(|byte| *byte < 252);
        text.extend(fair.map(|byte| char::from(ALPHABET[usize::from(byte % 36)])));
    }
    text.truncate(length);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_the_alphabet_and_length_and_differ() {
        let (one, two) = (letters(4000).unwrap(), letters(4000).unwrap());
        assert_ne!(one, two);
        assert_eq!(one.len(), 4000);
        let different: std::collections::BTreeSet<char> = one.chars().collect();
        assert_eq!(different.len(), 36, "each letter shows up in 4000 draws");
    }
}
