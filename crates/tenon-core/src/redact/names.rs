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
    let name = plain(name, &mut buffer);
    if let Some((_, meaning)) = WHOLE.iter().find(|(whole, _)| *whole == name) {
        return Some(*meaning);
    }
    let secret = PARTS.iter().any(|part| name.contains(part))
        && !HARMLESS_ENDS.iter().any(|end| name.ends_with(end));
    secret.then_some(Meaning::Secret(Class::KeyValue))
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
    // `auth` is also a word; what it names in a registry's config is base64.
    let base64 =
        || text.len() >= 8 && text.bytes().any(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let number = text.bytes().all(|byte| byte.is_ascii_digit());
    let mut buffer = [0; LONGEST];
    match class {
        Class::RegistryAuth if plain(name, &mut buffer) == "auth" => base64(),
        Class::KeyValue if number => plain(name, &mut buffer).contains("passw"),
        _ => true,
    }
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
