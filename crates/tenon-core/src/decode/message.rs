//! A MIME message as it is: every part with its headers, and what its framing breaks.
//!
//! [`super::unwrap`] takes the configuration out of a message; this is for readers that want
//! all of it, whatever it holds.

use super::mime::{ContentType, Headers, blank_lines, is_message, read_headers, split};
use super::{MIME_HEADER_BYTES, MIME_PARTS, transfer};
use crate::codes::decode::{BAD_TRANSFER, MIME_LIMIT};
use crate::problem::{Place, Problem};

/// Characters that a boundary may hold only in quotes (RFC 2045).
const SPECIAL: &str = "()<>@,;:\\\"/[]?=";

/// The parts of one message, one level deep.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    pub parts: Vec<Entity<'a>>,
    /// Faults of the message's own framing.
    pub faults: Vec<Framing>,
}

/// One part as it stands in the message.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity<'a> {
    /// Headers and body.
    pub raw: &'a [u8],
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Lower case, without parameters; of the first `Content-Type`.
    pub media_type: Option<String>,
    /// Line of its first header in the message, from 1.
    pub line: u32,
    pub faults: Vec<Framing>,
    /// As it stands in the message, its transfer encoding not yet undone.
    pub body: &'a [u8],
}

/// What can be wrong with the framing of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Content follows its headers without a blank line.
    NoBlankLine,
    /// The Content-Type names no boundary, or one that never comes.
    NoBoundary,
    /// The boundary lines are indented, so none of them counts.
    IndentedBoundary,
    NoClosingBoundary,
    TwoContentTypes,
    /// A boundary with special characters that is not quoted.
    UnquotedBoundary,
}

impl Entity<'_> {
    /// The value of the first header of a name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn is_multipart(&self) -> bool {
        self.media_type.as_deref().is_some_and(|media| media.starts_with("multipart/"))
    }

    /// The name that the part gives itself, by which cloud-init orders scripts.
    pub fn filename(&self) -> Option<String> {
        let from = |header, name| parameter(self.header(header)?, name);
        from("content-disposition", "filename").or_else(|| from("content-type", "name"))
    }

    /// The body with its transfer encoding undone.
    pub fn content(&self, place: &Place) -> Result<Vec<u8>, Problem> {
        let encoding = self.header("content-transfer-encoding");
        transfer::decode(encoding, self.body).map_err(|wrong| {
            let place = Place { offset: Some(wrong.offset), ..place.clone() };
            Problem::new(&BAD_TRANSFER, wrong.what).at(place)
        })
    }
}

/// Reads a message; None when the bytes are not one. A limit is an error.
pub fn message<'a>(bytes: &'a [u8], place: &Place) -> Option<Result<Message<'a>, Problem>> {
    is_message(bytes).then(|| read(&bytes[blank_lines(bytes)..], place))
}

fn read<'a>(bytes: &'a [u8], place: &Place) -> Result<Message<'a>, Problem> {
    let whole = entity(bytes, 1, place)?;
    if !whole.is_multipart() {
        return Ok(Message { parts: vec![whole], faults: Vec::new() });
    }
    let mut faults = whole.faults.clone();
    let parsed = whole.header("content-type").map(ContentType::parse);
    let boundary = parsed.and_then(|parsed| parsed.boundary).filter(|text| !text.is_empty());
    let Some(boundary) = boundary else {
        faults.push(Framing::NoBoundary);
        return Ok(Message { parts: Vec::new(), faults });
    };
    let found = split(whole.body, &boundary);
    if found.pieces.len() > MIME_PARTS as usize {
        let what = "the message has more than 64 parts";
        return Err(Problem::new(&MIME_LIMIT, what).at(place.clone()));
    }
    faults.extend(match (found.pieces.is_empty(), found.indented, found.closed) {
        (true, Some(_), _) => Some(Framing::IndentedBoundary),
        (true, None, false) => Some(Framing::NoBoundary),
        (_, _, false) => Some(Framing::NoClosingBoundary),
        _ => None,
    });
    let parts = found.pieces.iter().map(|piece| entity(piece, line_of(bytes, piece), place));
    Ok(Message { parts: parts.collect::<Result<_, _>>()?, faults })
}

/// The line at which a slice of the message starts.
fn line_of(bytes: &[u8], piece: &[u8]) -> u32 {
    let offset = piece.as_ptr() as usize - bytes.as_ptr() as usize;
    let lines = bytes[..offset].iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(lines + 1).unwrap_or(u32::MAX)
}

