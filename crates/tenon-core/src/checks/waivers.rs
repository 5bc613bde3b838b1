//! What may stay as it is: exceptions with reason and expiry, and a baseline of known findings.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Exception, Finding, State, cis};
use crate::codes;
use crate::problem::{Place, Problem};
use crate::tree::Dialect;
use crate::yaml;

/// One entry of an exceptions file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiver {
    id: String,
    /// Only findings at this place; None for all of them.
    place: Option<String>,
    exception: Exception,
}

/// Reads an exceptions file: a list under `exceptions` of `id`, `reason`, `expires` and, to
/// narrow it down, `where`.
pub fn exceptions(source: &str, text: &str) -> Result<Vec<Waiver>, Problem> {
    let refuse = |what: &str| {
        let place = Place { source: source.to_owned(), ..Place::default() };
        Problem::new(&codes::checks::BAD_EXCEPTIONS, what).at(place)
    };
    let trees = yaml::parse(text).map_err(|_| refuse("the file is neither YAML nor JSON"))?;
    let document = trees.first().map(|tree| tree.to_json(Dialect::Yaml12));
    let list = document.as_ref().and_then(|document| document.get("exceptions")?.as_array());
    let list = list.ok_or_else(|| refuse("the file has no list `exceptions`"))?;
    let known: BTreeSet<String> = cis::ids().collect();
    let mut waivers = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let waiver = waiver(entry, &known);
        waivers.push(waiver.map_err(|why| refuse(&format!("exceptions[{index}]: {why}")))?);
    }
    Ok(waivers)
}

fn waiver(entry: &Value, known: &BTreeSet<String>) -> Result<Waiver, &'static str> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let keys = entry.as_object().ok_or("it is not a map")?.keys();
    if keys.into_iter().any(|key| !["id", "where", "reason", "expires"].contains(&key.as_str())) {
        return Err("it has a key other than id, where, reason and expires");
    }
    let id = text("id").ok_or("it has no id")?;
    let is_benchmark = ["eks-", "k8s-", "extra-"].iter().any(|prefix| id.starts_with(prefix));
    if is_benchmark && !known.contains(id) {
        return Err("no item has this id");
    }
    let expires = text("expires").filter(|date| is_date(date)).ok_or("expires is not a date")?;
    Ok(Waiver {
        id: id.to_owned(),
        place: text("where").map(str::to_owned),
        exception: Exception {
            reason: text("reason").ok_or("it has no reason")?.to_owned(),
            expires: Some(expires.to_owned()),
        },
    })
}

/// `2027-01-31`, which sorts as it is written.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
    bytes.len() == 10
        && (bytes[4], bytes[7]) == (b'-', b'-')
        && digits(0..4)
        && digits(5..7)
        && digits(8..10)
}

/// Turns failures into exceptions where a waiver that has not run out says so. `today` is
/// `YYYY-MM-DD`.
pub fn excuse(findings: &mut [Finding], waivers: &[Waiver], today: &str) {
    for finding in findings {
        if !matches!(finding.state, State::Fail | State::Warn) {
            continue;
        }
        let fits = |waiver: &&Waiver| {
            let place = waiver.place.as_ref();
            waiver.id == finding.id && place.is_none_or(|place| *place == finding.place)
        };
        let Some(waiver) = waivers.iter().find(fits) else { continue };
        let expires = waiver.exception.expires.as_deref().unwrap_or_default();
        if expires < today {
            finding.remedy = format!("its exception ran out on {expires}; {}", finding.remedy);
            continue;
        }
        finding.state = State::Exception;
        finding.exception = Some(waiver.exception.clone());
        // What a person excused is not mended behind that person's back.
        finding.mend = None;
    }
}

/// Reads an earlier JSON answer as a baseline: the findings that are known.
pub fn baseline(source: &str, text: &str) -> Result<BTreeSet<String>, Problem> {
    let refuse = || {
        let place = Place { source: source.to_owned(), ..Place::default() };
        Problem::new(&codes::checks::BAD_BASELINE, "the file is not an answer of validate")
            .at(place)
    };
    let document: Value = serde_json::from_str(text).map_err(|_| refuse())?;
    let list = document.get("findings").and_then(Value::as_array).ok_or_else(refuse)?;
    Ok(list.iter().map(key_of).collect())
}

fn key_of(finding: &Value) -> String {
    let text = |key: &str| finding.get(key).and_then(Value::as_str).unwrap_or_default();
    ["id", "state", "where", "expected", "actual"].map(text).join("\n")
}

/// Leaves out failures that the baseline has, and says how many there were.
pub fn without_known(findings: &mut Vec<Finding>, known: &BTreeSet<String>) -> usize {
    let before = findings.len();
    findings.retain(|finding| {
        let counts = matches!(finding.state, State::Fail | State::Warn | State::Unknown);
        !counts || !known.contains(&key_of(&finding.to_json()))
    });
    before - findings.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Family;

    fn failed(id: &str, place: &str) -> Finding {
        Finding::new(Family::Cis, id, "x").state(State::Fail).at(place)
    }

    const FILE: &str = "exceptions:\n- id: k8s-4.2.13\n  where: podPidsLimit\n  \
                        reason: batch nodes\n  expires: 2027-01-31\n";

    #[test]
    fn an_exception_holds_at_its_place_until_its_day() {
        let waivers = exceptions("x.yaml", FILE).unwrap();
        for (place, today, state) in [
            ("podPidsLimit", "2027-01-31", State::Exception),
            ("podPidsLimit", "2027-02-01", State::Fail),
            ("other", "2027-01-31", State::Fail),
        ] {
            let mut findings = [failed("k8s-4.2.13", place), failed("k8s-4.2.14", place)];
            excuse(&mut findings, &waivers, today);
            assert_eq!(findings[0].state, state, "{place} {today}");
            assert_eq!(findings[1].state, State::Fail);
            let told = findings[0].remedy.contains("ran out on 2027-01-31");
            assert_eq!(told, today > "2027-01-31");
        }
    }

    #[test]
    fn an_exception_needs_a_known_id_a_reason_and_a_date() {
        for (from, to, told) in [
            ("k8s-4.2.13", "k8s-9.9.9", "no item has this id"),
            ("2027-01-31", "someday", "expires is not a date"),
            ("reason: batch nodes", "reason: \"\"", "it has no reason"),
            ("where:", "place:", "it has a key other than"),
            ("exceptions:", "list:", "has no list"),
            ("exceptions:", "{", "neither YAML nor JSON"),
        ] {
            let problem = exceptions("x.yaml", &FILE.replace(from, to)).unwrap_err();
            assert!(problem.what.contains(told), "{to}: {}", problem.what);
            assert_eq!(problem.exit(), 3);
        }
    }

    #[test]
    fn a_baseline_knows_a_finding_until_it_changes() {
        let old = failed("eks-3.1.1", "/a").values("no wider than 0644", "0666");
        let answer = serde_json::json!({"findings": [old.to_json()]}).to_string();
        let known = baseline("b.json", &answer).unwrap();
        let mut findings = vec![old.clone(), old.actual("0777"), failed("eks-3.1.2", "/a")];
        assert_eq!(without_known(&mut findings, &known), 1);
        assert_eq!(findings.len(), 2);
        assert_eq!(baseline("b.json", "[]").unwrap_err().exit(), 3);
    }
}
