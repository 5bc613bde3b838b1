//! Bytes of a source into the texts of its parts.
//!
//! ```text
//! blob ─layers─▶ base64 and gzip removed ─mime─▶ parts ─layers─▶ texts
//!                                          └────▶ other parts: described, not read
//! ```
//!
//! Everything is bounded while it is read, and whatever cannot be read says where and why. A
//! problem in one part does not hide the other parts.

mod hints;
mod layers;
mod message;
mod mime;
mod snippet;
mod transfer;

pub use hints::{Call, bootstrap_arguments};
pub use message::{Entity, Framing, Message, message};
pub use snippet::snippet;

use crate::codes::decode::{INDENTED_BY_TEMPLATE, TOO_LARGE_SOURCE};
use crate::problem::{Finding, Place, Problem};
use crate::tree::Span;
use layers::{Layer, Peeled};

/// Bytes of user data, and of a file or standard input, before anything is removed.
pub const USER_DATA_BYTES: usize = 64 << 10;
pub const FILE_BYTES: usize = 1 << 20;
/// What one gzip layer may give, in bytes and as a multiple of its own size.
pub const LAYER_BYTES: usize = 1 << 20;
pub const LAYER_RATIO: usize = 200;
/// What all layers of a run may give together.
pub const RUN_BYTES: usize = 4 << 20;
pub const GZIP_LAYERS: usize = 2;
pub const BASE64_LAYERS: usize = 2;
pub const MIME_PARTS: u32 = 64;
pub const MIME_DEPTH: usize = 2;
pub const MIME_HEADER_BYTES: usize = 8 << 10;

/// The media types whose parts hold a NodeConfig.
pub const CONFIG_TYPES: [&str; 2] = ["application/node.eks.aws", "application/tenon.dev"];

/// What a source gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Blob {
    pub source_index: usize,
    pub uri: String,
    pub origin: Origin,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The instance's user data, which other programs share.
    Imds,
    File,
    Stdin,
}

impl Origin {
    /// How many bytes are read from such a source.
    pub fn limit(self) -> usize {
        match self {
            Origin::Imds => USER_DATA_BYTES,
            Origin::File | Origin::Stdin => FILE_BYTES,
        }
    }
}

/// Bytes that the layers of this run may still give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { left: RUN_BYTES }
    }
}

/// One text that should be a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Source, part number, media type and removed layers; a line of 0.
    pub place: Place,
    pub media_type: Option<String>,
    pub text: String,
}

/// What a blob held.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decoded {
    /// The configuration texts, in order.
    pub parts: Vec<Part>,
    pub findings: Vec<Finding>,
    /// What else it held: `1 shell script part`, `a cloud-config`.
    pub held: Vec<String>,
    /// What may explain a missing configuration; worth saying when none is found.
    pub hints: Vec<Problem>,
}

/// Removes the layers around a source's documents.
pub fn unwrap(blob: &Blob, budget: &mut Budget) -> Decoded {
    let mut decoded = Decoded::default();
    let place =
        Place { source_index: blob.source_index, source: blob.uri.clone(), ..Place::default() };
    if blob.bytes.len() > blob.origin.limit() {
        let what = format!(
            "the source has {} bytes, more than the {} that are read",
            blob.bytes.len(),
            blob.origin.limit()
        );
        decoded.error(Problem::new(&TOO_LARGE_SOURCE, what).at(place));
        return decoded;
    }
    match layers::peel(blob.bytes.clone(), place, budget) {
        Err(problem) => decoded.error(problem),
        Ok(peeled) => open(peeled, blob.origin, budget, &mut decoded),
    }
    decoded
}

/// Removes the one layer that is outermost; None when the bytes have none.
///
/// The name of the layer comes with what is inside, or with why that cannot be read.
pub fn peel_one(
    bytes: &[u8],
    place: &Place,
    budget: &mut Budget,
) -> Option<(&'static str, Result<Vec<u8>, Problem>)> {
    Some(match layers::outermost(bytes)? {
        Layer::Gzip => ("gzip", layers::gunzip(bytes, place, budget)),
        Layer::Base64(Ok(decoded)) => ("base64", layers::charge(decoded, place, budget)),
        Layer::Base64(Err(error)) => ("base64", Err(layers::bad_base64(bytes, &error, place))),
    })
}

/// Bytes as text, or which other encoding they are in.
pub fn text_of(bytes: Vec<u8>, place: &Place) -> Result<String, Problem> {
    layers::text(Peeled { bytes, place: place.clone() })
}

impl Decoded {
    fn error(&mut self, problem: Problem) {
        self.findings.push(Finding::error(problem));
    }

    fn warn(&mut self, problem: Problem) {
        self.findings.push(Finding::warning(problem));
    }
}

/// Reads what is left when no layer is around it: a message, or one document.
fn open(peeled: Peeled, origin: Origin, budget: &mut Budget, decoded: &mut Decoded) {
    if mime::is_message(&peeled.bytes) {
        return mime::read(&peeled, budget, decoded);
    }
    let place = peeled.place.clone();
    match layers::text(peeled) {
        Err(problem) => decoded.error(problem),
        Ok(text) => whole(text, place, origin, decoded),
    }
}

/// Takes a text that is no message: a document, unless user data holds something else.
fn whole(text: String, place: Place, origin: Origin, decoded: &mut Decoded) {
    if let Some(problem) = hints::indented_message(&text, &place) {
        return decoded.error(problem);
    }
    let part = Part { place, media_type: None, text };
    if origin == Origin::Imds && !hints::may_be_config(&part.text) {
        return hints::describe_whole(part, decoded);
    }
    if hints::is_script(&part.text) {
        // Nobody else reads a file that was named as a config, so here it is a mistake.
        let mut described = Decoded::default();
        hints::describe_whole(part, &mut described);
        return described.hints.into_iter().for_each(|hint| decoded.error(hint));
    }
    take(part, decoded);
}

/// Accepts a configuration text.
fn take(part: Part, decoded: &mut Decoded) {
    if hints::is_indented(&part.text) {
        let place = Span::start().in_part(&part.place, "");
        decoded
            .warn(Problem::new(&INDENTED_BY_TEMPLATE, "the whole document is indented").at(place));
    }
    decoded.parts.push(part);
}

#[cfg(test)]
mod tests;
