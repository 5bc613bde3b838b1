//! Bytes into the tree of what they hold.
//!
//! Layers are removed until none is left. What cannot be read stays in the tree as it is, with
//! the reason: whoever asks what a node was given wants the rest all the same. Only a limit
//! ends the reading, because behind a limit nothing can be trusted.

use std::collections::BTreeMap;

use super::node::{Kind, Node};
use super::{cloud_config, document, here, ignition, recognise, template, windows};
use crate::codes::decode::{
    BAD_GZIP, BAD_SYNTAX, GZIP_LIMIT, LAYER_LIMIT, MIME_LIMIT, TOO_LARGE_DOCUMENT, TOO_LARGE_SOURCE,
};
use crate::decode::{self, BASE64_LAYERS, Budget, GZIP_LAYERS, LAYER_BYTES, MIME_DEPTH};
use crate::problem::{Place, Problem};

/// Bytes of a source: Terraform states and plans are larger than any user data.
pub const SOURCE_BYTES: usize = 16 << 20;
/// Nodes inside each other.
pub const DEPTH: usize = 8;
/// Nodes of one source.
pub const NODES: usize = 4096;

/// How a source is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Values for the parameters of a CloudFormation template.
    pub parameters: BTreeMap<String, String>,
}

/// Reads user data, or a template that embeds some.
pub fn read(source: &str, bytes: Vec<u8>, options: &Options) -> Result<Node, Problem> {
    let place = Place { source: source.to_owned(), ..Place::default() };
    if bytes.len() > SOURCE_BYTES {
        let what = format!("the source has {} bytes, more than 16 MiB", bytes.len());
        return Err(Problem::new(&TOO_LARGE_SOURCE, what).at(place));
    }
    let mut reader = Reader { options, budget: Budget::default(), nodes: 0, messages: 0 };
    reader.fill(Node { bytes, place, ..Node::default() }, 0)
}

pub(super) struct Reader<'a> {
    pub(super) options: &'a Options,
    budget: Budget,
    nodes: usize,
    /// Messages around the part that is being read.
    messages: usize,
}

/// A node, or the limit that was reached.
pub(super) type Filled = Result<Node, Problem>;

