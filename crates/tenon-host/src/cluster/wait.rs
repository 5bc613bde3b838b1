//! Looks until it is so, and says what was seen last when the time is over.

use std::time::{Duration, Instant};

use tenon_core::codes::cluster::API_WAIT;
use tenon_core::problem::Problem;

use super::ApiError;
use crate::stop;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// What one look found.
#[derive(Debug, Clone, PartialEq)]
pub enum Look<T> {
    Ready(T),
    /// Not yet, and what was seen instead.
    NotYet(String),
}

/// Looks again and again. An error that may pass counts as "not yet", any other ends the wait.
/// `what` completes "waited … until".
pub fn wait_until<T>(
    what: &str,
    patience: Duration,
    mut look: impl FnMut() -> Result<Look<T>, ApiError>,
) -> Result<T, Problem> {
    let end = Instant::now() + patience;
    let mut first: Option<String> = None;
    let mut told = String::new();
    loop {
        let seen = match look() {
            Ok(Look::Ready(found)) => return Ok(found),
            Ok(Look::NotYet(seen)) => seen,
            Err(error) if error.is_transient() => error.summary(),
            Err(error) => return Err(error.into()),
        };
        // One line per change of state, not per attempt.
        if seen != told {
            tracing::info!(%seen, "waiting until {what}");
            told.clone_from(&seen);
        }
        let first = first.get_or_insert_with(|| seen.clone());
        if Instant::now() + PAUSE >= end {
            let waited = format!("waited {} s until {what}", patience.as_secs());
            let mut problem = Problem::new(&API_WAIT, waited);
            if *first != seen {
                problem = problem.cause(format!("seen first: {first}"));
            }
            return Err(problem.cause(format!("seen last: {seen}")));
        }
        stop::sleep(PAUSE)?;
    }
}
