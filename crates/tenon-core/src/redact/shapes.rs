//! Words that are secrets wherever they stand, told by their shape alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::{Class, names};

/// Beginnings of access key ids that can sign; ids of roles and users are names, not secrets.
const ACCESS_KEYS: [&[u8]; 4] = [b"AKIA", b"ASIA", b"ABIA", b"ACCA"];
/// How session tokens of AWS begin, in their three generations.
const SESSION_TOKENS: [&[u8]; 3] = [b"IQoJb3JpZ2lu", b"FwoGZXIvYXdz", b"FQoGZXIvYXdz"];
const KUBERNETES_TOKEN: &[u8] = b"k8s-aws-v1.";
/// Base64 of `-----BEGIN `.
const ENCODED_PEM: &[u8] = b"LS0tLS1CRUdJTi";
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
/// What people call a password when they tell it.
const SAID: [&[u8]; 3] = [b"password", b"passphrase", b"passwd"];
/// As long as any label of a key block with its dashes.
const LABEL: usize = 64;

/// True for a byte that no unquoted value contains.
pub fn ends_value(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | 0)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'%' | b'-' | b'_')
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=')
}

fn run(bytes: &[u8], of: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !of(*byte)).unwrap_or(bytes.len())
}

/// The secret that begins here, with its length.
pub fn word(bytes: &[u8]) -> Option<(Class, usize)> {
    match bytes.first()? {
        b'A' => access_key(bytes).map(|length| (Class::AwsKey, length)),
        b'e' => jwt(bytes).map(|length| (Class::Jwt, length)),
        b'k' if bytes.starts_with(KUBERNETES_TOKEN) => {
            let length = run(&bytes[KUBERNETES_TOKEN.len()..], is_base64url);
            (length >= 8).then_some((Class::Bearer, KUBERNETES_TOKEN.len() + length))
        }
        b'I' | b'F' => {
            let length = run(bytes, is_base64);
            let begins = SESSION_TOKENS.iter().any(|begin| bytes.starts_with(begin));
            (begins && length >= 48).then_some((Class::AwsSession, length))
        }
        b'L' => encoded_key(bytes).map(|length| (Class::PemKey, length)),
        _ => None,
    }
}

/// `AKIA` and sixteen more.
pub fn access_key(bytes: &[u8]) -> Option<usize> {
    let length = run(bytes, |byte| byte.is_ascii_alphanumeric());
    let plain =
        bytes[..length].iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let begins = ACCESS_KEYS.iter().any(|begin| bytes.starts_with(begin));
    (begins && plain && length == 20).then_some(length)
}

/// `eyJ….….…`: a head and a body at least.
pub fn jwt(bytes: &[u8]) -> Option<usize> {
    if !bytes.starts_with(b"eyJ") {
        return None;
    }
    let length = run(bytes, |byte| is_base64url(byte) || byte == b'.');
    let mut parts = bytes[..length].split(|byte| *byte == b'.');
    let head = parts.next().map_or(0, <[u8]>::len);
    let body = parts.next().map_or(0, <[u8]>::len);
    (head >= 12 && body >= 8).then_some(length)
}

/// Base64 of a PEM block that is a private key.
fn encoded_key(bytes: &[u8]) -> Option<usize> {
    if !bytes.starts_with(ENCODED_PEM) {
        return None;
    }
    let length = run(bytes, is_base64);
    let head = STANDARD_NO_PAD.decode(&bytes[..length.min(64) / 4 * 4]).ok()?;
    find(&head, b"PRIVATE KEY").map(|_| length)
}

