//! The instance metadata service: version 2, one token, few requests, one deadline.
//!
//! ```text
//! endpoint  where to ask              session   the token
//! fetch     values, asked until had   exchange  requests on connections
//! lane      one connection            http      whole answers or none
//! pace      when to ask again         values    typed values
//! identity  the identity document
//! ```
//!
//! Two rounds, because the config decides what else is needed and may itself come from here:
//! [`Imds::first_round`] gives what every node needs and the user data, [`Imds::second_round`]
//! the rest. Both use one token and, where the service keeps connections alive, one connection
//! on which the requests of a round are sent together.

pub mod endpoint;
mod exchange;
mod fetch;
mod http;
mod identity;
mod lane;
pub mod pace;
mod session;
pub mod values;

use std::time::{Duration, Instant};

use tenon_core::codes::facts as pages;
use tenon_core::facts::Instance;
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;

use self::endpoint::Endpoint;
use self::lane::Lane;
use self::pace::{Pace, Patience};
use self::values::Raw;
use super::environment::Environment;

/// How often facts that do not fit together are read again.
const REREADS: u32 = 3;

/// How to ask.
#[derive(Debug, Clone)]
pub struct Options {
    /// Most wanted first.
    pub endpoints: Vec<Endpoint>,
    pub patience: Patience,
    /// Go on without a token where the service knows none. For test benches only.
    pub allow_version_1: bool,
}

impl Options {
    /// The defaults, moved by `AWS_EC2_METADATA_SERVICE_ENDPOINT` and its `_MODE`.
    pub fn new(environment: &Environment) -> Result<Self, Problem> {
        let endpoints = endpoint::candidates(environment)?;
        Ok(Options { endpoints, patience: Patience::default(), allow_version_1: false })
    }
}

/// What the second round must bring, as the config decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The cluster is IPv6.
    pub ipv6: bool,
    /// A proxy is configured, or the service range must be guessed.
    pub vpc_cidrs: bool,
    /// The pause image is named by account and version.
    pub services_domain: bool,
}

/// What the first round brings.
#[derive(Debug, Clone, PartialEq)]
pub struct First {
    pub instance: Instance,
    /// None when there is none, or when it was not asked for.
    pub user_data: Option<Vec<u8>>,
}

/// A value to fetch.
#[derive(Debug, Clone)]
pub struct Key {
    /// Path below `/latest/`.
    pub path: String,
    pub mandatory: bool,
}

impl Key {
    pub fn mandatory(path: impl Into<String>) -> Self {
        Key { path: path.into(), mandatory: true }
    }

    pub fn optional(path: impl Into<String>) -> Self {
        Key { path: path.into(), mandatory: false }
    }
}

/// A conversation with the metadata service.
#[derive(Debug)]
pub struct Imds {
    endpoints: Vec<Endpoint>,
    /// The endpoint that answered; later connections go there.
    chosen: Option<usize>,
    idle: Option<Lane>,
    keep_alive: bool,
    session: Session,
    allow_version_1: bool,
    refreshes: u32,
    silent: u32,
    missing_since: Option<Instant>,
    patience: Patience,
    pace: Pace,
    requests: u32,
}

#[derive(Debug)]
enum Session {
    Closed,
    Token(Secret),
    Version1,
}

const DOCUMENT: &str = "dynamic/instance-identity/document";
const MAC: &str = "meta-data/mac";
const LOCAL_IPV4: &str = "meta-data/local-ipv4";
const LOCAL_HOSTNAME: &str = "meta-data/local-hostname";
pub const USER_DATA: &str = "user-data";
const SERVICES_DOMAIN: &str = "meta-data/services/domain";

impl Imds {
    /// Prepares a conversation. Nothing is sent before the first question; the deadline for all
    /// of them starts now.
    pub fn new(options: Options) -> Self {
        Imds {
            endpoints: options.endpoints,
            chosen: None,
            idle: None,
            keep_alive: true,
            session: Session::Closed,
            allow_version_1: options.allow_version_1,
            refreshes: 0,
            silent: 0,
            missing_since: None,
            patience: options.patience,
            pace: Pace::new(options.patience),
            requests: 0,
        }
    }

    /// Requests sent so far, the token included.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Attempts that had to be repeated so far.
    pub fn retries(&self) -> u32 {
        self.pace.retries
    }

    /// Gives the questions that follow a deadline of their own, for optional work that must not
    /// use up the time of the mandatory one.
    pub fn restart_deadline(&mut self, bound: Duration) {
        self.pace.restart(bound);
    }

