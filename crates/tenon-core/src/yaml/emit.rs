//! YAML for people to read, in block style.
//!
//! Keys and strings are quoted whenever a reader of YAML 1.1 or 1.2 could take them for
//! something else; text of several lines is a `|` block.

use serde_json::Value;

use crate::tree::{Dialect, Meaning, Scalar};

/// Writes a value as a YAML document, keys in the order given.
pub fn emit(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes a value; the cursor stands where its first line starts.
fn write(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (index, (key, value)) in map.iter().enumerate() {
                start_line(index, indent, out);
                out.push_str(&inline(key));
                out.push(':');
                write_after_key(value, indent, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                start_line(index, indent, out);
                out.push_str("- ");
                write(item, indent + 2, out);
            }
        }
        Value::Object(_) => out.push_str("{}\n"),
        Value::Array(_) => out.push_str("[]\n"),
        Value::String(text) if is_block(text) => write_block(text, indent, out),
        Value::String(text) => line(&inline(text), out),
        Value::Null | Value::Bool(_) | Value::Number(_) => line(&value.to_string(), out),
    }
}

fn line(text: &str, out: &mut String) {
    out.push_str(text);
    out.push('\n');
}

/// The first line of a collection continues the line it stands on.
fn start_line(index: usize, indent: usize, out: &mut String) {
    if index > 0 {
        out.push_str(&" ".repeat(indent));
    }
}

fn write_after_key(value: &Value, indent: usize, out: &mut String) {
    let nested = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        out.push('\n');
        out.push_str(&" ".repeat(indent + 2));
    } else {
        out.push(' ');
    }
    write(value, indent + 2, out);
}

/// Text that a `|` block keeps as it is: several lines, nothing that needs an escape, and no
/// blank first line, which would hide the indentation.
fn is_block(text: &str) -> bool {
    let lines = text.contains('\n') && text.trim_end_matches('\n').contains('\n');
    let first = !text.starts_with([' ', '\t', '\n']);
    lines && first && text.chars().all(|c| c == '\n' || c == '\t' || is_printable(c))
}

fn write_block(text: &str, indent: usize, out: &mut String) {
    let body = text.trim_end_matches('\n');
    let ends = text.len() - body.len();
    out.push_str(match ends {
        0 => "|-\n",
        1 => "|\n",
        _ => "|+\n",
    });
    // At the top of a document, too, a block is indented.
    let margin = " ".repeat(indent.max(2));
    for line in body.split('\n') {
        if !line.is_empty() {
            out.push_str(&margin);
        }
        out.push_str(line);
        out.push('\n');
    }
    out.push_str(&"\n".repeat(ends.saturating_sub(1)));
}

/// A string on one line, quoted unless every reader takes it for text.
fn inline(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

fn is_plain(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '_'));
    let inner = |c: char| c.is_ascii_alphanumeric() || " _-./:@+=,;()".contains(c);
    let scalar = Scalar { text: text.to_owned(), plain: true };
    let is_text = |dialect| matches!(scalar.resolve(dialect), Meaning::Text(_));
    starts
        && text.chars().all(inner)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && is_text(Dialect::Yaml11)
        && is_text(Dialect::Yaml12)
}

/// JSON's escapes are YAML's, and further ones for what YAML does not print.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) > 0xffff => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Printable in YAML and in a terminal: no controls, line separators, byte order marks or
/// characters without a meaning.
fn is_printable(c: char) -> bool {
    let separator = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !c.is_control() && !separator && u32::from(c) <= 0xffff
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::yaml::parse;

    #[test]
    fn reads_well() {
        let value = json!({
            "apiVersion": "tenon.dev/v1alpha1",
            "spec": {
                "containerd": {"config": "version = 3\n[plugins]\n"},
                "empty": {}, "list": [], "nothing": null, "on": true,
                "kubelet": {"flags": ["--v=2", "a: b"], "taints": [{"effect": "NoSchedule", "key": "x"}]},
                "ratio": 1.5, "pairs": [[1, 2], [3]],
            },
        });
        let expected = "apiVersion: tenon.dev/v1alpha1
spec:
  containerd:
    config: |
      version = 3
      [plugins]
  empty: {}
  kubelet:
    flags:
      - \"--v=2\"
      - \"a: b\"
    taints:
      - effect: NoSchedule
        key: x
  list: []
  nothing: null
  \"on\": true
  pairs:
    - - 1
      - 2
    - - 3
  ratio: 1.5
";
        assert_eq!(emit(&value), expected);
    }

    #[test]
    fn quotes_what_either_dialect_would_read_otherwise() {
        for text in [
            "",
            "no",
            "Yes",
            "y",
            "0777",
            "1e3",
            "1_000",
            "0x1F",
            "~",
            "null",
            "1:30",
            "2001-01-01",
            "-",
            "- a",
            "a: b",
            "a #b",
            "a:",
            " a",
            "a ",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "{a",
            "[a",
            "|",
            ">",
            "'a",
            "\"a",
            "<<",
            "=",
            ".inf",
            "ü",
            "a\u{7f}",
            "a\tb",
        ] {
            assert!(emit(&json!(text)).starts_with('"'), "{text}");
        }
        for text in ["web", "a b", "/etc/x", "https://x.example/y", "nope", "m5.large", "a=b,c=d"] {
            assert_eq!(emit(&json!(text)), format!("{text}\n"));
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ -~\n\t]{0,30}",
            "(y|no|on|null|0[0-7]{1,3}|[0-9_.:e+-]{1,8})",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_written_reads_back_in_both_dialects(value in values()) {
            let text = emit(&value);
            let documents = parse(&text).map_err(|syntax| {
                TestCaseError::fail(format!("{syntax:?} in {text:?}"))
            })?;
            prop_assert_eq!(documents.len(), 1);
            for dialect in [Dialect::Yaml11, Dialect::Yaml12] {
                prop_assert_eq!(&documents[0].to_json(dialect), &value, "{:?} in {:?}", dialect, text);
            }
        }
    }
}
