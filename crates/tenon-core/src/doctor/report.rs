//! The verdict: state, ranked causes, steps; as data, as JSON.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::causes;
use super::check::{Evidence, Origin, Weight};
use super::graph;
use super::judge::{Cause, Confidence, Suspect, Unknown, judge};
use super::snapshot::{Kind, Snapshot};
use super::step::Step;
use super::text;
use super::view::View;
use crate::redact::Book;

/// How long a text of a log is news.
const RECENT_US: u64 = 600 * 1_000_000;

/// How far the node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ready,
    JoinedNotReady,
    NotJoined,
    Unknown,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::JoinedNotReady => "joined-not-ready",
            State::NotJoined => "not-joined",
            State::Unknown => "unknown",
        }
    }
}

/// Whether a cause stands at the beginning or follows from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Root,
    Consequence,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Root => "root",
            Role::Consequence => "consequence",
        }
    }
}

/// A cause as it is reported.
#[derive(Debug, Clone)]
pub struct Finding {
    pub cause: &'static Cause,
    pub confidence: Confidence,
    pub role: Role,
    /// Strongest first, free of secrets.
    pub evidence: Vec<Evidence>,
    pub checks: Vec<(&'static str, &'static str)>,
}

impl Finding {
    /// What to do: the exact remedy where the evidence gives one, else the cause's own.
    pub fn fix(&self) -> &str {
        let exact = self.evidence.iter().find_map(|evidence| evidence.fix.as_deref());
        exact.unwrap_or(self.cause.fix)
    }
}

/// A step with its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLine {
    pub step: Step,
    /// `pass`, `fail`, `unknown`, `not-reached`
    pub status: &'static str,
    pub ms: u64,
    pub detail: String,
}

/// What was asked.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Count lines from here on, whatever the boot.
    pub since_us: Option<u64>,
    /// Numbers, slugs or steps of the causes to look for; empty means all.
    pub only: Vec<String>,
}

/// The answer.
#[derive(Debug)]
pub struct Report {
    pub state: State,
    /// The deepest step that is known to have been passed.
    pub reached: Option<Step>,
    /// Not Ready, without a cause, and up for less than five minutes.
    pub young: bool,
    /// False when there was nothing to look at.
    pub examined: bool,
    pub findings: Vec<Finding>,
    pub steps: Vec<StepLine>,
    pub unknown: Vec<Unknown>,
    pub kind: Kind,
    pub node_name: Option<String>,
    pub cluster: Option<String>,
    pub kubelet_version: Option<String>,
    pub age_s: Option<u64>,
    pub elapsed_ms: u64,
}

/// True when `--only` asks for a cause.
fn is_wanted(cause: &Cause, only: &[String]) -> bool {
    let fits = |name: &String| {
        *name == cause.id()
            || *name == cause.slug
            || *name == cause.step.name()
            || name.parse() == Ok(cause.number)
    };
    only.is_empty() || only.iter().any(fits)
}

/// Examines a node.
pub fn examine(node: &Snapshot, options: &Options) -> Report {
    let view = View::new(node, options.since_us);
    let mut unknown = Vec::new();
    let wanted = causes::ALL.iter().filter(|cause| is_wanted(cause, &options.only));
    let mut suspects: Vec<_> =
        wanted.filter_map(|cause| judge(&view, cause, &mut unknown)).collect();
    let state = state(&view, &suspects);
    if state == State::Ready {
        suspects.retain(|suspect| matters_when_ready(&view, suspect));
    }
    if !node.denied.is_empty() {
        unknown.push(("files", "some may not be read: run it as root"));
    }
    unknown.sort_unstable();
    unknown.dedup();
    let roles = graph::roles(&view, &suspects);
    let steps = graph::steps(&view, &suspects, &roles);
    let reached = graph::reached(&view, &suspects);
    Report {
        young: state != State::Ready && suspects.is_empty() && view.is_young(),
        examined: view.has_lines() || node.probes != Default::default() || !suspects.is_empty(),
        findings: ranked(&view.book, suspects, roles),
        node_name: view.node_name().map(str::to_owned),
        cluster: view.cluster_name().map(str::to_owned),
        kubelet_version: view.kubelet_version().map(|version| version.to_string()),
        age_s: view.age_s,
        kind: node.kind,
        elapsed_ms: 0,
        state,
        reached,
        steps,
        unknown,
    }
}

/// A Ready node has no need of explanations, but what is proven will bite at the next restart, and
/// what its logs say right now is trouble.
fn matters_when_ready(view: &View, suspect: &Suspect) -> bool {
    let recent = suspect.latest_us() + RECENT_US >= view.now_us && suspect.has_signal();
    let proven = suspect.confidence == Confidence::Certain;
    !suspect.cause.vague && (proven || recent && suspect.confidence == Confidence::Likely)
}

