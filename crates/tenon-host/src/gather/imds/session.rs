//! The session: one token for the whole run, replaced when the service has forgotten it.

use tenon_core::codes::facts as pages;
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;

use super::fetch::host;
use super::http::Answer;
use super::lane::Trouble;
use super::values::{self, Raw};
use super::{Imds, Session};

/// Life of the session token. Longer than any run, short enough to be worthless afterwards.
const TOKEN_SECONDS: u32 = 300;
/// How often a refused token is replaced.
const TOKEN_REFRESHES: u32 = 3;
/// How many attempts may open a connection and then hear nothing before the hop limit is blamed.
pub(super) const SILENT_ATTEMPTS: u32 = 10;

impl Imds {
    /// Gets the token, once; every later request carries it.
    pub(super) fn ensure_session(&mut self) -> Result<(), Problem> {
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

    pub(super) fn replace_token(&mut self) -> Result<(), Problem> {
        self.refreshes += 1;
        if self.refreshes > TOKEN_REFRESHES {
            return Err(self.final_problem(&pages::METADATA_TOKEN_REFUSED, "api/token"));
        }
        self.session = Session::Closed;
        Ok(())
    }
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
