//! TOML in one canonical form: keys sorted, values before tables, literal strings where
//! possible, no indentation. The form is the one nodeadm's encoder has, so that checksums made
//! for its files still match.

use toml::{Table, Value};

/// Lays `over` on `base`: tables merge key by key, everything else replaces.
pub fn merge_over(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge_over(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Writes a document in canonical form, with a final newline if it has any content.
pub fn canonical(table: &Table) -> String {
    let mut text = String::new();
    write_table(table, &[], &mut text);
    text
}

fn write_table(table: &Table, path: &[&str], text: &mut String) {
    let mut entries: Vec<(&str, &Value)> = table.iter().map(|(k, v)| (k.as_str(), v)).collect();
    entries.sort_by_key(|(key, _)| *key);
    let (tables, values): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, v)| has_header(v));
    for (key, value) in &values {
        text.push_str(&format!("{} = {}\n", key_text(key), inline(value)));
    }
    // A bare parent header and its first child stand together; content and a header do not.
    let mut separate = !values.is_empty();
    for (key, value) in tables {
        if separate {
            text.push('\n');
        }
        separate = true;
        let path = [path, &[key]].concat();
        write_below(value, &path, text);
    }
}

fn write_below(value: &Value, path: &[&str], text: &mut String) {
    let name = path.iter().map(|key| key_text(key)).collect::<Vec<_>>().join(".");
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let gap = if index == 0 { "" } else { "\n" };
                text.push_str(&format!("{gap}[[{name}]]\n"));
                if let Value::Table(table) = item {
                    write_table(table, path, text);
                }
            }
        }
        Value::Table(table) => {
            text.push_str(&format!("[{name}]\n"));
            write_table(table, path, text);
        }
        _ => {}
    }
}

/// True for what is written below a header of its own: tables, and lists of tables only.
fn has_header(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_table),
        _ => false,
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => float(*number),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(table) => {
            let mut entries: Vec<(&String, &Value)> = table.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let pair =
                |(key, value): (&String, &Value)| format!("{} = {}", key_text(key), inline(value));
            format!("{{{}}}", entries.into_iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Whole floats need a `.0`, or they would read back as integers.
fn float(number: f64) -> String {
    match number {
        n if n.is_nan() => "nan".into(),
        n if n.is_infinite() => if n > 0.0 { "inf" } else { "-inf" }.into(),
        n if n.trunc() == n => format!("{n:.1}"),
        n => n.to_string(),
    }
}

fn key_text(key: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !key.is_empty() && key.bytes().all(bare) { key.to_owned() } else { string(key) }
}

/// A literal string if the content allows it, else a basic one.
pub(crate) fn string(text: &str) -> String {
    let literal = |c: char| c != '\'' && (!c.is_ascii_control() || c == '\t');
    if text.chars().all(literal) { format!("'{text}'") } else { basic(text) }
}

/// A string in double quotes.
pub(crate) fn basic(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn writes_the_canonical_form() {
        let text = "b = 1\na = \"x\"\n[p.q]\nk = [1, 2]\n[p.'a.b'.c]\nz = 'it''s'\n"
            .replace("'it''s'", "\"it's\"");
        let expected =
            "a = 'x'\nb = 1\n\n[p]\n[p.'a.b']\n[p.'a.b'.c]\nz = \"it's\"\n\n[p.q]\nk = [1, 2]\n";
        assert_eq!(canonical(&table(&text)), expected);
    }

    #[test]
    fn arrays_of_tables_have_their_headers() {
        let text = "[[x]]\nn = 1\n[[x]]\nn = 2.0\n[x.y]\nm = [{'b.c' = 1, a = 2}, 3]\n";
        let expected = "[[x]]\nn = 1\n\n[[x]]\nn = 2.0\n\n[x.y]\nm = [{a = 2, 'b.c' = 1}, 3]\n";
        assert_eq!(canonical(&table(text)), expected);
    }

    #[test]
    fn merging_replaces_all_but_tables() {
        let mut base = table("k = 1\nl = [1, 2]\n[t]\na = 1\nb = 1\n");
        merge_over(&mut base, table("l = []\n[t]\nb = 'x'\n[k]\nnew = true\n"));
        assert_eq!(base, table("l = []\n[t]\na = 1\nb = 'x'\n[k]\nnew = true\n"));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            any::<String>().prop_map(Value::String),
            any::<i64>().prop_map(Value::Integer),
            any::<bool>().prop_map(Value::Boolean),
            (-1e9..1e9f64).prop_map(Value::Float),
        ];
        scalar.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::Table(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_document_reads_back(map in prop::collection::btree_map(any::<String>(), any_value(), 0..5)) {
            let table: Table = map.into_iter().collect();
            let text = canonical(&table);
            prop_assert_eq!(table, text.parse::<Table>().unwrap());
        }
    }
}
