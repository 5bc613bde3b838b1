//! A document becomes a typed patch: every field is looked up in the table, every scalar gets
//! the meaning that the field wants, and whatever does not fit becomes a finding.

use std::collections::BTreeMap;

use serde_json::Number;

use super::fields::{self, join};
use super::grammar::{Fault, Grammar};
use super::node::{Data, Document, Node, Origin};
use super::schema::{Field, Kind, Shape, Words};
use super::{free, items};
use crate::codes::config as pages;
use crate::nearest::nearest;
use crate::problem::Finding;
use crate::tree::{Dialect, Entry, Meaning, Scalar, Span, Tree, Written};

/// Reads one document into a patch, with everything that is wrong in it.
pub fn read(document: &Document, index: usize) -> (Node, Vec<Finding>) {
    read_as(document, index, fields::DOCUMENT)
}

/// Reads one document by the table of its kind.
pub fn read_as(document: &Document, index: usize, table: &'static [Field]) -> (Node, Vec<Finding>) {
    let mut reader = Reader { document, index, table, findings: Vec::new() };
    let root = reader.object(&document.tree, document.tree.span, table, "");
    let origin = reader.origin(&document.tree, document.tree.span);
    let root = root.unwrap_or_else(|| Node::new(Data::Map(BTreeMap::new()), origin));
    (root, reader.findings)
}

/// Reads documents of one chain.
pub struct Reader<'a> {
    pub document: &'a Document,
    pub index: usize,
    /// Every field that the document may have.
    pub table: &'static [Field],
    pub findings: Vec<Finding>,
}

