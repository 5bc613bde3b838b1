//! Who signs: the `AWS_*` variables, else the role of the instance.

use std::time::{Duration, Instant};

use aws_credential_types::Credentials;
use serde::Deserialize;
use tenon_core::codes::facts::NO_CREDENTIALS;
use tenon_core::problem::Problem;

use crate::gather::environment::Environment;
use crate::gather::imds::values::Raw;
use crate::gather::imds::{Imds, Key};
use crate::stop;

const ROLES: &str = "meta-data/iam/security-credentials/";
/// Pause between two looks for credentials that are not there yet at boot.
const PAUSE: Duration = Duration::from_millis(500);

/// Credentials, and whose they are, for messages.
#[derive(Debug, Clone)]
pub struct Signer {
    pub credentials: Credentials,
    pub identity: String,
}

/// The part of the metadata service's answer that is needed.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Given {
    access_key_id: String,
    secret_access_key: String,
    token: String,
}

/// Credentials from the variables; None when they are not set.
pub fn from_variables(environment: &Environment) -> Option<Signer> {
    let key = environment.get("AWS_ACCESS_KEY_ID")?;
    let secret = environment.get("AWS_SECRET_ACCESS_KEY")?;
    let token = environment.get("AWS_SESSION_TOKEN").map(str::to_owned);
    let credentials = Credentials::new(key, secret, token, None, "environment");
    Some(Signer { credentials, identity: "the credentials in AWS_ACCESS_KEY_ID".into() })
}

/// Credentials of the instance role, waited for until `end`: at boot they may come late.
pub fn from_role(imds: &mut Imds, account: &str, end: Instant) -> Result<Signer, Problem> {
    imds.restart_deadline(end.saturating_duration_since(Instant::now()));
    loop {
        if let Some(signer) = ask(imds, account)? {
            return Ok(signer);
        }
        if Instant::now() + PAUSE >= end {
            return Err(Problem::new(&NO_CREDENTIALS, "the instance has no role with credentials"));
        }
        stop::sleep(PAUSE)?;
    }
}

fn ask(imds: &mut Imds, account: &str) -> Result<Option<Signer>, Problem> {
    let Some(list) = imds.fetch(&[Key::optional(ROLES)])?.pop().flatten() else { return Ok(None) };
    let raw = Raw { path: ROLES, bytes: &list };
    let role = raw.text()?.lines().next().unwrap_or_default().trim();
    if !is_role_name(role) {
        return Err(raw.refuse("the name of a role"));
    }
    let path = format!("{ROLES}{role}");
    let Some(body) = imds.fetch(&[Key::optional(path.as_str())])?.pop().flatten() else {
        return Ok(None);
    };
    // The answer holds secrets, so a message says nothing of its content.
    let Ok(given) = serde_json::from_slice::<Given>(&body) else { return Ok(None) };
    let Given { access_key_id, secret_access_key, token } = given;
    let credentials =
        Credentials::new(access_key_id, secret_access_key, Some(token), None, "instance role");
    let identity = match account {
        "" => format!("role {role}"),
        _ => format!("role {role} of account {account}"),
    };
    Ok(Some(Signer { credentials, identity }))
}

fn is_role_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}
