//! A decoded text becomes a document of a known kind.

use super::node::Document;
use super::schema::Kind;
use crate::codes::config as pages;
use crate::decode::{Part, snippet};
use crate::nearest::nearest;
use crate::problem::{Class, Finding, Problem};
use crate::tree::{Span, Tree, Written};
use crate::yaml;

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

fn kind_of(tree: &Tree, part: &Part) -> Result<Kind, (Problem, Span)> {
    let refuse = |what: String, span: Span, path: &str| {
        let problem = Problem::new(&pages::UNKNOWN_KIND, what).at(span.in_part(&part.place, path));
        (problem, span)
    };
    let Written::Map(entries) = &tree.value else {
        return Err(refuse("the document is no object".into(), tree.span, ""));
    };
    let find = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key)?;
        match &entry.value.value {
            Written::Scalar(scalar) => Some((scalar.text.as_str(), entry.value.span)),
            _ => None,
        }
    };
    let (api_version, kind) = match (find("apiVersion"), find("kind")) {
        (Some(api_version), Some(kind)) => (api_version, kind),
        (None, _) => return Err(refuse("`apiVersion` is not set".into(), tree.span, "apiVersion")),
        (_, None) => return Err(refuse("`kind` is not set".into(), tree.span, "kind")),
    };
    let known = Kind::ALL.into_iter().find(|known| known.api_version() == api_version.0);
    match known {
        Some(known) if kind.0 == "NodeConfig" => Ok(known),
        _ => {
            let (span, path) = match known {
                Some(_) => (kind.1, "kind"),
                None => (api_version.1, "apiVersion"),
            };
            let what = format!("{} {} is not a known kind", name(api_version.0), name(kind.0));
            let (problem, span) = refuse(what, span, path);
            Err((problem.fix(nearest_pair(api_version.0)), span))
        }
    }
}

/// A name as it may be shown: only what looks like one.
fn name(text: &str) -> String {
    let fine =
        text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"./-".contains(&b));
    if fine { format!("`{text}`") } else { "(a text that is no name)".into() }
}

fn nearest_pair(api_version: &str) -> String {
    let near = nearest(api_version, Kind::ALL.iter().map(|kind| kind.api_version()));
    match near {
        Some(near) => format!("did you mean `{near}` `NodeConfig`?"),
        None => "use `node.eks.aws/v1alpha1` or `tenon.dev/v1alpha1`, and kind `NodeConfig`".into(),
    }
}
