//! PowerShell strings.

/// Characters that PowerShell takes for a single quote.
const QUOTES: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];

/// The text in single quotes, every quote in it doubled. None when it holds the closing tag of
/// the block, or a control character.
pub fn literal(text: &str) -> Option<String> {
    if !is_writable(text) || !super::is_one_line(text) {
        return None;
    }
    let mut quoted = String::from("'");
    for c in text.chars() {
        quoted.push(c);
        if QUOTES.contains(&c) {
            quoted.push(c);
        }
    }
    quoted.push('\'');
    Some(quoted)
}

/// False for text that would end the block it stands in. The agent compares without case.
pub fn is_writable(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    !["</powershell>", "<powershell>", "</script>", "<script>"]
        .iter()
        .any(|tag| lower.contains(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_single_quotes_are_doubled() {
        assert_eq!(literal("a'b\u{2019}c $x `y").unwrap(), "'a''b\u{2019}\u{2019}c $x `y'");
    }

    #[test]
    fn tags_and_line_breaks_are_refused() {
        for text in ["x</powershell>", "x</PowerShell>", "a\nb", "a\0b"] {
            assert_eq!(literal(text), None, "{text:?}");
        }
    }
}
