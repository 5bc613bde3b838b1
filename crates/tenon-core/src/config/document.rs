//! A decoded text becomes a document of a known kind.

use super::node::Document;
use super::schema::Kind;
use crate::codes::config as pages;
use crate::decode::{Part, snippet};
use crate::nearest::nearest;
use crate::problem::{Class, Finding, Problem};
use crate::tree::{Span, Tree, Written};
use crate::yaml;

/// The one kind of both API versions.
const KIND: &str = "NodeConfig";

/// What the parts of a source held.
#[derive(Debug, Default)]
pub struct Held {
    pub documents: Vec<Document>,
    pub findings: Vec<Finding>,
}

impl Held {
    /// True when something in the source could not be read as a document.
    pub fn broken(&self) -> bool {
        self.findings.iter().any(|finding| finding.class == Class::Error)
    }

    fn add(&mut self, class: Class, mut problem: Problem, span: &Span, part: &Part) {
        problem.snippet = Some(snippet(&part.text, span));
        self.findings.push(Finding { class, problem });
    }
}

/// Parses the text of a part and adds its document. An empty text holds none.
pub fn parse(part: &Part, held: &mut Held) {
    let trees = match yaml::parse(&part.text) {
        Ok(trees) => trees,
        Err(syntax) => {
            held.findings.push(Finding::error(syntax.problem(&part.place, &part.text)));
            return;
        }
    };
    let mut trees = trees.into_iter().filter(|tree| !is_blank(tree));
    let Some(tree) = trees.next() else { return };
    let kind = match kind_of(&tree, part) {
        Ok(kind) => kind,
        Err((problem, span)) => return held.add(Class::Error, problem, &span, part),
    };
    if let Some(second) = trees.next() {
        let class = if kind == Kind::Eks { Class::Tolerated } else { Class::Error };
        let problem = Problem::new(&pages::SEVERAL_DOCUMENTS, "a second document begins here")
            .at(second.span.in_part(&part.place, ""));
        held.add(class, problem, &second.span, part);
    }
    held.documents.push(Document {
        place: part.place.clone(),
        kind,
        text: part.text.clone(),
        tree,
    });
}

fn is_blank(tree: &Tree) -> bool {
    matches!(&tree.value, Written::Scalar(scalar) if scalar.plain && scalar.text.is_empty())
}

/// Reads the head of a document, which decides how the rest is read.
fn kind_of(tree: &Tree, part: &Part) -> Result<Kind, (Problem, Span)> {
    let Written::Map(entries) = &tree.value else {
        let problem = Problem::new(&pages::UNKNOWN_KIND, "the document is no object");
        return Err((problem.at(tree.span.in_part(&part.place, "")), tree.span));
    };
    let head = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key)?;
        match &entry.value.value {
            Written::Scalar(scalar) => Some((scalar.text.as_str(), entry.value.span)),
            _ => Some(("", entry.value.span)),
        }
    };
    let (api_version, kind) = (head("apiVersion"), head("kind"));
    let known =
        Kind::ALL.into_iter().find(|known| Some(known.api_version()) == text_of(api_version));
    match known {
        Some(known) if text_of(kind) == Some(KIND) => Ok(known),
        _ => {
            let (wrong, path) = match known {
                Some(_) => (kind, "kind"),
                None => (api_version, "apiVersion"),
            };
            let span = wrong.map_or(tree.span, |(_, span)| span);
            let (first, second) = (name(text_of(api_version)), name(text_of(kind)));
            let what = format!("apiVersion {first} with kind {second} is not known");
            let problem = Problem::new(&pages::UNKNOWN_KIND, what)
                .at(span.in_part(&part.place, path))
                .fix(nearest_pair(text_of(api_version).unwrap_or_default()));
            Err((problem, span))
        }
    }
}

fn text_of(written: Option<(&str, Span)>) -> Option<&str> {
    written.map(|(text, _)| text)
}

/// A name as it may be shown: only what looks like one.
fn name(text: Option<&str>) -> String {
    let Some(text) = text else { return "(not set)".into() };
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"./-".contains(&b);
    let fine = (1..=64).contains(&text.len()) && text.bytes().all(letter);
    if fine { format!("`{text}`") } else { "(no name)".into() }
}

fn nearest_pair(api_version: &str) -> String {
    let near = nearest(api_version, Kind::ALL.iter().map(|kind| kind.api_version()));
    match near {
        Some(near) => format!("did you mean apiVersion `{near}` with kind `{KIND}`?"),
        None => {
            let known = Kind::ALL.map(|kind| format!("`{}`", kind.api_version())).join(" or ");
            format!("write apiVersion {known}, and kind `{KIND}`")
        }
    }
}
