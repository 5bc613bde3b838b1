//! Base64 and gzip around a text, and the text's encoding.

use std::io::Read;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};
use flate2::bufread::GzDecoder;

use super::{BASE64_LAYERS, Budget, GZIP_LAYERS, LAYER_BYTES, LAYER_RATIO};
use crate::codes::decode::{BAD_BASE64, BAD_ENCODING, BAD_GZIP, GZIP_LIMIT, LAYER_LIMIT};
use crate::problem::{Place, Problem};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Shorter texts of base64 letters may be words; longer ones are base64 even when damaged.
const CERTAINLY_BASE64: usize = 24;

/// First bytes of what is not UTF-8 text, and what it is.
const FOREIGN: &[(&[u8], &str)] = &[
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\xfd7zXZ\x00", "xz compression"),
    (b"\x28\xb5\x2f\xfd", "zstd compression"),
    (b"BZh", "bzip2 compression"),
];

/// Bytes with no base64 or gzip left around them.
pub(super) struct Peeled {
    pub(super) bytes: Vec<u8>,
    /// Of the source or part, with the layers that were removed.
    pub(super) place: Place,
}

/// Removes byte order mark, base64 and gzip until none of them applies.
pub(super) fn peel(
    mut bytes: Vec<u8>,
    mut place: Place,
    budget: &mut Budget,
) -> Result<Peeled, Problem> {
    loop {
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        let Some(layer) = outermost(&bytes) else { return Ok(Peeled { bytes, place }) };
        let (name, limit) = match layer {
            Layer::Gzip => ("gzip", GZIP_LAYERS),
            Layer::Base64(_) => ("base64", BASE64_LAYERS),
        };
        if place.layers.iter().filter(|removed| *removed == name).count() == limit {
            let what = format!("there is a third {name} layer around the text");
            return Err(Problem::new(&LAYER_LIMIT, what).at(place));
        }
        bytes = match layer {
            Layer::Gzip => gunzip(&bytes, &place, budget)?,
            Layer::Base64(Ok(decoded)) => charge(decoded, &place, budget)?,
            Layer::Base64(Err(error)) => return Err(bad_base64(&bytes, &error, &place)),
        };
        place.layers.push(name.to_owned());
    }
}

pub(super) enum Layer {
    Gzip,
    Base64(Result<Vec<u8>, DecodeError>),
}

/// Tells which layer the bytes start with; None when they are the text itself.
pub(super) fn outermost(bytes: &[u8]) -> Option<Layer> {
    if bytes.starts_with(b"\x1f\x8b") {
        return Some(Layer::Gzip);
    }
    let text = bytes.trim_ascii();
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(byte);
    if text.is_empty() || !text.iter().all(letter) {
        return None;
    }
    let letters: Vec<u8> = text.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect();
    let decoded = STANDARD.decode(&letters);
    let certain = letters.len() >= CERTAINLY_BASE64;
    let base64 = certain || decoded.as_deref().is_ok_and(readable);
    base64.then_some(Layer::Base64(decoded))
}

/// Checks that bytes are text.
pub(super) fn text(peeled: Peeled) -> Result<String, Problem> {
    let Peeled { bytes, place } = peeled;
    if let Some((magic, name)) = FOREIGN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        let what = format!("the text is {name}, not UTF-8: it starts with {}", hex(magic));
        return Err(Problem::new(&BAD_ENCODING, what).at(place));
    }
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        let what = format!(
            "there is a zero byte at offset {offset}, as in UTF-16 or a binary; the text starts with {}",
            hex(&bytes[..bytes.len().min(4)])
        );
        return Err(Problem::new(&BAD_ENCODING, what).at(Place { offset: Some(offset), ..place }));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let first = &error.as_bytes()[..error.as_bytes().len().min(4)];
        let what = format!("the text is not UTF-8 at byte {offset}; it starts with {}", hex(first));
        Problem::new(&BAD_ENCODING, what).at(Place { offset: Some(offset), ..place })
    })
}

fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}

