//! The parser's events into trees, within the limits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::offsets::Offsets;
use super::{DEPTH, DOCUMENT_BYTES, ENTRIES, LONG_SCALAR, NODES, SCALAR_BYTES, Syntax, message};
use crate::codes::decode::{
    ALIAS_LOOP, BAD_KEY, BAD_TAG, DUPLICATE_KEY, TAB_INDENT, TEMPLATE_LEFT, TOO_LARGE_DOCUMENT,
};
use crate::tree::{Entry, Scalar, Span, Tree, Written};

/// Reads every document of a text. A text of blanks and comments has none.
pub fn parse(text: &str) -> Result<Vec<Tree>, Syntax> {
    load(text, Tags::Plain)
}

/// Reads a CloudFormation template: a short tag becomes the map of its long form, so that
/// `!Sub x` reads as `{"Fn::Sub": "x"}`.
pub fn parse_template(text: &str) -> Result<Vec<Tree>, Syntax> {
    load(text, Tags::Functions)
}

/// What tags outside of plain YAML mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Tags {
    /// Nothing: they are refused.
    #[default]
    Plain,
    /// Functions of CloudFormation.
    Functions,
}

/// Short tags whose long form has no `Fn::` in front.
const BARE_FUNCTIONS: [&str; 2] = ["Ref", "Condition"];

fn load(text: &str, tags: Tags) -> Result<Vec<Tree>, Syntax> {
    if text.len() > DOCUMENT_BYTES {
        return Err(too_large("the document is larger than 1 MiB", Span::start()));
    }
    if let Some(syntax) = message::control_character(text) {
        return Err(syntax);
    }
    let offsets = Offsets::new(text);
    let mut loader = Loader { tags, ..Loader::default() };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| message::syntax(text, &offsets, &error))?;
        loader.take(event, offsets.span(&span)).map_err(|syntax| template_left(text, syntax))?;
    }
    let tab = loader.documents.iter().find_map(|document| tab_before(text, document));
    tab.map_or(Ok(loader.documents), Err)
}

/// A tab before the first key of a document, which the parser lets through. Brackets may have
/// any blanks before them.
fn tab_before(text: &str, document: &Tree) -> Option<Syntax> {
    let Span { offset, .. } = document.span;
    let collection = !matches!(document.value, Written::Scalar(_));
    if !collection || text[offset..].starts_with(['{', '[']) || !text[..offset].ends_with('\t') {
        return None;
    }
    let span = Span { offset: offset - 1, column: document.span.column - 1, ..document.span };
    Some(Syntax::new(&TAB_INDENT, message::TAB_WHAT, span))
}

#[derive(Default)]
struct Loader {
    tags: Tags,
    documents: Vec<Tree>,
    open: Vec<Collection>,
    anchors: BTreeMap<usize, Anchored>,
    size: Size,
}

/// A list or map whose end has not come yet.
struct Collection {
    anchor: usize,
    span: Span,
    content: Content,
    /// The long form of its tag.
    function: Option<String>,
}

enum Content {
    List(Vec<Tree>),
    Map { entries: Vec<Entry>, seen: BTreeSet<String>, key: Option<(String, Span)> },
}

/// What an alias repeats.
struct Anchored {
    tree: Tree,
    size: Size,
}

/// How much of the limits something takes.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    /// Text of scalars and keys.
    bytes: usize,
    /// Lists and maps inside each other.
    depth: usize,
}

