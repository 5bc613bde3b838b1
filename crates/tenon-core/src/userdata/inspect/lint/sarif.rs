//! Findings as SARIF 2.1.0, which code hosts show beside the lines.

use serde_json::{Value, json};

use super::{Finding, Level};
use crate::codes;

/// A log of one run.
pub fn sarif(findings: &[Finding]) -> Value {
    let rules = codes::inspect::ALL.iter().filter(|page| page.slug.starts_with('U'));
    let rules: Vec<Value> = rules
        .map(|page| {
            json!({
                "id": page.slug,
                "shortDescription": {"text": page.why},
                "help": {"text": page.fix},
            })
        })
        .collect();
    json!({
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{
            "tool": {"driver": {"name": "tenon userdata lint", "rules": rules}},
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let level = match finding.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let place = finding.problem.place.clone().unwrap_or_default();
    // Lines count in the decoded part; only an undecoded source has them in the file itself.
    let own_lines = place.line > 0 && place.part.is_none() && place.layers.is_empty();
    let mut location = json!({"artifactLocation": {"uri": place.source}});
    if own_lines {
        location["region"] = json!({"startLine": place.line});
    }
    json!({
        "ruleId": finding.rule(),
        "level": level,
        "message": {"text": format!("{}; {}", finding.problem.what, finding.problem.fix_text())},
        "locations": [{
            "physicalLocation": location,
            "logicalLocations": [{"fullyQualifiedName": place.path}],
        }],
    })
}
