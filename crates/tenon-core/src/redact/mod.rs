//! Takes secrets out of text before it leaves the node: logs, evidence, findings.
//!
//! ```text
//! mod      the stream: lines, very long lines, key blocks, numbers
//! scan     the secrets of one line, by what stands before them and by their shape
//! names    names that make a value secret, and names that only look so
//! shapes   words that are secrets wherever they stand
//! ```
//!
//! Each secret becomes `<redacted:CLASS:n>`; equal secrets get equal numbers within one
//! [`Book`], so that a reader still sees which of them belong together. Pure and streaming: a
//! [`Redactor`] holds at most [`LONG_LINE`] bytes, whatever the size of a file, and finds a
//! secret wherever the borders of the chunks lie.

mod names;
mod scan;
pub(crate) mod shapes;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use self::scan::{Context, Span};

/// A line above this is looked at in pieces.
pub const LONG_LINE: usize = 64 << 10;
/// How much of such a line waits for what follows it.
const HOLD: usize = 8 << 10;
/// A key block without an end is given up after this; the largest RSA keys are below 13 KiB.
pub const LONGEST_KEY: usize = 16 << 10;
/// The most secrets of one book that are told apart.
const MOST_NUMBERS: usize = 50_000;
/// Shorter known values would match half of the text.
const SHORTEST_LITERAL: usize = 4;

/// What kind of secret was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    AwsKey,
    AwsSession,
    Jwt,
    Bearer,
    BootstrapToken,
    PemKey,
    Kubeconfig,
    RegistryAuth,
    UrlUserinfo,
    KeyValue,
    Activation,
    KnownValue,
    User,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Class::AwsKey => "aws-key",
            Class::AwsSession => "aws-session",
            Class::Jwt => "jwt",
            Class::Bearer => "bearer",
            Class::BootstrapToken => "bootstrap-token",
            Class::PemKey => "pem-key",
            Class::Kubeconfig => "kubeconfig",
            Class::RegistryAuth => "registry-auth",
            Class::UrlUserinfo => "url-userinfo",
            Class::KeyValue => "key-value",
            Class::Activation => "activation",
            Class::KnownValue => "known-value",
            Class::User => "user",
        }
    }
}

/// The secrets of one bundle: known values, and the number that each secret has got. Shared by
/// every stream of the bundle.
#[derive(Debug, Default)]
pub struct Book {
    /// Exact values, longest first, so that a value is not cut by a part of it.
    literals: Vec<(Class, Vec<u8>)>,
    numbers: Mutex<Numbers>,
}

/// Numbers by the digest of a secret: the book holds no secret that it was not given.
#[derive(Debug, Default)]
struct Numbers {
    given: BTreeMap<(Class, [u8; 8]), u32>,
    last: BTreeMap<Class, u32>,
}

impl Book {
    /// Adds an exact value, line by line: a value may be a file. Of an address the password is
    /// known by itself, too.
    pub fn know(&mut self, class: Class, value: &str) {
        let lines = value.lines().map(str::trim);
        for line in lines.flat_map(|line| [Some(line), password_of(line)]).flatten() {
            let new = !self.literals.iter().any(|(_, known)| known == line.as_bytes());
            if line.len() >= SHORTEST_LITERAL && new {
                self.literals.push((class, line.as_bytes().to_vec()));
            }
        }
        self.literals.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    }

    /// The words that stand in for a secret.
    fn mark(&self, class: Class, secret: &[u8]) -> String {
        let digest = Sha256::digest(secret);
        let key = (class, std::array::from_fn(|index| digest[index]));
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let Numbers { given, last } = &mut *numbers;
        let number = match given.get(&key) {
            Some(number) => *number,
            None if given.len() >= MOST_NUMBERS => {
                return format!("<redacted:{}:more>", class.name());
            }
            None => {
                let next = last.entry(class).or_default();
                *next += 1;
                given.insert(key, *next);
                *next
            }
        };
        format!("<redacted:{}:{number}>", class.name())
    }
}

/// The password in `scheme://user:password@host`.
fn password_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let (user, _) = rest.split('/').next()?.rsplit_once('@')?;
    Some(user.split_once(':')?.1)
}

