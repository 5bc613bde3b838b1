//! The instance metadata service: version 2, one token, few requests, one deadline.
//!
//! ```text
//! endpoint  where to ask        http      whole answers or none
//! lane      one connection      pace      when to ask again
//! values    typed values        identity  the identity document
//! ```
//!
//! Two rounds, because the config decides what else is needed and may itself come from here:
//! [`Imds::first_round`] gives what every node needs and the user data, [`Imds::second_round`]
//! the rest. Both use one token and, where the service keeps connections alive, one connection
//! on which the requests of a round are sent together.

pub mod endpoint;
mod http;
mod identity;
mod lane;
pub mod pace;
pub mod values;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tenon_core::codes::facts as pages;
use tenon_core::facts::Instance;
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;

use self::endpoint::Endpoint;
use self::http::Answer;
use self::lane::{Lane, Trouble};
use self::pace::{Pace, Patience};
use self::values::Raw;
use super::environment::Environment;

/// Life of the session token. Longer than any run, short enough to be worthless afterwards.
const TOKEN_SECONDS: u32 = 300;
/// How often a refused token is replaced.
const TOKEN_REFRESHES: u32 = 3;
/// How many attempts may open a connection and then hear nothing before the hop limit is blamed.
const SILENT_ATTEMPTS: u32 = 10;
/// Connections at a time, where the service closes each after one answer.
const LANES: usize = 4;
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

