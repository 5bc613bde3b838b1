//! Where the time of a boot went: spans on one monotonic axis, from launch to Ready.
//!
//! ```text
//! journal   lines of the journal → registration, Ready, image pulls, Tenon's own phases
//! build     what was gathered on a node → Boot
//! chain     what each span waited for: blame and critical chain
//! what_if   the same boot with something left out, as an estimate
//! compare   several boots side by side
//! text, picture, page   for terminals, as SVG, as HTML
//! ```
//!
//! The axis is the kernel's monotonic clock. A wall clock that is set during a boot is marked on
//! the axis, and nothing is placed by it but the launch, which no other clock has seen.

mod build;
pub mod chain;
pub mod compare;
mod journal;
mod page;
mod picture;
mod text;
pub mod what_if;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::codes::timeline::TIMELINE_FILE;
use crate::problem::{Place, Problem};

pub use build::{Sources, Stamps, UnitTimes};
pub use page::html;
pub use picture::svg;
pub use text::{compare as compare_text, text};

pub const SCHEMA: &str = "tenon.timeline/1";
/// Stands in front of a [`PhaseRecord`] in the journal.
pub const PHASES: &str = "tenon.phases/1";

/// No boot takes a year; what is farther away is cut there, so that sums stay small.
const FARTHEST_US: i64 = 365 * 86_400 * 1_000_000;

/// The boot of one node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Boot {
    pub schema: String,
    /// Name of the Node object, as far as it is known.
    #[serde(default)]
    pub node: String,
    #[serde(default)]
    pub instance_type: String,
    /// What happened at 0: `kernel`, or `userspace` where the kernel is another machine's.
    pub origin: String,
    /// In the order in which they began.
    pub spans: Vec<Span>,
    /// When the service manager had nothing left to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_us: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_us: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_us: Option<i64>,
    #[serde(default)]
    pub clock_steps: Vec<ClockStep>,
    /// What could not be seen, and why.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Set when this is no boot that happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
}

/// Who spent the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Launch, firmware, boot loader, kernel, initrd, the manager's own start.
    Stage,
    Unit,
    /// A part of a run of Tenon.
    Phase,
    Kubelet,
    Image,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Stage, Kind::Unit, Kind::Phase, Kind::Kubelet, Kind::Image];

    pub fn word(self) -> &'static str {
        match self {
            Kind::Stage => "stage",
            Kind::Unit => "unit",
            Kind::Phase => "tenon",
            Kind::Kubelet => "kubelet",
            Kind::Image => "image pull",
        }
    }
}

/// One stretch of the axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Unique in its boot.
    pub name: String,
    pub kind: Kind,
    pub begin_us: i64,
    pub end_us: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Spans whose end this one waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The span that began this one while it lasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<String>,
}

impl Span {
    pub fn new(kind: Kind, name: impl Into<String>, begin_us: i64, end_us: i64) -> Self {
        Span {
            name: name.into(),
            kind,
            begin_us,
            end_us: end_us.max(begin_us),
            note: String::new(),
            after: Vec::new(),
            during: None,
        }
    }

    pub fn length_us(&self) -> i64 {
        self.end_us.saturating_sub(self.begin_us)
    }
}

/// A moment at which the wall clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClockStep {
    /// Where it was noticed; it happened at most one journal line earlier.
    pub at_us: i64,
    /// How far the wall clock went beyond the monotonic one.
    pub by_us: i64,
}

/// What a boot that did not happen rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    pub what_if: Vec<String>,
    /// Names of the spans that were left out.
    pub left_out: Vec<String>,
    pub saves_us: i64,
}

/// What a run of Tenon tells the journal about its own time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PhaseRecord {
    /// On the monotonic clock of the machine.
    pub begin_us: i64,
    pub node: String,
    pub instance_type: String,
    /// `pendingTime` of the identity document.
    pub launched: Option<String>,
    pub spans: Vec<PhaseSpan>,
    /// Units that the run started or restarted.
    pub started: Vec<String>,
}

