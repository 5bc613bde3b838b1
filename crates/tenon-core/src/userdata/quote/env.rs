//! Environment files that bash sources and systemd reads, with the same result.

use std::collections::BTreeMap;

/// Why a pair cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Key,
    /// A control character: both readers would end the line or refuse the file.
    Value,
}

/// One `KEY="value"` line, with its newline.
///
/// Double quotes, because systemd does not join quoted pieces the way a shell does, which
/// single quotes would need.
pub fn line(key: &str, value: &str) -> Result<String, Refused> {
    let mut bytes = key.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !first || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(Refused::Key);
    }
    if !super::is_one_line(value) {
        return Err(Refused::Value);
    }
    let mut text = format!("{key}=\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            text.push('\\');
        }
        text.push(c);
    }
    Ok(text + "\"\n")
}

/// A whole file, sorted by key.
pub fn file(variables: &BTreeMap<String, String>) -> Result<String, Refused> {
    variables.iter().map(|(key, value)| line(key, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_get_a_backslash() {
        assert_eq!(line("A", "x\"\\$`y").unwrap(), "A=\"x\\\"\\\\\\$\\`y\"\n");
        assert_eq!(line("A", "").unwrap(), "A=\"\"\n");
    }

    #[test]
    fn what_would_end_the_line_is_refused() {
        assert_eq!(line("A", "x\ny"), Err(Refused::Value));
        assert_eq!(line("A", "x\0"), Err(Refused::Value));
        for key in ["", "1A", "A-B", "A B", "A=B"] {
            assert_eq!(line(key, "x"), Err(Refused::Key), "{key}");
        }
    }
}
