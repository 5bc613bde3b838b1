//! Text in systemd unit files.

/// A value: `%` would start a specifier, so it is doubled. None with a line break in it.
pub fn value(text: &str) -> Option<String> {
    super::is_one_line(text).then(|| text.replace('%', "%%"))
}

/// One argument of a command line: quoted, with `%` and `$` doubled.
pub fn argument(text: &str) -> Option<String> {
    let escaped = value(text)?.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    Some(format!("\"{escaped}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifiers_and_variables_mean_themselves() {
        assert_eq!(value("50%n").unwrap(), "50%%n");
        assert_eq!(argument("a \"b\" $HOME %n \\").unwrap(), "\"a \\\"b\\\" $$HOME %%n \\\\\"");
        assert_eq!(argument("a\nb"), None);
    }
}
