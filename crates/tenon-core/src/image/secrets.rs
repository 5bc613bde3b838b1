//! Secrets in the bytes of any file: what must not be in an image that is given away.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::redact::{Class, shapes};

/// How tokens of code hosts begin, and how many characters follow at least.
const PREFIXES: &[(&[u8], usize)] = &[
    (b"ghp_", 36),
    (b"gho_", 36),
    (b"ghs_", 36),
    (b"ghu_", 36),
    (b"ghr_", 36),
    (b"github_pat_", 22),
    (b"glpat-", 20),
];
/// Names, also as the end of longer ones, whose value is secret in any file. In lower case.
const NAMES: &[&[u8]] =
    &[b"secret_access_key", b"secretaccesskey", b"client-key-data", b"token-secret", b"token"];
/// Of a registry, in the config of docker: base64 of user and password.
const REGISTRY: &[u8] = b"\"auth\"";
/// Shorter values are words, numbers and switches.
const SHORTEST: usize = 16;

/// What kind of secret some bytes hold; they may be text, a program or an archive.
pub fn find(bytes: &[u8]) -> Option<&'static str> {
    let mut before = b' ';
    for (at, byte) in bytes.iter().enumerate() {
        let rest = &bytes[at..];
        let found = match byte {
            b'-' => is_private_key(rest).then_some("a private key"),
            b':' => shapes::userinfo(rest).map(|_| "a password in an address"),
            b'"' => is_registry(rest).then_some("a password of a registry"),
            _ if byte.is_ascii_alphabetic() => named(rest).or_else(|| {
                // In the middle of a word, these letters are chance.
                (!before.is_ascii_alphanumeric()).then(|| word(rest)).flatten()
            }),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        before = *byte;
    }
    None
}

/// A begin line with content behind it, also if the line break is written as `\n`. Programs and
/// scripts that only look for keys have the line without the content.
fn is_private_key(bytes: &[u8]) -> bool {
    if shapes::key_block(bytes).is_none() {
        return false;
    }
    let label = &bytes[5..bytes.len().min(80)];
    let Some(end) = shapes::find(label, b"-----") else { return false };
    let rest = &bytes[5 + end + 5..];
    let content = rest.strip_prefix(b"\\n").or_else(|| rest.strip_prefix(b"\\r\\n"));
    let content = content.unwrap_or(rest).trim_ascii_start();
    content.len() < rest.len() && run(content) >= 3
}

/// Secrets that are known by their form.
fn word(bytes: &[u8]) -> Option<&'static str> {
    let token = |(begin, more): &(&[u8], usize)| {
        bytes.strip_prefix(*begin).is_some_and(|rest| run(rest) >= *more)
    };
    match shapes::word(bytes).map(|(class, _)| class) {
        Some(Class::AwsKey) => Some("an AWS access key"),
        Some(Class::PemKey) => Some("a private key"),
        Some(_) => Some("a token"),
        None => PREFIXES.iter().any(token).then_some("a token"),
    }
}

/// Secrets that are known by the name before them.
fn named(bytes: &[u8]) -> Option<&'static str> {
    let begins =
        |name: &&&[u8]| bytes.get(..name.len()).is_some_and(|text| text.eq_ignore_ascii_case(name));
    let name = NAMES.iter().find(begins)?;
    let rest = &bytes[name.len()..];
    if assigned(rest).is_some_and(is_secret) {
        return Some(if name.ends_with(b"token") { "a token" } else { "a credential" });
    }
    let line = &rest[..rest.iter().take(120).take_while(|byte| **byte != b'\n').count()];
    let starts = |at: &usize| *at == 0 || !line[at - 1].is_ascii_alphanumeric();
    let bootstrap = |at: usize| shapes::bootstrap_token(&line[at..]).is_some();
    (0..line.len()).filter(starts).any(bootstrap).then_some("a bootstrap token")
}

/// The value after `=` or `:`, quotes left out.
fn assigned(bytes: &[u8]) -> Option<&[u8]> {
    let quote = |bytes: &'_ [u8]| usize::from(matches!(bytes.first(), Some(b'"' | b'\'')));
    let rest = bytes[quote(bytes)..].trim_ascii_start();
    let rest = rest.strip_prefix(b"=").or_else(|| rest.strip_prefix(b":"))?;
    // The value of an empty field is not the next line.
    let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = &rest[spaces..];
    Some(&rest[quote(rest)..])
}

/// Long, and neither a word nor a number.
fn is_secret(value: &[u8]) -> bool {
    let length = run(value);
    let has = |of: fn(&u8) -> bool| value[..length].iter().any(of);
    let ends = value.get(length).is_none_or(|byte| shapes::ends_value(*byte) || *byte == b',');
    length >= SHORTEST && ends && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

fn is_registry(bytes: &[u8]) -> bool {
    let value = bytes.strip_prefix(REGISTRY).and_then(assigned).unwrap_or_default();
    STANDARD.decode(&value[..run(value)]).is_ok_and(|text| text.contains(&b':'))
}

/// How many characters of base64 and of tokens follow.
fn run(bytes: &[u8]) -> usize {
    let of = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=_-.~".contains(byte);
    bytes.iter().take_while(of).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_form() {
        let token = format!("token: eyJhbGciOiJSUzI1.{}.{}\n", "a".repeat(30), "b".repeat(20));
        let hub = format!("https://x/ghp_{} ", "aB3".repeat(12));
        let fine = format!("github_pat_{}", "11AAB_c".repeat(6));
        let cases: &[(&[u8], Option<&str>)] = &[
            (b"x\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n", Some("a private key")),
            (b"   -----BEGIN EC PRIVATE KEY-----\r\n   MHcCAQ\n", Some("a private key")),
            (b"\xff\xfe-----BEGIN PRIVATE KEY-----\nMIIEv\n", Some("a private key")),
            (b"{\"key\": \"-----BEGIN RSA PRIVATE KEY-----\\nMIIEv\"}", Some("a private key")),
            (b"-----BEGIN CERTIFICATE-----\nMIIEv\n", None),
            (b"grep -q -- '-----BEGIN RSA PRIVATE KEY-----' file\n", None),
            (
                b"client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo=",
                Some("a credential"),
            ),
            (
                b"x: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFdlFJQkFEQU5CZ2txaGtpRzl3MEI",
                Some("a private key"),
            ),
            (b"key=AKIAIOSFODNN7EXAMPLE\n", Some("an AWS access key")),
            (b"AKIAshort", None),
            (
                b"export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                Some("a credential"),
            ),
            (
                b"aws_secret_access_key = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'",
                Some("a credential"),
            ),
            (b"AWS_SECRET_ACCESS_KEY=$SECRET_OF_THE_BUILD_1\n", None),
            (token.as_bytes(), Some("a token")),
            (b"    token: 0123456789abcdefABCDEF\n", Some("a token")),
            (b"token:\n  next_line_0123456789abcdef: 1\n", None),
            (b"kubeadm join --token abcdef.0123456789abcdef 10.0.0.1", Some("a bootstrap token")),
            (b"abcdef.0123456789abcdef", None),
            (hub.as_bytes(), Some("a token")),
            (fine.as_bytes(), Some("a token")),
            (
                b"{\"auths\": {\"r\": {\"auth\": \"dXNlcjpwYXNzd29yZA==\"}}}",
                Some("a password of a registry"),
            ),
            (b"{\"auth\": \"none\"}", None),
            (b"deb https://user:s3cret@packages.example/ x", Some("a password in an address")),
            (b"deb https://packages.example/ x", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(find(bytes), *expected, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
