//! A marked block in a text that belongs to someone else, such as `/etc/hosts`.
//!
//! Lines outside the marks are never changed; the block is replaced in place, or added at the
//! end, or removed.

use super::step::Block;

/// The text with the block as planned; equal to `text` when there is nothing to do.
pub fn place(text: &str, block: &Block) -> String {
    let (begin, end) = marks(&block.name);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let held = find(&lines, &begin, &end);
    let outside = |index: usize| held.is_none_or(|(from, to)| index < from || index >= to);
    let repeated = |wanted: &String| {
        let mut others = lines.iter().enumerate().filter(|(index, _)| outside(*index));
        others.any(|(_, line)| same_words(line, wanted))
    };
    let wanted: Vec<&String> = block.lines.iter().filter(|line| !repeated(line)).collect();
    let new = render(&wanted, &begin, &end);
    match held {
        Some((from, to)) => lines[..from].concat() + &new + &lines[to..].concat(),
        None if new.is_empty() => text.to_owned(),
        None => closed(text) + &new,
    }
}

fn marks(name: &str) -> (String, String) {
    (format!("# BEGIN tenon {name}"), format!("# END tenon {name}"))
}

/// The lines of the block, marks included, as a half-open range. A block that lost its end mark
/// is taken as its begin mark alone: what follows may be someone else's.
fn find(lines: &[&str], begin: &str, end: &str) -> Option<(usize, usize)> {
    let from = lines.iter().position(|line| line.trim_end() == begin)?;
    let length = lines[from..].iter().position(|line| line.trim_end() == end);
    Some((from, from + length.map_or(1, |index| index + 1)))
}

/// True when two lines say the same, whatever the blanks and the comment after them.
fn same_words(line: &str, wanted: &str) -> bool {
    let said = line.split('#').next().unwrap_or_default();
    let mut wanted = wanted.split_whitespace();
    let Some(first) = wanted.next() else { return false };
    let mut said = said.split_whitespace();
    said.next() == Some(first) && {
        let names: Vec<_> = said.collect();
        wanted.all(|word| names.contains(&word))
    }
}

fn render(lines: &[&String], begin: &str, end: &str) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("{begin}\n{body}{end}\n")
}

/// The text with a final newline, unless it is empty.
fn closed(text: &str) -> String {
    let missing = !text.is_empty() && !text.ends_with('\n');
    format!("{text}{}", if missing { "\n" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lines: &[&str]) -> Block {
        Block {
            path: "/etc/hosts".into(),
            name: "api".into(),
            lines: lines.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn row_105_the_block_is_replaced_never_appended() {
        let one = "# BEGIN tenon api\n10.0.0.1\tapi\n# END tenon api\n";
        let two = "# BEGIN tenon api\n10.0.0.2\tapi\n# END tenon api\n";
        let local = "127.0.0.1 localhost\n";
        for (text, lines, expected) in [
            ("", vec!["10.0.0.1\tapi"], one.to_owned()),
            ("127.0.0.1 localhost", vec!["10.0.0.1\tapi"], format!("{local}{one}")),
            (&format!("{one}{local}"), vec!["10.0.0.1\tapi"], format!("{one}{local}")),
            (&format!("{one}{local}"), vec!["10.0.0.2\tapi"], format!("{two}{local}")),
            (&format!("{one}{local}"), vec![], local.to_owned()),
            (local, vec![], local.to_owned()),
            // A begin mark without an end does not swallow the lines after it.
            (&format!("# BEGIN tenon api\n{local}"), vec![], local.to_owned()),
        ] {
            let placed = place(text, &block(&lines));
            assert_eq!(placed, expected, "{text:?}");
            assert_eq!(place(&placed, &block(&lines)), placed, "a second time: {text:?}");
        }
    }

    #[test]
    fn a_pair_that_stands_outside_is_not_repeated() {
        let text = "10.0.0.1   other api # mine\n";
        assert_eq!(place(text, &block(&["10.0.0.1\tapi"])), text);
        let both = place(text, &block(&["10.0.0.1\tapi", "10.0.0.2\tapi"]));
        assert!(both.ends_with("# BEGIN tenon api\n10.0.0.2\tapi\n# END tenon api\n"));
    }
}
