//! A timeline for a terminal: plain characters, at most 80 of them in a line.

use std::fmt::Write;

use super::chain::{self, Link};
use super::compare::{Comparison, Row};
use super::{Boot, time};
use crate::problem::visible;

const WIDTH: usize = 80;
const NAME: usize = 32;
const BAR: i64 = 26;
/// How many of the longest spans are shown.
const BLAMED: usize = 10;
/// How many common spans a comparison shows.
const COMPARED: usize = 15;

/// The whole story: goal, critical chain with bars, longest spans, and what was noticed.
pub fn text(boot: &Boot) -> String {
    let mut text = head(boot);
    text.push_str(&critical_chain(boot));
    text.push_str("\nlongest\n");
    for span in chain::blame(boot).into_iter().take(BLAMED) {
        let line = format!("  {:>9}  {}  {}", time(span.length_us()), span.name, span.note);
        push(&mut text, &line);
    }
    let moments = [("registered", boot.registered_us), ("Ready", boot.ready_us)];
    let moments = moments.into_iter().filter_map(|(name, at)| Some((name, at?)));
    let moments: Vec<_> = moments.map(|(name, at)| format!("{name} at {}", time(at))).collect();
    if !moments.is_empty() {
        let _ = writeln!(text, "\n{}", moments.join(", "));
    }
    for step in &boot.clock_steps {
        let way = if step.by_us < 0 { "back" } else { "forward" };
        let (at, by) = (time(step.at_us), time(step.by_us.saturating_abs()));
        push(&mut text, &format!("clock: at {at} the wall clock was set {way} by {by}"));
    }
    for note in &boot.notes {
        text.push_str(&wrapped("note: ", note));
    }
    text
}

fn head(boot: &Boot) -> String {
    let named = [boot.node.as_str(), boot.instance_type.as_str()];
    let named: Vec<_> = named.into_iter().filter(|word| !word.is_empty()).collect();
    let (goal, _) = boot.goal();
    let mut text = String::new();
    if !named.is_empty() {
        push(&mut text, &named.join(", "));
    }
    let total = time(boot.total_us());
    let _ = writeln!(text, "{goal} after {total}; 0 is the start of the {}", boot.origin);
    if let Some(estimate) = &boot.estimate {
        let what_if = estimate.what_if.join(", ");
        let saves = time(estimate.saves_us);
        let words = format!(
            "with {what_if}: {saves} less than measured, {} left out. This is no measurement.",
            spans(estimate.left_out.len())
        );
        text.push_str(&wrapped("ESTIMATE ", &words));
    }
    text
}

fn spans(count: usize) -> String {
    if count == 1 { "1 span".to_owned() } else { format!("{count} spans") }
}

/// One bar for each link, to scale; dots are time in which nothing of the chain ran.
fn critical_chain(boot: &Boot) -> String {
    let mut text = format!("\n{:<NAME$} {:>9} {:>9}\n", "critical chain", "begin", "takes");
    // What took no time and kept nobody waiting is on the chain, but decides nothing.
    let least = boot.total_us() / 200;
    let links = chain::critical(boot);
    for link in links.into_iter().filter(|link| link.own_us > 0 || link.wait_us > least) {
        let own = if link.own_us == 0 { String::new() } else { time(link.own_us) };
        let name = cut(&link.span.name, NAME - 2);
        let begin = time(link.span.begin_us);
        push(&mut text, &format!("  {name:<30} {begin:>9} {own:>9} {}", bar(boot, &link)));
    }
    text
}

fn bar(boot: &Boot, link: &Link<'_>) -> String {
    let total = boot.total_us().max(1);
    let column = |us: i64| usize::try_from(us.saturating_mul(BAR) / total).unwrap_or(0);
    let begin = column(link.span.begin_us - boot.begin_us());
    let worked = column(link.span.begin_us + link.own_us - boot.begin_us()).saturating_sub(begin);
    let waited = column(link.wait_us);
    let marks = if link.own_us > 0 { "#".repeat(worked.max(1)) } else { String::new() };
    format!("{}{marks}{}", " ".repeat(begin), ".".repeat(waited))
}

/// Several boots: one line for each, then the spans that they share.
pub fn compare(comparison: &Comparison) -> String {
    let Comparison { names, total, rows } = comparison;
    let mut text = format!("{} boots, median {}\n\n", names.len(), time(total.median_us));
    for (at, (name, value)) in names.iter().zip(&total.values).enumerate() {
        let mark = if total.outliers.contains(&at) { "outlier" } else { "" };
        let value = value.map(time).unwrap_or_default();
        push(&mut text, &format!("{:>3}  {:<46} {value:>10}  {mark}", at + 1, cut(name, 46)));
    }
    let head = ("median", "least", "most");
    let _ =
        writeln!(text, "\n{:<NAME$} {:>9} {:>9} {:>9}  outliers", "span", head.0, head.1, head.2);
    for row in rows.iter().take(COMPARED) {
        push(&mut text, &compared(row));
    }
    text
}

fn compared(row: &Row) -> String {
    let Row { median_us, least_us, most_us, .. } = row;
    let outliers: Vec<_> = row.outliers.iter().map(|at| (at + 1).to_string()).collect();
    format!(
        "{:<NAME$} {:>9} {:>9} {:>9}  {}",
        cut(&row.name, NAME),
        time(*median_us),
        time(*least_us),
        time(*most_us),
        outliers.join(" ")
    )
}

/// A line that fits and is one line, whatever the names in it hold.
fn push(text: &mut String, line: &str) {
    let line = visible(line.trim_end()).replace(['\n', '\t'], " ");
    let _ = writeln!(text, "{}", cut(&line, WIDTH));
}

/// The begin of a word that is too long, with dots.
pub(super) fn cut(word: &str, width: usize) -> String {
    if word.chars().count() <= width {
        return word.to_owned();
    }
    word.chars().take(width.saturating_sub(2)).chain("..".chars()).collect()
}

/// Words behind a prefix, in as many lines as they need.
fn wrapped(prefix: &str, words: &str) -> String {
    let mut text = String::new();
    let mut line = prefix.to_owned();
    for word in words.split_whitespace() {
        if line.len() > prefix.len() && line.len() + 1 + word.len() > WIDTH {
            push(&mut text, &line);
            line = " ".repeat(prefix.len());
        }
        if line.len() > prefix.len() {
            line.push(' ');
        }
        line.push_str(word);
    }
    push(&mut text, &line);
    text
}
