//! Values by their paths: asked until they are there, or until there is a reason to stop.

use std::time::{Duration, Instant};

use tenon_core::codes::Page;
use tenon_core::codes::facts as pages;
use tenon_core::problem::Problem;

use super::endpoint::Endpoint;
use super::http::Answer;
use super::lane::Trouble;
use super::{Imds, Key};

/// What to do about one answer.
enum Verdict {
    Found(Option<Vec<u8>>),
    NewToken,
    Again { cause: String, wait: Option<Duration> },
}

impl Imds {
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

    /// Waits before another attempt, or gives up with the causes.
    pub(super) fn pause(&mut self, cause: &str, wait: Option<Duration>) -> Result<(), Problem> {
        let who = host(&self.endpoints, self.chosen);
        if self.pace.pause(&who, cause, wait)? {
            return Ok(());
        }
        let what = format!("metadata service at {who} gave no usable answer");
        Err(self.with_causes(Problem::new(&pages::METADATA_UNREACHABLE, what)))
    }

    /// The problem that ends the conversation at once.
    pub(super) fn final_problem(&self, page: &'static Page, path: &str) -> Problem {
        let who = host(&self.endpoints, self.chosen);
        self.with_causes(Problem::new(page, format!("metadata service at {who}, path {path}")))
    }

    fn with_causes(&self, mut problem: Problem) -> Problem {
        let causes = &self.pace.causes;
        problem.causes.extend(causes.first.iter().chain(&causes.last).cloned());
        problem.causes.dedup();
        problem
    }
}

/// The name of the service in messages: the endpoint that answered, else all that are tried.
pub(super) fn host(endpoints: &[Endpoint], chosen: Option<usize>) -> String {
    let hosts: Vec<_> = match chosen {
        Some(index) => vec![endpoints[index].host()],
        None => endpoints.iter().map(Endpoint::host).collect(),
    };
    hosts.join(" or ")
}
