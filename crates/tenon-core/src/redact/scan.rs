//! The secrets of one line.

use super::Class;
use super::names::{self, Meaning};
use super::shapes;
use crate::userdata::inspect::certificate;

/// No credential in a list is longer; what is, belongs to a text that only looks like one.
const LONGEST_ITEM: usize = 4 << 10;
/// For how many lines a word such as `token` makes its neighbours suspicious.
const NEAR: u8 = 3;

/// Options with a user and a password; the longer ones first.
const USER_OPTIONS: [&[u8]; 4] = [b"--proxy-user", b"--user", b"-u", b"-U"];

/// A part of a line that must not be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Where the name begins that makes it secret.
    pub from: usize,
    pub start: usize,
    pub end: usize,
    pub class: Class,
    /// What to write instead of a number.
    pub note: Option<String>,
}

/// What earlier lines say about the next ones.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Lines for which a token, or an AWS secret, was lately spoken of.
    token: u8,
    secret: u8,
    /// Inside a TOML table of credentials or headers.
    table: bool,
    /// Inside a value of several lines that is a secret.
    block: Option<(Block, Class)>,
    /// Lines for which a program was lately called that takes `-u user:password`.
    client: u8,
    /// Inside an object of credentials: how far in the line of its name stands.
    nest: Option<usize>,
    /// Where such an object ends that is written in one line.
    nest_end: usize,
    /// This line sets variables of a unit, whose values are as secret as their owner likes.
    environment: bool,
}

/// A value that goes over lines.
#[derive(Debug, Clone, Copy)]
enum Block {
    /// A YAML text: every line that stands further in than its name.
    Indented(usize),
    /// A list: to its closing bracket.
    List,
    /// A name with nothing behind it: its value is the next line, if that is further in than
    /// this and no name of its own.
    Next(usize),
}

impl Context {
    fn enter(&mut self, line: &[u8]) {
        self.token = self.token.saturating_sub(1);
        self.secret = self.secret.saturating_sub(1);
        self.client = self.client.saturating_sub(1);
        for at in 0..line.len() {
            let begins = |word: &[u8]| {
                line[at..].get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word))
            };
            match line[at] | 0x20 {
                b't' if begins(b"token") => self.token = NEAR,
                b'b' if begins(b"bootstrap") => self.token = NEAR,
                b's' if begins(b"secret") => self.secret = NEAR,
                b'c' if begins(b"curl ") || begins(b"curl\"") => self.client = NEAR,
                b'c' if begins(b"ctr ") || begins(b"ctr\"") => self.client = NEAR,
                b'a' if begins(b"aws") || begins(b"access") => self.secret = self.secret.max(1),
                _ => {}
            }
        }
        let text = line.trim_ascii();
        self.nest_end = 0;
        let own = line.len() - line.trim_ascii_start().len();
        // An item of a list may stand as far out as the name of the list.
        let outside = |nest: usize| own < nest || own == nest && text.first() != Some(&b'-');
        if !text.is_empty() && self.nest.is_some_and(outside) {
            self.nest = None;
        }
        self.environment =
            text.starts_with(b"Environment=") || text.starts_with(b"DefaultEnvironment=");
        if text.first() == Some(&b'[') && text.last() == Some(&b']') {
            self.table = text.ends_with(b".auth]") || text.ends_with(b".header]");
        }
    }
}

impl Context {
    /// Remembers that an object of credentials begins behind its name, if one does.
    fn open_nest(&mut self, line: &[u8], from: usize, indent: usize) {
        let rest = line[from..].trim_ascii_start();
        let begins = line.len() - rest.len();
        // What stands inside an object of this line was counted with it.
        if begins < self.nest_end || self.nest.is_some() {
            return;
        }
        match rest.first() {
            None => self.nest = Some(indent),
            Some(b'{' | b'[') => match closing_bracket(rest) {
                Some(length) => self.nest_end = begins + length,
                None => self.nest = Some(indent),
            },
            Some(_) => {}
        }
    }
}

/// Length of the object or list that begins here; None if it does not end in this text.
fn closing_bracket(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}

/// Every secret of the line, sorted and apart from each other.
pub fn line(line: &[u8], context: &mut Context, literals: &[(Class, Vec<u8>)]) -> Vec<Span> {
    context.enter(line);
    let mut spans: Vec<Span> = block_line(line, context).into_iter().collect();
    let mut at = spans.first().map_or(0, |span| span.end);
    while at < line.len() {
        let span = literal(line, at, literals).or_else(|| secret_at(line, at, context));
        at = span.as_ref().map_or(at + 1, |span| span.end);
        spans.extend(span);
    }
    spans
}

