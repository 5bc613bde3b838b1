use super::*;
use crate::checks::Severity;

fn report(fail_on: FailOn) -> Report {
    let finding = |id: &str, family, state| {
        Finding::new(family, id, "a <what> & \"more\"").state(state).at("/etc/a").remedy("do it")
    };
    Report {
        tool: "tenon validate",
        source: "/".into(),
        fail_on,
        findings: vec![
            finding("eks-1", Family::Cis, State::Pass),
            finding("eks-2", Family::Cis, State::Warn),
            finding("eks-3", Family::Cis, State::Unknown),
            finding("drift-1", Family::Drift, State::Pass).excused("known"),
        ],
        ..Report::default()
    }
}

#[test]
fn the_answer_follows_the_threshold_and_unknown_is_no_pass() {
    assert_eq!(report(FailOn::Fail).exit(), 0);
    assert_eq!(report(FailOn::Warn).exit(), 1);
    let mut worse = report(FailOn::Fail);
    worse.findings.push(Finding::new(Family::Drift, "d", "x").state(State::Fail));
    assert_eq!(worse.exit(), 1);
    worse.findings.push(Finding::new(Family::Config, "TN03014", "x").state(State::Fail));
    assert_eq!(worse.exit(), 3);
    assert_eq!(report(FailOn::Fail).count(State::Pass), 1);
    let line = report(FailOn::Fail).counts_line();
    assert!(line.starts_with("1 pass,") && line.contains("1 unknown"), "{line}");
}

#[test]
fn text_shows_what_matters_first_and_the_rest_on_request() {
    let text = report(FailOn::Fail).text(false);
    assert!(!text.contains("eks-1") && text.contains("  reason    known\n"), "{text}");
    let (warned, unknown) = (text.find("eks-2").unwrap(), text.find("eks-3").unwrap());
    assert!(warned < unknown, "{text}");
    assert!(report(FailOn::Fail).text(true).contains("PASS      eks-1"));
}

#[test]
fn junit_counts_failures_by_the_threshold() {
    for (fail_on, failures) in [(FailOn::Fail, 0), (FailOn::Warn, 1)] {
        let xml = report(fail_on).junit();
        let head = format!("name=\"cis\" tests=\"3\" failures=\"{failures}\" skipped=\"1\"");
        assert!(xml.contains(&head), "{xml}");
        assert!(!xml.contains("<what>"), "{xml}");
    }
}

#[test]
fn sarif_leaves_out_what_passed() {
    let log = report(FailOn::Fail).sarif();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let rules: Vec<&Value> = results.iter().map(|result| &result["ruleId"]).collect();
    assert_eq!(rules, ["eks-2", "eks-3", "drift-1"]);
    assert_eq!(results[2]["suppressions"][0]["justification"], "known");
}

/// Every key and word of an answer is in the schema, and every required key in the answer.
#[test]
fn the_schema_is_that_of_the_answer() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut full = report(FailOn::Fail);
    full.mending = Some(Mending::default());
    let answer = full.to_json();
    let same = |schema: &Value, value: &Value| {
        let value = value.as_object().unwrap();
        let known = schema["properties"].as_object().unwrap();
        assert!(value.keys().all(|key| known.contains_key(key)), "{value:?}");
        let required = schema["required"].as_array().into_iter().flatten();
        required.for_each(|key| assert!(value.contains_key(key.as_str().unwrap()), "{key}"));
    };
    same(&schema, &answer);
    same(&schema["properties"]["mending"], &answer["mending"]);
    let item = &schema["properties"]["findings"]["items"];
    answer["findings"].as_array().unwrap().iter().for_each(|finding| same(item, finding));
    let words = |key: &str| item["properties"][key]["enum"].clone();
    assert_eq!(words("state"), json!(State::ALL.map(State::name)));
    assert_eq!(words("family"), json!(Family::ALL.map(Family::name)));
    let severities = [Severity::High, Severity::Medium, Severity::Low];
    assert_eq!(words("severity"), json!(severities.map(Severity::name)));
}

#[test]
fn prometheus_names_every_family_and_state() {
    let text = report(FailOn::Fail).prometheus(17);
    assert!(text.contains("tenon_validate_findings{family=\"cis\",state=\"warn\"} 1\n"));
    assert!(text.contains("tenon_validate_findings{family=\"image\",state=\"fail\"} 0\n"));
    assert!(text.ends_with("tenon_validate_time_seconds 17\n"));
}
