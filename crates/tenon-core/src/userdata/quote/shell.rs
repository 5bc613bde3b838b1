//! Words of a POSIX shell.

/// The text in single quotes. In them nothing is special but the quote itself.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_closed_and_opened_again() {
        assert_eq!(literal("it's $(x) `y`"), "'it'\\''s $(x) `y`'");
        assert_eq!(literal(""), "''");
    }
}
