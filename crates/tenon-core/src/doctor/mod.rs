//! Why is this node not Ready? Evidence in, ranked causes out. Pure.
//!
//! ```text
//! Snapshot ──View::new──▶ View ──causes: signals and checks──▶ Suspect ──graph──▶ Report
//!  files, journal,         what counts: this boot, after the                │
//!  units, probes           last change; documents parsed                    └─ text, JSON
//! ```
//!
//! One mechanism runs every cause. A cause is data: its step, the log texts that point at it, the
//! checks that prove or exclude it, and what to do about it. To add a text is one line in the
//! cause's file.

mod causes;
mod check;
mod documents;
mod graph;
mod judge;
mod network;
mod page;
mod presented;
mod report;
mod signal;
mod snapshot;
mod step;
mod text;
mod view;
mod wanted;

#[cfg(test)]
mod tests;

pub use causes::ALL as CAUSES;
pub use check::{Check, Evidence, Found, Origin, Weight};
pub use judge::{Cause, Confidence};
pub use page::{find, page, reference};
pub use presented::describe as describe_certificate;
pub use report::{Finding, Options, Report, Role, State, StepLine, examine};
pub use signal::{Log, Signal, Standing, Target};
pub use snapshot::{
    Access, Certificate, Clock, Credentials, Disk, Identity, Kind, Line, Lookup, Metadata,
    NodeAnswer, Probes, Reach, Resolution, Snapshot, Tcp, Tls, Trust, Unit,
};
pub use step::Step;
pub use view::{Endpoint, View};
pub use wanted::{FILES, FOLDERS, LOGS, PROGRAMS, UNITS, certificates_only};

/// The JSON Schema of `tenon doctor --output json`.
pub const SCHEMA: &str = include_str!("doctor.schema.json");
