//! Looks at a node for `validate` and `harden`, and judges it by `tenon_core::checks`.
//!
//! ```text
//! eyes       answers the questions of the checks from a root or a bundle
//! processes  the daemons that run, from /proc
//! known      config, facts and plan of the node, as far as they are recorded
//! configz    the kubelet's own word about its settings
//! clock      today, and a text file for a scraper
//! ```
//!
//! Reads only; [`crate::apply::mend`] is what `harden --fix` writes with.

mod clock;
mod configz;
mod eyes;
mod known;
mod processes;

use std::io;

use tenon_core::checks::cis::Profile;
use tenon_core::checks::mend::{self, Mending};
use tenon_core::checks::snapshot::Snapshot;
use tenon_core::checks::{Finding, drift, image, kubelet, runtime};
use tenon_core::codes;
use tenon_core::plan::diff::{Changes, Unplanned};
use tenon_core::plan::step::Phase;
use tenon_core::problem::Problem;

use crate::apply;
use crate::root::Root;

pub use clock::{now, replace_text, today};
pub use eyes::Eyes;
pub use known::{Known, Wanted, known};

/// Where images stamp the kubelet's version.
const VERSION_STAMP: &str = "/etc/eks/kubelet-version.txt";
/// A plan of all profiles has some hundred kilobytes.
const PLAN_CAP: u64 = 16 << 20;

/// A node under examination.
pub struct Examination<'a> {
    eyes: &'a Eyes,
    snapshot: Snapshot,
}

impl<'a> Examination<'a> {
    /// Reads what every family needs. A place without any trace of a node is refused.
    pub fn begin(eyes: &'a Eyes) -> Result<Self, Problem> {
        let record = eyes.record().map_err(|problem| match problem.exit() {
            // What is there but cannot be read is no reason to call the node damaged.
            7 => {
                let what = "the record of this node cannot be read";
                Problem::new(&codes::checks::UNREADABLE, what).cause(in_words(&problem))
            }
            _ => problem,
        })?;
        let mut snapshot = Snapshot::default();
        (snapshot.record, snapshot.processes) = (record, eyes.processes());
        let answer = |question: &_| eyes.answer(question);
        let version = snapshot.settle(&answer, &|seen| seen.text(VERSION_STAMP).ok().flatten());
        snapshot.kubelet_version = version.map(|text| text.trim().to_owned());
        let arguments = snapshot.settle(&answer, &kubelet::arguments);
        if snapshot.record.is_none() && snapshot.processes.is_empty() {
            arguments.map_err(|why| {
                let what = format!("there is no node at {}", eyes.name());
                Problem::new(&codes::checks::NO_NODE, what).cause(why)
            })?;
        }
        Ok(Examination { eyes, snapshot })
    }

    /// The instance that the record is of; empty when there is no record.
    pub fn instance_id(&self) -> String {
        self.snapshot.record.as_ref().map(|record| record.instance_id.clone()).unwrap_or_default()
    }

    fn judge<T>(&mut self, judge: &dyn Fn(&Snapshot) -> T) -> T {
        let eyes = self.eyes;
        self.snapshot.settle(&|question| eyes.answer(question), judge)
    }

    /// Judges the benchmark.
    pub fn cis(&mut self, profile: &Profile) -> Vec<Finding> {
        self.judge(&|snapshot| profile.judge(snapshot))
    }

    /// Judges the files against the record and, as far as the config is known, its plan.
    pub fn drift(&mut self, known: &Known) -> Vec<Finding> {
        let redacted = "a bundle holds redacted copies, which have other hashes";
        let mut sight = drift::Sight {
            tree: Err(redacted.to_owned()),
            owner: apply::own(),
            changes: None,
            interrupted: Ok(false),
            intended: known.intended(),
        };
        if let (Some(root), Some(record)) = (self.eyes.root(), &self.snapshot.record) {
            sight.tree =
                apply::look_at_recorded(root, record).map_err(|problem| in_words(&problem));
            let interrupted = apply::is_interrupted(root, record);
            sight.interrupted = interrupted.map_err(|problem| in_words(&problem));
            sight.changes = Some(changes(root, known));
        }
        self.judge(&|snapshot| drift::judge(snapshot, &sight))
    }

    /// Judges the running node. The one family that asks something of the network: the kubelet.
    pub fn runtime(&mut self, known: &Known) -> Vec<Finding> {
        let live = self.eyes.is_live();
        let told = live
            .then(|| self.judge(&configz::access))
            .map(|access| access.and_then(|access| configz::ask(&access)));
        let max_pods = known.plan().map(|plan| plan.summary.max_pods);
        let sight = runtime::Sight { live, told, max_pods };
        self.judge(&|snapshot| runtime::judge(snapshot, &sight))
    }

    /// Judges the node against the plan of the image that it was made from.
    pub fn image(&mut self) -> Vec<Finding> {
        let plan = self.eyes.root().and_then(|root| image_plan(root).transpose());
        let sight = image::Sight { plan, live: self.eyes.is_live() };
        self.judge(&|snapshot| image::judge(snapshot, &sight))
    }

    /// What `harden --fix` would change.
    pub fn mending(&mut self, known: &Known, findings: &[Finding]) -> Mending {
        if self.snapshot.kubelet_version.is_none() {
            self.snapshot.kubelet_version = known.kubelet_version();
        }
        self.judge(&|snapshot| mend::plan(snapshot, findings))
    }
}

/// The plan that an image left; the error says why it cannot be read.
fn image_plan(root: &Root) -> Result<Option<serde_json::Value>, String> {
    let told = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => "root alone may read the plan: run as root".to_owned(),
        _ => error.to_string(),
    };
    let bytes = root.read(image::PLAN, PLAN_CAP).map_err(told)?;
    let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(|error| error.to_string());
    bytes.map(read).transpose()
}

/// What the plan would change; the error says why that cannot be told.
fn changes(root: &Root, known: &Known) -> Result<Changes, String> {
    let plan = match known {
        Known::Plan { plan, .. } => plan,
        Known::Refused { .. } => return Err("the config cannot become a plan".to_owned()),
        Known::Not(why) => return Err(why.clone()),
    };
    let options = apply::Options { unplanned: Unplanned::Remove, ..apply::Options::default() };
    let compared = apply::preview(root, plan, &[Phase::Config], &options);
    compared.map_err(|problem| in_words(&problem))?.map_err(|findings| {
        let first = findings.first().map(|finding| finding.problem.what.clone());
        first.unwrap_or_else(|| "the plan cannot be compared".to_owned())
    })
}

/// What happened and its cause, for a finding.
fn in_words(problem: &Problem) -> String {
    match problem.causes.first() {
        Some(cause) => format!("{}: {cause}", problem.what),
        None => problem.what.clone(),
    }
}

#[cfg(test)]
mod tests;
