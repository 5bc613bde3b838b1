//! Content-Transfer-Encoding of a part's body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Why a body does not follow its encoding, and at which byte of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) offset: usize,
}

/// Undoes a transfer encoding. No encoding named means none used.
pub(super) fn decode(encoding: Option<&str>, body: &[u8]) -> Result<Vec<u8>, Wrong> {
    let name = encoding.unwrap_or("7bit").trim().to_ascii_lowercase();
    match name.as_str() {
        "" | "7bit" | "8bit" | "binary" => Ok(body.to_vec()),
        "base64" => from_base64(body),
        "quoted-printable" => from_quoted_printable(body),
        _ => Err(Wrong { what: "the transfer encoding is not a known one".into(), offset: 0 }),
    }
}

fn from_base64(body: &[u8]) -> Result<Vec<u8>, Wrong> {
    let mut letters = Vec::with_capacity(body.len());
    let mut offsets = Vec::with_capacity(body.len());
    for (offset, byte) in body.iter().enumerate().filter(|(_, byte)| !byte.is_ascii_whitespace()) {
        letters.push(*byte);
        offsets.push(offset);
    }
    STANDARD.decode(&letters).map_err(|error| match error {
        base64::DecodeError::InvalidByte(index, _) => Wrong {
            what: "the base64 body has a wrong character".into(),
            offset: offsets.get(index).copied().unwrap_or(body.len()),
        },
        _ => Wrong { what: "the base64 body is cut short".into(), offset: body.len() },
    })
}

/// RFC 2045: `=XX` is a byte, `=` at a line's end joins lines, blanks at a line's end are none.
fn from_quoted_printable(body: &[u8]) -> Result<Vec<u8>, Wrong> {
    let mut out = Vec::with_capacity(body.len());
    let mut start = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let ending = line_ending(line);
        let content = line[..line.len() - ending.len()].trim_ascii_end();
        let (content, joined) = match content {
            [content @ .., b'='] => (content, true),
            _ => (content, false),
        };
        decode_line(content, start, &mut out)?;
        if !joined {
            out.extend_from_slice(ending);
        }
        start += line.len();
    }
    Ok(out)
}

fn line_ending(line: &[u8]) -> &[u8] {
    let length = match line {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    };
    &line[line.len() - length..]
}

fn decode_line(mut content: &[u8], start: usize, out: &mut Vec<u8>) -> Result<(), Wrong> {
    let length = content.len();
    while let [first, rest @ ..] = content {
        content = match (first, rest) {
            (b'=', [high, low, rest @ ..]) => {
                let digits = [*high, *low].map(|digit| char::from(digit).to_digit(16));
                let [Some(high), Some(low)] = digits else {
                    return Err(bad_escape(start + length - content.len()));
                };
                out.push((high * 16 + low) as u8);
                rest
            }
            (b'=', _) => return Err(bad_escape(start + length - content.len())),
            (byte, rest) => {
                out.push(*byte);
                rest
            }
        };
    }
    Ok(())
}

fn bad_escape(offset: usize) -> Wrong {
    let what = "a `=` in the quoted-printable body is not followed by two hexadecimal digits";
    Wrong { what: what.into(), offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_undone() {
        for (encoding, body, expected) in [
            (None, "a=3D", "a=3D"),
            (Some("7bit"), "a=3D", "a=3D"),
            (Some("Binary"), "a", "a"),
            (Some(" BASE64 "), "YT\r\nog MQ==\n", "a: 1"),
            (Some("quoted-printable"), "a=3D1  \r\nb=\r\nc\n=c3=BC", "a=1\r\nbc\nü"),
            (Some("quoted-printable"), "a =  \n b", "a  b"),
        ] {
            let decoded = decode(encoding, body.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(decoded).unwrap(), expected, "{encoding:?}");
        }
    }

    #[test]
    fn damage_has_a_place() {
        for (encoding, body, offset) in [
            ("base64", "YT\nog*", 5),
            ("base64", "YTogM", 5),
            ("quoted-printable", "ok\nab=3", 5),
            ("quoted-printable", "=zz", 0),
            ("uuencode", "x", 0),
        ] {
            assert_eq!(decode(Some(encoding), body.as_bytes()).unwrap_err().offset, offset);
        }
    }
}
