//! A token as a Secret of the cluster, written and read back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Token;

pub const NAMESPACE: &str = "kube-system";
pub const TYPE: &str = "bootstrap.kubernetes.io/token";
/// The group that a joining machine is in.
pub const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";
/// What a token may be used for.
pub const USAGES: [&str; 2] = ["authentication", "signing"];

const PREFIX: &str = "bootstrap-token-";

/// What is asked of a new token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wish {
    /// Seconds since 1970; None lives for ever.
    pub expires: Option<u64>,
    /// Out of [`USAGES`].
    pub usages: Vec<String>,
    pub description: String,
}

/// The name of a token's Secret.
pub fn name(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// The Secret of a token.
pub fn write(token: &Token, wish: &Wish) -> Value {
    let mut data = json!({
        "token-id": token.id,
        "token-secret": token.secret.expose(),
        "auth-extra-groups": GROUP,
    });
    for usage in &wish.usages {
        data[format!("usage-bootstrap-{usage}")] = json!("true");
    }
    if let Some(time) = wish.expires.and_then(written_time) {
        data["expiration"] = json!(time);
    }
    if !wish.description.is_empty() {
        data["description"] = json!(wish.description);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name(&token.id), "namespace": NAMESPACE},
        "type": TYPE,
        "stringData": data,
    })
}

/// `2026-11-16T22:00:00Z`
pub fn written_time(seconds: u64) -> Option<String> {
    OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).ok()?).ok()?.format(&Rfc3339).ok()
}

/// A token of the cluster, without its secret half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    /// As the cluster has it; None lives for ever.
    pub expires: Option<String>,
    pub usages: Vec<String>,
    pub groups: String,
    pub description: String,
    expires_at: Option<i64>,
}

impl Listed {
    /// Reads a Secret; None if it is no token.
    pub fn read(secret: &Value) -> Option<Self> {
        let text = |key: &str| {
            let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
            String::from_utf8(bytes).ok()
        };
        if secret["type"] != TYPE {
            return None;
        }
        let used =
            |usage: &&str| text(&format!("usage-bootstrap-{usage}")).as_deref() == Some("true");
        let expires = text("expiration");
        let time = expires.as_deref().and_then(|time| OffsetDateTime::parse(time, &Rfc3339).ok());
        Some(Listed {
            id: text("token-id")?,
            expires_at: time.map(OffsetDateTime::unix_timestamp),
            expires,
            usages: USAGES.into_iter().filter(used).map(str::to_owned).collect(),
            groups: text("auth-extra-groups").unwrap_or_default(),
            description: text("description").unwrap_or_default(),
        })
    }

    /// How long it lives, in words.
    pub fn left(&self, now: u64) -> String {
        let Some(end) = self.expires_at else {
            return if self.expires.is_some() { "unreadable" } else { "for ever" }.to_owned();
        };
        match end - i64::try_from(now).unwrap_or(i64::MAX) {
            ..=0 => "expired".to_owned(),
            left @ 1..60 => format!("{left}s"),
            left @ 60..3600 => format!("{}m", left / 60),
            left => format!("{}h{:02}m", left / 3600, left % 3600 / 60),
        }
    }

    pub fn to_json(&self, now: u64) -> Value {
        json!({
            "id": self.id, "expires": self.expires, "left": self.left(now), "usages": self.usages,
            "groups": self.groups, "description": self.description,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(mut secret: Value) -> Value {
        for (key, value) in secret["stringData"].take().as_object().unwrap() {
            secret["data"][key] = json!(STANDARD.encode(value.as_str().unwrap()));
        }
        secret
    }

    #[test]
    fn what_is_written_is_listed_without_its_secret() {
        let token = Token::parse("abcdef.0123456789abcdef").unwrap();
        let wish = Wish {
            expires: Some(1_794_700_000),
            usages: vec!["signing".into()],
            description: "rack 7".into(),
        };
        let secret = write(&token, &wish);
        assert_eq!(secret["metadata"]["name"], "bootstrap-token-abcdef");
        assert_eq!(secret["stringData"]["expiration"], "2026-11-14T23:46:40Z");
        let listed = Listed::read(&stored(secret)).unwrap();
        assert_eq!(
            (listed.usages.as_slice(), listed.id.as_str()),
            (&["signing".to_owned()][..], "abcdef")
        );
        assert!(!listed.to_json(0).to_string().contains("0123456789abcdef"));
        for (now, left) in [
            (1_794_700_000, "expired"),
            (1_794_699_990, "10s"),
            (1_794_690_000, "2h46m"),
            (1_794_699_000, "16m"),
        ] {
            assert_eq!(listed.left(now), left);
        }
    }

    #[test]
    fn a_token_for_ever_says_so_and_other_secrets_are_none() {
        let token = Token::parse("abcdef.0123456789abcdef").unwrap();
        let secret = stored(write(&token, &Wish::default()));
        assert_eq!(Listed::read(&secret).unwrap().left(0), "for ever");
        let mut other = secret;
        other["type"] = json!("Opaque");
        assert_eq!(Listed::read(&other), None);
    }
}
