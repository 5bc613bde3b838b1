//! Reading HTTP/1.1 answers from a buffer, as far as a metadata service speaks it.
//!
//! Pure. An answer is given only when it is whole: a body that is shorter than announced is
//! never returned.

use std::time::Duration;

/// The largest body of any value.
pub const BODY_CAP: usize = 64 * 1024;
/// The largest head (status line and headers).
const HEAD_CAP: usize = 16 * 1024;

/// One whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// The connection may be used again.
    pub keep_alive: bool,
    pub retry_after: Option<Duration>,
}

/// Why the bytes are not an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The connection ended before the answer did.
    CutShort,
    TooLarge,
    Malformed(&'static str),
}

/// How the end of the body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

struct Head {
    status: u16,
    framing: Framing,
    keep_alive: bool,
    retry_after: Option<Duration>,
    bytes: usize,
}

/// Reads the first answer in `bytes` and says how many bytes it took; None means that more bytes
/// are needed. `ended`: the peer has closed, no more will come.
pub fn parse(bytes: &[u8], ended: bool) -> Result<Option<(Answer, usize)>, Refusal> {
    let mut start = 0;
    loop {
        let Some(head) = head(&bytes[start..])? else {
            return if ended { Err(Refusal::CutShort) } else { Ok(None) };
        };
        start += head.bytes;
        // 1xx answers announce another one.
        if head.status >= 200 {
            return whole(&head, bytes, start, ended);
        }
    }
}

fn whole(
    head: &Head,
    bytes: &[u8],
    start: usize,
    ended: bool,
) -> Result<Option<(Answer, usize)>, Refusal> {
    let rest = &bytes[start..];
    let found = match head.framing {
        Framing::Length(length) if length > BODY_CAP => return Err(Refusal::TooLarge),
        Framing::Length(length) => rest.get(..length).map(|body| (body.to_vec(), length)),
        Framing::Chunked => dechunk(rest)?,
        Framing::UntilClose if rest.len() > BODY_CAP => return Err(Refusal::TooLarge),
        Framing::UntilClose if ended => Some((rest.to_vec(), rest.len())),
        Framing::UntilClose => return Ok(None),
    };
    match found {
        Some((body, used)) => Ok(Some((
            Answer {
                status: head.status,
                body,
                keep_alive: head.keep_alive,
                retry_after: head.retry_after,
            },
            start + used,
        ))),
        None if ended => Err(Refusal::CutShort),
        None => Ok(None),
    }
}

fn head(bytes: &[u8]) -> Result<Option<Head>, Refusal> {
    if !bytes.is_empty() && !b"HTTP/1.".starts_with(&bytes[..bytes.len().min(7)]) {
        return Err(Refusal::Malformed("the answer is not HTTP"));
    }
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return if bytes.len() > HEAD_CAP { Err(Refusal::TooLarge) } else { Ok(None) };
    };
    let text = std::str::from_utf8(&bytes[..end])
        .map_err(|_| Refusal::Malformed("a header is not text"))?;
    let mut lines = text.split("\r\n");
    let (status, modern) = status_line(lines.next().unwrap_or_default())
        .ok_or(Refusal::Malformed("the status line is not HTTP"))?;
    let headers: Vec<(String, &str)> = lines
        .map(|line| line.split_once(':').map(|(n, v)| (n.to_ascii_lowercase(), v.trim())))
        .collect::<Option<_>>()
        .ok_or(Refusal::Malformed("a header has no name"))?;
    let value = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, value)| *value);
    let framing = framing(status, &headers)?;
    let connection = value("connection").unwrap_or_default().to_ascii_lowercase();
    let keep_alive = match connection.as_str() {
        "close" => false,
        "keep-alive" => true,
        _ => modern,
    };
    Ok(Some(Head {
        status,
        framing,
        keep_alive: keep_alive && framing != Framing::UntilClose,
        retry_after: value("retry-after")
            .and_then(|text| text.parse().ok())
            .map(Duration::from_secs),
        bytes: end + 4,
    }))
}

/// The status, and whether the version keeps connections alive by default.
fn status_line(line: &str) -> Option<(u16, bool)> {
    let mut words = line.splitn(3, ' ');
    let modern = match words.next()? {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ => return None,
    };
    let status = words.next().filter(|code| code.len() == 3)?.parse().ok()?;
    Some((status, modern)).filter(|(status, _)| (100..600).contains(status))
}

fn framing(status: u16, headers: &[(String, &str)]) -> Result<Framing, Refusal> {
    let all = |name: &str| -> Vec<&str> {
        headers.iter().filter(|(n, _)| n == name).map(|(_, value)| *value).collect()
    };
    let (mut lengths, coding) = (all("content-length"), all("transfer-encoding"));
    lengths.dedup();
    match (lengths.as_slice(), coding.as_slice()) {
        _ if status < 200 || status == 204 || status == 304 => Ok(Framing::Length(0)),
        ([], []) => Ok(Framing::UntilClose),
        ([], [one]) if one.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
        ([one], []) if one.bytes().all(|b| b.is_ascii_digit()) && !one.is_empty() => {
            Ok(Framing::Length(one.parse().map_err(|_| Refusal::TooLarge)?))
        }
        _ => Err(Refusal::Malformed("the headers do not agree on the length of the body")),
    }
}

