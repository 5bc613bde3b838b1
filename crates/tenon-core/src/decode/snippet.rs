//! The line that a finding points at, without the user's values.
//!
//! People put secrets in wrong places, so a line is shown up to its key and the rest becomes
//! `…`. Only what is certainly a key is shown: everything else is indentation and `…`.

use crate::problem::Snippet;
use crate::tree::Span;

const HIDDEN: char = '…';
/// Longer keys are no keys of ours.
const LONGEST_KEY: usize = 63;
/// Columns of a line that are shown.
const WIDEST: usize = 100;

/// Shows the line of a span: its key and `…` for its value.
pub fn snippet(text: &str, span: &Span) -> Snippet {
    let index = span.line.saturating_sub(1) as usize;
    let line = text.lines().nth(index).unwrap_or("");
    let shown = visible_part(line);
    let hides = shown.len() < line.trim_end().len();
    let length = count(&shown) + u32::from(hides);
    let mut cut = shown;
    if hides {
        cut.push(HIDDEN);
    }
    // A mark inside the hidden value moves to the `…` that stands for it.
    let column = span.column.clamp(1, length.max(1));
    let width = span.width.clamp(1, (length.max(1) + 1).saturating_sub(column));
    narrow(Snippet { line: cut, column, width })
}

/// Cuts a line that is too long to read: on the left up to the mark, then on the right.
fn narrow(snippet: Snippet) -> Snippet {
    let length = snippet.line.chars().count();
    if length <= WIDEST {
        return snippet;
    }
    let skipped = (length + 1 - WIDEST).min(snippet.column.saturating_sub(1) as usize);
    let mut line: String = snippet.line.chars().skip(skipped).collect();
    // The sign takes one column, so what is skipped moves the mark by one less.
    let moved = skipped.saturating_sub(1);
    if skipped > 0 {
        line.insert(0, HIDDEN);
    }
    if line.chars().count() > WIDEST {
        line = line.chars().take(WIDEST - 1).chain([HIDDEN]).collect();
    }
    let column = snippet.column - u32::try_from(moved).unwrap_or(0);
    let width = snippet.width.min((count(&line) + 1).saturating_sub(column)).max(1);
    Snippet { line, column, width }
}

fn count(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// Indentation, list dashes, and the key with its colon when there is one.
fn visible_part(line: &str) -> String {
    let indent = line.len() - line.trim_start_matches([' ', '\t', '-', '{', '[']).len();
    let (lead, rest) = line.split_at(indent);
    // `---` and other lines of signs alone have nothing to hide.
    let Some(length) = key_length(rest) else { return lead.to_owned() };
    let after = &rest[length..];
    let blank = if after.trim().is_empty() { "" } else { " " };
    format!("{lead}{}{blank}", &rest[..length])
}

/// The length of `key:` at the start, quotes and colon included. A name is what a field of a
/// document can be called; anything else could be a value that happens to hold a colon.
fn key_length(rest: &str) -> Option<usize> {
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let start = quote.map_or(0, char::len_utf8);
    let name = rest[start..].len() - rest[start..].trim_start_matches(is_name).len();
    if name == 0 || name > LONGEST_KEY {
        return None;
    }
    let mut end = start + name;
    if let Some(quote) = quote {
        rest[end..].starts_with(quote).then_some(())?;
        end += 1;
    }
    let after = rest[end..].strip_prefix(':')?;
    // In `{"a":1}` no blank follows; in plain YAML `a:b` is one scalar.
    let ends = after.is_empty() || after.starts_with([' ', '\t']) || quote.is_some();
    ends.then_some(end + 1)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_show_keys_and_no_values() {
        for (line, shown) in [
            ("token: hunter2", "token: …"),
            ("  kublet:", "  kublet:"),
            ("  kublet:  ", "  kublet:"),
            ("    - name: hunter2", "    - name: …"),
            ("    - hunter2", "    - …"),
            ("- - hunter2", "- - …"),
            ("\"quoted\": hunter2", "\"quoted\": …"),
            ("'node.eks.aws/x': hunter2", "'node.eks.aws/x': …"),
            ("{\"a\":\"hunter2\"}", "{\"a\": …"),
            ("hunter2", "…"),
            ("  hunter2 with: colon", "  …"),
            ("https://user:hunter2@host/", "…"),
            ("\"hunter2", "…"),
            ("\"hunter2: x", "…"),
            ("'hunter2\": x", "…"),
            ("größe: hunter2", "…"),
            ("# hunter2", "…"),
            ("", ""),
            ("---", "---"),
            ("key:hunter2", "…"),
        ] {
            let span = Span { offset: 0, line: 1, column: 1, width: 1 };
            let snippet = snippet(line, &span);
            assert_eq!(snippet.line, shown, "{line}");
            assert!(!snippet.line.contains("hunter2"));
        }
    }

    #[test]
    fn marks_stay_on_what_is_shown() {
        let text = "a: 1\n  maxPod: secret words\n";
        let mark = |column, width| {
            let shown = snippet(text, &Span { offset: 0, line: 2, column, width });
            (shown.line, shown.column, shown.width)
        };
        let line = "  maxPod: …".to_owned();
        assert_eq!(mark(3, 6), (line.clone(), 3, 6));
        assert_eq!(mark(11, 12), (line.clone(), 11, 1));
        assert_eq!(mark(18, 5), (line, 11, 1));
    }

    #[test]
    fn long_lines_are_cut_around_the_mark() {
        let indented = format!("{}kublet: hunter2", " ".repeat(200));
        let shown = snippet(&indented, &Span { offset: 0, line: 1, column: 201, width: 6 });
        assert_eq!(shown.line.chars().count(), 100);
        let marked: String = shown.line.chars().skip(shown.column as usize - 1).take(6).collect();
        assert_eq!((marked.as_str(), shown.width), ("kublet", 6));
        let front = snippet(&indented, &Span { offset: 0, line: 1, column: 1, width: 1 });
        assert_eq!((front.line.chars().count(), front.column, front.width), (100, 1, 1));
    }

    #[test]
    fn a_line_beyond_the_text_is_empty() {
        let span = Span { offset: 9, line: 7, column: 3, width: 4 };
        assert_eq!(snippet("a: 1", &span), Snippet { line: String::new(), column: 1, width: 1 });
    }
}