/// One part of that run, from its begin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PhaseSpan {
    pub name: String,
    pub begin_us: i64,
    pub length_us: i64,
    pub note: String,
}

impl Boot {
    /// Puts what was gathered on a node onto one axis.
    pub fn of(sources: &Sources) -> Boot {
        build::build(sources)
    }

    /// Reads a saved timeline; `name` is how messages call the file.
    pub fn read(bytes: &[u8], name: &str) -> Result<Boot, Problem> {
        let place = |line: usize, column: usize| Place {
            source: name.to_owned(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            ..Place::default()
        };
        let refuse = |what: &str, at: Place| Problem::new(&TIMELINE_FILE, what).at(at);
        let mut boot: Boot = serde_json::from_slice(bytes).map_err(|error| {
            refuse("the file does not hold a timeline", place(error.line(), error.column()))
        })?;
        if boot.schema != SCHEMA {
            return Err(refuse("the file has another schema", place(0, 0)));
        }
        if boot.spans.is_empty() {
            return Err(refuse("the timeline has no spans", place(0, 0)));
        }
        boot.sort();
        Ok(boot)
    }

    /// Brings the spans into their order; [`chain`] relies on it.
    fn sort(&mut self) {
        let near = |us: i64| us.clamp(-FARTHEST_US, FARTHEST_US);
        for span in &mut self.spans {
            span.begin_us = near(span.begin_us);
            span.end_us = near(span.end_us).max(span.begin_us);
        }
        for moment in [&mut self.finished_us, &mut self.registered_us, &mut self.ready_us] {
            *moment = moment.map(near);
        }
        for step in &mut self.clock_steps {
            *step = ClockStep { at_us: near(step.at_us), by_us: near(step.by_us) };
        }
        self.spans.sort_by(|a, b| key(a).cmp(&key(b)));
    }

    /// Where the axis begins: 0, or earlier if something was seen before it.
    pub fn begin_us(&self) -> i64 {
        self.spans.first().map_or(0, |span| span.begin_us.min(0))
    }

    /// What the boot led to: Ready, or as far as it came.
    pub fn goal(&self) -> (&'static str, i64) {
        let last = || self.spans.iter().map(|span| span.end_us).max().unwrap_or(0);
        match (self.ready_us, self.registered_us, self.finished_us) {
            (Some(at), ..) => ("Ready", at),
            (None, Some(at), _) => ("registered", at),
            (None, None, Some(at)) => ("booted", at),
            (None, None, None) => ("the last thing seen", last()),
        }
    }

    /// Time from the begin of the axis to the goal.
    pub fn total_us(&self) -> i64 {
        self.goal().1.saturating_sub(self.begin_us())
    }

    /// Everything, with blame and critical chain worked out.
    pub fn to_json(&self) -> Value {
        let mut json = json!(self);
        let (goal, at) = self.goal();
        json["goal"] = json!({"name": goal, "atUs": at, "totalUs": self.total_us()});
        let blame = chain::blame(self);
        let blamed = |span: &&Span| json!({"name": span.name, "lengthUs": span.length_us()});
        json["blame"] = json!(blame.iter().map(blamed).collect::<Vec<_>>());
        let link = |link: &chain::Link<'_>| json!({"name": link.span.name, "ownUs": link.own_us, "waitUs": link.wait_us});
        let links = chain::critical(self);
        json["criticalChain"] = json!(links.iter().map(link).collect::<Vec<_>>());
        json
    }
}

fn key(span: &Span) -> (i64, i64, Kind, &str) {
    (span.begin_us, span.end_us, span.kind, &span.name)
}

/// A time for people: `1.234 s`, `12.3 ms`.
fn time(us: i64) -> String {
    match us.unsigned_abs() {
        0..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.3} s", us as f64 / 1e6),
    }
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
