//! Requests to one API server, each with a deadline.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;

use super::access::{Auth, Trust, agent};
use super::error::{ApiError, Refusal};
use super::resources::Resource;
use crate::gather::background;

/// For one request, unless [`Client::within`] says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer that is read.
const BODY_CAP: u64 = 32 << 20;
/// How many objects one page of a list holds.
const PAGE: usize = 500;
const JSON: &str = "application/json";

/// A client of one API server. Clones share connections and what is known about kinds.
#[derive(Debug, Clone)]
pub struct Client {
    server: String,
    agent: ureq::Agent,
    bearer: Option<Secret>,
    timeout: Duration,
    pub(super) resources: Arc<Mutex<BTreeMap<String, Vec<Resource>>>>,
}

/// How a patch is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patch {
    Merge,
    Strategic,
    Json,
}

impl Patch {
    fn media_type(self) -> &'static str {
        match self {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
            Patch::Json => "application/json-patch+json",
        }
    }
}

impl Client {
    /// A client for `https://HOST:PORT`.
    pub fn new(server: &str, trust: &Trust, auth: &Auth) -> Result<Self, Problem> {
        Ok(Client::with_agent(server, agent(trust, auth, None)?, auth))
    }

    pub(super) fn with_agent(server: &str, agent: ureq::Agent, auth: &Auth) -> Self {
        let bearer = match auth {
            Auth::Bearer(token) => Some(token.clone()),
            Auth::None | Auth::Certificate { .. } => None,
        };
        Client {
            server: server.trim_end_matches('/').to_owned(),
            agent,
            bearer,
            timeout: TIMEOUT,
            resources: Arc::default(),
        }
    }

    /// The same client with another deadline for each request.
    pub fn within(&self, timeout: Duration) -> Self {
        Client { timeout, ..self.clone() }
    }

    /// `https://HOST:PORT`
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Reads an object.
    pub fn get(&self, path: &str) -> Result<Value, ApiError> {
        self.json("GET", path, None)
    }

    /// Reads an object; None if there is none.
    pub fn find(&self, path: &str) -> Result<Option<Value>, ApiError> {
        match self.get(path) {
            Err(error) if error.is_not_found() => Ok(None),
            result => result.map(Some),
        }
    }

    /// Reads what is not JSON, such as `/readyz`.
    pub fn text(&self, path: &str) -> Result<String, ApiError> {
        let body = self.send("GET", path, None)?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Reads all objects of a collection, page by page.
    pub fn list(&self, path: &str) -> Result<Vec<Value>, ApiError> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let (mut items, mut next) = (Vec::new(), String::new());
        loop {
            let mut page = self.get(&format!("{path}{separator}limit={PAGE}{next}"))?;
            if let Value::Array(list) = page["items"].take() {
                items.extend(list);
            }
            match page["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => next = format!("&continue={}", encode(token)),
                _ => return Ok(items),
            }
        }
    }

    /// Makes a new object; the path is the collection's.
    pub fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.json("POST", path, Some((JSON, object)))
    }

    /// Replaces an object, or a part of it such as `…/approval`.
    pub fn replace(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.json("PUT", path, Some((JSON, object)))
    }

    pub fn patch(&self, path: &str, kind: Patch, patch: &Value) -> Result<Value, ApiError> {
        self.json("PATCH", path, Some((kind.media_type(), patch)))
    }

    /// Deletes an object and what it owns; false if it was not there.
    pub fn delete(&self, path: &str) -> Result<bool, ApiError> {
        match self.send("DELETE", &format!("{path}?propagationPolicy=Background"), None) {
            Err(error) if error.is_not_found() => Ok(false),
            result => result.map(|_| true),
        }
    }

    /// Server-side apply at a path. Without `force`, a field of another manager is a conflict
    /// whose causes name it.
    pub fn apply_at(
        &self,
        path: &str,
        object: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, ApiError> {
        let path = format!("{path}?fieldManager={}&force={force}", encode(manager));
        self.json("PATCH", &path, Some(("application/apply-patch+yaml", object)))
    }

    /// Server-side apply of an object, whose path follows from its kind.
    pub fn apply(&self, object: &Value, manager: &str, force: bool) -> Result<Value, ApiError> {
        self.apply_at(&self.path_of(object)?, object, manager, force)
    }

    /// A request whose answer is JSON.
    pub fn json(
        &self,
        method: &'static str,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, ApiError> {
        let answer = self.send(method, path, body)?;
        serde_json::from_slice(&answer).map_err(|error| ApiError::Strange {
            request: shown(method, path),
            cause: format!("the answer is not JSON: {error}"),
        })
    }

    /// Sends a request and gives the body of an answer with a status below 300.
    pub fn send(
        &self,
        method: &'static str,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Vec<u8>, ApiError> {
        let request = shown(method, path);
        let unreachable = |cause: String| ApiError::Unreachable { request: request.clone(), cause };
        let prepared = self.prepare(method, path, body).map_err(|error| ApiError::Strange {
            request: request.clone(),
            cause: error.to_string(),
        })?;
        let agent = self.agent.clone();
        let end = Instant::now() + self.timeout;
        let timeout = self.timeout;
        let answer = background::wait_for(end, move || exchange(&agent, prepared, timeout))?;
        let late = || format!("no answer within {} s", timeout.as_secs());
        let (code, answer) = answer.ok_or_else(|| unreachable(late()))?.map_err(unreachable)?;
        tracing::debug!(%request, code, "asked the API server");
        match code {
            200..=299 => Ok(answer),
            code => Err(ApiError::Refused(Refusal::read(&request, code, &answer))),
        }
    }

    fn prepare(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<http::Request<String>, http::Error> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.server))
            .header("accept", "application/json, */*;q=0.5")
            .header("user-agent", concat!("tenon/", env!("CARGO_PKG_VERSION")));
        if let Some(token) = &self.bearer {
            request = request.header("authorization", format!("Bearer {}", token.expose()));
        }
        if let Some((media_type, _)) = body {
            request = request.header("content-type", media_type);
        }
        request.body(body.map(|(_, value)| value.to_string()).unwrap_or_default())
    }
}

fn exchange(
    agent: &ureq::Agent,
    request: http::Request<String>,
    timeout: Duration,
) -> Result<(u16, Vec<u8>), String> {
    let bodiless = request.body().is_empty();
    let mut response = if bodiless {
        let request = agent.configure_request(request.map(|_| ()));
        agent.run(request.timeout_global(Some(timeout)).build())
    } else {
        let request = agent.configure_request(request);
        agent.run(request.timeout_global(Some(timeout)).build())
    }
    .map_err(|error| error.to_string())?;
    let code = response.status().as_u16();
    let mut body = Vec::new();
    let read = response.body_mut().as_reader().take(BODY_CAP).read_to_end(&mut body);
    read.map_err(|error| error.to_string())?;
    Ok((code, body))
}

/// A request as messages name it: without the query.
fn shown(method: &str, path: &str) -> String {
    format!("{method} {}", path.split('?').next().unwrap_or(path))
}

pub(super) use crate::gather::aws::encode;