impl Reader<'_> {
    pub fn kind(&self) -> Kind {
        self.document.kind
    }

    fn dialect(&self) -> Dialect {
        match self.kind() {
            Kind::Eks => Dialect::Yaml11,
            Kind::Tenon => Dialect::Yaml12,
        }
    }

    fn origin(&self, tree: &Tree, key: Span) -> Origin {
        Origin { document: self.index, span: tree.span, key }
    }

    /// Records what is wrong at a place. What is said completes "`path` …".
    pub fn report(&mut self, fault: &Fault, span: Span, path: &str) {
        self.findings.push(self.document.finding(fault, span, path));
    }

    /// A value that the schema has no use for, in both kinds.
    fn wrong_type(&mut self, tree: &Tree, wanted: &str, path: &str) {
        let held = written_shape(tree);
        let fault = Fault::error(&pages::WRONG_TYPE, format!("is {held}; it takes {wanted}"));
        self.report(&fault, tree.span, path);
    }

    fn object(
        &mut self,
        tree: &Tree,
        key: Span,
        fields: &'static [Field],
        path: &str,
    ) -> Option<Node> {
        let entries = match &tree.value {
            Written::Map(entries) => entries,
            Written::Scalar(scalar) if self.is_null(scalar) => return self.null(tree, key),
            _ => {
                self.wrong_type(tree, "an object", path);
                return None;
            }
        };
        let mut map = BTreeMap::new();
        for entry in entries {
            if let Some(field) = self.known(entry, fields, path)
                && let Some(node) = self.field(entry, field, &join(path, field.name))
            {
                map.insert(entry.key.clone(), node);
            }
        }
        Some(Node::new(Data::Map(map), self.origin(tree, key)))
    }

    /// The field that an entry sets; None with a finding if there is none.
    fn known(
        &mut self,
        entry: &Entry,
        fields: &'static [Field],
        path: &str,
    ) -> Option<&'static Field> {
        let field = fields.iter().find(|field| field.name == entry.key);
        match field {
            Some(field) if field.in_kind(self.kind()) => return Some(field),
            Some(_) => {
                let what = format!("needs {}", Kind::Tenon.api_version());
                let fault = Fault::tolerated(&pages::NOT_IN_THIS_KIND, what);
                self.report(&fault, entry.key_span, &join(path, &entry.key));
            }
            None => self.unknown(entry, fields, path),
        }
        None
    }

    fn unknown(&mut self, entry: &Entry, fields: &'static [Field], path: &str) {
        let kind = self.kind();
        let siblings = fields.iter().filter(|field| field.in_kind(kind)).map(|field| field.name);
        let fix = nearest(&entry.key, siblings)
            .map(|name| format!("did you mean `{name}`?"))
            .or_else(|| elsewhere(self.table, &entry.key, kind));
        let fault = Fault { fix, ..Fault::tolerated(&pages::UNKNOWN_FIELD, "") };
        let mut finding = self.document.finding(&fault, entry.key_span, &join(path, &entry.key));
        let path = finding.problem.place.as_ref().map_or("", |place| place.path.as_str());
        finding.problem.what = format!("unknown field `{path}`");
        self.findings.push(finding);
    }

    fn field(&mut self, entry: &Entry, field: &'static Field, path: &str) -> Option<Node> {
        if let Written::Scalar(scalar) = &entry.value.value
            && self.is_null(scalar)
        {
            return self.null(&entry.value, entry.key_span);
        }
        let node = self.shape(&entry.value, entry.key_span, &field.shape, path)?;
        items::check(self, field, &node, path);
        Some(node)
    }

    fn shape(&mut self, tree: &Tree, key: Span, shape: &Shape, path: &str) -> Option<Node> {
        match *shape {
            Shape::Object(fields) => self.object(tree, key, fields, path),
            Shape::Text(grammar) => self.text(tree, key, grammar, path),
            Shape::Bool => self.bool(tree, key, path),
            Shape::Int(low, high) => self.int(tree, key, (low, high), path),
            Shape::Choice(words) => self.choice(tree, key, &words, path),
            Shape::ChoiceOrInt(words) => match self.meaning(tree) {
                Some(Meaning::Int(_) | Meaning::Uint(_)) => {
                    self.int(tree, key, (1, 2_147_483_647), path)
                }
                _ => self.choice(tree, key, &words, path),
            },
            Shape::Texts(grammar) => {
                self.list(tree, key, path, |reader, item, path| reader.entry(item, grammar, path))
            }
            Shape::Choices(words) => self.list(tree, key, path, |reader, item, path| {
                reader.choice(item, item.span, &words, path)
            }),
            Shape::Items(fields) => self.list(tree, key, path, |reader, item, path| {
                reader.object(item, item.span, fields, path)
            }),
            Shape::Map(keys, value) => self.map(tree, key, keys, value, path),
            Shape::Free(free) => free::read(self, tree, key, free, path),
        }
    }

    fn list(
        &mut self,
        tree: &Tree,
        key: Span,
        path: &str,
        mut read: impl FnMut(&mut Self, &Tree, &str) -> Option<Node>,
    ) -> Option<Node> {
        let Written::List(items) = &tree.value else {
            self.wrong_type(tree, "a list", path);
            return None;
        };
        let mut nodes = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            match read(self, item, &path) {
                Some(node) if node.is_null() => self.wrong_type(item, "no null", &path),
                node => nodes.extend(node),
            }
        }
        Some(Node::new(Data::List(nodes), self.origin(tree, key)))
    }

    /// One text of a list; an empty one says nothing, except as an argument of a hook.
    fn entry(&mut self, item: &Tree, grammar: Grammar, path: &str) -> Option<Node> {
        let node = self.text(item, item.span, grammar, path)?;
        if node.text() == Some("") && grammar != Grammar::Argument {
            let fault = Fault::tolerated(&pages::WRONG_TYPE, "is an empty text");
            self.report(&fault.fix("remove the entry"), item.span, path);
            return None;
        }
        Some(node)
    }

    fn map(
        &mut self,
        tree: &Tree,
        key: Span,
        keys: Grammar,
        value: &Shape,
        path: &str,
    ) -> Option<Node> {
        let Written::Map(entries) = &tree.value else {
            self.wrong_type(tree, "an object", path);
            return None;
        };
        let mut map = BTreeMap::new();
        for entry in entries {
            let below = join(path, &entry.key);
            for fault in keys.check(&entry.key, self.kind()) {
                self.report(&fault, entry.key_span, &below);
            }
            self.key(entry, &below);
            let node = match &entry.value.value {
                Written::Scalar(scalar) if self.is_null(scalar) => self.null_entry(entry, value),
                _ => self.shape(&entry.value, entry.key_span, value, &below),
            };
            map.extend(node.map(|node| (entry.key.clone(), node)));
        }
        Some(Node::new(Data::Map(map), self.origin(tree, key)))
    }

    /// A key such as `on` is taken as written, which YAML 1.1 readers do not do.
    fn key(&mut self, entry: &Entry, path: &str) {
        let rest = self.document.text.get(entry.key_span.offset..).unwrap_or_default();
        let scalar = Scalar { text: entry.key.clone(), plain: !rest.starts_with(['"', '\'']) };
        let meaning = scalar.resolve(self.dialect());
        if self.kind() == Kind::Eks && !matches!(meaning, Meaning::Text(_)) {
            let what = format!("has a key that is {} without quotes", meaning_shape(&meaning));
            let fault = Fault::warning(&pages::UNQUOTED_TEXT, what).fix("put the key in quotes");
            self.report(&fault, entry.key_span, path);
        }
    }

    /// A null in a map deletes the key in `tenon.dev`; nodeadm reads it as the empty value.
    fn null_entry(&self, entry: &Entry, value: &Shape) -> Option<Node> {
        let data = match (self.kind(), value) {
            (Kind::Tenon, _) => Data::Null,
            (Kind::Eks, Shape::Bool) => Data::Bool(false),
            (Kind::Eks, Shape::Text(_)) => Data::Text(String::new()),
            (Kind::Eks, _) => return None,
        };
        Some(Node::new(data, self.origin(&entry.value, entry.key_span)))
    }

    /// A null field clears in `tenon.dev`; for nodeadm it is as if it were not there.
    fn null(&self, tree: &Tree, key: Span) -> Option<Node> {
        let clears = self.kind() == Kind::Tenon;
        clears.then(|| Node::new(Data::Null, self.origin(tree, key)))
    }

    pub fn is_null(&self, scalar: &Scalar) -> bool {
        scalar.resolve(self.dialect()) == Meaning::Null
    }

    pub fn meaning(&self, tree: &Tree) -> Option<Meaning> {
        match &tree.value {
            Written::Scalar(scalar) => Some(scalar.resolve(self.dialect())),
            _ => None,
        }
    }

    fn text(&mut self, tree: &Tree, key: Span, grammar: Grammar, path: &str) -> Option<Node> {
        let text = self.plain_text(tree, path)?;
        if let Some(text) = &text {
            for fault in grammar.check(text, self.kind()) {
                let span = fault.offset.map_or(tree.span, |at| self.inside(tree, text, at));
                self.report(&fault, span, path);
            }
        }
        let data = text.map_or(Data::Null, Data::Text);
        Some(Node::new(data, self.origin(tree, key)))
    }

    /// The text of a scalar: None with a finding if it is no text, Some(None) for null.
    #[expect(clippy::option_option, reason = "not readable, null and text are three answers")]
    fn plain_text(&mut self, tree: &Tree, path: &str) -> Option<Option<String>> {
        let Written::Scalar(scalar) = &tree.value else {
            self.wrong_type(tree, "a text", path);
            return None;
        };
        match scalar.resolve(self.dialect()) {
            Meaning::Text(text) => Some(Some(text)),
            Meaning::Null => Some(None),
            meaning => {
                let held = meaning_shape(&meaning);
                let what = format!("is {held} without quotes; it takes a text");
                self.report(
                    &Fault::doubtful(&pages::UNQUOTED_TEXT, what).fix("put the value in quotes"),
                    tree.span,
                    path,
                );
                Some(Some(scalar.text.clone()))
            }
        }
    }

    /// The span of one byte of a text: exact where the line stands in the document as in the
    /// text, as in block scalars; the start of the scalar otherwise.
    fn inside(&self, tree: &Tree, text: &str, at: usize) -> Span {
        let before = text.get(..at).unwrap_or(text);
        let tail = before.rsplit('\n').next().unwrap_or_default();
        let down = before.matches('\n').count();
        let wanted = text.lines().nth(down).unwrap_or_default().trim_end();
        let near = tree.span.line as usize + down;
        let mut start = 0;
        for (number, line) in (1..).zip(self.document.text.split_inclusive('\n')) {
            // The text of a block scalar begins on the line after its indicator.
            let candidate = (number == near || number == near + 1) && !wanted.is_empty();
            if candidate && let Some(lead) = line.trim_end().strip_suffix(wanted) {
                return Span {
                    offset: start + lead.len() + tail.len(),
                    line: number as u32,
                    column: (lead.chars().count() + tail.chars().count()) as u32 + 1,
                    width: 1,
                };
            }
            start += line.len();
        }
        tree.span
    }

    fn bool(&mut self, tree: &Tree, key: Span, path: &str) -> Option<Node> {
        match self.meaning(tree) {
            Some(Meaning::Bool(value)) => {
                Some(Node::new(Data::Bool(value), self.origin(tree, key)))
            }
            Some(Meaning::Null) => self.null(tree, key),
            meaning => {
                let quoted = matches!(meaning, Some(Meaning::Text(_)));
                let fault = Fault::error(
                    &pages::WRONG_TYPE,
                    format!("is {}; it takes true or false", written_shape(tree)),
                );
                let fault =
                    if quoted { fault.fix("write true or false without quotes") } else { fault };
                self.report(&fault, tree.span, path);
                None
            }
        }
    }

    fn int(&mut self, tree: &Tree, key: Span, range: (i64, i64), path: &str) -> Option<Node> {
        let (low, high) = range;
        match self.meaning(tree) {
            Some(Meaning::Int(value)) if (low..=high).contains(&value) => {
                Some(Node::new(Data::Number(Number::from(value)), self.origin(tree, key)))
            }
            Some(Meaning::Int(_) | Meaning::Uint(_)) => {
                let what = format!("is outside of {low} to {high}");
                self.report(&Fault::error(&pages::OUT_OF_RANGE, what), tree.span, path);
                None
            }
            Some(Meaning::Null) => self.null(tree, key),
            _ => {
                let what = format!("is {}; it takes an integer", written_shape(tree));
                let fault =
                    Fault::error(&pages::WRONG_TYPE, what).fix("write digits without quotes");
                self.report(&fault, tree.span, path);
                None
            }
        }
    }

    fn choice(&mut self, tree: &Tree, key: Span, words: &Words, path: &str) -> Option<Node> {
        let Written::Scalar(scalar) = &tree.value else {
            self.wrong_type(tree, "a word", path);
            return None;
        };
        if self.is_null(scalar) {
            return self.null(tree, key);
        }
        let text = scalar.text.as_str();
        // The empty text means "not set", as everywhere in node.eks.aws.
        let data = match words.find(self.kind(), text) {
            Some(word) => Data::Text(word.into()),
            None if text.is_empty() => Data::Text(String::new()),
            None => {
                self.unknown_word(tree, text, words, path);
                return None;
            }
        };
        Some(Node::new(data, self.origin(tree, key)))
    }

    fn unknown_word(&mut self, tree: &Tree, text: &str, words: &Words, path: &str) {
        let kind = self.kind();
        let known: Vec<_> = words.of(kind).map(|word| format!("`{word}`")).collect();
        let what = format!("is none of {}", known.join(", "));
        let fault = match words.tolerated {
            true => Fault::tolerated(&pages::UNKNOWN_WORD, what),
            false => Fault::error(&pages::UNKNOWN_WORD, what),
        };
        let fault = match nearest(text, words.of(kind)) {
            Some(word) => fault.fix(format!("did you mean `{word}`?")),
            None => fault.fix(format!("write one of {}", known.join(", "))),
        };
        self.report(&fault, tree.span, path);
    }
}

/// Says where a field of that name belongs, if the table has one elsewhere.
fn elsewhere(table: &'static [Field], name: &str, kind: Kind) -> Option<String> {
    let list = fields::all_in(table);
    let (path, _) = list.iter().find(|(_, field)| field.name == name && field.in_kind(kind))?;
    let parent = path.rsplit_once('.').map_or("the top of the document", |(parent, _)| parent);
    Some(format!("`{name}` belongs under `{parent}`"))
}

fn written_shape(tree: &Tree) -> &'static str {
    match &tree.value {
        Written::List(_) => "a list",
        Written::Map(_) => "an object",
        Written::Scalar(scalar) => meaning_shape(&scalar.resolve(Dialect::Yaml12)),
    }
}

fn meaning_shape(meaning: &Meaning) -> &'static str {
    match meaning {
        Meaning::Null => "null",
        Meaning::Bool(_) => "true or false",
        Meaning::Int(_) | Meaning::Uint(_) | Meaning::Float(_) => "a number",
        Meaning::Text(_) => "a text",
    }
}
