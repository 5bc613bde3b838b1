//! The order of things: which causes are roots, and how far the node came.

use super::judge::{Confidence, Suspect};
use super::network;
use super::report::{Role, StepLine};
use super::snapshot::Trust;
use super::step::Step;
use super::view::View;
use crate::redact;

/// Gives each suspect its role. A cause at the first failing step of its chain is a root; what
/// comes later follows from it, unless it is proven alone.
pub(super) fn roles(view: &View, suspects: &[Suspect]) -> Vec<Role> {
    let sharp = |suspect: &&Suspect| !suspect.cause.vague;
    let likely = |suspect: &&Suspect| suspect.confidence >= Confidence::Likely;
    let specific = suspects.iter().filter(sharp).any(|suspect| likely(&suspect));
    let enough = match suspects.iter().any(|suspect| likely(&suspect)) {
        true => Confidence::Likely,
        false => Confidence::Possible,
    };
    let counts = |s: &&Suspect| s.confidence >= enough && (!specific || !s.cause.vague);
    let strong = || suspects.iter().filter(counts);
    let first =
        |local: bool| strong().map(|s| s.cause.step).filter(|step| step.is_local() == local).min();
    let (local, network) = (first(true), first(false));
    let network = network.filter(|_| local.is_none() || kubelet_ran(view, suspects));
    let role = |suspect: &Suspect| {
        let first = if suspect.cause.step.is_local() { local } else { network };
        let alone = suspect.cause.alone && suspect.confidence == Confidence::Certain;
        let root = counts(&suspect) && (first == Some(suspect.cause.step) || alone);
        if root { Role::Root } else { Role::Consequence }
    };
    suspects.iter().map(role).collect()
}

/// True when the kubelet came as far as talking to the API server.
fn kubelet_ran(view: &View, suspects: &[Suspect]) -> bool {
    let talks = |suspect: &Suspect| suspect.cause.on_api && suspect.has_signal();
    view.passed_at(Step::Kubelet).is_some()
        || view.unit("kubelet.service").is_some_and(|unit| unit.active == "active")
        || suspects.iter().any(talks)
}

/// The deepest step that is known to have been passed.
pub(super) fn reached(view: &View, suspects: &[Suspect]) -> Option<Step> {
    let marks = view.marks.iter().map(|mark| mark.step).max();
    // Who is refused at a step has come through those before it.
    let refused = suspects.iter().filter(|s| s.cause.on_api && s.has_signal());
    let before = refused
        .map(|s| s.cause.step)
        .max()
        .and_then(|step| Step::all().take_while(|s| *s < step).last());
    marks.max(network::passed(view)).max(before)
}

/// Each step with its status.
pub(super) fn steps(view: &View, suspects: &[Suspect], roles: &[Role]) -> Vec<StepLine> {
    let reached = reached(view, suspects);
    let root_at = |step: Step| {
        let mut roots = suspects.iter().zip(roles).filter(|(_, role)| **role == Role::Root);
        roots
            .find(|(suspect, _)| suspect.cause.step == step)
            .map(|(suspect, _)| suspect.cause.title)
    };
    let first_root =
        |local: bool| Step::all().find(|step| step.is_local() == local && root_at(*step).is_some());
    let (local, network) = (first_root(true), first_root(false));
    let network = network.or(local.filter(|_| !kubelet_ran(view, suspects)));
    let status = |step: Step| {
        let blocked = if step.is_local() { local } else { network };
        if let Some(title) = root_at(step) {
            return ("fail", title.to_owned());
        }
        if step == Step::Time {
            return time(view);
        }
        let detail = match step {
            Step::Ca => untrusted(view),
            Step::Authn => unusable(view),
            _ => String::new(),
        };
        match (reached, blocked) {
            (Some(reached), _) if step <= reached => ("pass", String::new()),
            (_, Some(first)) if step > first => ("not-reached", detail),
            _ => ("unknown", detail),
        }
    };
    let took = &view.node.probes.took_ms;
    let line = |step: Step| {
        let (status, detail) = status(step);
        StepLine { step, status, ms: took.get(step.name()).copied().unwrap_or_default(), detail }
    };
    Step::all().map(line).collect()
}

/// Why the presented certificate is not believed.
fn untrusted(view: &View) -> String {
    let reach = network::reach(view).filter(|reach| reach.is_up());
    reach.map(|reach| reach.detail.clone()).unwrap_or_default()
}

/// Why no request could be made in the kubelet's name.
fn unusable(view: &View) -> String {
    let credentials = view.node.probes.credentials.as_ref();
    let bad = credentials.filter(|credentials| !credentials.usable);
    bad.map(|bad| redact::text(&view.book, &bad.detail)).unwrap_or_default()
}

/// The clock is judged by itself: a connection may come about in spite of it.
fn time(view: &View) -> (&'static str, String) {
    let trusted = network::reach(view).is_some_and(|reach| reach.trust == Some(Trust::Good));
    match view.node.probes.clock_offset_s {
        Some(offset) => ("pass", format!("{offset} s from the API server's clock")),
        None if trusted || view.passed_at(Step::NodeObject).is_some() => ("pass", String::new()),
        None => ("unknown", String::new()),
    }
}
