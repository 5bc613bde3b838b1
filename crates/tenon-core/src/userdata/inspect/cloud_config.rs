//! What a cloud-config does: the files it writes and the commands it runs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::document;
use super::node::{Kind, Node};
use super::read::{Filled, Reader};
use crate::codes::decode::BAD_TRANSFER;
use crate::problem::{Place, Problem};

/// Lists of commands, in the order in which cloud-init runs them.
const COMMAND_LISTS: [&str; 2] = ["bootcmd", "runcmd"];

/// Opens a cloud-config: files first, because commands run after they are written.
pub(super) fn open(reader: &mut Reader<'_>, mut node: Node, text: &str, depth: usize) -> Filled {
    let document = match document::parse(text) {
        Ok(documents) => documents.into_iter().next().unwrap_or(Value::Null),
        Err(syntax) => {
            node.problem = Some(syntax.problem(&node.place, text));
            return Ok(node);
        }
    };
    for (index, file) in list(&document, "write_files").iter().enumerate() {
        let child = written_file(reader, &node, file, index, depth + 1)?;
        node.children.push(child);
    }
    for name in COMMAND_LISTS {
        for (index, command) in list(&document, name).iter().enumerate() {
            let child = Node {
                name: format!("{name}[{index}]"),
                kind: Kind::Command,
                bytes: command_line(command).into_bytes(),
                place: node.place.clone(),
                ..Node::default()
            };
            node.children.push(reader.fill(child, depth + 1)?);
        }
    }
    node.document = Some(document);
    Ok(node)
}

/// Opens an archive: a list of parts, each a text or a map with `type` and `content`.
pub(super) fn open_archive(
    reader: &mut Reader<'_>,
    mut node: Node,
    text: &str,
    depth: usize,
) -> Filled {
    let documents = match document::parse(text) {
        Ok(documents) => documents,
        Err(syntax) => {
            node.problem = Some(syntax.problem(&node.place, text));
            return Ok(node);
        }
    };
    let parts = documents.first().and_then(Value::as_array).cloned().unwrap_or_default();
    for (index, part) in parts.iter().enumerate() {
        let content = part.as_str().or_else(|| part.get("content")?.as_str()).unwrap_or("");
        let child = Node {
            name: format!("part {}", index + 1),
            media_type: text_of(part, "type"),
            filename: text_of(part, "filename"),
            bytes: content.as_bytes().to_vec(),
            place: node.place.clone(),
            ..Node::default()
        };
        node.children.push(reader.fill(child, depth + 1)?);
    }
    Ok(node)
}

fn list<'a>(document: &'a Value, key: &str) -> &'a [Value] {
    document.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text_of(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn written_file(
    reader: &mut Reader<'_>,
    above: &Node,
    file: &Value,
    index: usize,
    depth: usize,
) -> Filled {
    let content = text_of(file, "content").unwrap_or_default();
    let mode = file.get("permissions").map(|mode| match mode {
        Value::String(text) => text.clone(),
        // Unquoted `0644` is a number to YAML; shown as the octal it was meant to be.
        Value::Number(number) => number.as_u64().map_or(String::new(), |n| format!("0{n:o}")),
        _ => String::new(),
    });
    let node = Node {
        name: format!("write_files[{index}]"),
        // A file without a path is refused by cloud-init; it is still shown as a file.
        path: Some(text_of(file, "path").unwrap_or_default()),
        mode,
        place: above.place.clone(),
        ..Node::default()
    };
    let encoding = text_of(file, "encoding").unwrap_or_default();
    let decoded = decode_content(reader, &content, &encoding, &above.place);
    reader.file(node, decoded, &content, depth)
}

/// Undoes `encoding`, whose pieces are joined with `+` and applied from the right.
fn decode_content(
    reader: &mut Reader<'_>,
    content: &str,
    encoding: &str,
    place: &Place,
) -> Result<Vec<u8>, Problem> {
    let mut bytes = content.as_bytes().to_vec();
    for step in encoding.rsplit('+').map(str::trim) {
        bytes = match step {
            "b64" | "base64" => from_base64(&bytes, place)?,
            "gz" | "gzip" => reader.gunzip(&bytes, place)?,
            _ => bytes,
        };
    }
    Ok(bytes)
}

pub(super) fn from_base64(bytes: &[u8], place: &Place) -> Result<Vec<u8>, Problem> {
    let letters: Vec<u8> = bytes.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    STANDARD.decode(letters).map_err(|_| {
        Problem::new(&BAD_TRANSFER, "the content is not the base64 it claims").at(place.clone())
    })
}

/// A command as a shell line: a text as it is, an argument vector with each word quoted. The
/// script of `bash -c` stands for itself.
pub(super) fn command_line(command: &Value) -> String {
    let Some(words) = command.as_array() else {
        return command.as_str().unwrap_or_default().to_owned();
    };
    let words: Vec<String> = words.iter().map(word).collect();
    match &words[..] {
        [shell, flag, script]
            if matches!(shell.rsplit('/').next(), Some("sh" | "bash"))
                && matches!(flag.as_str(), "-c" | "-lc" | "-ec") =>
        {
            script.clone()
        }
        _ => words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "),
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A word that a shell reads back as it is.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::super::read::{Options, read};
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_become_shell_lines() {
        for (command, line) in [
            (json!("echo a; b"), "echo a; b"),
            (json!(["/bin/bash", "-c", "echo $X"]), "echo $X"),
            (json!(["systemctl", "enable", "--now", "x y"]), "systemctl enable --now 'x y'"),
            (json!(["a", "it's", 3]), "a 'it'\\''s' 3"),
            (json!([""]), "''"),
            (json!(null), ""),
        ] {
            assert_eq!(command_line(&command), line);
        }
    }

    #[test]
    fn files_are_decoded_from_the_right() {
        let text = "#cloud-config\nwrite_files:\n\
            - {path: /a, content: plain}\n\
            - {path: /b, content: aGVsbG8=, encoding: b64, permissions: 0600}\n\
            - {path: /c, content: H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA==, encoding: gz+b64}\n\
            - {path: /d, content: '*', encoding: b64}\n\
            - {path: /e, content: plain, encoding: gzip}\n\
            - {content: lost}\nruncmd:\n- echo hi\nbootcmd:\n- [a, b]\n";
        let node = read("t", text.as_bytes().to_vec(), &Options::default()).unwrap();
        let seen: Vec<_> = node
            .children
            .iter()
            .map(|n| (n.path.as_deref().unwrap_or(&n.name), n.kind, n.text()))
            .collect();
        let text = |text: &str| text.to_owned();
        assert_eq!(
            seen,
            [
                ("/a", Kind::Text, text("plain")),
                ("/b", Kind::Text, text("hello")),
                ("/c", Kind::Text, text("hello")),
                ("/d", Kind::Opaque, text("*")),
                ("/e", Kind::Opaque, text("plain")),
                ("", Kind::Text, text("lost")),
                ("bootcmd[0]", Kind::Command, text("a b")),
                ("runcmd[0]", Kind::Command, text("echo hi")),
            ]
        );
        assert_eq!(node.children[1].mode.as_deref(), Some("0600"));
    }
}
