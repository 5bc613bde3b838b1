//! Builds the doctor's snapshot of a node: files, journal, units, and probes on a live one.
//! Reads only; what it means is decided in `tenon_core::doctor`.

mod files;
mod metadata;
mod probes;
mod reach;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tenon_core::doctor::{Kind, Snapshot, View};
use tenon_core::problem::Problem;
use tenon_core::redact::{self, Book};

use crate::collect::{self, Source};

/// Where a bootstrap keeps the config that it worked with.
const CACHE: &str = "/run/eks/nodeadm/config.json";

/// What to look at.
#[derive(Debug, Clone)]
pub struct Options {
    /// Run no probe.
    pub offline: bool,
    /// Read whole journals instead of their newest part.
    pub deep: bool,
    /// For all probes together.
    pub budget: Duration,
    pub since_us: Option<u64>,
    /// The config that the node was meant to have, where it has kept none.
    pub spec: Option<Value>,
}

/// Reads what the doctor wants of a node.
pub fn gather(source: &Source, options: &Options) -> Result<Snapshot, Problem> {
    let end = Instant::now() + options.budget;
    let kind = match source.kind() {
        collect::Kind::Live => Kind::Live,
        collect::Kind::Root => Kind::Root,
        collect::Kind::Bundle => Kind::Bundle,
    };
    let mut node = Snapshot { kind, ..Snapshot::default() };
    files::recorded(source, &mut node);
    files::read(source, options, &mut node);
    if let Some(spec) = &options.spec {
        let kept = json!({"spec": spec}).to_string();
        node.files.entry(CACHE.to_owned()).or_insert(kept);
    }
    if source.is_live() {
        node.now_us = now_us();
        if !options.offline {
            probes::run(source, &mut node, end)?;
        }
    }
    Ok(node)
}

fn now_us() -> Option<u64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_micros()).ok()
}

/// A snapshot without its journal and without secrets, for a bundle's `probes.json`: what
/// [`gather`] needs to come to the same verdict elsewhere.
pub fn recorded(node: &Snapshot) -> Vec<u8> {
    let book = Book::default();
    // A bundle need not hold the journal that told how each unit fared.
    let view = View::new(node, None);
    let (units, age_s) = (view.units().clone(), view.age_s);
    let now_us = Some(view.now_us);
    let mut kept = Snapshot { journal: Vec::new(), units, age_s, now_us, ..node.clone() };
    kept.files.values_mut().for_each(|text| *text = redact::text(&book, text));
    let mut bytes = serde_json::to_vec_pretty(&kept).expect("maps with text keys always encode");
    bytes.push(b'\n');
    bytes
}