/// Redacts one text.
pub fn text(book: &Book, text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut redactor = Redactor::default();
    redactor.feed(book, text.as_bytes(), &mut out);
    redactor.finish(book, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A key block whose end has not come yet.
#[derive(Debug)]
struct OpenKey {
    hash: Sha256,
    bytes: usize,
}

/// Redacts one stream, chunk by chunk.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Read and not yet written: the begin of a line.
    pending: Vec<u8>,
    context: Context,
    key: Option<OpenKey>,
    /// Inside a secret that is longer than a piece; it goes on to its end.
    swallow: bool,
    count: u64,
}

impl Redactor {
    /// How many secrets were replaced.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes a chunk and writes what is certain by now.
    pub fn feed(&mut self, book: &Book, chunk: &[u8], out: &mut Vec<u8>) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            // A huge chunk of one line is taken in pieces, too.
            for piece in part.chunks(LONG_LINE) {
                self.pending.extend_from_slice(piece);
                if self.pending.last() == Some(&b'\n') {
                    let line = std::mem::take(&mut self.pending);
                    self.line(book, &line, out);
                } else if self.pending.len() >= LONG_LINE {
                    self.piece(book, out);
                }
            }
        }
    }

    /// Writes the rest.
    pub fn finish(&mut self, book: &Book, out: &mut Vec<u8>) {
        let line = std::mem::take(&mut self.pending);
        self.line(book, &line, out);
        self.close_key(book, out);
    }

    /// A whole line, or the end of one.
    fn line(&mut self, book: &Book, line: &[u8], out: &mut Vec<u8>) {
        let line = self.swallowed(line);
        let line = self.key_lines(book, line, out);
        let start = shapes::open_key(line);
        let before = &line[..start.unwrap_or(line.len())];
        let spans = scan::line(before, &mut self.context, &book.literals);
        self.write(book, before, &spans, out);
        if start.is_some() {
            self.key = Some(OpenKey { hash: Sha256::new(), bytes: 0 });
            self.key_lines(book, &line[before.len()..], out);
        }
    }

    /// Drops the rest of a secret that was too long to hold.
    fn swallowed<'l>(&mut self, line: &'l [u8]) -> &'l [u8] {
        if !self.swallow {
            return line;
        }
        let end = line.iter().position(|byte| shapes::ends_value(*byte));
        self.swallow = end.is_none();
        &line[end.unwrap_or(line.len())..]
    }

    /// Takes what belongs to an open key block from the begin of a line.
    fn key_lines<'l>(&mut self, book: &Book, line: &'l [u8], out: &mut Vec<u8>) -> &'l [u8] {
        let Some(key) = &mut self.key else { return line };
        let end = shapes::key_end(line);
        let inside = &line[..end.unwrap_or(line.len())];
        key.hash.update(inside);
        key.bytes += inside.len();
        if end.is_some() || key.bytes > LONGEST_KEY {
            self.close_key(book, out);
        }
        &line[inside.len()..]
    }

    fn close_key(&mut self, book: &Book, out: &mut Vec<u8>) {
        let Some(key) = self.key.take() else { return };
        out.extend_from_slice(book.mark(Class::PemKey, &key.hash.finalize()).as_bytes());
        self.count += 1;
    }

    /// The first part of a line that is too long to hold. A secret near the cut may go on in
    /// what follows, so the cut stands before its name.
    fn piece(&mut self, book: &Book, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.pending);
        let line = self.swallowed(&held);
        let line = self.key_lines(book, line, out);
        let mut spans = scan::line(line, &mut self.context, &book.literals);
        let mut cut = line.len().saturating_sub(HOLD);
        let across = spans.iter().position(|span| span.from < cut && cut < span.end);
        if let Some(index) = across {
            let span = &spans[index];
            let goes_on = span.end == line.len();
            self.swallow = goes_on && span.from == 0;
            cut = if goes_on && span.from > 0 { span.from } else { span.end };
        }
        spans.retain(|span| span.end <= cut);
        self.write(book, &line[..cut], &spans, out);
        self.pending = line[cut..].to_vec();
    }

    fn write(&mut self, book: &Book, line: &[u8], spans: &[Span], out: &mut Vec<u8>) {
        let mut done = 0;
        for span in spans {
            out.extend_from_slice(&line[done..span.start]);
            let secret = &line[span.start..span.end];
            let mark = span.note.clone().unwrap_or_else(|| book.mark(span.class, secret));
            out.extend_from_slice(mark.as_bytes());
            done = span.end;
            self.count += 1;
        }
        out.extend_from_slice(&line[done..]);
    }
}

#[cfg(test)]
mod tests;