/// `[a-z0-9]{6}.[a-z0-9]{16}`, and nothing that goes on.
pub fn bootstrap_token(bytes: &[u8]) -> Option<usize> {
    let part = |bytes: &[u8]| run(bytes, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let whole = part(bytes) == 6 && bytes.get(6) == Some(&b'.') && part(&bytes[7..]) == 16;
    // A full stop may end a sentence; before a letter it makes a host name.
    let after = bytes.get(23..).unwrap_or_default();
    let after = after.strip_prefix(b".").unwrap_or(after);
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (whole && !after.first().is_some_and(goes_on)).then_some(23)
}

/// Forty characters that are neither a hash nor a word.
pub fn secret_access_key(bytes: &[u8]) -> Option<usize> {
    let length = run(bytes, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    let has = |of: fn(&u8) -> bool| bytes[..length].iter().any(of);
    let mixed =
        has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    (length == 40 && mixed && bytes.get(40) != Some(&b'=')).then_some(length)
}

/// The token after `Bearer `: where it starts and ends.
pub fn bearer(bytes: &[u8]) -> Option<(usize, usize)> {
    let (word, rest) = bytes.split_at_checked(7)?;
    if !word.eq_ignore_ascii_case(b"bearer ") {
        return None;
    }
    let length = run(rest, |byte| is_base64(byte) || matches!(byte, b'.' | b'~' | b':'));
    // A sentence about bearers has no digits in its next word.
    let digits = rest[..length].iter().any(u8::is_ascii_digit);
    (length >= 8 && digits).then_some((7, 7 + length))
}

/// The word after "password is": where it starts and ends.
pub fn told(bytes: &[u8]) -> Option<(usize, usize)> {
    let begins = |text: &[u8], word: &[u8]| {
        text.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word))
    };
    let word: &[u8] = SAID.into_iter().find(|word| begins(bytes, word))?;
    let verb: &[u8] = [b" is ", b" is: ".as_slice(), b" was "]
        .into_iter()
        .find(|verb| begins(&bytes[word.len()..], verb))?;
    let said = word.len() + verb.len();
    let quote = bytes.get(said).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let start = said + usize::from(quote.is_some());
    let length = run(&bytes[start..], |byte| !ends_value(byte));
    let text = String::from_utf8_lossy(&bytes[start..start + length]);
    let known = if quote.is_some() { !names::is_reference(&text) } else { names::is_told(&text) };
    (known && length > 0).then_some((start, start + length))
}

/// The part before `@` after `://`, if it is more than a user's name.
pub fn userinfo(bytes: &[u8]) -> Option<(usize, usize)> {
    let rest = bytes.strip_prefix(b"://")?;
    let end = run(rest, |byte| !ends_value(byte) && !matches!(byte, b'/' | b'?' | b'#' | b'\\'));
    let at = rest[..end].iter().rposition(|byte| *byte == b'@')?;
    let user = &rest[..at];
    let password = user.iter().position(|byte| *byte == b':').map(|colon| &user[colon + 1..]);
    let known = |text| names::is_reference(&String::from_utf8_lossy(text));
    let secret = password.is_some_and(|text| !known(text)) || user.len() >= 20;
    (secret && !user.starts_with(b"<redacted:")).then_some((3, 3 + at))
}

/// Where a private key block begins that has no end in this text.
pub fn open_key(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = find(&text[from..], BEGIN) {
        let start = from + found;
        match key_block(&text[start..]) {
            Some(length) if length == text.len() - start && key_end(&text[start..]).is_none() => {
                return Some(start);
            }
            Some(length) => from = start + length,
            None => from = start + BEGIN.len(),
        }
    }
    None
}

/// Length of the private key block that begins here, to the end of the text if it has none.
pub fn key_block(text: &[u8]) -> Option<usize> {
    if !text.starts_with(BEGIN) {
        return None;
    }
    let label = &text[BEGIN.len()..text.len().min(LABEL)];
    let label = &label[..find(label, b"-----").unwrap_or(label.len())];
    find(label, b"PRIVATE KEY")?;
    Some(key_end(text).unwrap_or(text.len()))
}

/// Where the first end line of a block ends.
pub fn key_end(text: &[u8]) -> Option<usize> {
    let start = find(text, END)? + END.len();
    let dashes = find(&text[start..], b"-----").map(|at| start + at + 5);
    Some(dashes.unwrap_or(text.len()))
}

/// Where a short text stands in another.
pub fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}
