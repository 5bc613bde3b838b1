//! Text into documents with places: YAML, and JSON, which is YAML.
//!
//! The events come from `saphyr-parser`; what they mean here, the limits and the messages are
//! ours. [`parse`] decides nothing about types: a scalar keeps its text, and [`Scalar::resolve`]
//! reads it in the dialect that the document's kind asks for.
//!
//! [`Scalar::resolve`]: crate::tree::Scalar::resolve

mod emit;
mod load;
mod message;
mod offsets;
mod scalar;

pub use emit::emit;
pub use load::{parse, parse_template};

use crate::codes::Page;
use crate::decode::snippet;
use crate::problem::{Place, Problem};
use crate::tree::Span;

/// Bytes of one document, as written and again with its aliases expanded.
pub const DOCUMENT_BYTES: usize = 1 << 20;
/// Lists and maps inside each other.
pub const DEPTH: usize = 64;
/// Scalars, lists and maps of one text, aliases expanded.
pub const NODES: usize = 100_000;
/// Bytes of one scalar or key.
pub const SCALAR_BYTES: usize = 64 << 10;
/// The one value that may be longer: a CA bundle of 256 KiB is a third more in base64, and may
/// be wrapped into lines.
pub const LONG_SCALAR: (&str, usize) = ("certificateAuthority", 384 << 10);
/// Items of one list, keys of one map.
pub const ENTRIES: usize = 10_000;

/// Why a text is not a document, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Syntax {
    pub page: &'static Page,
    pub what: String,
    /// What to do, when more is known than the page says.
    pub fix: Option<String>,
    pub span: Span,
}

impl Syntax {
    fn new(page: &'static Page, what: impl Into<String>, span: Span) -> Self {
        Syntax { page, what: what.into(), fix: None, span }
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// The same as a problem in the part that the text came from.
    pub fn problem(&self, part: &Place, text: &str) -> Problem {
        let mut problem =
            Problem::new(self.page, self.what.clone()).at(self.span.in_part(part, ""));
        problem.fix.clone_from(&self.fix);
        problem.snippet = Some(snippet(text, &self.span));
        problem
    }
}

#[cfg(test)]
mod tests;
