//! Text that is nothing but text inside XML.

/// Escapes what XML would read as its own; control characters have no place in it at all.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_comes_out() {
        assert_eq!(escape("<a b=\"c\">&\n\u{1}é"), "&lt;a b=&quot;c&quot;&gt;&amp;  é");
    }
}