impl Loader {
    fn take(&mut self, event: Event, span: Span) -> Result<(), Syntax> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if let Some(function) = self.function(tag.as_deref()) {
                    let plain = style == ScalarStyle::Plain;
                    return self.function_of_scalar(function, text, plain, anchor, span);
                }
                let plain = plain(style, tag.as_deref(), span)?;
                self.scalar(text, plain, anchor, span)
            }
            Event::SequenceStart(anchor, tag) => {
                let function = self.function(tag.as_deref());
                if function.is_none() {
                    check_tag(tag.as_deref(), "seq", span)?;
                }
                self.open(anchor, Content::List(Vec::new()), function, span)
            }
            Event::MappingStart(anchor, tag) => {
                let function = self.function(tag.as_deref());
                if function.is_none() {
                    check_tag(tag.as_deref(), "map", span)?;
                }
                let content =
                    Content::Map { entries: Vec::new(), seen: BTreeSet::new(), key: None };
                self.open(anchor, content, function, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::DocumentStart(_) | Event::DocumentEnd => Ok(()),
            Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        plain: bool,
        anchor: usize,
        span: Span,
    ) -> Result<(), Syntax> {
        if text.len() > self.scalar_limit() {
            return Err(too_large("a scalar is longer than 64 KiB", span));
        }
        self.charge(Size { nodes: 1, bytes: text.len(), depth: 0 }, span)?;
        let value = Written::Scalar(Scalar { text: text.into_owned(), plain });
        self.finish(anchor, Tree { span, value })
    }

    /// How long the scalar that comes now may be.
    fn scalar_limit(&self) -> usize {
        let (long, limit) = LONG_SCALAR;
        match self.open.last().map(|collection| &collection.content) {
            Some(Content::Map { key: Some((key, _)), .. }) if key == long => limit,
            _ => SCALAR_BYTES,
        }
    }

    fn open(
        &mut self,
        anchor: usize,
        content: Content,
        function: Option<String>,
        span: Span,
    ) -> Result<(), Syntax> {
        if let Some(Collection { content: Content::Map { key: None, .. }, .. }) = self.open.last() {
            return Err(collection_as_key(span));
        }
        self.charge(Size { nodes: 1, bytes: 0, depth: 1 }, span)?;
        self.open.push(Collection { anchor, span, content, function });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Syntax> {
        let collection = self.open.pop().expect("the parser closes what it opened");
        let value = match collection.content {
            Content::List(items) => Written::List(items),
            Content::Map { entries, .. } => Written::Map(merge_keys(entries)),
        };
        let tree = Tree { span: collection.span, value };
        let tree = match collection.function {
            Some(function) => call(function, tree),
            None => tree,
        };
        self.finish(collection.anchor, tree)
    }

    /// The long form of a local tag, where such tags have a meaning.
    fn function(&self, tag: Option<&Tag>) -> Option<String> {
        let tag = tag.filter(|tag| self.tags == Tags::Functions && tag.handle == "!")?;
        let name = tag.suffix.as_str();
        if name.is_empty() {
            return None;
        }
        let bare = BARE_FUNCTIONS.contains(&name);
        Some(if bare { name.to_owned() } else { format!("Fn::{name}") })
    }

    fn function_of_scalar(
        &mut self,
        function: String,
        text: Cow<'_, str>,
        plain: bool,
        anchor: usize,
        span: Span,
    ) -> Result<(), Syntax> {
        if text.len() > SCALAR_BYTES {
            return Err(too_large("a scalar is longer than 64 KiB", span));
        }
        self.charge(Size { nodes: 2, bytes: text.len() + function.len(), depth: 1 }, span)?;
        let argument =
            Tree { span, value: Written::Scalar(Scalar { text: text.into_owned(), plain }) };
        self.finish(anchor, call(function, argument))
    }

    /// Repeats an anchored node, after counting what the copy takes.
    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Syntax> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(Syntax::new(
                &ALIAS_LOOP,
                "an alias stands inside the node it repeats",
                span,
            ));
        };
        let size = anchored.size;
        self.charge(size, span)?;
        let tree = Tree { span, ..self.anchors[&anchor].tree.clone() };
        self.add(tree)
    }

    /// Keeps a copy of an anchored node and hands the node to its parent. The copy counts too:
    /// anchors inside anchors would otherwise hold the text many times over.
    fn finish(&mut self, anchor: usize, tree: Tree) -> Result<(), Syntax> {
        if anchor != 0 {
            let size = measure(&tree);
            self.charge(Size { depth: 0, ..size }, tree.span)?;
            self.anchors.insert(anchor, Anchored { tree: tree.clone(), size });
        }
        self.add(tree)
    }

    fn charge(&mut self, size: Size, span: Span) -> Result<(), Syntax> {
        self.size.nodes += size.nodes;
        self.size.bytes += size.bytes;
        if self.open.len() + size.depth > DEPTH {
            return Err(too_large("lists and maps stand more than 64 levels deep", span));
        }
        if self.size.nodes > NODES {
            return Err(too_large("the text has more than 100,000 nodes, aliases expanded", span));
        }
        if self.size.bytes > DOCUMENT_BYTES {
            return Err(too_large("the text is larger than 1 MiB, aliases expanded", span));
        }
        Ok(())
    }

    fn add(&mut self, tree: Tree) -> Result<(), Syntax> {
        match self.open.last_mut().map(|collection| &mut collection.content) {
            None => self.documents.push(tree),
            Some(Content::List(items)) => {
                check_entries(items.len(), tree.span)?;
                items.push(tree);
            }
            Some(Content::Map { entries, seen, key }) => match key.take() {
                None => *key = Some(read_key(tree, entries.len(), seen)?),
                Some((key, key_span)) => entries.push(entry(key, key_span, tree)),
            },
        }
        Ok(())
    }
}

