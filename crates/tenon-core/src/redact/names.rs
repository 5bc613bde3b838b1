//! Names that make a value secret, and names that only look so.

use super::Class;

/// The longest name that is looked at.
pub const LONGEST: usize = 64;

/// What a name says of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Secret(Class),
    /// A certificate: shown by its subject and dates.
    Certificate,
}

/// Whole names, without dashes and underscores.
const WHOLE: &[(&str, Meaning)] = &[
    ("authorization", Meaning::Secret(Class::Bearer)),
    ("proxyauthorization", Meaning::Secret(Class::Bearer)),
    ("clientkeydata", Meaning::Secret(Class::Kubeconfig)),
    ("clientcertificatedata", Meaning::Certificate),
    ("certificateauthoritydata", Meaning::Certificate),
    ("auth", Meaning::Secret(Class::RegistryAuth)),
    ("identitytoken", Meaning::Secret(Class::RegistryAuth)),
    ("registrytoken", Meaning::Secret(Class::RegistryAuth)),
    ("xregistryauth", Meaning::Secret(Class::RegistryAuth)),
    ("xamzcredential", Meaning::Secret(Class::AwsKey)),
    ("xamzsignature", Meaning::Secret(Class::AwsSession)),
    ("xamzsecuritytoken", Meaning::Secret(Class::AwsSession)),
    ("xawsec2metadatatoken", Meaning::Secret(Class::AwsSession)),
    ("sessiontoken", Meaning::Secret(Class::AwsSession)),
    ("awssessiontoken", Meaning::Secret(Class::AwsSession)),
    ("securitytoken", Meaning::Secret(Class::AwsSession)),
    ("secretaccesskey", Meaning::Secret(Class::AwsKey)),
    ("awssecretaccesskey", Meaning::Secret(Class::AwsKey)),
    ("activationid", Meaning::Secret(Class::Activation)),
    ("activationcode", Meaning::Secret(Class::Activation)),
    ("passin", Meaning::Secret(Class::KeyValue)),
    ("passout", Meaning::Secret(Class::KeyValue)),
];

/// Short words for a password: secret as the last word of a name, as in `DB_PASS`. The second is
/// also the working directory, so it needs a word before it.
const PASS: &[u8] = b"pass";
const PWD: &[u8] = b"pwd";
/// What a test says behind `pass`.
const VERDICTS: &[&str] = &["ok", "pass", "passed", "fail", "failed"];
/// The longest number behind `pass` that is a count.
const LONGEST_COUNT: usize = 5;

/// Ends of names whose objects hold secrets under names of their own.
const NESTS: &[&str] =
    &["credential", "credentials", "creds", "secrets", "passwords", "tokens", "auths"];
/// Ends of names inside such an object that hold no secret, besides [`HARMLESS_ENDS`].
const PLAIN_IN_NEST: &[&str] = &[
    "user",
    "login",
    "email",
    "host",
    "server",
    "url",
    "registry",
    "domain",
    "region",
    "zone",
    "account",
    "id",
    "group",
    "apiversion",
    "command",
    "labels",
    "scope",
    "updated",
    "created",
];

/// What a sentence says of a password instead of telling it; see also [`is_told`].
const OF_A_PASSWORD: &[&str] = &[
    "a",
    "an",
    "the",
    "not",
    "no",
    "now",
    "too",
    "only",
    "also",
    "still",
    "never",
    "always",
    "in",
    "at",
    "on",
    "by",
    "for",
    "from",
    "of",
    "to",
    "as",
    "empty",
    "missing",
    "wrong",
    "incorrect",
    "invalid",
    "correct",
    "valid",
    "right",
    "set",
    "unset",
    "null",
    "none",
    "weak",
    "strong",
    "short",
    "long",
    "old",
    "new",
    "same",
    "different",
    "bad",
    "good",
    "ok",
    "fine",
    "known",
    "unknown",
    "hidden",
    "safe",
    "secret",
    "sent",
    "blank",
    "default",
    "optional",
    "mandatory",
];

/// Parts of names.
const PARTS: &[&str] =
    &["password", "passwd", "passphrase", "secret", "token", "apikey", "credential", "privatekey"];

/// Ends of names that tell about a secret without being one.
const HARMLESS_ENDS: &[&str] = &[
    "file",
    "files",
    "path",
    "paths",
    "dir",
    "name",
    "names",
    "arn",
    "ttl",
    "ttlseconds",
    "seconds",
    "type",
    "expiry",
    "expires",
    "expiration",
    "endpoint",
    "provider",
    "providers",
    "config",
    "ref",
    "source",
    "count",
    "mode",
    "version",
    "kind",
    "webhook",
    "required",
    "enabled",
    "limit",
    "timeout",
    "audience",
    "audiences",
    "issuer",
    "attempts",
    "rotation",
    "getter",
    "namespace",
    "request",
    "review",
    "plugin",
    "image",
    "controller",
    "uid",
    "policy",
    "duration",
    "retries",
    "bytes",
    "size",
    "status",
    "error",
    "reason",
    "configmap",
];

/// Ends of variables that a diagnosis needs and that hold no secret of their own: what they
/// carry is looked at like any other text.
const PLAIN_VARIABLES: &[&str] = &[
    "environment",
    "args",
    "flags",
    "opts",
    "options",
    "proxy",
    "path",
    "home",
    "region",
    "endpoint",
    "lang",
    "level",
    "config",
];

/// Values that are settings of a secret rather than one.
const HARMLESS_VALUES: &[&str] = &[
    "true",
    "false",
    "null",
    "nil",
    "none",
    "required",
    "optional",
    "enabled",
    "disabled",
    "yes",
    "no",
    "unknown",
    "***",
    "[redacted]",
    "|",
    ">",
    "|-",
    ">-",
];