impl Reader<'_> {
    /// Finds out what a node's bytes are and fills in the rest of it.
    pub(super) fn fill(&mut self, mut node: Node, depth: usize) -> Filled {
        self.count(&node, depth)?;
        if node.bytes.starts_with(b"\xef\xbb\xbf") {
            node.bytes.drain(..3);
        }
        if node.bytes.trim_ascii().is_empty() {
            return Ok(Node { kind: Kind::Empty, ..node });
        }
        if node.path.is_some() || node.kind == Kind::Command {
            return self.text(node, depth);
        }
        if let Some((layer, inner)) = decode::peel_one(&node.bytes, &node.place, &mut self.budget) {
            return self.layer(node, layer, inner, depth);
        }
        if let Some(message) = decode::message(&node.bytes.clone(), &node.place) {
            return self.message(node, message?, depth);
        }
        self.text(node, depth)
    }

    fn count(&mut self, node: &Node, depth: usize) -> Result<(), Problem> {
        self.nodes += 1;
        let what = match (depth > DEPTH, self.nodes > NODES) {
            (true, _) => "the parts stand more than 8 levels deep",
            (_, true) => "the source has more than 4,096 parts, files and commands",
            _ => return Ok(()),
        };
        Err(Problem::new(&LAYER_LIMIT, what).at(node.place.clone()))
    }

    /// Counts children that were not filled one by one.
    fn counted(&mut self, node: Node) -> Filled {
        self.nodes += node.children.len();
        self.count(&node, 0)?;
        Ok(node)
    }

    fn layer(
        &mut self,
        mut node: Node,
        layer: &'static str,
        inner: Result<Vec<u8>, Problem>,
        depth: usize,
    ) -> Filled {
        let bytes = match inner {
            Ok(bytes) if layer == "base64" && !is_content(&bytes) => return self.text(node, depth),
            Ok(bytes) => bytes,
            Err(problem) if is_limit(&problem) => return Err(problem),
            Err(problem) => return Ok(opaque(node, problem)),
        };
        let (kind, limit) = match layer {
            "gzip" => (Kind::Gzip, GZIP_LAYERS),
            _ => (Kind::Base64, BASE64_LAYERS),
        };
        let mut place = node.place.clone();
        if place.layers.iter().filter(|removed| *removed == layer).count() == limit {
            let what = format!("there is a third {layer} layer around the text");
            return Err(Problem::new(&LAYER_LIMIT, what).at(place));
        }
        place.layers.push(layer.to_owned());
        node.kind = kind;
        // The media type of a part describes what is inside its encodings.
        let media_type = node.media_type.clone();
        node.children =
            vec![self.fill(Node { bytes, place, media_type, ..Node::default() }, depth + 1)?];
        Ok(node)
    }

    fn message(&mut self, mut node: Node, message: decode::Message<'_>, depth: usize) -> Filled {
        self.messages += 1;
        if self.messages > MIME_DEPTH {
            let what = "messages stand more than 2 levels deep";
            return Err(Problem::new(&MIME_LIMIT, what).at(node.place.clone()));
        }
        node.kind = Kind::Mime;
        node.framing = message.faults;
        for (index, part) in message.parts.iter().enumerate() {
            let child = self.part(&node.place, part, index + 1);
            node.children.push(self.fill_part(child, part, depth + 1)?);
        }
        self.messages -= 1;
        Ok(node)
    }

    fn part(&self, above: &Place, part: &decode::Entity<'_>, number: usize) -> Node {
        let place = Place {
            part: u32::try_from(number).ok(),
            media_type: part.media_type.clone(),
            ..above.clone()
        };
        Node {
            name: format!("part {number}"),
            media_type: part.media_type.clone(),
            filename: part.filename(),
            framing: part.faults.clone(),
            place,
            ..Node::default()
        }
    }

    fn fill_part(&mut self, mut node: Node, part: &decode::Entity<'_>, depth: usize) -> Filled {
        if part.is_multipart() {
            node.bytes = part.raw.to_vec();
            return self.fill(node, depth);
        }
        match part.content(&node.place) {
            Ok(bytes) => {
                node.bytes = bytes;
                let framing = node.framing.clone();
                let filled = self.fill(node, depth)?;
                Ok(Node { framing, ..filled })
            }
            Err(problem) => {
                node.bytes = part.body.to_vec();
                Ok(opaque(node, problem))
            }
        }
    }

    /// Fills a file whose content was encoded on its own; `raw` is what is shown of it when it
    /// cannot be decoded.
    pub(super) fn file(
        &mut self,
        mut node: Node,
        content: Result<Vec<u8>, Problem>,
        raw: &str,
        depth: usize,
    ) -> Filled {
        match content {
            Ok(bytes) => {
                node.bytes = bytes;
                self.fill(node, depth)
            }
            Err(problem) if is_limit(&problem) => Err(problem),
            Err(problem) => {
                node.bytes = raw.as_bytes().to_vec();
                Ok(opaque(node, problem))
            }
        }
    }

    /// Expands gzip within the budget of this source.
    pub(super) fn gunzip(&mut self, bytes: &[u8], place: &Place) -> Result<Vec<u8>, Problem> {
        match decode::peel_one(bytes, place, &mut self.budget) {
            Some(("gzip", inner)) => inner,
            _ => Err(Problem::new(&BAD_GZIP, "the content is not gzip").at(place.clone())),
        }
    }

    /// Reads a node that has no layer left.
    fn text(&mut self, mut node: Node, depth: usize) -> Filled {
        let text = match decode::text_of(node.bytes.clone(), &node.place) {
            Ok(text) => text,
            Err(problem) => return Ok(opaque(node, problem)),
        };
        // Only templates may be larger than what one layer gives; they are JSON or YAML.
        let template = text.trim_start().starts_with('{');
        if text.len() > LAYER_BYTES && !template {
            let what = format!("the text has {} bytes, more than 1 MiB", text.len());
            let problem = Problem::new(&TOO_LARGE_DOCUMENT, what).at(node.place.clone());
            return Ok(opaque(node, problem));
        }
        if node.kind == Kind::Command {
            return here::open(self, node, &text, depth);
        }
        let claimed = node.media_type.as_deref().and_then(recognise::by_media_type);
        let known = claimed.or_else(|| recognise::by_start(&text));
        let known = known.or_else(|| node.path.as_deref().and_then(recognise::by_path));
        match known {
            Some(kind) => {
                node.kind = kind;
                self.known(node, &text, depth)
            }
            None if recognise::looks_like_settings(&text) => Ok(settings(node, &text)),
            None => self.document(node, &text, depth),
        }
    }

    /// Opens a text whose kind is known.
    fn known(&mut self, node: Node, text: &str, depth: usize) -> Filled {
        match node.kind {
            Kind::CloudConfig => cloud_config::open(self, node, text, depth),
            Kind::CloudConfigArchive => cloud_config::open_archive(self, node, text, depth),
            Kind::Jinja => self.jinja(node, text, depth),
            Kind::PowerShell | Kind::Batch => self.counted(windows::open(node, text)),
            Kind::NodeConfig | Kind::TenonConfig => self.document(node, text, depth),
            Kind::Script | Kind::Boothook => here::open(self, node, text, depth),
            _ => Ok(node),
        }
    }

    /// The header says that a template follows; below it stands what it becomes.
    fn jinja(&mut self, mut node: Node, text: &str, depth: usize) -> Filled {
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        let inner = Node {
            bytes: body.as_bytes().to_vec(),
            place: node.place.clone(),
            path: node.path.clone(),
            ..Node::default()
        };
        node.children = vec![self.fill(inner, depth + 1)?];
        Ok(node)
    }

    /// Reads a text as YAML or JSON, as far as it is that.
    fn document(&mut self, mut node: Node, text: &str, depth: usize) -> Filled {
        let claimed = node.kind;
        match document::parse(text) {
            Err(syntax) if claimed != Kind::Text => {
                node.problem = Some(syntax.problem(&node.place, text));
                Ok(node)
            }
            // Text of no known kind is not a broken document, unless a limit was reached.
            Err(syntax) if syntax.page == &TOO_LARGE_DOCUMENT => {
                Err(syntax.problem(&node.place, text))
            }
            Err(_) => Ok(node),
            Ok(mut documents) if documents.len() == 1 => {
                let document = documents.pop().expect("has one");
                self.single(node, document, depth)
            }
            Ok(documents) => self.several(node, documents, depth),
        }
    }

    fn several(
        &mut self,
        mut node: Node,
        documents: Vec<serde_json::Value>,
        depth: usize,
    ) -> Filled {
        let claimed = node.kind;
        node.kind = Kind::Yaml;
        for (index, document) in documents.into_iter().enumerate() {
            let child = Node {
                name: format!("document {}", index + 1),
                bytes: crate::yaml::emit(&document).into_bytes(),
                place: node.place.clone(),
                kind: claimed,
                ..Node::default()
            };
            self.count(&child, depth + 1)?;
            node.children.push(self.single(child, document, depth + 1)?);
        }
        Ok(node)
    }

    /// Opens one document.
    fn single(&mut self, mut node: Node, document: serde_json::Value, depth: usize) -> Filled {
        if let serde_json::Value::String(text) = &document {
            return self.quoted(node, text.clone(), depth);
        }
        if !document.is_object() {
            return Ok(node);
        }
        let found = recognise::by_document(&document);
        let json = node.bytes.trim_ascii().starts_with(b"{");
        node.kind = match (node.kind, found) {
            (Kind::Text, Kind::Yaml) if json => Kind::Json,
            (Kind::Text, found) => found,
            (claimed, _) => claimed,
        };
        node.document = Some(document);
        match node.kind {
            Kind::Ignition => ignition::open(self, node, depth),
            Kind::CloudFormation => template::open(self, node, depth),
            Kind::LaunchTemplate | Kind::Terraform => template::open_embedded(self, node, depth),
            Kind::LaunchTasks => self.counted(windows::open_tasks(node)),
            _ => Ok(node),
        }
    }

    /// A JSON string holds what it quotes; a plain YAML word is just text.
    fn quoted(&mut self, mut node: Node, text: String, depth: usize) -> Filled {
        if node.kind != Kind::Text || !node.bytes.trim_ascii().starts_with(b"\"") {
            return Ok(node);
        }
        node.kind = Kind::Quoted;
        let inner = Node { bytes: text.into_bytes(), place: node.place.clone(), ..Node::default() };
        node.children = vec![self.fill(inner, depth + 1)?];
        Ok(node)
    }
}

fn settings(mut node: Node, text: &str) -> Node {
    node.kind = Kind::Settings;
    match document::parse_toml(text) {
        Ok(document) => node.document = Some(document),
        Err(what) => {
            let fix = "correct the line; `tenon userdata decode` prints the text with its lines";
            let why = "the text has Bottlerocket's `settings` but is not TOML";
            node.problem =
                Some(Problem::new(&BAD_SYNTAX, what).why(why).fix(fix).at(node.place.clone()));
        }
    }
    node
}

fn opaque(node: Node, problem: Problem) -> Node {
    Node { kind: Kind::Opaque, problem: Some(problem), ..node }
}

/// What base64 may hold: text, or gzip. Else the letters were just letters.
fn is_content(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x1f\x8b")
        || std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}

fn is_limit(problem: &Problem) -> bool {
    [&GZIP_LIMIT, &LAYER_LIMIT, &MIME_LIMIT].contains(&problem.page)
}
