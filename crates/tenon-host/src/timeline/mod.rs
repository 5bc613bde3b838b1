//! Where the time of a run went: named spans on one monotonic axis; and, in [`live`], where the
//! time of the whole boot went.
//!
//! A run tells its spans to the journal and keeps no file about them: the journal is there already,
//! has every run of a boot, and a run that changes nothing goes on writing nothing.

pub mod live;

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tenon_core::timeline::{PHASES, PhaseRecord, PhaseSpan};

/// The spans of a run, in the order in which they began.
#[derive(Debug, Clone)]
pub struct Timeline {
    start: Instant,
    spans: Vec<Span>,
}

/// One part of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub name: &'static str,
    pub begin: Duration,
    pub length: Duration,
    /// A few words on what happened: `5 requests, 1 retry`.
    pub note: String,
}

impl Timeline {
    pub fn begin() -> Self {
        Timeline { start: Instant::now(), spans: Vec::new() }
    }

    /// Tells the spans to the journal, in one line. Nobody else reads it, so it is told only to a
    /// service manager.
    pub fn tell(&self, mut record: PhaseRecord) {
        if std::env::var_os("INVOCATION_ID").is_none() {
            return;
        }
        let (now, since) = (clock_gettime(ClockId::Monotonic), self.start.elapsed());
        record.begin_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1000 - signed_micros(since);
        record.spans = self.spans.iter().map(Span::record).collect();
        tracing::info!("{PHASES} {}", json!(record));
    }

    /// Measures one part.
    pub fn span<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let begin = self.start.elapsed();
        let result = work();
        let length = self.start.elapsed() - begin;
        self.spans.push(Span { name, begin, length, note: String::new() });
        result
    }

    /// Adds words to the last span.
    pub fn note(&mut self, note: String) {
        if let Some(span) = self.spans.last_mut() {
            span.note = note;
        }
    }

    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub fn total(&self) -> Duration {
        self.spans.last().map_or(Duration::ZERO, |span| span.begin + span.length)
    }

    pub fn to_json(&self) -> Value {
        let span = |span: &Span| {
            json!({
                "name": span.name,
                "beginUs": micros(span.begin),
                "lengthUs": micros(span.length),
                "note": span.note,
            })
        };
        json!(self.spans.iter().map(span).collect::<Vec<_>>())
    }
}

impl Span {
    fn record(&self) -> PhaseSpan {
        PhaseSpan {
            name: self.name.to_owned(),
            begin_us: signed_micros(self.begin),
            length_us: signed_micros(self.length),
            note: self.note.clone(),
        }
    }
}

fn signed_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_keep_their_order_and_notes() {
        let mut timeline = Timeline::begin();
        assert_eq!(timeline.span("config", || 7), 7);
        timeline.span("facts", || ());
        timeline.note("5 requests".into());
        let names: Vec<_> = timeline.spans().iter().map(|span| span.name).collect();
        assert_eq!(names, ["config", "facts"]);
        assert_eq!(timeline.spans()[1].note, "5 requests");
        assert!(timeline.spans()[1].begin >= timeline.spans()[0].length);
        assert_eq!(timeline.to_json()[1]["note"], "5 requests");
    }
}
