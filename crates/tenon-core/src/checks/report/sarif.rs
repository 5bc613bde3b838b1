//! Findings as SARIF 2.1.0, which code hosts collect.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Report;
use crate::checks::{Finding, State};

pub(super) fn render(report: &Report) -> Value {
    let told = |finding: &&Finding| {
        !matches!(finding.state, State::Pass | State::NotApplicable | State::Manual)
    };
    let told: Vec<&Finding> = report.findings.iter().filter(told).collect();
    let rules: BTreeMap<&str, &str> =
        told.iter().map(|finding| (finding.id.as_str(), finding.what.as_str())).collect();
    let rule = |(id, what): (&str, &str)| json!({"id": id, "shortDescription": {"text": what}});
    json!({
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{
            "tool": {"driver": {
                "name": report.tool,
                "rules": rules.into_iter().map(rule).collect::<Vec<_>>(),
            }},
            "results": told.into_iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let level = match finding.state {
        State::Fail => "error",
        State::Warn => "warning",
        _ => "note",
    };
    let text = format!(
        "{}: expected {}, actual {}; {}",
        finding.what, finding.expected, finding.actual, finding.remedy
    );
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": finding.place}]});
    if let Some(path) = finding.place.strip_prefix('/') {
        location["physicalLocation"] = json!({"artifactLocation": {"uri": path}});
    }
    let mut result = json!({
        "ruleId": finding.id,
        "level": level,
        "message": {"text": text},
        "locations": [location],
    });
    if let Some(exception) = &finding.exception {
        let reason = &exception.reason;
        result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
    }
    result
}