/// What to do about one answer.
enum Verdict {
    Found(Option<Vec<u8>>),
    NewToken,
    Again { cause: String, wait: Option<Duration> },
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
                _ => instance.services_domain = Some(raw.domain()?),
            }
        }
        if needs.services_domain {
            let region = &instance.region;
            instance.services_domain.get_or_insert_with(|| services_domain(region).to_owned());
        }
        Ok(())
    }

    /// Fetches values, in the order of the keys. None: an optional value that is not there.
    pub fn fetch(&mut self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Problem> {
        let mut found: Vec<Option<Option<Vec<u8>>>> = vec![None; keys.len()];
        loop {
            let pending: Vec<usize> = (0..keys.len()).filter(|i| found[*i].is_none()).collect();
            if pending.is_empty() {
                return Ok(found.into_iter().flatten().collect());
            }
            self.ensure_session()?;
            let requests: Vec<String> = pending.iter().map(|i| self.get(&keys[*i].path)).collect();
            let answers = self.exchange(&requests);
            let mut setback = None;
            let mut new_token = false;
            for (index, answer) in pending.into_iter().zip(answers) {
                match self.judge(&keys[index], answer)? {
                    Verdict::Found(value) => found[index] = Some(value),
                    Verdict::NewToken => new_token = true,
                    Verdict::Again { cause, wait } => setback = setback.max(Some((wait, cause))),
                }
            }
            if new_token {
                self.replace_token()?;
            } else if let Some((wait, cause)) = setback {
                self.pause(&cause, wait)?;
            } else {
                self.missing_since = None;
                self.pace.progress(&host(&self.endpoints, self.chosen));
            }
        }
    }

    /// Decides what an answer to a GET means.
    fn judge(&mut self, key: &Key, answer: Result<Answer, Trouble>) -> Result<Verdict, Problem> {
        let path = &key.path;
        let again = |cause: String, wait| Ok(Verdict::Again { cause, wait });
        let answer = match answer {
            Ok(answer) => answer,
            Err(Trouble::Stopped(problem)) => return Err(problem),
            Err(Trouble::TooLarge) => {
                return Err(self.final_problem(&pages::METADATA_TOO_LARGE, path));
            }
            Err(Trouble::Passing(cause) | Trouble::Silent(cause)) => return again(cause, None),
        };
        match answer.status {
            200 => Ok(Verdict::Found(Some(answer.body))),
            401 => Ok(Verdict::NewToken),
            404 if !key.mandatory => Ok(Verdict::Found(None)),
            404 => {
                let since = *self.missing_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= self.patience.missing {
                    return Err(self.final_problem(&pages::METADATA_KEY_MISSING, path));
                }
                again(format!("no value at {path} yet"), None)
            }
            300..=399 => Err(self.final_problem(&pages::METADATA_REDIRECT, path)),
            status @ (408 | 429 | 500..=599) => {
                again(format!("status {status} for {path}"), answer.retry_after)
            }
            status => {
                let problem = self.final_problem(&pages::METADATA_REFUSED, path);
                Err(problem.cause(format!("status {status}")))
            }
        }
    }

    /// Gets the token, once; every later request carries it.
    fn ensure_session(&mut self) -> Result<(), Problem> {
        while matches!(self.session, Session::Closed) {
            let endpoint = self.endpoint();
            let request = format!(
                "PUT {}/latest/api/token HTTP/1.1\r\nHost: {}\r\nUser-Agent: tenon\r\n\
                 X-aws-ec2-metadata-token-ttl-seconds: {TOKEN_SECONDS}\r\nContent-Length: 0\r\n\r\n",
                endpoint.prefix,
                endpoint.host(),
            );
            let answer = self.exchange(&[request]).pop();
            match answer.unwrap_or(Err(Trouble::Passing("nothing was sent".into()))) {
                Ok(answer) => self.token_answer(answer)?,
                Err(Trouble::Stopped(problem)) => return Err(problem),
                Err(Trouble::TooLarge) => {
                    return Err(self.final_problem(&pages::METADATA_TOO_LARGE, "api/token"));
                }
                Err(Trouble::Silent(cause)) => {
                    self.silent += 1;
                    let who = host(&self.endpoints, self.chosen);
                    if self.silent >= SILENT_ATTEMPTS || !self.pace.pause(&who, &cause, None)? {
                        return Err(self.final_problem(&pages::METADATA_HOP_LIMIT, "api/token"));
                    }
                }
                Err(Trouble::Passing(cause)) => self.pause(&cause, None)?,
            }
        }
        Ok(())
    }

    fn token_answer(&mut self, answer: Answer) -> Result<(), Problem> {
        match answer.status {
            200 => {
                self.session = Session::Token(token(&answer.body)?);
                Ok(())
            }
            403 => Err(self.final_problem(&pages::METADATA_DISABLED, "api/token")),
            404 | 405 if self.allow_version_1 => {
                tracing::warn!(
                    "the metadata service knows no tokens; version 1 is used as allowed"
                );
                self.session = Session::Version1;
                Ok(())
            }
            404 | 405 => Err(self.final_problem(&pages::METADATA_NO_TOKENS, "api/token")),
            300..=399 => Err(self.final_problem(&pages::METADATA_REDIRECT, "api/token")),
            status @ (408 | 429 | 500..=599) => {
                self.pause(&format!("status {status} for api/token"), answer.retry_after)
            }
            status => {
                let problem = self.final_problem(&pages::METADATA_REFUSED, "api/token");
                Err(problem.cause(format!("status {status}")))
            }
        }
    }

    fn replace_token(&mut self) -> Result<(), Problem> {
        self.refreshes += 1;
        if self.refreshes > TOKEN_REFRESHES {
            return Err(self.final_problem(&pages::METADATA_TOKEN_REFUSED, "api/token"));
        }
        self.session = Session::Closed;
        Ok(())
    }

    /// Waits before another attempt, or gives up with the causes.
    fn pause(&mut self, cause: &str, wait: Option<Duration>) -> Result<(), Problem> {
        let who = host(&self.endpoints, self.chosen);
        if self.pace.pause(&who, cause, wait)? {
            return Ok(());
        }
        let what = format!("metadata service at {who} gave no usable answer");
        Err(self.with_causes(Problem::new(&pages::METADATA_UNREACHABLE, what)))
    }

    /// The problem that ends the conversation at once.
    fn final_problem(&self, page: &'static tenon_core::codes::Page, path: &str) -> Problem {
        let who = host(&self.endpoints, self.chosen);
        self.with_causes(Problem::new(page, format!("metadata service at {who}, path {path}")))
    }

    fn with_causes(&self, mut problem: Problem) -> Problem {
        let causes = &self.pace.causes;
        problem.causes.extend(causes.first.iter().chain(&causes.last).cloned());
        problem.causes.dedup();
        problem
    }

    fn get(&self, path: &str) -> String {
        let endpoint = self.endpoint();
        let (prefix, host) = (&endpoint.prefix, endpoint.host());
        let token = match &self.session {
            Session::Token(token) => format!("X-aws-ec2-metadata-token: {}\r\n", token.expose()),
            Session::Closed | Session::Version1 => String::new(),
        };
        format!(
            "GET {prefix}/latest/{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: tenon\r\n{token}\r\n"
        )
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoints[self.chosen.unwrap_or(0)]
    }

    /// Sends requests and gives an answer or a trouble for each; the result is shorter when the
    /// service closed the connection in between, and the rest is to be asked again.
    fn exchange(&mut self, requests: &[String]) -> Vec<Result<Answer, Trouble>> {
        let deadline = self.pace.attempt();
        if self.keep_alive {
            self.pipelined(requests, deadline)
        } else {
            self.parallel(requests, deadline)
        }
    }

    /// All requests in one write on one connection, answers in their order.
    fn pipelined(
        &mut self,
        requests: &[String],
        deadline: Instant,
    ) -> Vec<Result<Answer, Trouble>> {
        let text = requests.concat();
        let reused = self.idle.is_some();
        let (lane, first) = match self.begin(&text, requests.len(), deadline) {
            // The service may have closed an idle connection at any time; that is no failure.
            Err(Trouble::Passing(_)) if reused => match self.begin(&text, requests.len(), deadline)
            {
                Ok(pair) => pair,
                Err(trouble) => return vec![Err(trouble)],
            },
            Err(trouble) => return vec![Err(trouble)],
            Ok(pair) => pair,
        };
        self.keep_alive = first.keep_alive;
        let (mut lane, mut answers) = (lane, vec![Ok(first)]);
        while self.keep_alive && answers.len() < requests.len() {
            let answer = lane.receive(deadline);
            self.keep_alive = answer.as_ref().map_or(true, |answer| answer.keep_alive);
            let broken = answer.is_err();
            answers.push(answer);
            if broken {
                return answers;
            }
        }
        self.idle = self.keep_alive.then_some(lane);
        answers
    }

    /// Sends on the idle connection or a new one, and waits for the first answer.
    fn begin(
        &mut self,
        text: &str,
        count: usize,
        deadline: Instant,
    ) -> Result<(Lane, Answer), Trouble> {
        let mut lane = match self.idle.take() {
            Some(lane) => lane,
            None => self.open(deadline)?,
        };
        self.requests += u32::try_from(count).unwrap_or(u32::MAX);
        lane.send(text.as_bytes(), deadline)?;
        let answer = lane.receive(deadline)?;
        Ok((lane, answer))
    }

    /// One connection for each of the first few requests; all are sent before any is awaited.
    fn parallel(&mut self, requests: &[String], deadline: Instant) -> Vec<Result<Answer, Trouble>> {
        let mut lanes = Vec::new();
        for request in requests.iter().take(LANES) {
            let opened = self.open(deadline).and_then(|mut lane| {
                lane.send(request.as_bytes(), deadline)?;
                Ok(lane)
            });
            self.requests += 1;
            lanes.push(opened);
        }
        lanes.into_iter().map(|lane| lane.and_then(|mut lane| lane.receive(deadline))).collect()
    }

    fn open(&mut self, deadline: Instant) -> Result<Lane, Trouble> {
        let addresses: Vec<SocketAddr> = match self.chosen {
            Some(index) => vec![self.endpoints[index].address],
            None => self.endpoints.iter().map(|endpoint| endpoint.address).collect(),
        };
        let (index, lane) = Lane::open(&addresses, deadline)?;
        self.chosen.get_or_insert(index);
        Ok(lane)
    }
}

