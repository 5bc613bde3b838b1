//! Values with the place where each was written.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Number, Value};

use super::grammar::Fault;
use super::schema::Kind;
use crate::decode::snippet;
use crate::problem::{Finding, Place, Problem};
use crate::tree::{Span, Tree};

/// Characters of a path that messages show.
const LONGEST_PATH: usize = 160;

/// A value and its origin. Its `Debug` shows shapes only: values may be secrets.
#[derive(Clone, PartialEq)]
pub struct Node {
    pub data: Data,
    pub origin: Origin,
}

#[derive(Clone, PartialEq)]
pub enum Data {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(BTreeMap<String, Node>),
}

/// Where a value was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Position in the list of documents.
    pub document: usize,
    pub span: Span,
    /// The key in front of the value; the value itself for entries of a list.
    pub key: Span,
}

/// One document of the chain.
#[derive(Clone)]
pub struct Document {
    /// Source, part and layers.
    pub place: Place,
    pub kind: Kind,
    pub text: String,
    pub tree: Tree,
}

impl Document {
    /// The place of a span of this document.
    pub fn place_of(&self, span: &Span, path: &str) -> Place {
        span.in_part(&self.place, path)
    }

    /// A fault of the value at a path, as this kind of document counts it.
    pub fn finding(&self, fault: &Fault, span: Span, path: &str) -> Finding {
        let path = shown(path);
        let what = format!("`{path}` {}", fault.what);
        let mut problem = Problem::new(fault.page, what).at(self.place_of(&span, &path));
        problem.fix.clone_from(&fault.fix);
        problem.snippet = Some(snippet(&self.text, &span));
        Finding { class: fault.class(self.kind), problem }
    }
}

/// A path as messages show it. What is longer than any real one holds a text that was put where
/// a key belongs.
fn shown(path: &str) -> String {
    match path.char_indices().nth(LONGEST_PATH) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Document({}, {})", self.kind.group(), self.place)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.data {
            Data::List(items) => items.fmt(out),
            Data::Map(entries) => entries.fmt(out),
            _ => out.write_str(self.shape()),
        }
    }
}

impl Node {
    pub fn new(data: Data, origin: Origin) -> Self {
        Node { data, origin }
    }

    /// The kind of value in words.
    pub fn shape(&self) -> &'static str {
        match &self.data {
            Data::Null => "null",
            Data::Bool(_) => "true or false",
            Data::Number(_) => "a number",
            Data::Text(_) => "a text",
            Data::List(_) => "a list",
            Data::Map(_) => "an object",
        }
    }

    pub fn is_null(&self) -> bool {
        self.data == Data::Null
    }

    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn map(&self) -> Option<&BTreeMap<String, Node>> {
        match &self.data {
            Data::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn list(&self) -> &[Node] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// How many entries a list or map has; 0 for anything else.
    pub fn len(&self) -> usize {
        self.map().map_or(self.list().len(), BTreeMap::len)
    }

    /// The value below a key.
    pub fn at(&self, key: &str) -> Option<&Node> {
        self.map()?.get(key)
    }

    /// One key down, or one entry of a list.
    pub fn step(&self, key: &str) -> Option<&Node> {
        self.at(key).or_else(|| self.list().get(key.parse::<usize>().ok()?))
    }

    /// The value at a path such as `spec.kubelet.flags[1]`. Keys may hold dots themselves.
    pub fn find(&self, path: &str) -> Option<&Node> {
        if path.is_empty() {
            return Some(self);
        }
        if let Some(rest) = path.strip_prefix('[') {
            let (index, rest) = rest.split_once(']')?;
            let item = self.list().get(index.parse::<usize>().ok()?)?;
            return item.find(rest.strip_prefix('.').unwrap_or(rest));
        }
        self.map()?.iter().find_map(|(key, node)| {
            let rest = path.strip_prefix(key.as_str())?;
            match rest.strip_prefix('.') {
                Some(rest) => node.find(rest),
                None if rest.is_empty() || rest.starts_with('[') => node.find(rest),
                None => None,
            }
        })
    }

    /// The plain value.
    pub fn to_value(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(value) => Value::Bool(*value),
            Data::Number(number) => Value::Number(number.clone()),
            Data::Text(text) => Value::String(text.clone()),
            Data::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Data::Map(entries) => {
                let pairs = entries.iter().map(|(key, node)| (key.clone(), node.to_value()));
                Value::Object(pairs.collect())
            }
        }
    }

    /// Every leaf with its path; empty lists and maps are leaves too.
    pub fn leaves(&self) -> Vec<(String, &Node)> {
        let mut list = Vec::new();
        self.walk(String::new(), &mut list);
        list
    }

    fn walk<'a>(&'a self, path: String, list: &mut Vec<(String, &'a Node)>) {
        match &self.data {
            Data::List(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    item.walk(format!("{path}[{index}]"), list);
                }
            }
            Data::Map(entries) if !entries.is_empty() => {
                for (key, node) in entries {
                    node.walk(super::fields::join(&path, key), list);
                }
            }
            _ => list.push((path, self)),
        }
    }
}
