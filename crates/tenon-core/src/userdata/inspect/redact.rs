//! What must not be shown: values that look like secrets.

use serde_json::Value;

use super::settings::Key;
use crate::redact::shapes;

const HIDDEN: &str = "***";

/// Names of values that are secrets wherever they stand.
const SECRET_NAMES: [&str; 5] = ["token", "secret", "password", "credential", "private"];

/// Names that contain one of these and are no secrets.
const HARMLESS: [&str; 5] = [
    "certificateAuthority",
    "image-credential-provider-config",
    "image-credential-provider-bin-dir",
    "serviceAccountTokenGetter",
    "authenticationTokenWebhook",
];

/// Rooms whose names are free, so that a key may stand under any name with `key` in it.
const FREE_FORM: [&str; 3] = ["kubelet", "bootstrap", "bottlerocket"];

fn has_key(name: &str) -> bool {
    name.to_ascii_lowercase().contains("key")
}

/// A value as it may be shown under its key.
pub fn value(key: &Key, value: &Value, show_secrets: bool) -> Value {
    if show_secrets {
        return value.clone();
    }
    let room = key.first().map_or("", String::as_str);
    let secret = room == "environment"
        || key.iter().any(|name| is_secret_name(name))
        || FREE_FORM.contains(&room) && key.iter().any(|name| has_key(name));
    match value {
        Value::String(_) | Value::Number(_) if secret => HIDDEN.into(),
        Value::String(text) => line(text, false).into(),
        Value::Array(items) => items.iter().map(|item| self::value(key, item, false)).collect(),
        other => other.clone(),
    }
}

/// True when a name says that its value is secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !HARMLESS.contains(&name)
        && (SECRET_NAMES.iter().any(|word| lower.contains(word)) || lower.ends_with("_key"))
}

/// A text with everything that looks like a secret hidden.
pub fn line(text: &str, show_secrets: bool) -> String {
    if show_secrets {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    for (start, end) in spans(text) {
        out.push_str(&text[rest..start]);
        out.push_str(HIDDEN);
        rest = end;
    }
    out.push_str(&text[rest..]);
    out
}

/// What a secret is, for a finding about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Secret {
    PrivateKey,
    AwsKeyId,
    BootstrapToken,
    Jwt,
    UrlCredentials,
    Assignment,
}

impl Secret {
    pub(super) fn name(self) -> &'static str {
        match self {
            Secret::PrivateKey => "a private key",
            Secret::AwsKeyId => "an AWS access key",
            Secret::BootstrapToken => "a bootstrap token",
            Secret::Jwt => "a bearer token",
            Secret::UrlCredentials => "a URL with credentials",
            Secret::Assignment => "a password or token",
        }
    }
}

/// The byte ranges of secrets in a text, sorted and apart from each other.
fn spans(text: &str) -> Vec<(usize, usize)> {
    let mut spans: Vec<_> = find(text).into_iter().map(|(_, start, end)| (start, end)).collect();
    spans.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (start, end) in spans {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// Every secret in a text, with the bytes that must not be shown.
pub(super) fn find(text: &str) -> Vec<(Secret, usize, usize)> {
    let mut found = private_keys(text);
    let mut at = 0;
    for word in text.split_inclusive(|c: char| c.is_whitespace() || "'\"`,;()".contains(c)) {
        let trimmed = word.trim_end_matches(|c: char| c.is_whitespace() || "'\"`,;()".contains(c));
        found.extend(in_word(trimmed).map(|(kind, from, to)| (kind, at + from, at + to)));
        at += word.len();
    }
    found.extend(assignments(text));
    found
}

fn private_keys(text: &str) -> Vec<(Secret, usize, usize)> {
    let mut found = Vec::new();
    let mut last = 0;
    for (start, _) in text.match_indices("-----BEGIN ") {
        let line = text[start..].lines().next().unwrap_or_default();
        // A start inside a block that has no end is hidden with it.
        if start < last || !line.contains("PRIVATE KEY") {
            continue;
        }
        last = text[start..].find("-----END ").map_or(text.len(), |end| {
            let tail = text[start + end..].lines().next().unwrap_or_default();
            start + end + tail.len()
        });
        found.push((Secret::PrivateKey, start, last));
    }
    found
}

/// A secret that is one word, or inside one.
fn in_word(word: &str) -> Option<(Secret, usize, usize)> {
    let value = word.rfind(['=', ':']).map_or(0, |at| at + 1);
    let last = &word[value..];
    let whole = |kind| Some((kind, value, word.len()));
    let is = |shape: fn(&[u8]) -> Option<usize>| shape(last.as_bytes()) == Some(last.len());
    if is(shapes::access_key) {
        return whole(Secret::AwsKeyId);
    }
    if is(shapes::bootstrap_token) {
        return whole(Secret::BootstrapToken);
    }
    if is(shapes::jwt) {
        return whole(Secret::Jwt);
    }
    url_credentials(word)
}

/// `scheme://user:password@host`
fn url_credentials(word: &str) -> Option<(Secret, usize, usize)> {
    let start = word.find("://")? + 3;
    let authority = word[start..].split('/').next()?;
    let at = authority.rfind('@')?;
    let user = &authority[..at];
    let real = user.contains(':') && !user.contains('$');
    real.then_some((Secret::UrlCredentials, start, start + at))
}

/// `NAME=value` and `name: value` where the name says that the value is secret.
fn assignments(text: &str) -> Vec<(Secret, usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        found.extend(
            assignment(line).map(|(from, to)| (Secret::Assignment, start + from, start + to)),
        );
        start += line.len();
    }
    found
}

fn assignment(line: &str) -> Option<(usize, usize)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    for (at, sign) in line.match_indices(['=', ':']) {
        let name_start = line[..at]
            .rfind(|c| !is_name(c))
            .map_or(0, |i| i + line[i..].chars().next().map_or(1, char::len_utf8));
        let name = line[name_start..at].trim_start_matches('-');
        let rest = &line[at + sign.len()..];
        // `a: b` needs its blank; `a:b` is an address or an image.
        let blank = rest.starts_with(' ');
        if !is_secret_name(name) || name.is_empty() || (sign == ":" && !blank) {
            continue;
        }
        let value = rest.trim_start().trim_start_matches(['"', '\'']);
        let from = line.len() - value.len();
        let length = value.find(|c: char| c.is_whitespace() || "\"'".contains(c));
        let to = from + length.unwrap_or(value.len());
        // A reference to a secret that lives elsewhere is none.
        let reference = value.starts_with(['$', '`', '<', '{', '[', '|', '/']);
        if to > from && !reference && is_value(&line[from..to]) {
            return Some((from, to));
        }
    }
    None
}

