//! Signing, sending and retrying one call within its bound.
//!
//! Only throttling, server errors and transport errors are repeated. A denial is final on the
//! first answer: waiting does not change a policy.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use tenon_core::codes::facts as pages;
use tenon_core::facts::Instance;
use tenon_core::problem::Problem;
use ureq::tls::{RootCerts, TlsConfig};

use super::credentials::{self, Signer};
use super::endpoint::{self, Service};
use crate::gather::background;
use crate::gather::environment::Environment;
use crate::gather::imds::Imds;
use crate::gather::imds::pace::Jitter;
use crate::stop;

/// First and largest pause between attempts, before jitter.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// The largest answer that is read. One page of instance types is below 1 MiB.
const BODY_CAP: u64 = 8 << 20;
/// How much of an answer's own words an error keeps.
const WORDS: usize = 400;

/// What calls need besides their own parameters. Asks for nothing before the first call.
#[derive(Debug)]
pub struct Cloud<'a> {
    region: String,
    account: String,
    environment: Environment,
    imds: Option<&'a mut Imds>,
    signer: Option<Signer>,
}

/// One request, before it is signed.
#[derive(Debug, Clone)]
pub struct Call {
    pub service: Service,
    /// As policies name it: `eks:DescribeCluster`.
    pub action: &'static str,
    pub method: &'static str,
    pub path: String,
    pub body: String,
    /// For everything: credentials, attempts and pauses.
    pub bound: Duration,
}

/// What came back.
struct Answer {
    status: u16,
    body: String,
}

/// What to do after an attempt.
enum Verdict {
    Done(String),
    Again(String),
    Final(Problem),
}

impl<'a> Cloud<'a> {
    /// Calls for this instance, signed by the variables or, if `imds` is given, by its role.
    pub fn new(instance: &Instance, environment: Environment, imds: Option<&'a mut Imds>) -> Self {
        let (region, account) = (instance.region.clone(), instance.account.clone());
        Cloud { region, account, environment, imds, signer: None }
    }

    /// The base URL of a service in this region.
    pub(super) fn url(&self, service: Service) -> Result<String, Problem> {
        endpoint::url(service, &self.region, &self.environment)
    }

    pub(super) fn region(&self) -> &str {
        &self.region
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Makes a call and gives the body of its answer.
    pub fn call(&mut self, call: &Call) -> Result<String, Problem> {
        let end = Instant::now() + call.bound;
        let signer = self.signer(end)?;
        let url = self.url(call.service)?;
        let most = self.environment.get("AWS_MAX_ATTEMPTS").and_then(|text| text.parse().ok());
        let (mut ceiling, mut jitter) = (PAUSE.0, Jitter::seeded());
        let (mut first, mut attempts) = (None, 0_u32);
        loop {
            attempts += 1;
            let cause = match self.attempt(call, &url, &signer, end)? {
                Verdict::Done(body) => return Ok(body),
                Verdict::Final(problem) => return Err(problem),
                Verdict::Again(cause) => cause,
            };
            tracing::debug!(action = call.action, attempts, cause, "repeating the call");
            let pause = jitter.below(ceiling);
            ceiling = (ceiling * 2).min(PAUSE.1);
            let spent = most.is_some_and(|most: u32| attempts >= most.max(1));
            if spent || Instant::now() + pause >= end {
                return Err(given_up(call, first, cause));
            }
            first.get_or_insert(cause);
            stop::sleep(pause)?;
        }
    }

    /// Who signs, asked for once.
    pub(super) fn signer(&mut self, end: Instant) -> Result<Signer, Problem> {
        if let Some(signer) = &self.signer {
            return Ok(signer.clone());
        }
        let given = match credentials::from_variables(&self.environment) {
            None => credentials::from_container(&self.environment, end)?,
            given => given,
        };
        let signer = match (given, &mut self.imds) {
            (Some(signer), _) => signer,
            (None, Some(imds)) => credentials::from_role(imds, &self.account, end)?,
            (None, None) => {
                return Err(Problem::new(&pages::NO_CREDENTIALS, "AWS_ACCESS_KEY_ID is not set"));
            }
        };
        Ok(self.signer.insert(signer).clone())
    }

    fn attempt(
        &self,
        call: &Call,
        url: &str,
        signer: &Signer,
        end: Instant,
    ) -> Result<Verdict, Problem> {
        let request = signed(call, url, &self.region, signer, SystemTime::now())?;
        let left = end.saturating_duration_since(Instant::now());
        let agent = agent(&self.environment, url, left);
        let answer = background::wait_for(end, move || send(&agent, request))?;
        Ok(match answer {
            Some(Ok(answer)) => judge(call, &signer.identity, answer),
            Some(Err(cause)) => Verdict::Again(cause),
            None => Verdict::Again("no answer in time".into()),
        })
    }
}

fn given_up(call: &Call, first: Option<String>, last: String) -> Problem {
    let mut problem =
        Problem::new(&pages::CLOUD_UNREACHABLE, format!("{} gave no usable answer", call.action));
    problem.causes.extend(first);
    problem.causes.push(last);
    problem.causes.dedup();
    problem
}

/// The request with its signature.
pub fn signed(
    call: &Call,
    url: &str,
    region: &str,
    signer: &Signer,
    now: SystemTime,
) -> Result<http::Request<String>, Problem> {
    let bug = |error: &dyn std::error::Error| {
        Problem::new(&tenon_core::codes::usage::BUG, "signing a request").cause(error)
    };
    let identity = signer.credentials.clone().into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(call.service.name())
        .time(now)
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| bug(&error))?
        .into();
    let mut request = http::Request::builder()
        .method(call.method)
        .uri(format!("{url}{}", call.path))
        .header("user-agent", concat!("tenon/", env!("CARGO_PKG_VERSION")))
        .body(call.body.clone())
        .map_err(|error| bug(&error))?;
    if !call.body.is_empty() {
        let form =
            http::HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8");
        request.headers_mut().insert("content-type", form);
    }
    let headers = request.headers().iter().filter(|(name, _)| *name != "user-agent");
    let headers: Vec<(&str, &str)> =
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
    let body = SignableBody::Bytes(call.body.as_bytes());
    let uri = request.uri().to_string();
    let signable = SignableRequest::new(call.method, uri, headers.into_iter(), body)
        .map_err(|error| bug(&error))?;
    let (instructions, _) = sign(signable, &parameters).map_err(|error| bug(&error))?.into_parts();
    instructions.apply_to_request_http1x(&mut request);
    Ok(request)
}

