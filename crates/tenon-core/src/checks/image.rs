//! A node against the plan of the image that it was made from: its files, directories and
//! absences, and on a running node the kernel's settings. The plan is read as data, so that a
//! node needs none of what makes plans; `tenon image verify --running` judges every kind.

use serde_json::Value;

use super::snapshot::{Look, Seen, Snapshot};
use super::{Family, Finding, Severity, State, veiled};
use crate::image::effective;
use crate::image::resource::Resource;
use crate::problem::Place;

/// Where an image keeps its plan.
pub const PLAN: &str = "/usr/lib/tenon/image/plan.json";
const REMEDY: &str =
    "start the node anew from its image, or run `tenon image apply` with this plan";

/// What the host found out besides the snapshot.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    /// The plan of the image; None if the root has none, an error if it cannot be read.
    pub plan: Option<Result<Value, String>>,
    /// False for a root: no kernel runs there.
    pub live: bool,
}

/// Judges the node: one finding for each thing that is not as it was built, and one for all that
/// is.
pub fn judge(snapshot: &Snapshot, sight: &Sight) -> Vec<Finding> {
    let blank = || Finding::new(Family::Image, "image", "the image as it was built").at(PLAN);
    let plan = match &sight.plan {
        None => return vec![blank().not_applicable("no plan of `tenon image` is here")],
        Some(Err(why)) => return vec![blank().unknown(why.as_str())],
        Some(Ok(plan)) => plan,
    };
    let (mut held, mut others, mut findings) = (0, 0, Vec::new());
    for verdict in verdicts(snapshot, plan, sight.live) {
        match verdict {
            Verdict::Holds => held += 1,
            Verdict::Elsewhere => others += 1,
            Verdict::Not(finding) => findings.push(*finding),
        }
    }
    let words = format!("{held} of its things are as they were built");
    findings.push(blank().actual(words));
    let rest = Finding::new(Family::Image, "image-rest", "packages, links and other kinds");
    let told = format!("{others} more: `tenon image verify --running` judges them");
    findings.push(rest.at(PLAN).not_applicable(told));
    findings
}

/// What became of one thing of the plan.
enum Verdict {
    Holds,
    /// Another command, or another family of checks, judges it.
    Elsewhere,
    Not(Box<Finding>),
}

fn verdicts(snapshot: &Snapshot, plan: &Value, live: bool) -> Vec<Verdict> {
    let list = |name: &str| plan[name].as_array().into_iter().flatten();
    let items = list("items").map(|item| item_verdict(snapshot, item));
    let settings = list("resources").filter(|one| live && one["kind"] == "sysctl");
    items.chain(settings.map(|one| setting_verdict(snapshot, one))).collect()
}

fn item_verdict(snapshot: &Snapshot, item: &Value) -> Verdict {
    let (act, with) = (item["act"].as_str().unwrap_or_default(), &item["with"]);
    let path = item["key"].as_str().unwrap_or_default();
    let recorded = snapshot.record.as_ref().is_some_and(|record| record.files.contains_key(path));
    if recorded || !["file", "directory", "absent"].contains(&act) || path.contains('*') {
        return Verdict::Elsewhere;
    }
    let anything = with["ifAbsent"] == true;
    let (expected, actual) = match (act, snapshot.look(path)) {
        (_, Look::Hidden(why)) => return not(act, path, |finding| finding.unknown(why)),
        ("absent", Look::Absent) => return Verdict::Holds,
        ("absent", Look::There(_)) => ("nothing".to_owned(), "something is there".to_owned()),
        ("file", Look::There(seen)) if anything && !seen.is_directory => return Verdict::Holds,
        (_, look) => (wanted(act, with), found(act, &look, with)),
    };
    match expected == actual {
        true => Verdict::Holds,
        false => not(act, path, |finding| {
            finding.state(State::Fail).values(expected, actual).remedy(REMEDY)
        }),
    }
}

fn not(act: &str, place: &str, tell: impl FnOnce(Finding) -> Finding) -> Verdict {
    let blank = Finding::new(Family::Image, format!("image-{act}"), "as the image has it");
    Verdict::Not(Box::new(tell(blank.at(place).severity(Severity::Medium))))
}

/// What the plan says, in the words of [`found`].
fn wanted(act: &str, with: &Value) -> String {
    let mode = with["mode"].as_str().unwrap_or_default();
    match act {
        "file" => {
            let content = with["content"].as_str().unwrap_or_default();
            format!("{}, mode {mode}", veiled(content.as_bytes()))
        }
        _ => format!("a directory, mode {mode}"),
    }
}

fn found(act: &str, look: &Look, with: &Value) -> String {
    let Look::There(seen) = look else { return "nothing".to_owned() };
    // A source without modes cannot contradict one.
    let given = with["mode"].as_str().unwrap_or_default().to_owned();
    let mode = seen.stat.map_or(given, |stat| format!("{:04o}", stat.mode));
    match (act, seen) {
        (_, Seen { is_directory: true, .. }) => format!("a directory, mode {mode}"),
        ("directory", _) => format!("no directory, mode {mode}"),
        (_, seen) => format!("{}, mode {mode}", veiled(&seen.body)),
    }
}

