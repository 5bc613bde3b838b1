//! A document as it was written: every scalar keeps its text, every node its place.
//!
//! Meaning comes later. `node.eks.aws` documents read plain scalars as YAML 1.1, `tenon.dev`
//! documents as YAML 1.2, and where the schema wants text the written text counts; so the
//! loader decides nothing and the schema asks [`Scalar::resolve`] when it needs to know.

use crate::problem::Place;

/// Where something stands in the decoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// Byte offset in the decoded text.
    pub offset: usize,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// Width of the marked words in characters, within the line.
    pub width: u32,
}

impl Span {
    /// The first character of a text.
    pub fn start() -> Self {
        Span { offset: 0, line: 1, column: 1, width: 1 }
    }

    /// The place of this span in a part, whose own place names source, part and layers.
    pub fn in_part(&self, part: &Place, path: impl Into<String>) -> Place {
        Place {
            line: self.line,
            column: self.column,
            offset: Some(self.offset),
            path: path.into(),
            ..part.clone()
        }
    }
}

/// One node of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    pub span: Span,
    pub value: Written,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    Scalar(Scalar),
    List(Vec<Tree>),
    Map(Vec<Entry>),
}

/// One key of a map. Keys are text, whatever they look like.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    pub key_span: Span,
    pub value: Tree,
}

/// A scalar as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    pub text: String,
    /// Unquoted and untagged: its type depends on the dialect. Otherwise it is text.
    pub plain: bool,
}

/// Which YAML a document's plain scalars follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// As the Kubernetes world's reader has it: `yes` is true, `0777` is 511.
    Yaml11,
    Yaml12,
}

/// What a scalar means in a dialect.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    Null,
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX`.
    Uint(u64),
    Float(f64),
    Text(String),
}