pub(super) fn agent(environment: &Environment, url: &str, left: Duration) -> ureq::Agent {
    trusting_agent(environment, url, left, RootCerts::WebPki)
}

/// A client for one address, with the proxy of the variables and the roots that it trusts.
pub(crate) fn trusting_agent(
    environment: &Environment,
    url: &str,
    left: Duration,
    roots: RootCerts,
) -> ureq::Agent {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        TlsConfig::builder().unversioned_rustls_crypto_provider(provider).root_certs(roots).build();
    ureq::Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy(environment, url))
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(left))
        .timeout_connect(Some(left.min(Duration::from_secs(5))))
        .build()
        .new_agent()
}

/// The proxy that the variables name for this address. A bad one is left out: the call then
/// shows by its own failure what is unreachable.
pub(crate) fn proxy(environment: &Environment, url: &str) -> Option<ureq::Proxy> {
    let names: &[&str] = match url.starts_with("https://") {
        true => &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        false => &["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"],
    };
    let parsed = ureq::Proxy::new(environment.first(names)?).ok()?;
    let mut builder =
        ureq::Proxy::builder(parsed.protocol()).host(parsed.host()).port(parsed.port());
    if let Some(name) = parsed.username() {
        builder = builder.username(name);
    }
    if let Some(password) = parsed.password() {
        builder = builder.password(password);
    }
    for entry in environment.first(&["NO_PROXY", "no_proxy"]).unwrap_or_default().split(',') {
        builder = builder.no_proxy(entry.trim());
    }
    builder.build().ok()
}

fn send(agent: &ureq::Agent, request: http::Request<String>) -> Result<Answer, String> {
    let mut response = agent.run(request).map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let mut body = String::new();
    let read = response.body_mut().as_reader().take(BODY_CAP).read_to_string(&mut body);
    read.map_err(|error| error.to_string())?;
    Ok(Answer { status, body })
}

fn judge(call: &Call, identity: &str, answer: Answer) -> Verdict {
    let words = words(&answer.body);
    let says = |names: &[&str]| names.iter().any(|name| answer.body.contains(name));
    let action = call.action;
    match answer.status {
        200 => Verdict::Done(answer.body),
        status @ (429 | 500..=599) => Verdict::Again(format!("status {status}: {words}")),
        _ if says(&["Throttl", "RequestLimitExceeded", "TooManyRequests"]) => Verdict::Again(words),
        401 | 403 => Verdict::Final(
            Problem::new(&pages::CLOUD_DENIED, format!("{identity} may not call {action}"))
                .fix(format!(
                    "allow {action} in the policy of {identity} (and in the policy of the VPC \
                     endpoint, if there is one), or fill in the config so that the call is not needed"
                ))
                .cause(words),
        ),
        status => Verdict::Final(
            Problem::new(&pages::CLOUD_REFUSED, format!("{action} was refused with status {status}"))
                .cause(words),
        ),
    }
}

/// The beginning of an answer's own words, on one line.
pub(super) fn words(body: &str) -> String {
    let line = body.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(WORDS).collect()
}
