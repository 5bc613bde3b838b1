//! Reads the fields of a document by name and type; what does not fit becomes a finding with
//! its line and column.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::codes::Page;
use crate::codes::userdata as pages;
use crate::nearest::nearest;
use crate::problem::{Finding, Place, Problem};
use crate::tree::{Dialect, Meaning, Scalar, Span, Tree, Written};
use crate::yaml;

/// How documents of a kind are read: which dialect, and which pages their mistakes lead to.
#[derive(Debug)]
pub struct Manner {
    pub dialect: Dialect,
    pub bad_input: &'static Page,
    pub bad_value: &'static Page,
    pub unknown_field: &'static Page,
}

static INPUT: Manner = Manner {
    dialect: Dialect::Yaml11,
    bad_input: &pages::BAD_INPUT,
    bad_value: &pages::BAD_VALUE,
    unknown_field: &pages::UNKNOWN_FIELD,
};

/// Collects findings while a document is read.
pub struct Reader {
    place: Place,
    manner: &'static Manner,
    pub findings: Vec<Finding>,
}

/// The fields of one map, by name.
pub struct Fields<'t> {
    pub path: String,
    map: BTreeMap<&'t str, &'t Tree>,
    span: Span,
}

impl Fields<'_> {
    pub fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl Reader {
    pub fn new(source: &str) -> Self {
        Reader::in_manner(source, &INPUT)
    }

    /// Reads as another kind of document asks for.
    pub fn in_manner(source: &str, manner: &'static Manner) -> Self {
        let place = Place { source: source.to_owned(), ..Place::default() };
        Reader { place, manner, findings: Vec::new() }
    }

    /// The place of a node of the document.
    pub fn place_of(&self, tree: &Tree, path: &str) -> Place {
        tree.span.in_part(&self.place, path)
    }

    /// The one document of a text. Several are refused: which one counts would be a guess.
    pub fn document(&mut self, text: &str) -> Option<Tree> {
        match yaml::parse(text) {
            Err(syntax) => {
                self.findings.push(Finding::error(syntax.problem(&self.place, text)));
                None
            }
            Ok(trees) if trees.len() != 1 => {
                let what = format!("the file holds {} documents instead of one", trees.len());
                let problem = Problem::new(self.manner.bad_input, what).at(self.place.clone());
                self.findings.push(Finding::error(problem));
                None
            }
            Ok(mut trees) => trees.pop(),
        }
    }

    pub fn report(&mut self, page: &'static Page, span: Span, path: &str, what: impl Into<String>) {
        let problem = Problem::new(page, what).at(span.in_part(&self.place, path));
        self.findings.push(Finding::error(problem));
    }

    pub fn wrong(&mut self, tree: &Tree, path: &str, wanted: &str) {
        self.report(self.manner.bad_value, tree.span, path, format!("`{path}` is not {wanted}"));
    }

    /// The fields of a map; unknown names are findings.
    pub fn fields<'t>(&mut self, tree: &'t Tree, path: &str, known: &[&[&str]]) -> Fields<'t> {
        let mut map = BTreeMap::new();
        match &tree.value {
            Written::Map(entries) => {
                for entry in entries {
                    if !known.iter().any(|list| list.contains(&entry.key.as_str())) {
                        self.unknown(entry.key_span, path, &entry.key, known);
                    } else if !is_null(&entry.value) {
                        map.insert(entry.key.as_str(), &entry.value);
                    }
                }
            }
            _ if is_null(tree) => {}
            _ => self.wrong(tree, path, "a map"),
        }
        Fields { path: path.to_owned(), map, span: tree.span }
    }

    fn unknown(&mut self, span: Span, path: &str, key: &str, known: &[&[&str]]) {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let names = known.iter().flat_map(|list| list.iter().copied());
        let mut problem = Problem::new(self.manner.unknown_field, format!("unknown field `{key}`"))
            .at(span.in_part(&self.place, path));
        if let Some(name) = nearest(key, names) {
            problem = problem.fix(format!("did you mean `{name}`?"));
        }
        self.findings.push(Finding::error(problem));
    }

    /// A field that must be there.
    pub fn required(&mut self, fields: &Fields, key: &str) -> Option<String> {
        if !fields.has(key) {
            let path = fields.path_of(key);
            self.report(self.manner.bad_value, fields.span, &path, format!("`{path}` is missing"));
        }
        self.text(fields, key)
    }

    /// The text of a scalar, as written.
    pub fn text(&mut self, fields: &Fields, key: &str) -> Option<String> {
        let tree = fields.map.get(key)?;
        match &tree.value {
            Written::Scalar(scalar) => Some(scalar.text.clone()),
            _ => {
                self.wrong(tree, &fields.path_of(key), "text");
                None
            }
        }
    }

    /// Text read by a grammar; None from it is a finding.
    pub fn parsed<T>(
        &mut self,
        fields: &Fields,
        key: &str,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(fields, key)?;
        let value = parse(&text);
        if value.is_none() {
            self.wrong(fields.map[key], &fields.path_of(key), wanted);
        }
        value
    }

    pub fn number(&mut self, fields: &Fields, key: &str) -> Option<u32> {
        self.parsed(fields, key, "a whole number from 0", |text| text.parse().ok())
    }

    pub fn flag(&mut self, fields: &Fields, key: &str) -> Option<bool> {
        let tree = *fields.map.get(key)?;
        match &tree.value {
            Written::Scalar(scalar) => match scalar.resolve(self.manner.dialect) {
                Meaning::Bool(value) => Some(value),
                _ => {
                    self.wrong(tree, &fields.path_of(key), "true or false");
                    None
                }
            },
            _ => {
                self.wrong(tree, &fields.path_of(key), "true or false");
                None
            }
        }
    }

    /// The items of a list with their paths.
    pub fn items<'t>(&mut self, fields: &Fields<'t>, key: &str) -> Vec<(String, &'t Tree)> {
        let path = fields.path_of(key);
        let Some(&tree) = fields.map.get(key) else { return Vec::new() };
        match &tree.value {
            Written::List(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| (format!("{path}[{index}]"), item))
                .collect(),
            _ => {
                self.wrong(tree, &path, "a list");
                Vec::new()
            }
        }
    }

    pub fn texts(&mut self, fields: &Fields, key: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for (path, item) in self.items(fields, key) {
            match &item.value {
                Written::Scalar(scalar) => texts.push(scalar.text.clone()),
                _ => self.wrong(item, &path, "text"),
            }
        }
        texts
    }

    /// A map of text to text.
    pub fn pairs(&mut self, fields: &Fields, key: &str) -> BTreeMap<String, String> {
        let path = fields.path_of(key);
        let Some(&tree) = fields.map.get(key) else { return BTreeMap::new() };
        let Written::Map(entries) = &tree.value else {
            self.wrong(tree, &path, "a map");
            return BTreeMap::new();
        };
        let mut pairs = BTreeMap::new();
        for entry in entries {
            match &entry.value.value {
                Written::Scalar(Scalar { text, .. }) => {
                    pairs.insert(entry.key.clone(), text.clone());
                }
                _ => self.wrong(&entry.value, &path, "a map of texts"),
            }
        }
        pairs
    }

    /// A map inside a map.
    pub fn inner<'t>(
        &mut self,
        fields: &Fields<'t>,
        key: &str,
        known: &[&[&str]],
    ) -> Option<Fields<'t>> {
        let tree = *fields.map.get(key)?;
        Some(self.fields(tree, &fields.path_of(key), known))
    }

    /// A free tree as JSON.
    pub fn json(&mut self, fields: &Fields, key: &str) -> Option<Value> {
        fields.map.get(key).map(|tree| tree.to_json(self.manner.dialect))
    }

    /// The tree of a field, for readers of its own shape.
    pub fn tree<'t>(&self, fields: &Fields<'t>, key: &str) -> Option<(String, &'t Tree)> {
        fields.map.get(key).map(|tree| (fields.path_of(key), *tree))
    }
}

fn is_null(tree: &Tree) -> bool {
    matches!(&tree.value, Written::Scalar(scalar) if scalar.resolve(Dialect::Yaml11) == Meaning::Null)
}
