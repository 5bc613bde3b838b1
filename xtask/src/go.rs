//! Just enough of Go's text to read type declarations and calls: no grammar, no types.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Fetches a module by name and gives the directory it was unpacked into.
pub(crate) fn download(module: &str) -> anyhow::Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        // Outside any module, so that no go.mod of this directory is read or written.
        .current_dir(std::env::temp_dir())
        .output()
        .context("running go; install it to regenerate the tables")?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("reading the answer of go about {module}"))?;
    match answer["Dir"].as_str() {
        Some(directory) => Ok(PathBuf::from(directory)),
        None => bail!("fetching {module}: {}", answer["Error"].as_str().unwrap_or("no reason")),
    }
}

pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {path:?}"))?;
    Ok(without_comments(&text))
}

/// Removes comments and keeps strings, so that braces and quotes in prose do no harm.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            let length = string_length(rest).unwrap_or(first.len_utf8());
            kept.push_str(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    kept
}

/// Length of the string or rune literal at the start of the text.
fn string_length(text: &str) -> Option<usize> {
    let quote = text.bytes().next().filter(|byte| matches!(byte, b'"' | b'`' | b'\''))?;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quote != b'`' => escaped = true,
            _ if byte == quote => return Some(at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// A declared type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Declared {
    Struct(Vec<Field>),
    /// `type Name other`
    Same(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Empty for an embedded struct.
    pub(crate) go_name: String,
    pub(crate) go_type: String,
    /// Name in JSON; empty when the fields are inlined, `-` when the field is left out.
    pub(crate) json: String,
}

/// The type declarations of one file, by name.
pub(crate) fn declarations(text: &str) -> BTreeMap<String, Declared> {
    let mut found = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(declaration) = line.strip_prefix("type ") else { continue };
        let Some((name, rest)) = declaration.split_once(' ') else { continue };
        let rest = rest.trim();
        if rest == "struct {" {
            let body = lines.by_ref().take_while(|line| !line.starts_with('}'));
            found.insert(name.to_owned(), Declared::Struct(body.filter_map(field).collect()));
        } else if !rest.ends_with('{') {
            found.insert(name.to_owned(), Declared::Same(rest.to_owned()));
        }
    }
    found
}

/// `Name Type` with a tag, or an embedded `Type`.
fn field(line: &str) -> Option<Field> {
    let (declaration, tag) = line.split_once('`').unwrap_or((line, ""));
    let mut words = declaration.split_whitespace();
    let first = words.next()?;
    let go_type: String = words.collect();
    let json = tag.split_once("json:\"").map(|(_, rest)| rest);
    let json = json.and_then(|rest| rest.split([',', '"']).next());
    if go_type.is_empty() {
        let (go_name, go_type) = (String::new(), first.to_owned());
        return Some(Field { go_name, go_type, json: json.unwrap_or_default().to_owned() });
    }
    let json = json.unwrap_or(first).to_owned();
    Some(Field { go_name: first.to_owned(), go_type, json })
}

/// The arguments of a call, from the text just after its opening parenthesis.
pub(crate) fn arguments(text: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let mut depth = 0;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = string_length(rest).unwrap_or(first.len_utf8());
        match first {
            ')' | ']' | '}' if depth == 0 => break,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if first == ',' && depth == 0 {
            arguments.push(String::new());
        } else if let Some(last) = arguments.last_mut() {
            last.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    arguments.iter().map(|argument| argument.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_strings_stay() {
        let text = "a // b\nc /* d\n */ e \"// f\" `/* g */` '\"' // h";
        assert_eq!(without_comments(text), "a \nc  e \"// f\" `/* g */` '\"' ");
    }

    #[test]
    fn structs_and_aliases_are_read() {
        let text = "type Mode string\n\ntype Thing struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\n\
                    \tMaxPods  *int32 `json:\"maxPods,omitempty\"`\n\tRaw string\n}\n";
        let found = declarations(text);
        assert_eq!(found["Mode"], Declared::Same("string".into()));
        let field = |go_name: &str, go_type: &str, json: &str| Field {
            go_name: go_name.into(),
            go_type: go_type.into(),
            json: json.into(),
        };
        let expected = vec![
            field("", "metav1.TypeMeta", ""),
            field("MaxPods", "*int32", "maxPods"),
            field("Raw", "string", "Raw"),
        ];
        assert_eq!(found["Thing"], Declared::Struct(expected));
    }

    #[test]
    fn arguments_respect_nesting_and_strings() {
        let text = "f(&c.A, 1), \"name, x)\", []string{\"a\", \"b\"}, \"\"+\n\"y\") rest";
        let expected = ["f(&c.A, 1)", "\"name, x)\"", "[]string{\"a\", \"b\"}", "\"\"+\n\"y\""];
        assert_eq!(arguments(text), expected);
    }
}
