//! Patches become one tree: later documents win, each field by the rule of the table.

use std::collections::BTreeMap;

use super::fields::{self, join};
use super::grammar::Fault;
use super::items::identity;
use super::node::{Data, Document, Node};
use super::schema::{Field, Kind, Merge};
use crate::codes::config as pages;
use crate::problem::Finding;
use crate::toml_text;

/// Merges the patches of the documents, in order. Findings are those that only two documents
/// together can cause.
pub fn merge(documents: &[Document], patches: Vec<Node>) -> (Option<Node>, Vec<Finding>) {
    let mut merger = Merger { documents, findings: Vec::new() };
    let mut tree = None;
    for patch in patches {
        let kind = documents[patch.origin.document].kind;
        tree = merger.fields(tree, patch, fields::DOCUMENT, kind, "");
    }
    (tree, merger.findings)
}

struct Merger<'a> {
    documents: &'a [Document],
    findings: Vec<Finding>,
}

impl Merger<'_> {
    fn fields(
        &mut self,
        base: Option<Node>,
        patch: Node,
        fields: &'static [Field],
        kind: Kind,
        path: &str,
    ) -> Option<Node> {
        let (mut merged, patch, origin) = match (base, patch.data) {
            (Some(Node { data: Data::Map(base), origin }), Data::Map(map)) => (base, map, origin),
            (_, Data::Map(map)) => (BTreeMap::new(), map, patch.origin),
            (base, _) => return base,
        };
        for (name, node) in patch {
            let Some(field) = fields.iter().find(|field| field.name == name) else { continue };
            let base = merged.remove(&name);
            let node = self.field(base, node, field, kind, &join(path, &name));
            merged.extend(node.map(|node| (name, node)));
        }
        Some(Node::new(Data::Map(merged), origin))
    }

    fn field(
        &mut self,
        base: Option<Node>,
        patch: Node,
        field: &Field,
        kind: Kind,
        path: &str,
    ) -> Option<Node> {
        if patch.is_null() {
            return base.filter(|_| kind == Kind::Eks);
        }
        match field.merge {
            Merge::Fields => self.fields(base, patch, field.children(), kind, path),
            Merge::NonEmpty if patch.text() == Some("") => base,
            Merge::NonEmpty | Merge::Replace => Some(patch),
            Merge::Latch => self.latch(base, patch, kind, path),
            Merge::List if patch.list().is_empty() => base.filter(|_| kind == Kind::Eks),
            Merge::List => Some(patch),
            Merge::Append => Some(append(base, patch)),
            Merge::Keys => Some(by_key(base, patch)),
            Merge::KeysNonEmpty => Some(by_key_non_empty(base, patch)),
            Merge::Deep => Some(deep(base, patch)),
            Merge::Toml => merge_toml(base, patch),
            Merge::Identity(keys) => Some(by_identity(base, patch, keys)),
        }
    }

    /// `false` does not undo `true` in `node.eks.aws`, as in nodeadm, but it is not silent.
    fn latch(&mut self, base: Option<Node>, patch: Node, kind: Kind, path: &str) -> Option<Node> {
        let was_on = base.as_ref().is_some_and(|node| node.data == Data::Bool(true));
        if kind == Kind::Tenon || !was_on || patch.data == Data::Bool(true) {
            return Some(patch);
        }
        let document = &self.documents[patch.origin.document];
        let fault = Fault::tolerated(&pages::CANNOT_TURN_OFF, "cannot be turned off here");
        self.findings.push(document.finding(&fault, patch.origin.span, path));
        base
    }
}

fn append(base: Option<Node>, patch: Node) -> Node {
    match (base, patch) {
        (
            Some(Node { data: Data::List(mut items), origin }),
            Node { data: Data::List(more), .. },
        ) => {
            items.extend(more);
            Node::new(Data::List(items), origin)
        }
        (_, patch) => patch,
    }
}

/// Deep by key. A null deletes its key; an empty inner map changes nothing.
fn by_key(base: Option<Node>, patch: Node) -> Node {
    let Data::Map(entries) = patch.data else { return patch };
    let (mut merged, origin) = match base {
        Some(Node { data: Data::Map(base), origin }) => (base, origin),
        _ => (BTreeMap::new(), patch.origin),
    };
    for (key, node) in entries {
        match &node.data {
            Data::Null => {
                merged.remove(&key);
            }
            Data::Map(inner) if inner.is_empty() => {}
            Data::Map(_) => {
                let node = by_key(merged.remove(&key), node);
                merged.insert(key, node);
            }
            _ => {
                merged.insert(key, node);
            }
        }
    }
    Node::new(Data::Map(merged), origin)
}

fn by_key_non_empty(base: Option<Node>, patch: Node) -> Node {
    let Data::Map(entries) = patch.data else { return patch };
    let (mut merged, origin) = match base {
        Some(Node { data: Data::Map(base), origin }) => (base, origin),
        _ => (BTreeMap::new(), patch.origin),
    };
    for (key, node) in entries {
        match &node.data {
            Data::Map(_) => {
                let node = by_key_non_empty(merged.remove(&key), node);
                merged.insert(key, node);
            }
            _ if is_empty(&node) && merged.contains_key(&key) => {}
            _ => {
                merged.insert(key, node);
            }
        }
    }
    Node::new(Data::Map(merged), origin)
}

fn is_empty(node: &Node) -> bool {
    match &node.data {
        Data::Null | Data::Bool(false) => true,
        Data::Text(text) => text.is_empty(),
        Data::List(items) => items.is_empty(),
        _ => false,
    }
}

/// Objects merge, anything else replaces. `{}` over an object therefore changes nothing.
fn deep(base: Option<Node>, patch: Node) -> Node {
    match (base, patch) {
        (
            Some(Node { data: Data::Map(mut merged), origin }),
            Node { data: Data::Map(entries), .. },
        ) => {
            for (key, node) in entries {
                let node = deep(merged.remove(&key), node);
                merged.insert(key, node);
            }
            Node::new(Data::Map(merged), origin)
        }
        (_, patch) => patch,
    }
}

/// Text given once stays as it was written; two texts are merged as tables.
fn merge_toml(base: Option<Node>, patch: Node) -> Option<Node> {
    let text = patch.text().unwrap_or_default();
    if text.is_empty() {
        return base;
    }
    let Some(base_text) = base.as_ref().and_then(Node::text) else { return Some(patch) };
    // A text that does not parse has its finding already.
    let (Ok(mut below), Ok(above)) =
        (base_text.parse::<toml::Table>(), text.parse::<toml::Table>())
    else {
        return Some(patch);
    };
    toml_text::merge_over(&mut below, above);
    Some(Node::new(Data::Text(toml_text::canonical(&below)), patch.origin))
}

fn by_identity(base: Option<Node>, patch: Node, keys: &[&str]) -> Node {
    let (Some(Node { data: Data::List(mut merged), origin }), Node { data: Data::List(items), .. }) =
        (base, patch.clone())
    else {
        return patch;
    };
    for item in items {
        let name = identity(&item, keys);
        match merged.iter_mut().find(|old| name.is_some() && identity(old, keys) == name) {
            Some(old) => *old = item,
            None => merged.push(item),
        }
    }
    Node::new(Data::List(merged), origin)
}