/// A function in its long form: a map of one key.
fn call(function: String, argument: Tree) -> Tree {
    let span = argument.span;
    let entry = Entry { key: function, key_span: span, value: argument };
    Tree { span, value: Written::Map(vec![entry]) }
}

/// A missing value is placed at its key: the parser would point at whatever comes next.
fn entry(key: String, key_span: Span, mut value: Tree) -> Entry {
    if let Written::Scalar(Scalar { text, plain: true }) = &value.value
        && text.is_empty()
    {
        value.span = key_span;
    }
    Entry { key, key_span, value }
}

fn read_key(
    tree: Tree,
    entries: usize,
    seen: &mut BTreeSet<String>,
) -> Result<(String, Span), Syntax> {
    let Written::Scalar(Scalar { text, .. }) = tree.value else {
        return Err(collection_as_key(tree.span));
    };
    check_entries(entries, tree.span)?;
    if !seen.insert(text.clone()) {
        let what = format!("the key `{}` is given twice in one map", short(&text));
        return Err(Syntax::new(&DUPLICATE_KEY, what, tree.span));
    }
    Ok((text, tree.span))
}

/// Names are shown, but a text that was put where a key belongs is not shown at length.
fn short(key: &str) -> String {
    let cut: String = key.chars().take(40).collect();
    if cut.len() < key.len() { format!("{cut}…") } else { cut }
}

/// Replaces `<<` by the entries of the maps it names, where the map itself has none of that key.
fn merge_keys(entries: Vec<Entry>) -> Vec<Entry> {
    let (merges, mut kept): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| entry.key == "<<" && is_mergeable(&entry.value));
    let mut keys: BTreeSet<String> = kept.iter().map(|entry| entry.key.clone()).collect();
    for merge in merges {
        let sources = match merge.value.value {
            Written::List(items) => items,
            _ => vec![merge.value],
        };
        for source in sources {
            let Written::Map(entries) = source.value else { continue };
            for entry in entries {
                if keys.insert(entry.key.clone()) {
                    kept.push(entry);
                }
            }
        }
    }
    kept
}

fn is_mergeable(tree: &Tree) -> bool {
    match &tree.value {
        Written::Map(_) => true,
        Written::List(items) => {
            items.iter().all(|item| matches!(item.value, Written::Map(_))) && !items.is_empty()
        }
        Written::Scalar(_) => false,
    }
}

fn check_entries(count: usize, span: Span) -> Result<(), Syntax> {
    if count >= ENTRIES {
        return Err(too_large("a list or map has more than 10,000 entries", span));
    }
    Ok(())
}

