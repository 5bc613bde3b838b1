//! PowerShell for EC2Launch: the user's lines before ours, inside one pair of tags.

use super::super::node::{Kind, Node};
use super::super::windows::blocks;
use super::{Merged, not_mergeable};
use crate::problem::Problem;

/// A text as what stands between PowerShell tags and what stands elsewhere.
struct Split {
    body: String,
    outside: String,
}

pub(super) fn merge(custom: &Node, ours: &Node) -> Result<Merged, Problem> {
    let (custom, ours) = (split(custom)?, split(ours)?);
    let lines = |text: &str| {
        let text = text.trim_matches(['\r', '\n']);
        if text.is_empty() { String::new() } else { format!("{text}\n") }
    };
    let body = format!("{}{}", lines(&custom.body), lines(&ours.body));
    let mut text = format!("<powershell>\n{body}</powershell>\n");
    text.push_str(&lines(&custom.outside));
    // Both may ask for a rerun at each boot; once is enough.
    if !custom.outside.contains(ours.outside.trim()) {
        text.push_str(&lines(&ours.outside));
    }
    Ok(Merged { bytes: text.into_bytes(), ..Merged::default() })
}

fn split(node: &Node) -> Result<Split, Problem> {
    match node.kind {
        Kind::Empty => Ok(Split { body: String::new(), outside: String::new() }),
        Kind::PowerShell | Kind::Batch => split_tags(node),
        Kind::Text => Ok(Split { body: node.text(), outside: String::new() }),
        kind => {
            let what = format!("{} is not PowerShell between its tags", kind.name());
            Err(not_mergeable(node, what))
        }
    }
}

fn split_tags(node: &Node) -> Result<Split, Problem> {
    let text = node.text();
    let found = blocks(&text);
    if found.iter().any(|block| !block.closed) {
        return Err(not_mergeable(node, "a tag is opened and never closed"));
    }
    let bodies: Vec<&str> = found
        .iter()
        .filter(|block| block.kind == Kind::PowerShell)
        .map(|block| block.body.trim_matches(['\r', '\n']))
        .collect();
    let mut outside = String::new();
    let mut from = 0;
    for block in found.iter().filter(|block| block.kind == Kind::PowerShell) {
        outside.push_str(&text[from..block.range.start]);
        from = block.range.end;
    }
    outside.push_str(&text[from..]);
    Ok(Split { body: bodies.join("\n"), outside: outside.trim().to_owned() })
}