/// The name of the service in messages: the endpoint that answered, else all that are tried.
fn host(endpoints: &[Endpoint], chosen: Option<usize>) -> String {
    let hosts: Vec<_> = match chosen {
        Some(index) => vec![endpoints[index].host()],
        None => endpoints.iter().map(Endpoint::host).collect(),
    };
    hosts.join(" or ")
}

/// Types the values of the first round; None when they do not belong to one moment.
fn assemble(values: &[Option<Vec<u8>>]) -> Result<Option<Instance>, Problem> {
    let raw = |index: usize, path| {
        let value: Option<&Vec<u8>> = values.get(index).and_then(Option::as_ref);
        value.map(|bytes| Raw { path, bytes })
    };
    let absent = |path| Problem::new(&pages::METADATA_KEY_MISSING, format!("no value at {path}"));
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

/// Types a token. Its content is never shown.
fn token(body: &[u8]) -> Result<Secret, Problem> {
    let raw = Raw { path: "api/token", bytes: body };
    let text = std::str::from_utf8(body).unwrap_or_default().trim();
    let graphic = text.bytes().all(|byte| byte.is_ascii_graphic());
    if values::looks_like_html(body) {
        return Err(raw.refuse("a token"));
    }
    if text.is_empty() || text.len() > 1024 || !graphic {
        return Err(Problem::new(
            &pages::METADATA_VALUE,
            "metadata value api/token is not a token",
        ));
    }
    Ok(Secret::new(text))
}

/// The domain of AWS services where the metadata service names none.
fn services_domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}

#[cfg(test)]
mod tests;