/// A setting of the kernel, judged as `tenon image verify --running` does.
fn setting_verdict(snapshot: &Snapshot, resource: &Value) -> Verdict {
    let Ok(resource) = Resource::from_json(resource, &Place::default()) else {
        return Verdict::Elsewhere;
    };
    let actual = match snapshot.text(&effective::kernel_path(&resource.key)) {
        Ok(Some(actual)) if effective::suits(&resource, &actual) => return Verdict::Holds,
        Ok(Some(actual)) => actual,
        // A kernel without the module, or without the feature, does not have it.
        Ok(None) => return Verdict::Elsewhere,
        Err(why) => return not("sysctl", &resource.key, |finding| finding.unknown(why)),
    };
    not("sysctl", &resource.key, |finding| {
        let finding = finding.values(effective::wanted_words(&resource), actual.trim());
        let remedy = "`sysctl --system` loads what the image has; find out who changed it";
        finding.state(State::Fail).remedy(remedy)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::snapshot::Stat;
    use super::*;

    fn there(body: &str, mode: u32, is_directory: bool) -> Look {
        let stat = Some(Stat { mode, ..Stat::default() });
        Look::There(Seen { stat, is_directory, body: body.into(), modified_us: 0 })
    }

    fn judged(files: &[(&str, Look)], plan: Value, live: bool) -> Vec<(String, String, State)> {
        let mut snapshot = Snapshot::default();
        let answer = |question: &super::super::snapshot::Question| {
            let super::super::snapshot::Question::File(path) = question else { panic!() };
            let known = files.iter().find(|(known, _)| known == path);
            super::super::snapshot::Answer::Look(
                known.map_or(Look::Absent, |(_, look)| look.clone()),
            )
        };
        let sight = Sight { plan: Some(Ok(plan)), live };
        let findings = snapshot.settle(&answer, &|snapshot| judge(snapshot, &sight));
        findings.into_iter().map(|one| (one.id, one.place, one.state)).collect()
    }

    fn item(act: &str, key: &str, with: Value) -> Value {
        json!({"act": act, "key": key, "with": with})
    }

    /// One thing of the plan, what stands there, and whether that is right.
    #[test]
    fn each_kind_is_held_against_its_plan() {
        let file = json!({"content": "a\n", "mode": "0644", "ifAbsent": false});
        let first = json!({"content": "a\n", "mode": "0644", "ifAbsent": true});
        let directory = json!({"mode": "0755"});
        for (act, with, look, state) in [
            ("file", &file, there("a\n", 0o644, false), None),
            ("file", &file, there("b\n", 0o644, false), Some(State::Fail)),
            ("file", &file, there("a\n", 0o666, false), Some(State::Fail)),
            ("file", &file, Look::Absent, Some(State::Fail)),
            ("file", &file, Look::Hidden("denied".into()), Some(State::Unknown)),
            ("file", &first, there("b\n", 0o600, false), None),
            ("file", &first, Look::Absent, Some(State::Fail)),
            ("directory", &directory, there("", 0o755, true), None),
            ("directory", &directory, there("", 0o700, true), Some(State::Fail)),
            ("directory", &directory, there("", 0o755, false), Some(State::Fail)),
            ("absent", &json!({}), Look::Absent, None),
            ("absent", &json!({}), there("", 0o644, false), Some(State::Fail)),
            ("link", &json!({}), Look::Absent, None),
        ] {
            let plan = json!({"items": [item(act, "/x", with.clone())]});
            let found = judged(&[("/x", look.clone())], plan, false);
            let told = found.iter().find(|(_, place, _)| place == "/x").map(|(.., state)| *state);
            assert_eq!(told, state, "{act} {look:?}");
        }
    }

    #[test]
    fn the_kernel_is_asked_where_one_runs() {
        let sysctl = |fields: Value| json!({"resources": [{"kind": "sysctl", "key": "a.b", "fields": fields}]});
        for (fields, value, right) in [
            (json!({"value": "1 2"}), "1\t2\n", true),
            (json!({"value": "1"}), "0\n", false),
            (json!({"floor": 5}), "5\n", true),
            (json!({"floor": 5}), "4\n", false),
            (json!({"ceiling": 5}), "6\n", false),
        ] {
            let look = [("/proc/sys/a/b", there(value, 0o644, false))];
            let failed = |live| {
                let found = judged(&look, sysctl(fields.clone()), live);
                found.iter().any(|(.., state)| *state == State::Fail)
            };
            assert_eq!((failed(true), failed(false)), (!right, false), "{fields} {value}");
        }
    }

    #[test]
    fn what_init_wrote_and_other_kinds_are_judged_elsewhere() {
        let file = json!({"content": "a\n", "mode": "0644"});
        let plan = json!({"items": [item("file", "/x", file), item("package", "runc", json!({}))]});
        let mut snapshot = Snapshot::default();
        let mut record = crate::plan::record::Record::default();
        let mark = crate::plan::record::FileMark { sha256: String::new(), mode: 0o644 };
        record.files.insert("/x".to_owned(), mark);
        snapshot.record = Some(record);
        let sight = Sight { plan: Some(Ok(plan)), live: false };
        let findings = judge(&snapshot, &sight);
        assert_eq!(findings[0].actual, "0 of its things are as they were built");
        assert!(findings[1].actual.starts_with("2 more: "), "{}", findings[1].actual);
    }

    #[test]
    fn without_a_plan_there_is_no_verdict() {
        for (plan, state) in
            [(None, State::NotApplicable), (Some(Err("no JSON".to_owned())), State::Unknown)]
        {
            let found = judge(&Snapshot::default(), &Sight { plan, live: true });
            assert_eq!((found.len(), found[0].state), (1, state));
        }
    }
}
