//! A MIME message: which of its parts are configuration, and what the others are.
//!
//! Works on bytes, because parts that are not ours may be in any encoding. Reads what RFC 2046
//! allows: preamble and epilogue, folded headers, any letter case, LF and CRLF mixed, multiparts
//! inside multiparts. What it cannot read it says with the place in the message.

use super::layers::{self, Peeled};
use super::{
    Budget, CONFIG_TYPES, Decoded, MIME_DEPTH, MIME_HEADER_BYTES, MIME_PARTS, Part, hints, take,
    transfer,
};
use crate::codes::decode::{
    BAD_TRANSFER, MIME_LIMIT, NO_BLANK_LINE, NO_BOUNDARY, NO_FINAL_BOUNDARY,
};
use crate::problem::{Place, Problem};

/// First keys of a document. As header names they mean that the blank line is missing.
const DOCUMENT_KEYS: [&str; 4] = ["apiversion", "kind", "metadata", "spec"];

/// True when the bytes start with headers of a message.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    let headers = read_headers(&bytes[blank_lines(bytes)..]).headers;
    headers.iter().any(|header| matches!(header.name.as_str(), "mime-version" | "content-type"))
}

/// Reads a message into its parts.
pub(super) fn read(peeled: &Peeled, budget: &mut Budget, decoded: &mut Decoded) {
    let mut reader = Reader {
        message: &peeled.bytes,
        place: &peeled.place,
        budget,
        decoded,
        entities: 0,
        leaves: 0,
        others: Vec::new(),
    };
    // The error, if any, is among the findings.
    let _ = reader.entity(&peeled.bytes[blank_lines(&peeled.bytes)..], 0);
    let others = std::mem::take(&mut reader.others);
    decoded.held.extend(hints::count_parts(&others));
}

pub(super) fn blank_lines(bytes: &[u8]) -> usize {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.take_while(|line| line.trim_ascii().is_empty()).map(<[u8]>::len).sum()
}

struct Reader<'a> {
    message: &'a [u8],
    place: &'a Place,
    budget: &'a mut Budget,
    decoded: &'a mut Decoded,
    /// Parts and multiparts seen.
    entities: u32,
    /// Parts that hold no parts themselves; they are numbered.
    leaves: u32,
    /// Kinds of the parts that were not taken.
    others: Vec<String>,
}

/// A limit was reached: nothing more of the message is read.
struct Stop;

impl<'a> Reader<'a> {
    /// Reads headers and body of the message or of one part.
    fn entity(&mut self, bytes: &'a [u8], depth: usize) -> Result<(), Stop> {
        let block = read_headers(bytes);
        if block.length > MIME_HEADER_BYTES {
            return self.stop("the headers of a part are longer than 8 KiB", bytes);
        }
        if block.unended {
            let what = "the content follows its headers without a blank line";
            self.error(Problem::new(&NO_BLANK_LINE, what), &bytes[block.length..]);
        }
        let body = &bytes[block.length..];
        let content_type = block.value("content-type").map(ContentType::parse);
        match content_type {
            Some(multipart) if multipart.media.starts_with("multipart/") => {
                self.multipart(&multipart, bytes, body, depth + 1)
            }
            other => {
                let media = other.map(|other| other.media);
                self.leaf(media, block.value("content-transfer-encoding"), body);
                Ok(())
            }
        }
    }

    fn multipart(
        &mut self,
        content_type: &ContentType,
        whole: &'a [u8],
        body: &'a [u8],
        depth: usize,
    ) -> Result<(), Stop> {
        if depth > MIME_DEPTH {
            return self.stop("multiparts stand more than 2 levels deep", whole);
        }
        let Some(boundary) = content_type.boundary.as_deref().filter(|text| !text.is_empty())
        else {
            self.error(Problem::new(&NO_BOUNDARY, "the Content-Type names no boundary"), whole);
            return Ok(());
        };
        let split = split(body, boundary);
        for piece in &split.pieces {
            self.entities += 1;
            if self.entities > MIME_PARTS {
                return self.stop("the message has more than 64 parts", piece);
            }
            self.entity(piece, depth)?;
        }
        self.check_boundaries(&split, body);
        Ok(())
    }

    fn check_boundaries(&mut self, split: &Split<'a>, body: &'a [u8]) {
        if let (true, Some(line)) = (split.pieces.is_empty(), split.indented) {
            let what = "the boundary lines of the message are indented";
            let fix = "remove the indentation: a boundary line starts at the first column";
            self.error(Problem::new(&NO_BOUNDARY, what).fix(fix), line);
        } else if split.pieces.is_empty() && !split.closed {
            let what = "the boundary of the message is never found in it";
            self.error(Problem::new(&NO_BOUNDARY, what), body);
        } else if !split.closed {
            let what = "the message has no closing boundary";
            self.error(Problem::new(&NO_FINAL_BOUNDARY, what), &body[body.len()..]);
        }
    }

    fn leaf(&mut self, media_type: Option<String>, encoding: Option<&str>, body: &[u8]) {
        self.leaves += 1;
        let place =
            Place { part: Some(self.leaves), media_type: media_type.clone(), ..self.place.clone() };
        let ours = media_type.as_deref().is_some_and(|media| CONFIG_TYPES.contains(&media));
        let text = match transfer::decode(encoding, body) {
            Ok(bytes) => bytes,
            Err(wrong) if ours => {
                let place = Place { offset: Some(wrong.offset), ..place };
                return self.decoded.error(Problem::new(&BAD_TRANSFER, wrong.what).at(place));
            }
            Err(_) => Vec::new(),
        };
        if !ours {
            let part =
                Part { place, media_type, text: String::from_utf8_lossy(&text).into_owned() };
            return self.others.push(hints::describe_part(&part, self.decoded));
        }
        match self.config(text, place) {
            Ok(part) => take(part, self.decoded),
            Err(problem) => self.decoded.error(problem),
        }
    }

