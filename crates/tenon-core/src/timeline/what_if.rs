//! The same boot with something left out. Every span keeps its length and its distance from what
//! held it up; those left out take no time. An estimate: what waits for one thing may share a
//! disk or a processor with another.

use super::chain::{self, Edge};
use super::{Boot, Estimate, Kind, Span};
use crate::nearest;

/// One thing that can be left out.
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    kind: Kind,
    /// How the names of the spans begin.
    names: &'static [&'static str],
}

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "no-cloud-init",
        about: "an image without cloud-init",
        kind: Kind::Unit,
        names: &["cloud-init", "cloud-config", "cloud-final"],
    },
    Scenario {
        name: "cached-images",
        about: "every image is in the node's image",
        kind: Kind::Image,
        names: &[""],
    },
    Scenario {
        name: "no-network-wait",
        about: "nothing waits for the whole network",
        kind: Kind::Unit,
        names: &["systemd-networkd-wait-online", "NetworkManager-wait-online"],
    },
    Scenario {
        name: "no-initrd",
        about: "a kernel that needs no initrd",
        kind: Kind::Stage,
        names: &["initrd"],
    },
];

/// Leaves out one span by its name.
const WITHOUT: &str = "without=";

/// Why a name means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown(pub String);

/// The names that can be asked for, one to a line.
pub fn list() -> String {
    let line = |scenario: &Scenario| format!("{:<16} {}\n", scenario.name, scenario.about);
    SCENARIOS
        .iter()
        .map(line)
        .chain([format!("{WITHOUT}NAME     one span, by its name\n")])
        .collect()
}

/// The boot as it might have been.
pub fn estimate(boot: &Boot, what_if: &[String]) -> Result<Boot, Unknown> {
    let mut left_out = vec![false; boot.spans.len()];
    for name in what_if {
        let matches = matcher(boot, name)?;
        for (span, out) in boot.spans.iter().zip(&mut left_out) {
            *out |= matches(span);
        }
    }
    let names = boot.spans.iter().zip(&left_out).filter(|(_, out)| **out);
    let names: Vec<_> = names.map(|(span, _)| span.name.clone()).collect();
    let mut guess = boot.clone();
    for (span, moved) in guess.spans.iter_mut().zip(replay(boot, &left_out)) {
        (span.begin_us, span.end_us) = moved;
    }
    let kubelet = |span: &Span| span.kind == Kind::Kubelet;
    guess.registered_us = boot.registered_us.map(|at| at - saved(boot, &guess, at, kubelet));
    guess.ready_us = boot.ready_us.map(|at| at - saved(boot, &guess, at, kubelet));
    guess.finished_us = boot.finished_us.map(|at| at - saved(boot, &guess, at, |_| true));
    guess.sort();
    let saves_us = boot.total_us() - guess.total_us();
    guess.estimate = Some(Estimate { what_if: what_if.to_vec(), left_out: names, saves_us });
    Ok(guess)
}

type Matcher<'a> = Box<dyn Fn(&Span) -> bool + 'a>;

fn matcher<'a>(boot: &Boot, name: &'a str) -> Result<Matcher<'a>, Unknown> {
    if let Some(wanted) = name.strip_prefix(WITHOUT) {
        let known = boot.spans.iter().any(|span| span.name == wanted);
        return match known {
            true => Ok(Box::new(move |span| span.name == wanted)),
            false => Err(Unknown("no span of this timeline has that name".to_owned())),
        };
    }
    let Some(scenario) = SCENARIOS.iter().find(|scenario| scenario.name == name) else {
        let names = SCENARIOS.iter().map(|scenario| scenario.name);
        let near = nearest::nearest(name, names).map(|near| format!("did you mean `{near}`? "));
        return Err(Unknown(format!("{}the names are:\n{}", near.unwrap_or_default(), list())));
    };
    Ok(Box::new(|span| {
        span.kind == scenario.kind
            && scenario.names.iter().any(|begin| span.name.starts_with(begin))
    }))
}

/// New begin and end of each span. Spans wait only for earlier ones, so one pass is enough.
fn replay(boot: &Boot, left_out: &[bool]) -> Vec<(i64, i64)> {
    let (edges, old) = (chain::edges(boot), chain::times(boot));
    let mut new: Vec<(i64, i64)> = Vec::new();
    for (at, (begin, end)) in old.iter().enumerate() {
        let latest =
            |times: &[(i64, i64)]| edges[at].iter().map(|edge: &Edge| edge.at(times)).max();
        let held = latest(&old).unwrap_or(*begin);
        let released = latest(&new).unwrap_or(held);
        let start = if left_out[at] { released } else { released + (begin - held) };
        new.push((start, if left_out[at] { start } else { start + (end - begin) }));
    }
    new
}

/// How much earlier the last of the spans ends that had ended by this moment.
fn saved(boot: &Boot, guess: &Boot, at: i64, counts: fn(&Span) -> bool) -> i64 {
    let pairs = boot.spans.iter().zip(&guess.spans);
    let ended = pairs.filter(|(before, _)| counts(before) && before.end_us <= at);
    let ends = ended.map(|(before, after)| (before.end_us, after.end_us));
    let latest = ends.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)));
    latest.map_or(0, |(before, after)| before - after)
}