/// The API server's word counts most; without it the kubelet's own log. A text that points at a
/// cause and is newer than Ready says that Ready is over.
fn state(view: &View, suspects: &[Suspect]) -> State {
    if let Some(answer) = &view.node.probes.node {
        match (answer.status, answer.ready) {
            (200, Some(true)) if !is_stale(view) => return State::Ready,
            (200, _) => return State::JoinedNotReady,
            (404, _) => return State::NotJoined,
            _ => {}
        }
    }
    let troubled = suspects.iter().any(|s| s.has_signal() && s.confidence >= Confidence::Likely)
        || is_stale(view);
    if view.passed_at(Step::Ready).is_some() && !troubled {
        State::Ready
    } else if view.passed_at(Step::NodeObject).is_some() {
        State::JoinedNotReady
    } else if view.has_lines() || !suspects.is_empty() {
        State::NotJoined
    } else {
        State::Unknown
    }
}

/// The cluster believes a node for most of a minute after its daemons are gone.
fn is_stale(view: &View) -> bool {
    let daemons = ["kubelet.service", "containerd.service"];
    daemons.iter().any(|name| view.unit(name).is_some_and(|unit| unit.active != "active"))
}

/// Roots first; then confidence, the earliest step, the newest evidence, the number.
fn ranked(book: &Book, suspects: Vec<Suspect>, roles: Vec<Role>) -> Vec<Finding> {
    let mut list: Vec<_> = suspects.into_iter().zip(roles).collect();
    list.sort_by_key(|(suspect, role)| {
        let cause = suspect.cause;
        let newest = Reverse(suspect.latest_us());
        (*role, Reverse(suspect.confidence), cause.step, newest, cause.number)
    });
    let finding = |(suspect, role): (Suspect, Role)| Finding {
        cause: suspect.cause,
        confidence: suspect.confidence,
        role,
        evidence: suspect.evidence.into_iter().map(|found| text::clean(book, found)).collect(),
        checks: suspect.checks,
    };
    list.into_iter().map(finding).collect()
}

impl Report {
    /// 0 healthy, or too young to judge; 1 a cause, or not Ready without one; 5 nothing to see.
    pub fn exit(&self) -> u8 {
        match self.state {
            _ if !self.examined => 5,
            State::Ready if self.findings.is_empty() => 0,
            _ if self.young => 0,
            _ => 1,
        }
    }

    pub fn roots(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.role == Role::Root)
    }

    /// True when the answer would not change by looking again: Ready, or a proven cause.
    pub fn is_settled(&self) -> bool {
        self.state == State::Ready
            || self.roots().any(|finding| finding.confidence == Confidence::Certain)
    }

    pub fn to_json(&self) -> Value {
        let steps = self.steps.iter().map(|line| {
            json!({
                "name": line.step.name(), "status": line.status, "ms": line.ms,
                "detail": line.detail,
            })
        });
        let unknown =
            self.unknown.iter().map(|(check, reason)| json!({"check": check, "reason": reason}));
        let mut causes: Vec<_> = self.findings.iter().map(finding_json).collect();
        if causes.is_empty() && self.exit() == 1 {
            causes.push(self.nothing_found());
        }
        json!({
            "schema": "tenon.doctor/1",
            "state": self.state.name(),
            "reached": self.reached.map(Step::name),
            "young": self.young,
            "causes": causes,
            "steps": steps.collect::<Vec<_>>(),
            "unknown": unknown.collect::<Vec<_>>(),
            "node": {
                "name": self.node_name, "cluster": self.cluster,
                "kubelet": self.kubelet_version, "ageSeconds": self.age_s,
            },
            "source": {"kind": self.kind.name()},
            "elapsedMs": self.elapsed_ms,
        })
    }

    /// The cause `unknown`: the node is not Ready and nothing explains it.
    fn nothing_found(&self) -> Value {
        json!({
            "id": "unknown", "title": "no known cause explains the state", "role": "root",
            "step": self.reached.map(Step::name), "confidence": "possible",
            "evidence": [], "checks": [],
            "remedy": {"text": text::NOTHING_FOUND, "command": "tenon logs collect", "docs": ""},
        })
    }
}

fn finding_json(finding: &Finding) -> Value {
    let cause = finding.cause;
    let evidence =
        finding.evidence.iter().enumerate().map(|(index, evidence)| {
            evidence_json(&format!("{}.{}", cause.id(), index + 1), evidence)
        });
    let checks =
        finding.checks.iter().map(|(name, status)| json!({"name": name, "status": status}));
    let mut remedy =
        json!({"text": finding.fix(), "docs": format!("tenon explain {}", cause.id())});
    if !cause.command.is_empty() {
        remedy["command"] = json!(cause.command);
    }
    json!({
        "id": cause.id(),
        "title": cause.title,
        "step": cause.step.name(),
        "confidence": finding.confidence.name(),
        "role": finding.role.name(),
        "evidence": evidence.collect::<Vec<_>>(),
        "checks": checks.collect::<Vec<_>>(),
        "remedy": remedy,
    })
}

fn evidence_json(id: &str, evidence: &Evidence) -> Value {
    let key = match evidence.origin {
        Origin::File(_) => "path",
        Origin::Journal(_) | Origin::Unit(_) => "unit",
        Origin::Probe(_) | Origin::Metadata => "probe",
    };
    let time = (evidence.time_us > 0).then(|| text::timestamp(evidence.time_us));
    json!({
        "id": id,
        "source": {"kind": evidence.origin.kind(), key: evidence.origin.name()},
        "weight": Weight::name(evidence.weight),
        "time": time,
        "text": evidence.text,
        "count": evidence.count,
        "fields": evidence.fields,
    })
}