    /// Removes the layers inside a part.
    fn config(&mut self, bytes: Vec<u8>, place: Place) -> Result<Part, Problem> {
        let bytes = layers::charge(bytes, &place, self.budget)?;
        let peeled = layers::peel(bytes, place, self.budget)?;
        let place = peeled.place.clone();
        let media_type = place.media_type.clone();
        Ok(Part { place, media_type, text: layers::text(peeled)? })
    }

    fn stop(&mut self, what: &str, at: &[u8]) -> Result<(), Stop> {
        self.error(Problem::new(&MIME_LIMIT, what), at);
        Err(Stop)
    }

    /// Reports a problem at the start of a slice of the message.
    fn error(&mut self, problem: Problem, at: &[u8]) {
        // Every slice here is cut from the message, so its address tells where.
        let offset = at.as_ptr().addr() - self.message.as_ptr().addr();
        let line = 1 + self.message[..offset].iter().filter(|byte| **byte == b'\n').count();
        let place = Place {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 1,
            offset: Some(offset),
            ..self.place.clone()
        };
        self.decoded.error(problem.at(place));
    }
}

#[derive(Default)]
pub(super) struct Headers {
    pub(super) headers: Vec<Header>,
    /// Bytes up to the body, blank line included.
    pub(super) length: usize,
    /// The body started without a blank line.
    pub(super) unended: bool,
}

pub(super) struct Header {
    /// Lower case.
    pub(super) name: String,
    pub(super) value: String,
}

impl Headers {
    /// The first header of a name.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.name == name).map(|header| header.value.as_str())
    }
}

pub(super) fn read_headers(bytes: &[u8]) -> Headers {
    let mut block = Headers::default();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            block.length += line.len();
            return block;
        }
        let folded = line.starts_with(b" ") || line.starts_with(b"\t");
        match (block.headers.last_mut(), parse_header(line)) {
            (Some(last), _) if folded => {
                last.value.push(' ');
                last.value.push_str(&String::from_utf8_lossy(line.trim_ascii()));
            }
            (_, Some(header)) if !folded => block.headers.push(header),
            _ => {
                block.unended = true;
                return block;
            }
        }
        block.length += line.len();
        if block.length > MIME_HEADER_BYTES {
            return block;
        }
    }
    block
}

/// A header line; None for a line that can only be content.
fn parse_header(line: &[u8]) -> Option<Header> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = &line[..colon];
    // The standard allows more signs, but `#` and quotes start content, not headers.
    let letter = name.first().is_some_and(u8::is_ascii_alphabetic);
    if !letter || !name.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let value = String::from_utf8_lossy(line[colon + 1..].trim_ascii()).into_owned();
    (!DOCUMENT_KEYS.contains(&name.as_str())).then_some(Header { name, value })
}

pub(super) struct ContentType {
    /// Lower case, without parameters.
    pub(super) media: String,
    pub(super) boundary: Option<String>,
}

impl ContentType {
    pub(super) fn parse(value: &str) -> Self {
        let mut fields = split_unquoted(value).into_iter();
        let media = fields.next().unwrap_or_default().trim().to_ascii_lowercase();
        let boundary = fields.find_map(|field| {
            let (name, value) = field.split_once('=')?;
            name.trim().eq_ignore_ascii_case("boundary").then(|| unquote(value.trim()))
        });
        ContentType { media, boundary }
    }
}

/// Splits a header value at `;` outside of quotes.
pub(super) fn split_unquoted(value: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for c in value.chars() {
        if c == ';' && !quoted {
            fields.push(String::new());
            continue;
        }
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && c == '\\' && !escaped;
        fields.last_mut().expect("never empty").push(c);
    }
    fields
}

fn unquote(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else { return value.to_owned() };
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => text.extend(chars.next()),
            _ => text.push(c),
        }
    }
    text
}

/// What the boundary lines of a multipart body enclose.
pub(super) struct Split<'a> {
    pub(super) pieces: Vec<&'a [u8]>,
    pub(super) closed: bool,
    /// The first boundary line that is indented and therefore none.
    pub(super) indented: Option<&'a [u8]>,
}

pub(super) fn split<'a>(body: &'a [u8], boundary: &str) -> Split<'a> {
    let delimiter = format!("--{boundary}");
    let mut found = Split { pieces: Vec::new(), closed: false, indented: None };
    let mut start = None;
    let mut position = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let end = position;
        position += line.len();
        let Some(rest) = line.trim_ascii_end().strip_prefix(delimiter.as_bytes()) else {
            if line.trim_ascii() == delimiter.as_bytes() {
                found.indented = found.indented.or(Some(line));
            }
            continue;
        };
        if !matches!(rest, b"" | b"--") {
            continue;
        }
        found.pieces.extend(start.map(|start| &body[start..before_line_end(body, start, end)]));
        start = Some(position);
        if rest == b"--" {
            found.closed = true;
            return found;
        }
    }
    found.pieces.extend(start.map(|start| &body[start..]));
    found
}

/// The line end before a boundary line belongs to the boundary.
fn before_line_end(body: &[u8], start: usize, end: usize) -> usize {
    let piece = &body[start..end];
    let piece = piece.strip_suffix(b"\n").unwrap_or(piece);
    start + piece.strip_suffix(b"\r").unwrap_or(piece).len()
}
