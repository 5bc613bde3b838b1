//! One mechanism for every cause: signals and checks into a confidence.

use super::check::{Check, Evidence, Found, Weight};
use super::signal::Signal;
use super::step::Step;
use super::view::View;

/// A reason why a node is not Ready. Data; see the files of `causes/`.
#[derive(Debug, Clone, Copy)]
pub struct Cause {
    pub number: u8,
    pub slug: &'static str,
    pub title: &'static str,
    pub step: Step,
    /// It lies on the connection to the API server: a probe that gets past its step clears it.
    pub on_api: bool,
    /// What proves it does not depend on any earlier step, so it is a root wherever it stands.
    pub alone: bool,
    /// It follows from most other causes, so it is told only when no other is strong.
    pub vague: bool,
    /// Texts that point at it.
    pub signals: &'static [Signal],
    /// Texts that fit it, and others, too.
    pub support: &'static [Signal],
    pub checks: &'static [Check],
    /// What happens, for the page.
    pub why: &'static str,
    pub fix: &'static str,
    /// A command to run, when one mends it or shows more.
    pub command: &'static str,
}

impl Cause {
    /// What a cause's file fills in.
    pub const BLANK: Cause = Cause {
        number: 0,
        slug: "",
        title: "",
        step: Step::Ready,
        on_api: false,
        alone: false,
        vague: false,
        signals: &[],
        support: &[],
        checks: &[],
        why: "",
        fix: "",
        command: "",
    };

    /// `doctor-07`
    pub fn id(&self) -> String {
        format!("doctor-{:02}", self.number)
    }
}

/// How sure it is that a cause applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// A single signal, or only texts that are not confirmed.
    Possible,
    /// A confirmed signal and something independent that supports it.
    Likely,
    /// A probe or a parsed file proves it.
    Certain,
}

impl Confidence {
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Possible => "possible",
            Confidence::Likely => "likely",
            Confidence::Certain => "certain",
        }
    }
}

/// A cause that may apply, with what speaks for it.
#[derive(Debug, Clone)]
pub(super) struct Suspect {
    pub cause: &'static Cause,
    pub confidence: Confidence,
    /// Strongest first.
    pub evidence: Vec<Evidence>,
    /// Each check that ran, and how it went.
    pub checks: Vec<(&'static str, &'static str)>,
}

impl Suspect {
    /// Time of the newest evidence.
    pub(super) fn latest_us(&self) -> u64 {
        self.evidence.iter().map(|evidence| evidence.time_us).max().unwrap_or_default()
    }

    /// True when a log speaks for it.
    pub(super) fn has_signal(&self) -> bool {
        self.evidence.iter().any(|evidence| evidence.weight == Weight::Signal)
    }
}

/// A check that could not be made, and why.
pub(super) type Unknown = (&'static str, &'static str);

/// Judges one cause.
pub(super) fn judge(
    view: &View,
    cause: &'static Cause,
    unknown: &mut Vec<Unknown>,
) -> Option<Suspect> {
    let mut evidence = Vec::new();
    let (mut confirmed, mut supports) = (false, 0);
    let mut logs = Vec::new();
    let weigh = |mut evidence: Evidence, weight| {
        evidence.weight = weight;
        evidence
    };
    for signal in cause.signals {
        if let Some(found) = view.seen(signal, cause.step, cause.on_api) {
            confirmed |= signal.is_confirmed();
            logs.push(signal.log);
            evidence.push(weigh(found, Weight::Signal));
        }
    }
    logs.dedup();
    // Two programs that complain are independent of each other.
    supports += logs.len().saturating_sub(1);
    let mut ran = Vec::new();
    let mut proven = false;
    for check in cause.checks {
        let found = (check.run)(view);
        ran.push((check.name, found.name()));
        match found {
            Found::Unknown(reason) => unknown.push((check.name, reason)),
            Found::Fail(_) if check.weight == Weight::Excludes => return None,
            Found::Fail(list) => {
                proven |= check.weight == Weight::Proves;
                supports += usize::from(check.weight == Weight::Supports);
                evidence.extend(list.into_iter().map(|found| weigh(found, check.weight)));
            }
            Found::Pass | Found::NotApplicable => {}
        }
    }
    let structural = supports;
    // A general symptom is told only beside something that points at this cause.
    if !evidence.is_empty() {
        for signal in cause.support {
            if let Some(found) = view.seen(signal, cause.step, cause.on_api) {
                supports += 1;
                evidence.push(weigh(found, Weight::Supports));
            }
        }
    }
    let confidence = match (proven, confirmed, supports) {
        (true, ..) => Confidence::Certain,
        (false, true, 1..) => Confidence::Likely,
        _ if !logs.is_empty() || structural > 1 => Confidence::Possible,
        _ => return None,
    };
    evidence.sort_by_key(|evidence| evidence.weight);
    Some(Suspect { cause, confidence, evidence, checks: ran })
}
