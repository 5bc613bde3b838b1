//! Findings for people: the worst first.

use super::Report;
use crate::checks::{Exception, Finding, State};
use crate::problem::visible;

pub(super) fn render(report: &Report, all: bool) -> String {
    let mut text = report.tool.to_owned();
    let parts =
        [("of", report.source.as_str()), ("node", &report.node), ("profile", report.profile)];
    for (name, value) in parts.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("   {name} {value}"));
    }
    text.push('\n');
    let quiet = [State::Pass, State::NotApplicable];
    let mut shown: Vec<&Finding> =
        report.findings.iter().filter(|finding| all || !quiet.contains(&finding.state)).collect();
    shown.sort_by_key(|finding| finding.state);
    shown.iter().for_each(|finding| text.push_str(&block(finding)));
    text.push_str(&format!("{}\n", report.counts_line()));
    text
}

/// One line that names it, and one per part that says something.
fn block(finding: &Finding) -> String {
    let mark = finding.state.name().to_uppercase();
    let mut text = format!("{mark:<9} {}  {}\n", finding.id, finding.what);
    let reason = finding.exception.as_ref().map(in_words).unwrap_or_default();
    let actual = match finding.state {
        State::Unknown | State::NotApplicable => ("because", &finding.actual),
        _ => ("actual", &finding.actual),
    };
    let brief = matches!(finding.state, State::Pass | State::NotApplicable);
    let parts = [
        ("where", &finding.place),
        ("expected", &finding.expected),
        actual,
        ("origin", &finding.origin),
        ("reason", &reason),
        ("fix", &finding.remedy),
    ];
    let said = parts.iter().filter(|(name, value)| {
        !value.is_empty() && (!brief || ["where", "because"].contains(name))
    });
    for (name, value) in said {
        text.push_str(&format!("  {name:<9} {}\n", visible(value).replace('\n', " ")));
    }
    text
}

fn in_words(exception: &Exception) -> String {
    match &exception.expires {
        Some(day) => format!("{}, until {day}", exception.reason),
        None => exception.reason.clone(),
    }
}
