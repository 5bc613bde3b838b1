//! What went wrong with a request, as a value that a caller can match.

use serde_json::Value;
use tenon_core::codes::Page;
use tenon_core::codes::cluster as pages;
use tenon_core::problem::Problem;

/// How much of an answer's own words an error keeps.
const WORDS: usize = 600;

/// Why a request did not do what was asked.
#[derive(Debug, Clone, PartialEq)]
pub enum ApiError {
    /// The API server answered and said no.
    Refused(Refusal),
    /// No answer: name, connection, TLS or time.
    Unreachable { request: String, cause: String },
    /// An answer that no API server gives.
    Strange { request: String, cause: String },
    /// The server knows no such kind.
    UnknownKind { api_version: String, kind: String },
    /// The object cannot be sent at all, or a stop was asked for.
    Other(Problem),
}

/// The API server's `Status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// `PATCH /api/v1/…`
    pub request: String,
    /// The HTTP status: 404, 409, 403, …
    pub code: u16,
    /// The server's word for it: `NotFound`, `Conflict`, `AlreadyExists`.
    pub reason: String,
    pub message: String,
    /// One line per cause, such as a field and the manager that owns it.
    pub causes: Vec<String>,
}

impl Refusal {
    /// Reads a `Status` object; whatever else came back is kept as its first words.
    pub(super) fn read(request: &str, code: u16, body: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let message = match status["message"].as_str() {
            Some(message) => words(message),
            None => words(&String::from_utf8_lossy(body)),
        };
        let causes = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let line = |cause: &Value| match cause["field"].as_str() {
            Some(field) => words(&format!("{field}: {}", text(&cause["message"]))),
            None => words(&text(&cause["message"])),
        };
        Refusal {
            request: request.to_owned(),
            code,
            reason: text(&status["reason"]),
            message,
            causes: causes.iter().map(line).collect(),
        }
    }

    fn page(&self) -> &'static Page {
        match self.code {
            401 | 403 => &pages::API_FORBIDDEN,
            404 => &pages::API_NOT_FOUND,
            409 => &pages::API_CONFLICT,
            _ => &pages::API_REFUSED,
        }
    }
}

impl ApiError {
    /// The status code, when the server gave one.
    pub fn code(&self) -> Option<u16> {
        match self {
            ApiError::Refused(refusal) => Some(refusal.code),
            _ => None,
        }
    }

    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Another manager owns a field, or the object is there already.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// The caller is not known (401) or not allowed (403).
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// True when the same request may well succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            ApiError::Refused(refusal) => matches!(refusal.code, 408 | 429 | 500..=599),
            ApiError::Unreachable { .. } | ApiError::UnknownKind { .. } => true,
            ApiError::Strange { .. } | ApiError::Other(_) => false,
        }
    }

    /// The error in one line.
    pub fn summary(&self) -> String {
        match self {
            ApiError::Refused(it) => format!("{}: {} {}", it.request, it.code, it.message),
            ApiError::Unreachable { request, cause } | ApiError::Strange { request, cause } => {
                format!("{request}: {cause}")
            }
            ApiError::UnknownKind { api_version, kind } => {
                format!("the API server has no kind {kind} in {api_version}")
            }
            ApiError::Other(problem) => problem.to_string(),
        }
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Problem {
        let summary = error.summary();
        match error {
            ApiError::Refused(refusal) => {
                let what = format!("{} was answered with {}", refusal.request, refusal.code);
                let problem = Problem::new(refusal.page(), what).cause(&refusal.message);
                problem.details(refusal.causes)
            }
            ApiError::Unreachable { request, cause } => {
                Problem::new(&pages::API_UNREACHABLE, format!("{request} got no answer"))
                    .cause(cause)
            }
            ApiError::Strange { request, cause } => {
                let what = format!("{request} got an answer that is not understood");
                Problem::new(&pages::API_ANSWER, what).cause(cause)
            }
            ApiError::UnknownKind { .. } => Problem::new(&pages::UNKNOWN_KIND, summary),
            ApiError::Other(problem) => problem,
        }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        ApiError::Other(problem)
    }
}

/// The beginning of a text, on one line.
fn words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(WORDS).collect()
}
