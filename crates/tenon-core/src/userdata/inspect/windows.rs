//! What EC2Launch reads: PowerShell and batch blocks between tags, and tasks.

use std::ops::Range;

use serde_json::Value;

use super::node::{Kind, Node};

/// The content between a pair of tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block<'a> {
    pub(super) kind: Kind,
    pub(super) body: &'a str,
    /// Where the block stands in the text, tags included.
    pub(super) range: Range<usize>,
    /// Line of the opening tag, from 1.
    pub(super) line: u32,
    /// False when the closing tag is missing.
    pub(super) closed: bool,
}

const TAGS: [(&str, Kind); 2] = [("powershell", Kind::PowerShell), ("script", Kind::Batch)];

/// Every block between tags, in the order in which it stands.
pub(super) fn blocks(text: &str) -> Vec<Block<'_>> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    let (mut from, mut line) = (0, 1);
    while let Some((start, tag, kind)) = next_tag(&lower, from) {
        let body = start + tag.len() + 2;
        let close = format!("</{tag}>");
        let end = lower[body..].find(&close).map(|end| body + end);
        let after = end.map_or(text.len(), |end| end + close.len());
        line += text[from..start].matches('\n').count();
        found.push(Block {
            kind,
            body: &text[body..end.unwrap_or(text.len())],
            range: start..after,
            line: u32::try_from(line).unwrap_or(u32::MAX),
            closed: end.is_some(),
        });
        line += text[start..after].matches('\n').count();
        from = after;
    }
    found
}

fn next_tag(lower: &str, from: usize) -> Option<(usize, &'static str, Kind)> {
    lower[from..].match_indices('<').find_map(|(at, _)| {
        let rest = &lower[from + at + 1..];
        let named = |tag: &str| rest.strip_prefix(tag).is_some_and(|rest| rest.starts_with('>'));
        let (tag, kind) = TAGS.iter().find(|(tag, _)| named(tag))?;
        Some((from + at, *tag, *kind))
    })
}

/// Opens a text with tags: each block becomes a child.
pub(super) fn open(mut node: Node, text: &str) -> Node {
    let blocks = blocks(text);
    if let [first, ..] = &blocks[..] {
        node.kind = first.kind;
    }
    for (index, block) in blocks.iter().enumerate() {
        node.children.push(script(&node, format!("block {}", index + 1), block.kind, block.body));
    }
    node
}

/// Opens EC2Launch tasks: the scripts of `executeScript` become children.
pub(super) fn open_tasks(mut node: Node) -> Node {
    let document = node.document.clone().unwrap_or_default();
    let tasks = document.get("tasks").and_then(Value::as_array).cloned().unwrap_or_default();
    for (index, task) in tasks.iter().enumerate() {
        let inputs = match task.get("inputs") {
            Some(Value::Array(inputs)) => inputs.clone(),
            Some(input) => vec![input.clone()],
            None => Vec::new(),
        };
        for input in inputs {
            let Some(content) = input.get("content").and_then(Value::as_str) else { continue };
            let batch = input.get("type").and_then(Value::as_str) == Some("batch");
            let kind = if batch { Kind::Batch } else { Kind::PowerShell };
            node.children.push(script(&node, format!("tasks[{index}]"), kind, content));
        }
    }
    node
}

fn script(above: &Node, name: String, kind: Kind, body: &str) -> Node {
    let bytes = body.trim_matches(['\r', '\n']).as_bytes().to_vec();
    Node { kind, name, bytes, place: above.place.clone(), ..Node::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_in_any_letter_case() {
        let text = "<Script>\ndir\n</Script>\n<POWERSHELL>a</powershell><persist>true</persist>";
        let found: Vec<_> =
            blocks(text).iter().map(|b| (b.kind, b.body, b.line, b.closed)).collect();
        assert_eq!(found, [(Kind::Batch, "\ndir\n", 1, true), (Kind::PowerShell, "a", 4, true)]);
    }

    #[test]
    fn an_open_tag_reaches_to_the_end() {
        let found = blocks("x\n<powershell>\na");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].body, found[0].line, found[0].closed), ("\na", 2, false));
        assert_eq!(blocks("no tags"), []);
    }
}