fn secret_at(line: &[u8], at: usize, context: &mut Context) -> Option<Span> {
    let rest = &line[at..];
    let span = |from, start, end, class| Some(Span { from, start, end, class, note: None });
    match line[at] {
        b':' | b'=' => {
            if let Some((start, end)) = shapes::userinfo(rest) {
                return span(at, at + start, at + end, Class::UrlUserinfo);
            }
            assignment(line, at, context)
        }
        b'-' => match shapes::key_block(rest) {
            Some(length) => span(at, at, at + length, Class::PemKey),
            None => argument(line, at).or_else(|| user_argument(line, at, context)),
        },
        byte if byte.is_ascii_alphanumeric() && word_begins(line, at) => {
            if let Some((class, length)) = shapes::word(rest) {
                return span(at, at, at + length, class);
            }
            if let Some((start, end)) = shapes::bearer(rest) {
                return span(at, at + start, at + end, Class::Bearer);
            }
            if let Some((start, end)) = shapes::told(rest) {
                return span(at, at + start, at + end, Class::KeyValue);
            }
            by_context(line, at, context)
        }
        _ => None,
    }
}

fn word_begins(line: &[u8], at: usize) -> bool {
    at == 0 || !line[at - 1].is_ascii_alphanumeric()
}

/// Shapes that are a secret only where one is spoken of.
fn by_context(line: &[u8], at: usize, context: &Context) -> Option<Span> {
    let before = if at == 0 { b' ' } else { line[at - 1] };
    let rest = &line[at..];
    let found = if context.token > 0 && !matches!(before, b'.' | b'-' | b'_') {
        shapes::bootstrap_token(rest).map(|length| (Class::BootstrapToken, length))
    } else {
        None
    };
    let aws = || {
        let apart = context.secret > 0 && !matches!(before, b'/' | b'+');
        let length = apart.then(|| shapes::secret_access_key(rest)).flatten()?;
        Some((Class::AwsKey, length))
    };
    let (class, length) = found.or_else(aws)?;
    Some(Span { from: at, start: at, end: at + length, class, note: None })
}

fn literal(line: &[u8], at: usize, literals: &[(Class, Vec<u8>)]) -> Option<Span> {
    let (class, value) = literals.iter().find(|(_, value)| line[at..].starts_with(value))?;
    Some(Span { from: at, start: at, end: at + value.len(), class: *class, note: None })
}

/// A line of a value that began on an earlier line.
fn block_line(line: &[u8], context: &mut Context) -> Option<Span> {
    let (block, class) = context.block?;
    let text = line.trim_ascii();
    let own = line.len() - line.trim_ascii_start().len();
    let ends = match block {
        Block::Indented(indent) => !text.is_empty() && own <= indent,
        Block::List => text.starts_with(b"]") || text.len() > LONGEST_ITEM,
        Block::Next(_) if text.is_empty() => return None,
        Block::Next(indent) => {
            context.block = None;
            let (start, end) = next_value(line, own, indent)?;
            return Some(Span { from: 0, start, end, class, note: None });
        }
    };
    if ends {
        context.block = None;
        return None;
    }
    let start = if text.is_empty() { 0 } else { own };
    let end = start + text.len();
    let done = text.is_empty() || text.starts_with(b"<redacted:");
    (!done).then_some(Span { from: 0, start, end, class, note: None })
}

/// The value that is a line of its own. A line that holds names or a list is no value.
fn next_value(line: &[u8], own: usize, indent: usize) -> Option<(usize, usize)> {
    let end = line.trim_ascii_end().len();
    let (start, end) = match line[own] {
        quote @ (b'"' | b'\'') => (own + 1, closing(line, own + 1, quote, 0)),
        _ if own <= indent => return None,
        b'-' | b'[' | b'{' | b']' | b'}' | b'#' | b'<' => return None,
        _ => (own, end),
    };
    let behind = line[end..].iter().find(|byte| !matches!(byte, b'"' | b'\'' | b' '));
    let names = behind == Some(&b':') || line[end - 1] == b':';
    let pair = shapes::find(&line[start..end], b": ").is_some();
    (!names && !pair && start < end && line[start] != b'<').then_some((start, end))
}

