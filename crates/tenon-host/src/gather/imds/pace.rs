//! When to ask again: exponential backoff with full jitter inside one deadline for the run.
//!
//! Keeps the first and the last cause for the final error, and tells the story once per change
//! of state rather than once per attempt.

use std::time::{Duration, Instant, SystemTime};

use tenon_core::problem::Problem;

use crate::stop;

/// The bounds of all waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For everything together.
    pub whole: Duration,
    /// For one attempt of one request.
    pub attempt: Duration,
    /// For a mandatory value that is not there yet.
    pub missing: Duration,
    /// First and largest pause between attempts.
    pub pause: (Duration, Duration),
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            whole: Duration::from_secs(120),
            attempt: Duration::from_secs(2),
            missing: Duration::from_secs(20),
            pause: (Duration::from_millis(50), Duration::from_secs(1)),
        }
    }
}

/// The clock of one run.
#[derive(Debug)]
pub struct Pace {
    patience: Patience,
    end: Instant,
    ceiling: Duration,
    jitter: Jitter,
    pub causes: Causes,
    pub retries: u32,
}

/// What went wrong, for the final error.
#[derive(Debug, Default)]
pub struct Causes {
    pub first: Option<String>,
    pub last: Option<String>,
}

impl Pace {
    pub fn new(patience: Patience) -> Self {
        Pace {
            patience,
            end: Instant::now() + patience.whole,
            ceiling: patience.pause.0,
            jitter: Jitter::seeded(),
            causes: Causes::default(),
            retries: 0,
        }
    }

    /// The deadline of an attempt that begins now.
    pub fn attempt(&self) -> Instant {
        (Instant::now() + self.patience.attempt).min(self.end)
    }

    /// Gives what follows a deadline of its own.
    pub fn restart(&mut self, bound: Duration) {
        self.end = Instant::now() + bound;
    }

    /// Notes progress: the next pause is short again.
    pub fn progress(&mut self, who: &str) {
        self.ceiling = self.patience.pause.0;
        if self.causes.last.take().is_some() {
            tracing::info!(endpoint = who, "metadata service answers");
        }
    }

    /// Waits before the next attempt; false when the deadline would pass meanwhile.
    pub fn pause(
        &mut self,
        who: &str,
        cause: &str,
        at_least: Option<Duration>,
    ) -> Result<bool, Problem> {
        self.note(who, cause);
        let pause = self.jitter.below(self.ceiling).max(at_least.unwrap_or_default());
        self.ceiling = (self.ceiling * 2).min(self.patience.pause.1);
        // An attempt with little time left would only hide the cause behind its own lateness.
        if Instant::now() + pause + self.patience.attempt / 2 >= self.end {
            return Ok(false);
        }
        self.retries += 1;
        stop::sleep(pause)?;
        Ok(true)
    }

    /// Records a cause and tells it if it is news.
    pub fn note(&mut self, who: &str, cause: &str) {
        if self.causes.last.as_deref() != Some(cause) {
            tracing::info!(endpoint = who, cause, "waiting for the metadata service");
            self.causes.first.get_or_insert_with(|| cause.to_owned());
            self.causes.last = Some(cause.to_owned());
        }
    }
}

/// Numbers that spread a fleet's retries. Not for secrets: the seed must never block, and early
/// in a boot the kernel's random pool may.
#[derive(Debug)]
pub struct Jitter(u64);

impl Jitter {
    pub fn seeded() -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Jitter(
            u64::from(now.subsec_nanos())
                ^ now.as_secs() << 30
                ^ u64::from(std::process::id()) << 48,
        )
    }

    /// A duration between zero and `ceiling`.
    pub fn below(&mut self, ceiling: Duration) -> Duration {
        let nanos = u64::try_from(ceiling.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.next() % nanos.saturating_add(1))
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_lie_below_a_ceiling_that_doubles_to_its_bound() {
        let pause = (Duration::from_micros(50), Duration::from_micros(300));
        let mut pace = Pace::new(Patience { pause, ..Patience::default() });
        let mut ceilings = Vec::new();
        for _ in 0..5 {
            ceilings.push(pace.ceiling.as_micros());
            assert!(pace.pause("here", "refused", None).unwrap());
        }
        assert_eq!(ceilings, [50, 100, 200, 300, 300]);
        assert_eq!(pace.retries, 5);
        pace.progress("here");
        assert_eq!(pace.ceiling, pause.0);
    }

    #[test]
    fn a_pause_never_passes_the_deadline() {
        let whole = Duration::from_secs(5);
        let mut pace = Pace::new(Patience { whole, ..Patience::default() });
        let began = Instant::now();
        assert!(!pace.pause("here", "slow down", Some(Duration::from_secs(7))).unwrap());
        assert!(began.elapsed() < whole);
    }

    #[test]
    fn first_and_last_cause_are_kept() {
        let mut pace = Pace::new(Patience::default());
        for cause in ["refused", "refused", "no answer", "500"] {
            pace.note("here", cause);
        }
        assert_eq!(pace.causes.first.as_deref(), Some("refused"));
        assert_eq!(pace.causes.last.as_deref(), Some("500"));
    }

    #[test]
    fn jitter_fills_its_range() {
        let mut jitter = Jitter(1);
        let drawn: Vec<_> =
            (0..200).map(|_| jitter.below(Duration::from_nanos(3)).as_nanos()).collect();
        for value in 0..=3 {
            assert!(drawn.contains(&value), "{value}");
        }
        assert!(drawn.iter().all(|value| *value <= 3));
    }
}
