//! From what the sources held to one checked config.
//!
//! ```text
//! sources ─decode─▶ parts ─yaml─▶ documents ─read─▶ patches ─merge─▶ tree ─build─▶ Config
//!                     every step adds its findings; none of them stops the next source
//! ```

use super::build::build;
use super::cache::Cached;
use super::cross;
use super::document::{self, Held};
use super::merge::merge;
use super::node::{Document, Node};
use super::read::read;
use super::schema::Kind;
use super::{Config, dump, versions};
use crate::codes::config as pages;
use crate::decode::{self, Blob, Budget, Origin};
use crate::problem::{Class, Finding, Place, Problem};

/// A source of the chain after it was read.
#[derive(Clone)]
pub struct SourceRead {
    pub uri: String,
    pub origin: Origin,
    /// None: there is nothing, as with an instance that has no user data.
    pub bytes: Option<Vec<u8>>,
}

/// What the chain is read for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Stands in when no source holds a config.
    pub cached: Option<&'a Cached>,
    /// Accept a config that is not enough for a node, as for `config convert`.
    pub partial: bool,
}

/// The config of the chain and everything known about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// Warnings and tolerated findings, in the order of sources and positions.
    pub findings: Vec<Finding>,
    /// Tolerated findings are warnings in `init`: they come from `node.eks.aws` documents only,
    /// since `tenon.dev` turns them into errors.
    pub lenient: bool,
    /// No source held a config; this is the cached one.
    pub from_cache: bool,
    /// What was passed over, one line each, for the log.
    pub notes: Vec<String>,
    tree: Node,
    documents: Vec<Document>,
}

/// Reads the chain: the config, or every finding of every source if one of them is an error.
pub fn load(sources: &[SourceRead], options: Options<'_>) -> Result<Loaded, Vec<Finding>> {
    let mut chain = Chain::default();
    for (index, source) in sources.iter().enumerate() {
        chain.source(index, source);
    }
    let from_cache = chain.settle(sources, options.cached)?;
    let Chain { documents, mut findings, notes, .. } = chain;
    // What a broken part would have set cannot be called missing.
    let complete = !options.partial && !has_error(&findings);
    let (patches, found) = read_all(&documents);
    findings.extend(found);
    let (tree, found) = merge(&documents, patches);
    findings.extend(found);
    let Some(tree) = tree else { return Err(sorted(findings)) };
    let found = cross::check(&tree, &documents, complete, &findings);
    findings.extend(found);
    let lenient = documents.iter().any(|document| document.kind == Kind::Eks);
    if !lenient {
        findings.iter_mut().for_each(refuse_tolerated);
    }
    let findings = sorted(findings);
    if has_error(&findings) {
        return Err(findings);
    }
    let config = build(&tree, &documents);
    Ok(Loaded { config, findings, lenient, from_cache, notes, tree, documents })
}

/// Reads every document into its patch.
fn read_all(documents: &[Document]) -> (Vec<Node>, Vec<Finding>) {
    let read = |(index, document)| read(document, index);
    let (patches, findings): (Vec<_>, Vec<_>) = documents.iter().enumerate().map(read).unzip();
    (patches, findings.into_iter().flatten().collect())
}

fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.class == Class::Error)
}

impl Loaded {
    /// What this version of the kubelet would refuse of fields and flags that others know. The
    /// version is a fact, so this is asked after the facts are gathered.
    pub fn version_findings(&self, kubelet: (u32, u32)) -> Vec<Finding> {
        sorted(versions::check(&self.tree, &self.documents, kubelet))
    }

    /// Where the value at a path was written; None for defaults.
    pub fn origin(&self, path: &str) -> Option<Place> {
        let node = self.tree.find(path)?;
        Some(self.documents[node.origin.document].place_of(&node.origin.span, path))
    }

    /// Every value that a document set, with its place.
    pub fn origins(&self) -> Vec<(String, Place)> {
        let place = |node: &Node, path: &str| {
            self.documents[node.origin.document].place_of(&node.origin.span, path)
        };
        self.tree
            .leaves()
            .into_iter()
            .map(|(path, node)| (path.clone(), place(node, &path)))
            .collect()
    }

    /// The hash of the config that may be shown: secrets count as a constant.
    pub fn config_hash(&self) -> String {
        dump::public_hash(&self.config)
    }

