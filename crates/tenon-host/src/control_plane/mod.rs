//! Starts a cluster: a claim, keys, etcd, a temporary control plane on loopback that fills the
//! API, the final one beside it, and the hand-over between the two.
//!
//! ```text
//! open     config and machine → what the steps work on
//! claim    nobody else has this cluster, and that we begin it is on record
//! keys     certificates and kubeconfigs, existing ones checked
//! etcd     its one member, or members elsewhere
//! pods     static pods: written, waited for, taken away
//! objects  what the API holds before anybody may ask it
//! settle   hand-over, the final look, the marks on the node
//! logs     the last words of a container that does not come up
//! render   the files alone, for people to read
//! addons   the user's objects in the new cluster
//! ```
//!
//! Each step goes on from facts: what an earlier run left is adopted when it is ours.

pub mod addons;
mod claim;
mod etcd;
mod keys;
mod logs;
mod objects;
mod open;
mod pods;
mod render;
mod settle;
#[cfg(test)]
mod tests;

pub use open::Bootstrap;
pub use render::render;

use std::time::{Duration, Instant};

use tenon_core::problem::Problem;
use tenon_core::stages::state::Status;

use crate::stages::{Run, Step};

/// The stage that these steps belong to.
pub const STAGE: &str = "bootstrap";
/// What one attempt may take unless the command says otherwise.
pub const BUDGET: Duration = Duration::from_secs(30 * 60);
/// For one component to come up.
const COMPONENT: Duration = Duration::from_secs(4 * 60);

/// The steps of a bootstrap, in order.
const STEPS: &[Step<Bootstrap>] = &[
    claim::STEP,
    pods::KUBELET_HEALTH,
    keys::PKI,
    keys::KUBECONFIG,
    etcd::STEP,
    pods::BOOTSTRAP_PLANE,
    objects::STEP,
    pods::FINAL_PLANE,
    settle::HAND_OVER,
    settle::VERIFY,
    settle::MARK,
];

/// The names of the steps, for `--phase`.
pub fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// Runs the whole stage to its end.
pub fn bootstrap(mut run: Box<Run<'_>>, budget: Duration) -> Result<(), Problem> {
    let mut context = Bootstrap::open(&run, Instant::now() + budget)?;
    run.steps(STEPS, &mut context)?;
    run.finish(Status::Done, "the control plane is up and has taken over")
}

/// Runs some steps, in their order, and leaves the stage open.
pub fn some_steps(run: Box<Run<'_>>, budget: Duration, names: &[&str]) -> Result<(), Problem> {
    let context = Bootstrap::open(&run, Instant::now() + budget)?;
    run_named(run, context, names)
}

/// Starts the control plane on a machine that somebody prepared, with or without our stages, and
/// leaves the stage open: `tenon stage bootstrap` finds everything there and marks the node.
pub fn start(run: Box<Run<'_>>, budget: Duration) -> Result<(), Problem> {
    let mut context = Bootstrap::open(&run, Instant::now() + budget)?;
    context.waits_for_prepare = false;
    run_named(run, context, START)
}

fn run_named(mut run: Box<Run<'_>>, mut context: Bootstrap, names: &[&str]) -> Result<(), Problem> {
    let chosen = STEPS.iter().filter(|step| names.contains(&step.name));
    chosen.into_iter().try_for_each(|step| run.steps(std::slice::from_ref(step), &mut context))
}

/// From the claim to the final look; the marks and the marker are the stage's.
const START: &[&str] = &[
    "claim",
    "pki",
    "kubeconfig",
    "etcd",
    "bootstrap-plane",
    "objects",
    "final-plane",
    "hand-over",
    "verify",
];
