//! YAML for people: sorted keys, literal blocks for text of several lines, quotes wherever a
//! reader of any YAML version might see something else than text.

use serde_json::Value;

/// The document, with a final newline.
pub fn emit(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(value, 0, &mut text),
        Value::Array(list) if !list.is_empty() => sequence(value, 0, &mut text),
        scalar => text.push_str(&(inline(scalar, 0) + "\n")),
    }
    text
}

fn mapping(value: &Value, indent: usize, text: &mut String) {
    let Value::Object(map) = value else { return };
    for (position, (key, child)) in map.iter().enumerate() {
        // The first key of a map in a list stands behind its dash.
        if position > 0 || !text.ends_with("- ") {
            text.push_str(&" ".repeat(indent));
        }
        text.push_str(&scalar(key, indent));
        text.push(':');
        nested(child, indent, text);
    }
}

fn sequence(value: &Value, indent: usize, text: &mut String) {
    let Value::Array(list) = value else { return };
    for (position, child) in list.iter().enumerate() {
        if position > 0 || !text.ends_with("- ") {
            text.push_str(&" ".repeat(indent));
        }
        match child {
            Value::Object(map) if !map.is_empty() => {
                text.push_str("- ");
                mapping(child, indent + 2, text);
            }
            Value::Array(items) if !items.is_empty() => {
                text.push_str("- ");
                sequence(child, indent + 2, text);
            }
            other => text.push_str(&format!("- {}\n", inline(other, indent + 2))),
        }
    }
}

fn nested(child: &Value, indent: usize, text: &mut String) {
    match child {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            mapping(child, indent + 2, text);
        }
        Value::Array(list) if !list.is_empty() => {
            text.push('\n');
            sequence(child, indent, text);
        }
        other => text.push_str(&format!(" {}\n", inline(other, indent + 2))),
    }
}

fn inline(value: &Value, indent: usize) -> String {
    match value {
        Value::String(text) => scalar(text, indent),
        other => other.to_string(),
    }
}

/// Plain where that is surely text, a block for several lines, else JSON's quotes, which are
/// YAML's double quotes.
fn scalar(text: &str, indent: usize) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    block(text, indent).unwrap_or_else(|| double_quoted(text))
}

fn double_quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    // DEL and the C1 range may stand in JSON as they are; YAML wants them escaped.
    let escape = |c: char| match c {
        '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{2028}' | '\u{2029}' => {
            format!("\\u{:04x}", u32::from(c))
        }
        c => c.to_string(),
    };
    json.chars().map(escape).collect()
}

/// A literal block, when the text has several lines and nothing in it that a block would lose.
fn block(text: &str, indent: usize) -> Option<String> {
    let printable = text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control());
    let special = text.contains(['\u{feff}', '\u{2028}', '\u{2029}']);
    let first = text.lines().next()?;
    let fits = text.trim_end_matches('\n').contains('\n')
        && printable
        && !special
        && !first.is_empty()
        && !first.starts_with([' ', '\t'])
        && !text.ends_with("\n\n")
        && !text.trim_end_matches('\n').lines().any(|line| line.trim().is_empty() && !line.is_empty());
    if !fits {
        return None;
    }
    let head = if text.ends_with('\n') { "|" } else { "|-" };
    let margin = " ".repeat(indent);
    let lines = text.lines().map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("\n{margin}{line}"),
    });
    Some(lines.fold(head.to_owned(), |block, line| block + &line))
}

/// True for words that no YAML version reads as anything but text.
fn is_plain(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'/');
    let rest = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=%+".contains(&b));
    let lower = text.to_ascii_lowercase();
    let special = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    first && rest && !special.contains(&lower.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn looks_as_a_person_would_write_it() {
        let value = json!({
            "runcmd": [["/bin/bash", "-c", "echo a\necho b"], ["/x.sh"]],
            "write_files": [{"content": "a: 1\n\nb: 2\n", "path": "/etc/x", "permissions": "0644"}],
        });
        let expected = "runcmd:\n- - /bin/bash\n  - \"-c\"\n  - |-\n    echo a\n    echo b\n\
            - - /x.sh\nwrite_files:\n- content: |\n    a: 1\n\n    b: 2\n  path: /etc/x\n  \
            permissions: \"0644\"\n";
        assert_eq!(emit(&value), expected);
    }

    #[test]
    fn text_that_looks_like_something_else_is_quoted() {
        for text in ["no", "Yes", "012", "1e3", "", "- a", "a: b", "#x", "~", "null", "a #b", "0x1"] {
            assert!(scalar(text, 0).starts_with('"'), "{text:?}");
        }
    }

    #[test]
    fn empty_collections_and_numbers_stay() {
        assert_eq!(emit(&json!({"a": [], "b": {}, "c": 3, "d": true})), "a: []\nb: {}\nc: 3\nd: true\n");
    }
}