/// Whether the scalar's type depends on the dialect.
fn plain(style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<bool, Syntax> {
    let Some(tag) = tag else { return Ok(style == ScalarStyle::Plain) };
    match tag_name(tag).as_str() {
        "!" | "tag:yaml.org,2002:str" => Ok(false),
        "tag:yaml.org,2002:int" | "tag:yaml.org,2002:float" => Ok(true),
        "tag:yaml.org,2002:bool" | "tag:yaml.org,2002:null" => Ok(true),
        name => Err(bad_tag(name, span)),
    }
}

fn check_tag(tag: Option<&Tag>, kind: &str, span: Span) -> Result<(), Syntax> {
    let Some(tag) = tag else { return Ok(()) };
    let name = tag_name(tag);
    if name == "!" || name == format!("tag:yaml.org,2002:{kind}") {
        return Ok(());
    }
    Err(bad_tag(&name, span))
}

fn tag_name(tag: &Tag) -> String {
    format!("{}{}", tag.handle, tag.suffix)
}

fn bad_tag(name: &str, span: Span) -> Syntax {
    Syntax::new(&BAD_TAG, format!("the tag `{}` has no meaning here", short(name)), span)
}

fn collection_as_key(span: Span) -> Syntax {
    Syntax::new(&BAD_KEY, "a list or map stands where a key is expected", span)
}

/// Names the usual cause of a map as a key: `{{ name }}` without quotes reads as one.
fn template_left(text: &str, syntax: Syntax) -> Syntax {
    if syntax.page != &BAD_KEY || !text[..syntax.span.offset].ends_with('{') {
        return syntax;
    }
    Syntax::new(&TEMPLATE_LEFT, message::TEMPLATE_WHAT, syntax.span)
}

fn too_large(what: &str, span: Span) -> Syntax {
    Syntax::new(&TOO_LARGE_DOCUMENT, what, span)
}

/// Adds up what a tree takes. Recursion is bounded by [`DEPTH`].
fn measure(tree: &Tree) -> Size {
    let mut size = Size { nodes: 1, ..Size::default() };
    let mut add = |child: &Tree, key: usize| {
        let child = measure(child);
        size.nodes += child.nodes + usize::from(key > 0);
        size.bytes += child.bytes + key;
        size.depth = size.depth.max(child.depth);
    };
    match &tree.value {
        Written::Scalar(scalar) => {
            size.bytes = scalar.text.len();
            return size;
        }
        Written::List(items) => items.iter().for_each(|item| add(item, 0)),
        Written::Map(entries) => {
            entries.iter().for_each(|entry| add(&entry.value, entry.key.len()));
        }
    }
    size.depth += 1;
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree as text without places: maps in braces, lists in brackets.
    fn shape(tree: &Tree) -> String {
        match &tree.value {
            Written::Scalar(scalar) => scalar.text.clone(),
            Written::List(items) => {
                format!("[{}]", items.iter().map(shape).collect::<Vec<_>>().join(","))
            }
            Written::Map(entries) => {
                let entries = entries.iter().map(|e| format!("{}:{}", e.key, shape(&e.value)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
            }
        }
    }

    #[test]
    fn short_tags_of_templates_become_functions() {
        for (text, expected) in [
            ("!Sub a", "{Fn::Sub:a}"),
            ("!Ref a", "{Ref:a}"),
            ("a: !Base64\n  \"Fn::Sub\": |\n    x\n", "{a:{Fn::Base64:{Fn::Sub:x\n}}}"),
            ("!Join ['', [a, !Ref b]]", "{Fn::Join:[,[a,{Ref:b}]]}"),
            ("[&x !Ref a, *x]", "[{Ref:a},{Ref:a}]"),
            ("! a", "a"),
        ] {
            let trees = parse_template(text).unwrap();
            assert_eq!(trees.iter().map(shape).collect::<String>(), expected, "{text}");
        }
        assert_eq!(parse("!Sub a").unwrap_err().page, &BAD_TAG);
        assert_eq!(parse("!Sub [a]").unwrap_err().page, &BAD_TAG);
    }
}