    /// The hash of the whole config, for the 0600 record only.
    pub fn full_hash(&self) -> String {
        dump::full_hash(&self.config)
    }
}

#[derive(Default)]
struct Chain {
    budget: Budget,
    documents: Vec<Document>,
    findings: Vec<Finding>,
    /// Findings of user data that could not be decoded, until it is known whether it matters,
    /// and the documents beside the broken part.
    unreadable: Vec<Finding>,
    beside: Vec<Document>,
    /// What sources without a config held.
    notes: Vec<String>,
    hints: Vec<Problem>,
}

impl Chain {
    fn source(&mut self, index: usize, source: &SourceRead) {
        let Some(bytes) = source.bytes.clone() else {
            self.notes.push(format!("{} holds nothing", source.uri));
            return;
        };
        let blob =
            Blob { source_index: index, uri: source.uri.clone(), origin: source.origin, bytes };
        let decoded = decode::unwrap(&blob, &mut self.budget);
        let mut held = Held { findings: decoded.findings, ..Held::default() };
        for part in &decoded.parts {
            document::parse(part, &mut held);
        }
        if held.broken() && source.origin == Origin::Imds {
            self.unreadable.extend(held.findings);
            self.beside.extend(held.documents);
            return;
        }
        if held.documents.is_empty() && !held.broken() {
            self.notes.push(format!("{} holds {}", source.uri, describe(&decoded.held)));
        }
        self.hints.extend(decoded.hints);
        self.documents.extend(held.documents);
        self.findings.extend(held.findings);
    }

    /// Decides what unreadable user data and an empty chain mean. True: the cache is used.
    fn settle(
        &mut self,
        sources: &[SourceRead],
        cached: Option<&Cached>,
    ) -> Result<bool, Vec<Finding>> {
        let mut from_cache = false;
        if self.documents.is_empty() && !has_error(&self.findings) {
            from_cache = self.use_cache(sources.len(), cached);
        }
        let unreadable = std::mem::take(&mut self.unreadable);
        if self.documents.is_empty() {
            self.findings.extend(unreadable);
            self.findings.extend(read_all(&self.beside).1);
            if !has_error(&self.findings) {
                let none = Finding::error(self.no_config(sources));
                self.findings.push(none);
                self.findings.extend(self.hints.drain(..).map(Finding::warning));
            }
            return Err(sorted(std::mem::take(&mut self.findings)));
        }
        self.findings.extend(unreadable.into_iter().map(skipped));
        Ok(from_cache)
    }

    fn use_cache(&mut self, index: usize, cached: Option<&Cached>) -> bool {
        let Some(cached) = cached else { return false };
        let mut held = Held::default();
        document::parse(&cached.part(index), &mut held);
        let Some(document) = held.documents.pop() else { return false };
        let problem =
            Problem::new(&pages::CACHE_USED, "no source holds a config; the cached one is used");
        self.findings.push(Finding::warning(problem.at(document.place.clone())));
        self.documents.push(document);
        true
    }

    fn no_config(&self, sources: &[SourceRead]) -> Problem {
        let what = match sources.len() {
            1 => "no configuration in the one source".to_owned(),
            count => format!("no configuration in any of {count} sources"),
        };
        let problem = Problem::new(&pages::NO_CONFIG, what).details(self.notes.clone());
        match self.hints.first() {
            Some(hint) => problem.why(hint.what.clone()).fix(hint.fix_text().to_owned()),
            None => problem,
        }
    }
}

fn describe(held: &[String]) -> String {
    let mut words = held.to_vec();
    words.push("0 NodeConfig parts".into());
    words.join(", ")
}

/// What nodeadm ignores in a message whose documents are all of the strict kind.
fn refuse_tolerated(finding: &mut Finding) {
    if finding.class == Class::Tolerated {
        finding.class = Class::Error;
    }
}

/// Unreadable user data that another source makes up for.
fn skipped(mut finding: Finding) -> Finding {
    finding.class = Class::Warning;
    finding.problem.what = format!("user data skipped: {}", finding.problem.what);
    finding.problem.details.push(pages::SOURCE_SKIPPED.why.into());
    finding
}

/// By source, then position, then code.
fn sorted(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_cached_key(|finding| {
        (finding.problem.place.clone().unwrap_or_default(), finding.problem.page.code)
    });
    findings
}