/// Expands a gzip stream of one or more members, stopping at the first byte over a limit.
pub(super) fn gunzip(input: &[u8], place: &Place, budget: &mut Budget) -> Result<Vec<u8>, Problem> {
    let cap = LAYER_BYTES.min(input.len().saturating_mul(LAYER_RATIO)).min(budget.left);
    let mut output = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        rest = member(rest, cap, &mut output).map_err(|stop| match stop {
            Stop::Limit => over_limit(input, budget, place),
            Stop::Damaged { left, cause } => damaged(input.len() - left, &cause, place),
        })?;
    }
    budget.left -= output.len();
    Ok(output)
}

enum Stop {
    Limit,
    /// Something is wrong with `left` bytes of input still unread.
    Damaged {
        left: usize,
        cause: String,
    },
}

/// Expands one member and returns what follows it.
fn member<'a>(input: &'a [u8], cap: usize, output: &mut Vec<u8>) -> Result<&'a [u8], Stop> {
    let mut decoder = GzDecoder::new(input);
    let mut chunk = [0; 8 << 10];
    loop {
        match decoder.read(&mut chunk) {
            Ok(0) => return Ok(decoder.into_inner()),
            Ok(count) if output.len() + count > cap => return Err(Stop::Limit),
            Ok(count) => output.extend_from_slice(&chunk[..count]),
            Err(error) => {
                let left = decoder.get_ref().len();
                return Err(Stop::Damaged { left, cause: error.to_string() });
            }
        }
    }
}

fn over_limit(input: &[u8], budget: &Budget, place: &Place) -> Problem {
    let number = place.layers.len() + 1;
    let size = input.len();
    let limit = if budget.left < LAYER_BYTES.min(size.saturating_mul(LAYER_RATIO)) {
        "all layers of this run give more than 4 MiB".to_owned()
    } else if size.saturating_mul(LAYER_RATIO) < LAYER_BYTES {
        format!("its {size} bytes give more than {LAYER_RATIO} times as many")
    } else {
        format!("its {size} bytes give more than 1 MiB")
    };
    let what = format!("layer {number} (gzip) expands too far: {limit}");
    Problem::new(&GZIP_LIMIT, what).at(place.clone())
}

fn damaged(offset: usize, cause: &str, place: &Place) -> Problem {
    let number = place.layers.len() + 1;
    let what = format!("layer {number} (gzip) is damaged or cut off at byte {offset}");
    Problem::new(&BAD_GZIP, what).at(Place { offset: Some(offset), ..place.clone() }).cause(cause)
}

fn readable(bytes: &[u8]) -> bool {
    let control = |c: char| c.is_control() && !c.is_whitespace();
    bytes.starts_with(b"\x1f\x8b")
        || std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(control))
}

/// Counts decoded bytes against the run's budget.
pub(super) fn charge(
    decoded: Vec<u8>,
    place: &Place,
    budget: &mut Budget,
) -> Result<Vec<u8>, Problem> {
    match budget.left.checked_sub(decoded.len()) {
        Some(left) => {
            budget.left = left;
            Ok(decoded)
        }
        None => {
            let what = "all layers of this run give more than 4 MiB";
            Err(Problem::new(&GZIP_LIMIT, what).at(place.clone()))
        }
    }
}

/// Names the byte at fault, counted in the text as it arrived, line ends included.
pub(super) fn bad_base64(bytes: &[u8], error: &DecodeError, place: &Place) -> Problem {
    let start = bytes.len() - bytes.trim_ascii_start().len();
    let letters = || {
        let all = bytes.iter().enumerate().skip(start);
        all.filter(|(_, byte)| !byte.is_ascii_whitespace()).map(|(offset, _)| offset)
    };
    let end = bytes.trim_ascii_end().len();
    let (what, offset) = match error {
        DecodeError::InvalidByte(index, byte) => {
            let offset = letters().nth(*index).unwrap_or(end);
            let why = if b"-_".contains(byte) { " (of the URL alphabet)" } else { "" };
            (format!("has a wrong character{why} at byte {offset}"), offset)
        }
        _ => (format!("is cut short: it ends at byte {end}"), end),
    };
    let number = place.layers.len() + 1;
    Problem::new(&BAD_BASE64, format!("layer {number} (base64) {what}"))
        .at(Place { offset: Some(offset), ..place.clone() })
}