/// What the name says of its value.
pub fn meaning(name: &[u8]) -> Option<Meaning> {
    let mut buffer = [0; LONGEST];
    let letters = plain(name, &mut buffer);
    if let Some((_, meaning)) = WHOLE.iter().find(|(whole, _)| *whole == letters) {
        return Some(*meaning);
    }
    let secret = PARTS.iter().any(|part| letters.contains(part)) && !is_harmless(letters);
    (secret || is_pass(name)).then_some(Meaning::Secret(Class::KeyValue))
}

fn is_harmless(letters: &str) -> bool {
    HARMLESS_ENDS.iter().any(|end| letters.ends_with(end))
}

/// True for `pass` and `DB_PASS`, not for `bypass`.
fn is_pass(name: &[u8]) -> bool {
    let before = name.iter().rposition(|byte| !byte.is_ascii_alphanumeric());
    let last = &name[before.map_or(0, |at| at + 1)..];
    let prefixed = before.is_some_and(|at| name[..at].iter().any(u8::is_ascii_alphanumeric));
    last.eq_ignore_ascii_case(PASS) || prefixed && last.eq_ignore_ascii_case(PWD)
}

/// True when the object behind this name holds secrets, whatever their names are.
pub fn is_nest(name: &[u8]) -> bool {
    let mut buffer = [0; LONGEST];
    let letters = plain(name, &mut buffer);
    NESTS.iter().any(|end| letters.ends_with(end))
}

/// True for a name inside such an object that tells whose or where a secret is.
pub fn is_plain_in_nest(name: &[u8]) -> bool {
    let mut buffer = [0; LONGEST];
    let letters = plain(name, &mut buffer);
    is_harmless(letters) || PLAIN_IN_NEST.iter().any(|end| letters.ends_with(end))
}

/// True when a word after "the password is" is the password and not a word about it.
pub fn is_told(word: &str) -> bool {
    let letters = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']).to_ascii_lowercase();
    let ordinary = OF_A_PASSWORD.contains(&letters.as_str())
        || (letters.ends_with("ed") || letters.ends_with("ing"))
            && letters.bytes().all(|byte| byte.is_ascii_lowercase());
    !letters.is_empty() && !ordinary && !is_reference(word)
}

/// True when the value may be one of a secret with this name.
pub fn is_value(name: &[u8], class: Class, value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return true };
    let lower = text.to_ascii_lowercase();
    if text.is_empty() || is_reference(text) || HARMLESS_VALUES.contains(&lower.as_str()) {
        return false;
    }
    // The one file in which this name has no password behind it: nsswitch.conf.
    if name == b"passwd" && lower.split_whitespace().any(|word| word == "files") {
        return false;
    }
    if is_pass(name) && is_verdict(&lower) {
        return false;
    }
    // `auth` is also a word; what it names in a registry's config is base64.
    let base64 =
        || text.len() >= 8 && text.bytes().any(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let number = text.bytes().all(|byte| byte.is_ascii_digit());
    let mut buffer = [0; LONGEST];
    match class {
        Class::RegistryAuth if plain(name, &mut buffer) == "auth" => base64(),
        Class::KeyValue if number => is_pass(name) || plain(name, &mut buffer).contains("passw"),
        _ => true,
    }
}

/// True for what stands behind `pass` in the output of a test: a count, or how it went.
fn is_verdict(value: &str) -> bool {
    let first = value.split([' ', ',', ';']).next().unwrap_or_default();
    let count = first.len() <= LONGEST_COUNT && first.bytes().all(|byte| byte.is_ascii_digit());
    count || VERDICTS.contains(&first)
}

/// True for `PASS: name of a test` and `pass: a sentence`, which have no quotes.
pub fn is_heading(name: &[u8], value: &[u8]) -> bool {
    is_pass(name) && (name == b"PASS" || value.contains(&b' '))
}

/// True for what stands where a secret will be: a variable, a template, a mark of ours. The first
/// sign alone proves nothing: passwords begin with signs, too.
pub fn is_reference(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let rest = &text[first.len_utf8()..];
    let next = rest.chars().next().unwrap_or(' ');
    match first {
        '$' => {
            matches!(next, '{' | '(') || rest.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        }
        '{' => matches!(next, '{' | '}' | '"' | '\'' | '\\' | ' ') || rest.contains(':'),
        '<' => {
            text.ends_with('>') || rest.starts_with("redacted:") || rest.starts_with("certificate:")
        }
        '%' => !rest.chars().nth(1).is_some_and(|c| c.is_ascii_alphanumeric()),
        '`' => text.ends_with('`'),
        '*' => rest.chars().all(|c| c == '*'),
        _ => false,
    }
}

/// True for a variable of a unit whose value may be shown.
pub fn is_plain_variable(name: &[u8]) -> bool {
    let mut buffer = [0; LONGEST];
    let argument = name.starts_with(b"-");
    let name = plain(name, &mut buffer);
    argument || PLAIN_VARIABLES.iter().any(|end| name.ends_with(end))
}

/// True for a name that is a secret's and nothing else, as in `Token:abc`.
pub fn is_exact(name: &[u8]) -> bool {
    PARTS.iter().any(|part| name.eq_ignore_ascii_case(part.as_bytes()))
}

/// Letters and digits in lower case.
fn plain<'b>(name: &[u8], buffer: &'b mut [u8; LONGEST]) -> &'b str {
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let mut length = 0;
    for (slot, byte) in buffer.iter_mut().zip(letters) {
        *slot = byte.to_ascii_lowercase();
        length += 1;
    }
    std::str::from_utf8(&buffer[..length]).unwrap_or_default()
}
