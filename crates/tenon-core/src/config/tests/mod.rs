//! The room as its callers see it: texts in, config and findings out.

mod canary;
mod chain;
mod checks;
mod dumps;
mod merges;
mod properties;

use super::*;
use crate::decode::Origin;
use crate::problem::{Class, Finding};

/// A file source.
pub fn file(uri: &str, text: &str) -> SourceRead {
    SourceRead { uri: uri.into(), origin: Origin::File, bytes: Some(text.into()) }
}

/// The instance's user data.
pub fn user_data(text: &str) -> SourceRead {
    let uri = "imds://user-data".into();
    SourceRead { uri, origin: Origin::Imds, bytes: Some(text.into()) }
}

/// A document of a kind from the inside of its `spec`.
pub fn document(kind: Kind, spec: &str) -> String {
    let mut text = format!("apiVersion: {}\nkind: NodeConfig\nspec:\n", kind.api_version());
    for line in spec.lines() {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

pub const PARTIAL: Options<'static> = Options { cached: None, partial: true };

/// Loads documents that need not be complete.
pub fn load_partial(documents: &[String]) -> Result<Loaded, Vec<Finding>> {
    let name = |(index, text): (usize, &String)| file(&format!("file://{index}.yaml"), text);
    let sources: Vec<_> = documents.iter().enumerate().map(name).collect();
    load(&sources, PARTIAL)
}

/// Code, class, line and column of each finding.
pub fn summary(findings: &[Finding]) -> Vec<(&'static str, char, u32, u32)> {
    let class = |class| match class {
        Class::Error => 'E',
        Class::Tolerated => 'T',
        Class::Warning => 'W',
    };
    findings
        .iter()
        .map(|finding| {
            let place = finding.problem.place.clone().unwrap_or_default();
            (finding.problem.page.code, class(finding.class), place.line, place.column)
        })
        .collect()
}

/// The findings of one document, whether it loads or not.
pub fn findings(kind: Kind, spec: &str) -> Vec<Finding> {
    match load_partial(&[document(kind, spec)]) {
        Ok(loaded) => loaded.findings,
        Err(findings) => findings,
    }
}

/// Codes with their class letter: `TN03001T`.
pub fn codes(kind: Kind, spec: &str) -> Vec<String> {
    summary(&findings(kind, spec))
        .iter()
        .map(|(code, class, ..)| format!("{code}{class}"))
        .collect()
}