/// Words that are settings of a secret rather than one.
fn is_value(word: &str) -> bool {
    let number = word.chars().all(|c| c.is_ascii_digit());
    word.len() >= 4 && !number && !["true", "false", "null", "none", "required"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::super::settings::key;
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_found_and_hidden() {
        for (text, kind, shown) in [
            (
                "export AWS_SECRET_ACCESS_KEY=abcdEFGH1234",
                Secret::Assignment,
                "export AWS_SECRET_ACCESS_KEY=***",
            ),
            ("id AKIAABCDEFGHIJKLMNOP x", Secret::AwsKeyId, "id *** x"),
            ("--token abcdef.0123456789abcdef", Secret::BootstrapToken, "--token ***"),
            ("https://user:hunter2@host/x", Secret::UrlCredentials, "https://***@host/x"),
            ("password: 'hunter2'", Secret::Assignment, "password: '***'"),
            ("--registry-token=hunter2", Secret::Assignment, "--registry-token=***"),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb",
                Secret::PrivateKey,
                "a\n***\nb",
            ),
            (
                "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4eHh4eHh4eHh4In0.c2lnbmF0dXJl",
                Secret::Jwt,
                "Authorization: Bearer ***",
            ),
        ] {
            assert!(find(text).iter().any(|(found, ..)| *found == kind), "{text}");
            assert_eq!(line(text, false), shown);
            assert_eq!(line(text, true), text);
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "TOKEN=\"$(curl -X PUT http://169.254.169.254/latest/api/token)\"",
            "curl -H \"X-aws-ec2-metadata-token: $TOKEN\"",
            "HttpTokens: required",
            "X-aws-ec2-metadata-token-ttl-seconds: 600",
            "image: repo/token:v1",
            "-----BEGIN CERTIFICATE-----",
            "http://169.254.169.254/latest/api/token",
            "https://$USER:$PASS@host",
            "password_file=/etc/x",
        ] {
            assert_eq!(line(text, false), text);
        }
    }

    #[test]
    fn values_are_hidden_by_their_key() {
        let hidden = |names: &[&str], found: Value| value(&key(names), &found, false);
        assert_eq!(hidden(&["environment", "default", "HTTP_PROXY"], json!("x")), json!("***"));
        assert_eq!(hidden(&["kubelet", "flags", "bootstrap-token"], json!("x")), json!("***"));
        assert_eq!(hidden(&["cluster", "name"], json!("x")), json!("x"));
        assert_eq!(hidden(&["labels", "monkey"], json!("x")), json!("x"));
        assert_eq!(hidden(&["bottlerocket", "pki", "signing-key"], json!("x")), json!("***"));
        assert_eq!(
            hidden(&["kubelet", "config", "a"], json!(["https://u:p@h"])),
            json!(["https://***@h"])
        );
    }
}