/// Joins the chunks; None when the last one has not arrived.
fn dechunk(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
    const BAD: Refusal = Refusal::Malformed("a chunk of the body is malformed");
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let Some(line) = find(&bytes[at..], b"\r\n") else {
            return if bytes.len() - at > 1024 { Err(BAD) } else { Ok(None) };
        };
        let text = std::str::from_utf8(&bytes[at..at + line]).map_err(|_| BAD)?;
        let digits = text.split(';').next().unwrap_or_default().trim();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(BAD);
        }
        let size = usize::from_str_radix(digits, 16).map_err(|_| Refusal::TooLarge)?;
        at += line + 2;
        if size == 0 {
            return Ok(trailer_end(&bytes[at..]).map(|used| (body, at + used)));
        }
        if size > BODY_CAP || body.len() + size > BODY_CAP {
            return Err(Refusal::TooLarge);
        }
        let Some(chunk) = bytes.get(at..at + size + 2) else { return Ok(None) };
        if !chunk.ends_with(b"\r\n") {
            return Err(BAD);
        }
        body.extend_from_slice(&chunk[..size]);
        at += size + 2;
    }
}

/// Length of the trailer section with its blank line; None when it has not arrived.
fn trailer_end(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(b"\r\n") { Some(2) } else { find(bytes, b"\r\n\r\n").map(|at| at + 4) }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OK: &str = "HTTP/1.1 200 OK\r\n";

    fn body(text: &str, ended: bool) -> Result<Option<String>, Refusal> {
        let found = parse(text.as_bytes(), ended)?;
        Ok(found.map(|(answer, _)| String::from_utf8(answer.body).unwrap()))
    }

    #[test]
    fn bodies_are_framed_by_length_chunks_or_close() {
        let rows = [
            ("Content-Length: 3\r\n\r\nabcHTTP/1.1", false, Some("abc")),
            ("Content-Length: 3\r\n\r\nab", false, None),
            ("content-length: 0\r\n\r\n", false, Some("")),
            (
                "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
                false,
                Some("abcde"),
            ),
            ("Transfer-Encoding: chunked\r\n\r\n0\r\nTrailer: 1\r\n\r\n", false, Some("")),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nab", false, None),
            ("\r\nabc", false, None),
            ("\r\nabc", true, Some("abc")),
        ];
        for (rest, ended, expected) in rows {
            let found = body(&format!("{OK}{rest}"), ended);
            assert_eq!(found, Ok(expected.map(str::to_owned)), "{rest:?}");
        }
    }

    #[test]
    fn broken_answers_are_refused() {
        let malformed = |text: &str| matches!(body(text, false), Err(Refusal::Malformed(_)));
        assert!(malformed("<html>"));
        assert!(malformed("HTTP/1.1 2000 OK\r\n\r\n"));
        assert!(malformed(&format!("{OK}nonsense\r\n\r\n")));
        assert!(malformed(&format!("{OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab")));
        assert!(malformed(&format!("{OK}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")));
        assert!(malformed(&format!("{OK}Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n")));
        assert_eq!(body(&format!("{OK}Content-Length: 9\r\n\r\nab"), true), Err(Refusal::CutShort));
        assert_eq!(body(&format!("{OK}Content-Le"), true), Err(Refusal::CutShort));
    }

    #[test]
    fn the_cap_holds_at_the_limit_one_above_and_far_above() {
        for (length, fits) in [(BODY_CAP, true), (BODY_CAP + 1, false), (usize::MAX, false)] {
            let bytes = "x".repeat(length.min(BODY_CAP + 1));
            let by_length = body(&format!("{OK}Content-Length: {length}\r\n\r\n{bytes}"), false);
            assert_eq!(by_length.is_ok(), fits, "length {length}");
            let by_close = body(&format!("{OK}\r\n{bytes}"), true);
            assert_eq!(by_close.is_ok(), fits, "close {length}");
            let by_chunk = body(
                &format!("{OK}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{bytes}"),
                false,
            );
            assert_eq!(by_chunk.is_ok(), fits, "chunk {length}");
        }
        assert_eq!(body(&"HTTP/1.1 ".repeat(HEAD_CAP), false), Err(Refusal::TooLarge));
    }

    #[test]
    fn headers_say_when_to_come_back_and_on_which_connection() {
        let text =
            "HTTP/1.1 503 Slow\r\nRetry-After: 7\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n";
        let (answer, used) = parse(text.as_bytes(), false).unwrap().unwrap();
        assert_eq!((answer.status, answer.keep_alive, used), (503, false, text.len()));
        assert_eq!(answer.retry_after, Some(Duration::from_secs(7)));
        let early = format!("HTTP/1.1 100 Continue\r\n\r\n{OK}Content-Length: 1\r\n\r\nx");
        assert_eq!(body(&early, false), Ok(Some("x".into())));
    }

    proptest! {
        #[test]
        fn no_input_panics_and_no_prefix_is_an_answer(bytes: Vec<u8>, length in 0_usize..40) {
            let _ = parse(&bytes, true);
            let whole = format!("{OK}Content-Length: {length}\r\n\r\n{}", "y".repeat(length));
            for cut in 0..whole.len() {
                prop_assert_eq!(parse(&whole.as_bytes()[..cut], true), Err(Refusal::CutShort));
            }
        }
    }
}