    /// Asks for the identity document alone, and for the user data if a source wants it: enough
    /// where the rest is known from an earlier phase.
    pub fn identity(&mut self, user_data: bool) -> Result<First, Problem> {
        let keys = [Key::mandatory(DOCUMENT), Key::optional(USER_DATA)];
        let keys = if user_data { &keys[..] } else { &keys[..1] };
        let mut values = self.fetch(keys)?.into_iter();
        let document = values.next().flatten().ok_or_else(|| absent(DOCUMENT))?;
        let instance = identity::parse(Raw { path: DOCUMENT, bytes: &document })?;
        Ok(First { instance, user_data: values.next().flatten() })
    }

    /// Asks what every node needs, and for the user data if a source wants it.
    pub fn first_round(&mut self, user_data: bool) -> Result<First, Problem> {
        let mut keys = vec![
            Key::mandatory(DOCUMENT),
            Key::mandatory(MAC),
            Key::optional(LOCAL_IPV4),
            Key::optional(LOCAL_HOSTNAME),
        ];
        if user_data {
            keys.push(Key::optional(USER_DATA));
        }
        let mut values = self.fetch(&keys)?;
        let user_data = if user_data { values.pop().flatten() } else { None };
        for _ in 0..REREADS {
            if let Some(instance) = assemble(&values)? {
                return Ok(First { instance, user_data });
            }
            tracing::info!("addresses changed between two reads; reading again");
            values = self.fetch(&keys[..4])?;
        }
        let instance = assemble(&values)?.ok_or_else(|| {
            Problem::new(
                &pages::METADATA_UNSTABLE,
                format!("{LOCAL_IPV4} and the identity document disagree about the address"),
            )
        })?;
        Ok(First { instance, user_data })
    }

    /// Asks for what the config needs beyond the first round. Sends nothing if that is nothing.
    pub fn second_round(&mut self, instance: &mut Instance, needs: Needs) -> Result<(), Problem> {
        let interface = |leaf| format!("meta-data/network/interfaces/macs/{}/{leaf}", instance.mac);
        let rows = [
            (needs.ipv6, interface("ipv6s")),
            (needs.vpc_cidrs, interface("vpc-ipv4-cidr-blocks")),
            // 404 in a network without IPv6.
            (needs.vpc_cidrs, interface("vpc-ipv6-cidr-blocks")),
            (needs.services_domain, SERVICES_DOMAIN.to_owned()),
        ];
        let keys: Vec<Key> =
            rows.iter().filter(|row| row.0).map(|row| Key::optional(row.1.as_str())).collect();
        let mut values = self.fetch(&keys)?.into_iter();
        for (position, (wanted, path)) in rows.iter().enumerate() {
            let bytes = if *wanted { values.next().flatten() } else { None };
            let Some(bytes) = bytes else { continue };
            let raw = Raw { path, bytes: &bytes };
            match position {
                0 => instance.ipv6 = raw.ipv6_list()?,
                1 => instance.vpc_cidrs = raw.networks()?,
                2 => instance.vpc_cidrs.extend(raw.networks()?),
                _ => instance.services_domain = Some(raw.domain()?),
            }
        }
        if needs.services_domain {
            let region = &instance.region;
            instance.services_domain.get_or_insert_with(|| services_domain(region).to_owned());
        }
        Ok(())
    }
}

/// Types the values of the first round; None when they do not belong to one moment.
fn assemble(values: &[Option<Vec<u8>>]) -> Result<Option<Instance>, Problem> {
    let raw = |index: usize, path| {
        let value: Option<&Vec<u8>> = values.get(index).and_then(Option::as_ref);
        value.map(|bytes| Raw { path, bytes })
    };
    let document = raw(0, DOCUMENT).ok_or_else(|| absent(DOCUMENT))?;
    let mut instance = identity::parse(document)?;
    instance.mac = raw(1, MAC).ok_or_else(|| absent(MAC))?.mac()?;
    instance.local_hostname = raw(3, LOCAL_HOSTNAME).map(|raw| raw.host_name()).transpose()?;
    let local = raw(2, LOCAL_IPV4).map(|raw| raw.ipv4()).transpose()?;
    let consistent = match (local, instance.local_ipv4) {
        (Some(local), Some(document)) => local == document,
        _ => true,
    };
    instance.local_ipv4 = local.or(instance.local_ipv4);
    Ok(consistent.then_some(instance))
}

fn absent(path: &str) -> Problem {
    Problem::new(&pages::METADATA_KEY_MISSING, format!("no value at {path}"))
}

/// The domain of AWS services where the metadata service names none.
fn services_domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}

#[cfg(test)]
mod tests;