fn entity<'a>(raw: &'a [u8], line: u32, place: &Place) -> Result<Entity<'a>, Problem> {
    let block = read_headers(raw);
    if block.length > MIME_HEADER_BYTES {
        let what = "the headers of a part are longer than 8 KiB";
        return Err(Problem::new(&MIME_LIMIT, what).at(Place { line, column: 1, ..place.clone() }));
    }
    let media_type = block.value("content-type").map(|value| ContentType::parse(value).media);
    let faults = framing(&block);
    let headers = block.headers.into_iter().map(|header| (header.name, header.value)).collect();
    Ok(Entity { raw, headers, media_type, line, faults, body: &raw[block.length..] })
}

fn framing(block: &Headers) -> Vec<Framing> {
    let types: Vec<_> =
        block.headers.iter().filter(|header| header.name == "content-type").collect();
    let mut faults = Vec::new();
    if block.unended {
        faults.push(Framing::NoBlankLine);
    }
    if types.len() > 1 {
        faults.push(Framing::TwoContentTypes);
    }
    if types.first().is_some_and(|header| has_bare_boundary(&header.value)) {
        faults.push(Framing::UnquotedBoundary);
    }
    faults
}

/// True for `boundary=` and special characters without quotes.
fn has_bare_boundary(content_type: &str) -> bool {
    let lower = content_type.to_ascii_lowercase();
    let Some(start) = lower.find("boundary=") else { return false };
    let value = &content_type[start + "boundary=".len()..];
    !value.starts_with('"')
        && value.split(';').next().unwrap_or("").contains(|c| SPECIAL.contains(c))
}

/// A parameter of a header value, quotes removed.
fn parameter(value: &str, name: &str) -> Option<String> {
    super::mime::split_unquoted(value).into_iter().skip(1).find_map(|field| {
        let (key, value) = field.split_once('=')?;
        let found = key.trim().eq_ignore_ascii_case(name);
        found.then(|| value.trim().trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Message<'_> {
        message(text.as_bytes(), &Place::default()).unwrap().unwrap()
    }

    #[test]
    fn every_part_is_there_with_its_headers() {
        let text = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"x\"\n\npre\n--x\n\
            Content-Type: text/x-shellscript\nContent-Disposition: attachment; filename=\"a b.sh\"\n\
            \n#!/bin/sh\n--x\nContent-Type: Text/Cloud-Config\nContent-Transfer-Encoding: base64\n\n\
            I2Ns\n--x--\n";
        let message = parse(text);
        assert_eq!(message.faults, []);
        let [script, config] = &message.parts[..] else { panic!("two parts") };
        assert_eq!(script.filename().as_deref(), Some("a b.sh"));
        assert_eq!((script.body, script.line), (&b"#!/bin/sh"[..], 6));
        assert_eq!(config.media_type.as_deref(), Some("text/cloud-config"));
        assert_eq!(config.content(&Place::default()).unwrap(), b"#cl");
    }

    #[test]
    fn faults_of_the_framing_are_named() {
        use Framing::*;
        let head = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=";
        for (text, faults) in [
            (format!("{head}\"//\"\n\n--//\n\na\n--//--\n"), vec![]),
            (format!("{head}//\n\n--//\n\na\n--//--\n"), vec![UnquotedBoundary]),
            (format!("{head}plain\n\n--plain\n\na\n--plain--\n"), vec![]),
            (format!("{head}\"//\"\n\n--//\n\na\n"), vec![NoClosingBoundary]),
            (format!("{head}\"//\"\n\n  --//\n\na\n"), vec![IndentedBoundary]),
            (format!("{head}\"//\"\n\na\n"), vec![NoBoundary]),
            ("Content-Type: multipart/mixed\n\na\n".to_owned(), vec![NoBoundary]),
        ] {
            assert_eq!(parse(&text).faults, faults, "{text}");
        }
        let two = format!("{head}\"x\"\n\n--x\nContent-Type: a/b\nContent-Type: c/d\n\na\n--x--\n");
        assert_eq!(parse(&two).parts[0].faults, [TwoContentTypes]);
        assert_eq!(parse(&two).parts[0].media_type.as_deref(), Some("a/b"));
    }

    #[test]
    fn limits_are_errors() {
        let parts = "--x\n\na\n".repeat(65);
        let text = format!("Content-Type: multipart/mixed; boundary=x\n\n{parts}--x--\n");
        let limit = message(text.as_bytes(), &Place::default()).unwrap().unwrap_err();
        assert_eq!(limit.page, &MIME_LIMIT);
        assert!(message(b"#!/bin/sh\n", &Place::default()).is_none());
    }
}