/// `name=value`, `"name": "value"`, `name = 'value'`, `name: value`.
fn assignment(line: &[u8], at: usize, context: &mut Context) -> Option<Span> {
    let name = name_before(line, at)?;
    let text = &line[name.start..name.end];
    let meaning = names::meaning(text)
        .or_else(|| context.table.then_some(Meaning::Secret(Class::RegistryAuth)))
        .or_else(|| {
            let hidden = context.environment
                && is_variable(&line[..name.start])
                && !names::is_plain_variable(text);
            let inside = context.nest.is_some() || at < context.nest_end;
            let nested = inside && !names::is_plain_in_nest(text);
            (hidden || nested).then_some(Meaning::Secret(Class::KeyValue))
        })?;
    let blank = line.get(at + 1).is_none_or(u8::is_ascii_whitespace);
    let path = name.start > 0 && line[name.start - 1] == b'/';
    if line[at] == b':' && !blank && !name.quoted && (path || !names::is_exact(text)) {
        return None;
    }
    let class = match meaning {
        Meaning::Secret(class) => class,
        Meaning::Certificate => Class::Kubeconfig,
    };
    let yaml = line[at] == b':' && name.begins_line;
    let indent = line.len() - line.trim_ascii_start().len();
    if yaml && is_block(&line[at + 1..]) {
        context.block = Some((Block::Indented(indent), class));
        return None;
    }
    if line[at] == b':' && (yaml || name.quoted) && names::is_nest(text) {
        context.open_nest(line, at + 1, indent);
    }
    let bare = line[at] == b':' && line[at + 1..].trim_ascii().is_empty();
    if bare && (yaml || name.quoted) {
        context.block = Some((Block::Next(indent), class));
        return None;
    }
    if line[at + 1..].trim_ascii() == b"[" {
        context.block = Some((Block::List, class));
        return None;
    }
    let quoted = || line[..name.start].iter().any(|byte| matches!(byte, b'"' | b'\''));
    let rest = match (yaml, class) {
        (true, _) if !quoted() => Rest::Whole,
        (true, _) | (_, Class::Bearer) => Rest::ToQuote,
        _ => Rest::Word,
    };
    let (start, end) = match name.start.checked_sub(1).map(|before| line[before]) {
        // `"NAME=value with blanks"`, as units have it.
        Some(quote @ (b'"' | b'\'')) if line[at] == b'=' && !name.quoted && context.environment => {
            (at + 1, closing(line, at + 1, quote, 0))
        }
        _ => value_after(line, at + 1, rest, class)?,
    };
    let value = &line[start..end];
    let heading = line[at] == b':' && !name.quoted && !matches!(line[start - 1], b'"' | b'\'');
    if !names::is_value(text, class, value) || heading && names::is_heading(text, value) {
        return None;
    }
    let note = (meaning == Meaning::Certificate).then(|| certificate_note(value));
    Some(Span { from: name.start, start, end, class, note })
}

/// True when what stands before a name makes it a variable: nothing but the unit's own key, a
/// blank or a quote.
fn is_variable(before: &[u8]) -> bool {
    before.ends_with(b"Environment=") || before.last().is_some_and(|byte| shapes::ends_value(*byte))
}

/// A certificate in a few words: whose and until when.
fn certificate_note(encoded: &[u8]) -> String {
    let known = std::str::from_utf8(encoded).ok().and_then(certificate::describe);
    known.map_or_else(
        || "<certificate: does not parse>".to_owned(),
        |known| format!("<certificate: {}, expires {}>", known.subject, known.expires),
    )
}

/// `|` or `>` with its signs, and nothing behind.
fn is_block(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii();
    matches!(rest.first(), Some(b'|' | b'>')) && rest.len() <= 3
}

struct Name {
    start: usize,
    end: usize,
    quoted: bool,
    /// Nothing but blanks and dashes before it.
    begins_line: bool,
}

fn name_before(line: &[u8], at: usize) -> Option<Name> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let mut end = line[..at].trim_ascii_end().len();
    let quotes = line[..end].iter().rev().take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\'));
    let quotes = quotes.count();
    end -= quotes;
    let length =
        line[..end].iter().rev().take(names::LONGEST).take_while(|byte| is_name(byte)).count();
    let start = end - length;
    let before = line[..start].trim_ascii_start();
    let begins_line = before.iter().all(|byte| matches!(byte, b'-' | b' ' | b'"' | b'\''));
    (length > 0).then_some(Name { start, end, quoted: quotes > 0, begins_line })
}

/// How far a value without quotes goes.
#[derive(Clone, Copy)]
enum Rest {
    Word,
    /// Blanks belong to it; a quote ends the text in which it stands.
    ToQuote,
    /// Quotes belong to it, too.
    Whole,
}

