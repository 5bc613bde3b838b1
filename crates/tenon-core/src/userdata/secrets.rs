//! Finds what looks like a secret in text that becomes user data.

use crate::codes::userdata as pages;
use crate::problem::{Finding, Problem};
use crate::redact::shapes;

use super::{Group, Options};

/// Looks through everything of the user's that the document will carry.
pub fn check(group: &Group, options: &Options, findings: &mut Vec<Finding>) {
    for (field, text) in texts(group) {
        let Some(shape) = secret_shape(text) else { continue };
        let problem = Problem::new(&pages::SECRET_FOUND, format!("the text holds {shape}"))
            .at(group.at(&field));
        findings.push(match options.allow_secrets {
            true => Finding::warning(problem),
            false => Finding::error(problem),
        });
    }
}

/// Every free text of the group, with its field.
pub fn texts(group: &Group) -> Vec<(String, &str)> {
    let list = |name: &str, items: &'_ [String]| -> Vec<(String, usize)> {
        (0..items.len()).map(|index| (format!("{name}[{index}]"), index)).collect()
    };
    let mut texts = Vec::new();
    for (name, items) in [
        ("preBootstrapCommands", &group.pre_commands),
        ("postBootstrapCommands", &group.post_commands),
    ] {
        texts.extend(
            list(name, items).into_iter().map(|(field, index)| (field, items[index].as_str())),
        );
    }
    texts.extend(
        group.override_command.as_deref().map(|text| ("overrideBootstrapCommand".to_owned(), text)),
    );
    texts.extend(
        group
            .files
            .iter()
            .enumerate()
            .map(|(index, file)| (format!("files[{index}]"), file.content.as_str())),
    );
    texts.extend(
        group.containerd_config.as_deref().map(|text| ("containerdConfig".to_owned(), text)),
    );
    for (service, variables) in &group.environment {
        texts.extend(
            variables
                .iter()
                .map(|(key, value)| (format!("environment.{service}.{key}"), value.as_str())),
        );
    }
    texts
}

/// What kind of secret the text seems to hold.
pub fn secret_shape(text: &str) -> Option<&'static str> {
    if text.contains("PRIVATE KEY-----") {
        return Some("a private key block");
    }
    words(text).find_map(word_shape)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | ';' | '(' | ')'))
}

fn word_shape(word: &str) -> Option<&'static str> {
    let is = |shape: fn(&[u8]) -> Option<usize>| shape(word.as_bytes()) == Some(word.len());
    if is(shapes::access_key) {
        return Some("an AWS access key id");
    }
    // Without a digit it is rather the name of a file or host.
    if is(shapes::bootstrap_token) && word.bytes().any(|byte| byte.is_ascii_digit()) {
        return Some("a bootstrap token");
    }
    if is(shapes::jwt) {
        return Some("a bearer token");
    }
    let credentials = word.split_once("://").and_then(|(_, rest)| {
        let authority = rest.split('/').next()?;
        let (user, _) = authority.rsplit_once('@')?;
        user.split_once(':')
            .filter(|(_, password)| !password.is_empty() && !password.starts_with('$'))
    });
    credentials.map(|_| "a URL with a password")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_shapes_are_found() {
        for (text, shape) in [
            ("export K=AKIAIOSFODNN7EXAMPLE", "an AWS access key id"),
            ("-----BEGIN RSA PRIVATE KEY-----\nx", "a private key block"),
            ("join --token abc123.0123456789abcdef", "a bootstrap token"),
            ("curl https://user:hunter2@host/x", "a URL with a password"),
        ] {
            assert_eq!(secret_shape(text), Some(shape), "{text}");
        }
    }

    #[test]
    fn everyday_text_is_not() {
        for text in [
            "curl https://host/x@y:z",
            "echo kubelet.service",
            "https://u:$PASS@h",
            "AKIA",
            "sysctl -w net.core.somaxconn=1024",
        ] {
            assert_eq!(secret_shape(text), None, "{text}");
        }
    }
}
