//! What an Ignition config writes: files, units and their drop-ins.

use serde_json::Value;

use super::cloud_config::from_base64;
use super::node::{Kind, Node};
use super::read::{Filled, Reader};
use crate::codes::decode::BAD_TRANSFER;
use crate::problem::{Place, Problem};

/// Opens an Ignition config, whose tree is already in the node.
pub(super) fn open(reader: &mut Reader<'_>, mut node: Node, depth: usize) -> Filled {
    let document = node.document.clone().unwrap_or_default();
    let at = |pointer: &str| document.pointer(pointer).and_then(Value::as_array).cloned();
    for (index, file) in at("/storage/files").unwrap_or_default().iter().enumerate() {
        let child = file_node(reader, file, index, &node.place, depth + 1)?;
        node.children.push(child);
    }
    for unit in at("/systemd/units").unwrap_or_default() {
        let name = text(&unit, "name");
        let path = format!("/etc/systemd/system/{name}");
        add_unit(reader, &mut node, &unit, path.clone(), depth)?;
        let dropins = unit.get("dropins").and_then(Value::as_array).cloned();
        for dropin in dropins.unwrap_or_default() {
            let path = format!("{path}.d/{}", text(&dropin, "name"));
            add_unit(reader, &mut node, &dropin, path, depth)?;
        }
    }
    Ok(node)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Adds a unit or drop-in that has contents; one that is only enabled writes no file.
fn add_unit(
    reader: &mut Reader<'_>,
    node: &mut Node,
    unit: &Value,
    path: String,
    depth: usize,
) -> Result<(), Problem> {
    let Some(contents) = unit.get("contents").and_then(Value::as_str) else { return Ok(()) };
    let child = Node {
        name: path.rsplit('/').next().unwrap_or_default().to_owned(),
        path: Some(path),
        bytes: contents.as_bytes().to_vec(),
        place: node.place.clone(),
        ..Node::default()
    };
    node.children.push(reader.fill(child, depth + 1)?);
    Ok(())
}

fn file_node(
    reader: &mut Reader<'_>,
    file: &Value,
    index: usize,
    place: &Place,
    depth: usize,
) -> Filled {
    let source = file.pointer("/contents/source").and_then(Value::as_str).unwrap_or_default();
    let node = Node {
        name: format!("files[{index}]"),
        path: Some(text(file, "path").to_owned()),
        mode: file.get("mode").and_then(Value::as_u64).map(|mode| format!("0{mode:o}")),
        place: place.clone(),
        ..Node::default()
    };
    if !source.is_empty() && !source.starts_with("data:") {
        // Fetched at boot: what it holds is not here.
        let bytes = source.as_bytes().to_vec();
        return Ok(Node { kind: Kind::Opaque, bytes, ..node });
    }
    let compressed = file.pointer("/contents/compression").and_then(Value::as_str) == Some("gzip");
    let content = data_url(source, place).and_then(|bytes| match compressed {
        true => reader.gunzip(&bytes, place),
        false => Ok(bytes),
    });
    reader.file(node, content, source, depth)
}

/// The bytes of a `data:` URL; an empty source is an empty file.
fn data_url(url: &str, place: &Place) -> Result<Vec<u8>, Problem> {
    let Some(rest) = url.strip_prefix("data:") else { return Ok(Vec::new()) };
    let damaged = || {
        Problem::new(&BAD_TRANSFER, "the content is not the data URL it claims").at(place.clone())
    };
    let (head, data) = rest.split_once(',').ok_or_else(damaged)?;
    let bytes = percent_decoded(data.as_bytes()).ok_or_else(damaged)?;
    match head.ends_with(";base64") {
        true => from_base64(&bytes, place),
        false => Ok(bytes),
    }
}

fn percent_decoded(mut data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(data.len());
    while let [first, rest @ ..] = data {
        let (byte, rest) = match (first, rest) {
            (b'%', [high, low, rest @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let (high, low) = digit(high).zip(digit(low))?;
                ((high * 16 + low) as u8, rest)
            }
            (b'%', _) => return None,
            (byte, rest) => (*byte, rest),
        };
        bytes.push(byte);
        data = rest;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_are_decoded() {
        for (url, expected) in [
            ("data:,hello%20world", "hello world"),
            ("data:text/plain;charset=utf-8,a%2Cb", "a,b"),
            ("data:;base64,aGVsbG8=", "hello"),
            ("", ""),
        ] {
            let bytes = data_url(url, &Place::default()).unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), expected, "{url}");
        }
        for broken in ["data:;base64,*", "data:nothing", "data:,%zz", "data:,%1"] {
            let problem = data_url(broken, &Place::default()).unwrap_err();
            assert_eq!(problem.page, &BAD_TRANSFER, "{broken}");
        }
    }
}