/// The bytes of a value that begins at or after `at`.
fn value_after(line: &[u8], at: usize, how: Rest, class: Class) -> Option<(usize, usize)> {
    let mut start = at + line[at..].iter().take_while(|byte| matches!(byte, b'>')).count();
    start += line[start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    if line.get(start) == Some(&b'[') {
        // A list of objects: what they hold is judged by its own names.
        if matches!(line[start + 1..].trim_ascii_start().first(), Some(b'{' | b'[')) {
            return None;
        }
        let end = line[start..].iter().position(|byte| *byte == b']');
        return Some((start + 1, end.map_or(line.trim_ascii_end().len(), |end| start + end)));
    }
    let slashes = line[start..].iter().take_while(|byte| **byte == b'\\').count();
    let end = match line.get(start + slashes) {
        Some(quote @ (b'"' | b'\'')) => {
            start += slashes + 1;
            closing(line, start, *quote, slashes)
        }
        _ if !matches!(how, Rest::Word) => {
            let rest = &line[start..];
            let comment = shapes::find(rest, b" #").unwrap_or(rest.len());
            let ends = |byte: &u8| matches!(how, Rest::ToQuote) && matches!(byte, b'"' | b'\'');
            let quote = rest.iter().position(ends);
            start + rest[..comment.min(quote.unwrap_or(rest.len()))].trim_ascii_end().len()
        }
        _ => {
            let query = matches!(class, Class::AwsSession | Class::AwsKey);
            let ends = |byte: &u8| shapes::ends_value(*byte) || query && *byte == b'&';
            let length = line[start..].iter().position(ends);
            length.map_or(line.len(), |length| start + length)
        }
    };
    (start < end).then_some((start, end))
}

/// Where a quoted text ends: at a quote with as many backslashes as the first one had, or fewer.
fn closing(line: &[u8], start: usize, quote: u8, slashes: usize) -> usize {
    let mut run = 0;
    for (index, byte) in line.iter().enumerate().skip(start) {
        match byte {
            b'\\' => run += 1,
            byte if *byte == quote && run <= slashes => return index - run,
            _ => run = 0,
        }
    }
    line.trim_ascii_end().len().max(start)
}

/// `--name value`, in a line or as the strings of a list.
fn argument(line: &[u8], at: usize) -> Option<Span> {
    let begins = at == 0 || shapes::ends_value(line[at - 1]) || line[at - 1] == b',';
    if !begins {
        return None;
    }
    let dashes = line[at..].iter().take_while(|byte| **byte == b'-').count();
    let from = at + dashes;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let end = from + line[from..].iter().take_while(|byte| is_name(byte)).count();
    let Some(Meaning::Secret(class)) = names::meaning(&line[from..end]) else { return None };
    let between = |byte: &u8| shapes::ends_value(*byte) || *byte == b',';
    let start = end + line[end..].iter().take_while(|byte| between(byte)).count();
    let length = line[start..].iter().position(between);
    let stop = length.map_or(line.len(), |length| start + length);
    let value = &line[start..stop];
    let real =
        start > end && !value.starts_with(b"-") && names::is_value(&line[from..end], class, value);
    real.then_some(Span { from: at, start, end: stop, class, note: None })
}

/// `-u user:password` and its kin of a program that was called on this line or shortly before.
/// Who it is stays readable.
fn user_argument(line: &[u8], at: usize, context: &Context) -> Option<Span> {
    let begins = at == 0 || shapes::ends_value(line[at - 1]) || line[at - 1] == b',';
    if context.client == 0 || !begins {
        return None;
    }
    let option = USER_OPTIONS.iter().find(|option| line[at..].starts_with(option))?;
    let from = at + option.len();
    let between = |byte: &u8| shapes::ends_value(*byte) || matches!(byte, b',' | b'=');
    let start = from + line[from..].iter().take_while(|byte| between(byte)).count();
    let length = line[start..].iter().position(|byte| shapes::ends_value(*byte));
    let value = &line[start..length.map_or(line.len(), |length| start + length)];
    let colon = value.iter().position(|byte| *byte == b':')?;
    let (user, password) = (&value[..colon], &value[colon + 1..]);
    // Numbers are ids: `-u 1000:1000`.
    let ids = user.iter().chain(password).all(u8::is_ascii_digit);
    let real = !ids
        && !password.starts_with(b"//")
        && names::is_value(b"password", Class::KeyValue, password);
    let (start, end) = (start + colon + 1, start + value.len());
    real.then_some(Span { from: at, start, end, class: Class::KeyValue, note: None })
}
