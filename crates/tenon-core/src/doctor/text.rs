//! The verdict for people: what it is, what shows it, what to do, how far the node came.

use std::ops::Range;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::check::{Evidence, Origin};
use super::report::{Finding, Report, Role, State};
use super::step::Step;
use crate::problem::visible;
use crate::redact::{self, Book};

/// The longest excerpt of a log line.
const LONGEST: usize = 160;
pub(super) const NOTHING_FOUND: &str =
    "look at the deepest step reached; `tenon logs collect` gathers what a person needs";

/// The part of a line that matters, cut to a readable length.
pub(super) fn excerpt(line: &str, found: Range<usize>) -> String {
    let (tail, part) = (&line[found.start..], &line[found]);
    if tail.chars().count() <= LONGEST {
        return tail.to_owned();
    }
    if part.chars().count() <= LONGEST {
        return tail.chars().take(LONGEST).chain("…".chars()).collect();
    }
    let half = LONGEST / 2;
    let head: String = part.chars().take(half).collect();
    let end: Vec<char> = part.chars().rev().take(half).collect();
    format!("{head} … {}", end.into_iter().rev().collect::<String>())
}

/// Evidence as it may be shown: no secret, no control character.
pub(super) fn clean(book: &Book, mut evidence: Evidence) -> Evidence {
    let shown = |text: &str| visible(redact::text(book, text).trim_end()).replace('\n', " ");
    evidence.text = shown(&evidence.text);
    evidence.fix = evidence.fix.as_deref().map(shown);
    for value in evidence.fields.values_mut() {
        *value = shown(value);
    }
    evidence
}

/// `2026-01-10T12:03:11Z`
pub(super) fn timestamp(time_us: u64) -> String {
    let seconds = i64::try_from(time_us / 1_000_000).unwrap_or_default();
    let time = OffsetDateTime::from_unix_timestamp(seconds).ok();
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default()
}

/// `12:03:11`
fn clock(time_us: u64) -> String {
    timestamp(time_us).get(11..19).unwrap_or_default().to_owned()
}

fn row(label: &str, text: &str) -> String {
    format!("  {label:<10} {text}\n")
}

impl Report {
    /// The answer as text. `all` adds what follows from the causes, and every step.
    pub fn text(&self, all: bool) -> String {
        let mut text = self.head();
        let shown = |finding: &&Finding| all || finding.role == Role::Root;
        for (index, finding) in self.findings.iter().filter(shown).enumerate() {
            if index > 0 {
                text.push_str(&headline(
                    if finding.role == Role::Root { "also" } else { "follows" },
                    finding,
                ));
            }
            text.push_str(&block(finding));
        }
        let hidden = self.findings.iter().filter(|finding| finding.role != Role::Root).count();
        if self.state != State::Ready {
            text.push_str(&row("because", &self.because()));
        }
        if hidden > 0 && !all {
            text.push_str(&row("more", &format!("{hidden} that follow from this: --all")));
        }
        if all {
            self.steps.iter().for_each(|line| {
                let detail = if line.detail.is_empty() {
                    String::new()
                } else {
                    format!("   {}", line.detail)
                };
                text.push_str(&row(
                    "step",
                    &format!("{:<12} {}{detail}", line.step.title(), line.status),
                ));
            });
            for (check, reason) in &self.unknown {
                text.push_str(&row("unknown", &format!("{check}: {reason}")));
            }
        }
        text
    }

    fn head(&self) -> String {
        let label = match self.state {
            State::Ready if self.findings.is_empty() => {
                return "READY        the node is registered and Ready\n".into();
            }
            State::Ready => "READY, BUT",
            State::JoinedNotReady => "NOT READY",
            State::NotJoined => "NOT JOINED",
            State::Unknown => "UNKNOWN",
        };
        match self.roots().next() {
            Some(finding) => headline(label, finding),
            None if !self.examined => {
                format!("{label:<12} nothing of this node could be read\n")
            }
            None if self.young => {
                let age = self.age_s.unwrap_or_default();
                format!("{label:<12} no cause found, and the node is only {age} s old\n")
            }
            None => {
                format!("{label:<12} no known cause explains the state\n")
                    + &row("fix", NOTHING_FOUND)
            }
        }
    }

    fn because(&self) -> String {
        let with = |status: &str| {
            let steps =
                self.steps.iter().filter(|line| line.status == status && !line.step.is_local());
            steps.map(|line| line.step.title()).collect::<Vec<_>>().join(", ")
        };
        let part = |name: &str, steps: String| match steps.is_empty() {
            true => String::new(),
            false => format!("{name}: {steps}.  "),
        };
        let mut text = part("cleared", with("pass")) + &part("Not reached", with("not-reached"));
        if text.is_empty() {
            let reached = self.reached.map_or("none", Step::title);
            text = format!("deepest step known to be passed: {reached}");
        }
        text.trim_end().to_owned()
    }
}

fn headline(label: &str, finding: &Finding) -> String {
    let failure = finding.cause.step.failure();
    format!("{label:<12} {failure:<58} ({})\n", finding.confidence.name())
}

fn block(finding: &Finding) -> String {
    let mut text = row(&format!("cause {}", finding.cause.number), finding.cause.title);
    for (index, evidence) in finding.evidence.iter().enumerate() {
        text.push_str(&row(if index == 0 { "evidence" } else { "" }, &evidence_line(evidence)));
    }
    text.push_str(&row("fix", finding.fix()));
    if !finding.cause.command.is_empty() {
        text.push_str(&row("run", finding.cause.command));
    }
    text
}

fn evidence_line(evidence: &Evidence) -> String {
    let source = match &evidence.origin {
        Origin::Journal(name) if evidence.time_us > 0 => {
            format!("{name} {}", clock(evidence.time_us))
        }
        Origin::Probe(name) => format!("probe {name}"),
        origin => origin.name().to_owned(),
    };
    let times =
        if evidence.count > 1 { format!("   ({} times)", evidence.count) } else { String::new() };
    format!("{source:<27} {}{times}", evidence.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_write_them() {
        assert_eq!(timestamp(1_768_046_591_000_000), "2026-01-10T12:03:11Z");
        assert_eq!(clock(1_768_046_591_000_000), "12:03:11");
    }

    #[test]
    fn excerpts_keep_both_ends() {
        let line = format!("head one {} two tail", "x".repeat(300));
        let text = excerpt(&line, 5..line.len() - 5);
        assert!(text.starts_with("one ") && text.ends_with(" two"), "{text}");
        assert_eq!(excerpt("say one two", 4..11), "one two");
    }
}
