//! Findings as JUnit XML, which build servers show as tests: one suite per family.

use super::Report;
use crate::checks::{Family, Finding, State};
use crate::xml::escape;

pub(super) fn render(report: &Report) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for family in Family::ALL {
        let cases: Vec<&Finding> =
            report.findings.iter().filter(|finding| finding.family == family).collect();
        if cases.is_empty() {
            continue;
        }
        let failures = cases.iter().filter(|case| report.counts_against(case)).count();
        let skipped = cases.iter().filter(|case| is_skipped(case)).count();
        text.push_str(&format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\">\n",
            family.name(),
            cases.len()
        ));
        cases.iter().for_each(|case| text.push_str(&test_case(report, case)));
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// Neither judged good nor judged bad.
fn is_skipped(finding: &Finding) -> bool {
    !matches!(finding.state, State::Pass | State::Fail | State::Warn)
}

fn test_case(report: &Report, finding: &Finding) -> String {
    let name = format!("{} {} {}", finding.id, finding.what, finding.place);
    let head = format!(
        "    <testcase classname=\"tenon.{}\" name=\"{}\"",
        finding.family.name(),
        escape(name.trim_end())
    );
    let state = finding.state.name();
    let told = escape(&format!(
        "expected {}, actual {}; {}",
        finding.expected, finding.actual, finding.remedy
    ));
    let inner = if report.counts_against(finding) {
        let severity = finding.severity.name();
        format!(
            "<failure type=\"{severity}\" message=\"{}\">{told}</failure>",
            escape(&finding.what)
        )
    } else if is_skipped(finding) {
        let why = finding.exception.as_ref().map_or(&finding.actual, |exception| &exception.reason);
        format!("<skipped message=\"{state}: {}\"/>", escape(why))
    } else if finding.state == State::Warn {
        format!("<system-out>{told}</system-out>")
    } else {
        return format!("{head}/>\n");
    };
    format!("{head}>{inner}</testcase>\n")
}
