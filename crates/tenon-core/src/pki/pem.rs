//! The armour around keys and certificates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const LINE: usize = 64;

/// One armoured block.
#[derive(Clone, PartialEq, Eq)]
pub struct Block {
    /// `CERTIFICATE`, `PRIVATE KEY`, …
    pub label: String,
    pub der: Vec<u8>,
}

/// The blocks of a text; None if one of them is damaged. Text around them does not count.
pub fn blocks(text: &str) -> Option<Vec<Block>> {
    let mut rest = text;
    let mut found = Vec::new();
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let (label, after) = after.split_once("-----")?;
        let (body, after) = after.split_once(&format!("-----END {label}-----"))?;
        let dense: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        found.push(Block { label: label.to_owned(), der: STANDARD.decode(dense).ok()? });
        rest = after;
    }
    Some(found)
}

/// Puts the armour on.
pub fn armour(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines: Vec<_> = encoded.as_bytes().chunks(LINE).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn armour_comes_off_again() {
        let text = format!("note\n{}{}", armour("A KEY", &[7; 100]), armour("B", b""));
        let blocks = blocks(&text).unwrap();
        let shown: Vec<_> = blocks.iter().map(|it| (it.label.as_str(), it.der.len())).collect();
        assert_eq!(shown, [("A KEY", 100), ("B", 0)]);
        assert!(text.lines().all(|line| line.len() <= LINE));
    }

    #[test]
    fn damage_is_noticed() {
        let whole = armour("X", b"hello");
        for damaged in [whole.replace("END X", "END Y"), whole.replace("aGVs", "a*Vs")] {
            assert!(blocks(&damaged).is_none());
        }
    }
}
