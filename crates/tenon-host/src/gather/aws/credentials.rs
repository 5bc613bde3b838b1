//! Who signs: the `AWS_*` variables, else the container's endpoint, else the role of the instance.

use std::time::{Duration, Instant};

use aws_credential_types::Credentials;
use serde::Deserialize;
use tenon_core::codes::facts::NO_CREDENTIALS;
use tenon_core::problem::Problem;

use super::transport::agent;
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

impl Given {
    fn signer(self, source: &'static str, identity: String) -> Signer {
        let Given { access_key_id, secret_access_key, token } = self;
        let credentials =
            Credentials::new(access_key_id, secret_access_key, Some(token), None, source);
        Signer { credentials, identity }
    }
}

/// Credentials from the variables; None when they are not set.
pub fn from_variables(environment: &Environment) -> Option<Signer> {
    let key = environment.get("AWS_ACCESS_KEY_ID")?;
    let secret = environment.get("AWS_SECRET_ACCESS_KEY")?;
    let token = environment.get("AWS_SESSION_TOKEN").map(str::to_owned);
    let credentials = Credentials::new(key, secret, token, None, "environment");
    Some(Signer { credentials, identity: "the credentials in AWS_ACCESS_KEY_ID".into() })
}

/// Credentials from the endpoint that a container is given; None when it is given none.
pub fn from_container(environment: &Environment, end: Instant) -> Result<Option<Signer>, Problem> {
    let relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let url = match (relative, environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
        (Some(path), _) => format!("http://169.254.170.2{path}"),
        (None, Some(url)) => url.to_owned(),
        (None, None) => return Ok(None),
    };
    let refuse = |what: &str| Problem::new(&NO_CREDENTIALS, what);
    // Whoever can set the variable must not be able to send the token across the network in clear.
    if !url.starts_with("https://") && !CONTAINER_HOSTS.iter().any(|host| is_at(&url, host)) {
        return Err(refuse("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor on this host"));
    }
    let authorization = match environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(path) => std::fs::read_to_string(path)
            .map(|text| Some(text.trim().to_owned()))
            .map_err(|error| refuse("reading the container's authorization token").cause(error))?,
        None => environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned),
    };
    let agent = agent(&Environment::default(), &url, end.saturating_duration_since(Instant::now()));
    let mut request = agent.get(&url);
    if let Some(token) = authorization {
        request = request.header("authorization", token);
    }
    let answer = request.call().map_err(|error| error.to_string()).and_then(|mut answer| {
        answer.body_mut().read_to_string().map_err(|error| error.to_string())
    });
    let body = answer.map_err(|cause| refuse("asking the container's endpoint").cause(cause))?;
    let Ok(given) = serde_json::from_str::<Given>(&body) else {
        return Err(refuse("the container's endpoint gave no credentials"));
    };
    Ok(Some(given.signer("container", "the role of the container".into())))
}

/// Addresses that plain HTTP may go to.
const CONTAINER_HOSTS: &[&str] =
    &["127.0.0.1", "localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];

fn is_at(url: &str, host: &str) -> bool {
    let rest = url.strip_prefix("http://").and_then(|rest| rest.strip_prefix(host));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
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
    let identity = match account {
        "" => format!("role {role}"),
        _ => format!("role {role} of account {account}"),
    };
    Ok(Some(given.signer("instance role", identity)))
}

fn is_role_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}
