//! Many wishes into one description. Two wishes for the same thing agree, are compatible, or are
//! a conflict that only an exception with a reason can settle; the order of features never
//! decides a value.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::kind::{Field, Merge};
use super::resource::Resource;
use crate::codes::image::{CONFLICT, EXCEPTION_EXPIRED, EXCEPTION_UNUSED, SHORT_REASON};
use crate::problem::Problem;

/// The shortest reason that says something.
const SHORTEST_REASON: usize = 20;

/// A decision that somebody took and can be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// A rule of a benchmark that is waived.
    pub rule: Option<String>,
    /// The resource whose conflict is settled: `sysctl/net.ipv4.ip_forward`.
    pub resource: Option<String>,
    /// The feature whose wish is kept.
    pub keep: Option<String>,
    pub reason: String,
    /// A day, `2027-01-31`.
    pub expires: Option<String>,
    /// Who made it: a profile's name or `config`.
    pub feature: String,
}

impl Exception {
    pub fn to_json(&self) -> Value {
        json!({
            "rule": self.rule,
            "resource": self.resource,
            "keep": self.keep,
            "reason": self.reason,
            "expires": self.expires,
            "feature": self.feature,
        })
    }
}

/// What came out of a merge.
#[derive(Debug, Default)]
pub struct Merged {
    /// In the order of kinds, then of keys.
    pub resources: Vec<Resource>,
    /// Names of the resources whose conflict an exception settled.
    pub settled: Vec<String>,
    pub problems: Vec<Problem>,
}

/// Merges all wishes.
pub fn merge(wishes: Vec<Resource>, exceptions: &[Exception]) -> Merged {
    let mut groups: BTreeMap<(usize, String), Vec<Resource>> = BTreeMap::new();
    for wish in wishes {
        groups.entry((wish.kind.rank(), wish.key.clone())).or_default().push(wish);
    }
    let mut merged = Merged::default();
    for group in groups.into_values() {
        merged.add(group, exceptions);
    }
    merged.opposites(exceptions);
    merged
}

impl Merged {
    /// Makes one resource of a group, if its members can agree.
    fn add(&mut self, mut group: Vec<Resource>, exceptions: &[Exception]) {
        group.sort_by(|left, right| left.reasons.cmp(&right.reasons));
        let name = group[0].name();
        if let Some(keep) = keep_for(exceptions, &name) {
            let kept = group.iter().any(|one| one.reasons.iter().any(|r| r.feature == keep));
            let disagree = group.windows(2).any(|pair| together(&pair[0], &pair[1]).is_err());
            if kept && disagree {
                group.retain(|one| one.reasons.iter().any(|reason| reason.feature == keep));
                self.settled.push(name);
            }
        }
        let mut group = group.into_iter();
        let Some(mut one) = group.next() else { return };
        for next in group {
            match together(&one, &next) {
                Ok(both) => one = both,
                Err(field) => {
                    self.problems.push(conflict(&one, &next, field));
                    return;
                }
            }
        }
        if let Some(problem) = empty_range(&one) {
            self.problems.push(problem);
            return;
        }
        self.resources.push(one);
    }

    /// Kinds that want the opposite of each other: a package and its absence, a file and its
    /// absence, a unit that starts and a mask.
    fn opposites(&mut self, exceptions: &[Exception]) {
        const PAIRS: &[(&str, &str)] = &[
            ("package", "package-absent"),
            ("file", "absent"),
            ("link", "absent"),
            ("unit", "mask"),
        ];
        for (wanted, unwanted) in PAIRS {
            let names = |kind: &str, list: &[Resource]| -> Vec<String> {
                let of_kind = list.iter().filter(|one| one.kind.name == kind);
                of_kind.map(|one| one.key.clone()).collect()
            };
            let unwanted_names = names(unwanted, &self.resources);
            for key in names(wanted, &self.resources) {
                if unwanted_names.contains(&key) {
                    self.oppose((wanted, unwanted), &key, exceptions);
                }
            }
        }
    }

    fn oppose(&mut self, pair: (&str, &str), key: &str, exceptions: &[Exception]) {
        let find = |kind: &str| {
            self.resources.iter().position(|one| one.kind.name == kind && one.key == key)
        };
        let (Some(wanted), Some(unwanted)) = (find(pair.0), find(pair.1)) else { return };
        let keeps = |at: usize, keep: &str| {
            self.resources[at].reasons.iter().any(|reason| reason.feature == keep)
        };
        for name in [self.resources[wanted].name(), self.resources[unwanted].name()] {
            let Some(keep) = keep_for(exceptions, &name) else { continue };
            let loser = if keeps(wanted, keep) { unwanted } else { wanted };
            self.settled.push(name);
            self.resources.remove(loser);
            return;
        }
        let (wanted, unwanted) = (&self.resources[wanted], &self.resources[unwanted]);
        self.problems.push(conflict(wanted, unwanted, "presence"));
    }
}

fn keep_for<'a>(exceptions: &'a [Exception], name: &str) -> Option<&'a str> {
    let of_it = exceptions.iter().find(|one| one.resource.as_deref() == Some(name));
    of_it.and_then(|one| one.keep.as_deref())
}

/// Both wishes as one, or the name of the field over which they differ.
fn together(left: &Resource, right: &Resource) -> Result<Resource, &'static str> {
    let mut fields = Map::new();
    for field in left.kind.fields {
        let pair = (left.fields.get(field.name), right.fields.get(field.name));
        let value = match pair {
            (Some(left), Some(right)) => Some(join(field, left, right).ok_or(field.name)?),
            (None, None) => None,
            (one, other) => match field.unsaid.map(Value::Bool) {
                Some(unsaid) => {
                    let (one, other) = (one.unwrap_or(&unsaid), other.unwrap_or(&unsaid));
                    Some(join(field, one, other).ok_or(field.name)?)
                }
                None => one.or(other).cloned(),
            },
        };
        if let Some(value) = value {
            fields.insert(field.name.to_owned(), value);
        }
    }
    let mut both = Resource { fields, ..left.clone() };
    both.reasons.extend(right.reasons.iter().cloned());
    both.reasons.sort_unstable();
    both.reasons.dedup();
    both.rules.extend(right.rules.iter().cloned());
    both.rules.sort_unstable();
    both.rules.dedup();
    both.required |= right.required;
    Ok(both)
}

fn join(field: &Field, left: &Value, right: &Value) -> Option<Value> {
    if left == right {
        return Some(left.clone());
    }
    match field.merge {
        Merge::Equal => None,
        Merge::Highest => Some(json!(left.as_i64()?.max(right.as_i64()?))),
        Merge::Lowest => Some(json!(left.as_i64()?.min(right.as_i64()?))),
        Merge::Narrower => narrower(left.as_str()?, right.as_str()?),
        Merge::Union => union(left, right),
    }
}

/// `2.1` and `2.1.9` are `2.1.9`; `2.1` and `2.10` are nothing.
fn narrower(left: &str, right: &str) -> Option<Value> {
    let (short, long) = if left.len() < right.len() { (left, right) } else { (right, left) };
    let rest = long.strip_prefix(short)?;
    rest.starts_with(['.', '-', '+', '~']).then(|| json!(long))
}

fn union(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(json!(*left || *right)),
        (Value::Array(left), Value::Array(right)) => {
            let mut all: Vec<_> = left.iter().chain(right).filter_map(Value::as_str).collect();
            all.sort_unstable();
            all.dedup();
            Some(json!(all))
        }
        (Value::Object(left), Value::Object(right)) => {
            let clash = |(name, value): (&String, &Value)| {
                right.get(name).is_some_and(|other| other != value)
            };
            if left.iter().any(clash) {
                return None;
            }
            let all = left.iter().chain(right).map(|(name, value)| (name.clone(), value.clone()));
            Some(Value::Object(all.collect()))
        }
        _ => None,
    }
}

/// A floor above a ceiling, or a value outside of both, is a conflict within one resource.
fn empty_range(one: &Resource) -> Option<Problem> {
    let value = one.text("value").and_then(|text| text.parse::<i64>().ok());
    let (floor, ceiling) = (one.number("floor"), one.number("ceiling"));
    let low = floor.is_some_and(|floor| ceiling.or(value).is_some_and(|top| top < floor))
        || floor.zip(value).is_some_and(|(floor, value)| value < floor);
    let high = ceiling.zip(value).is_some_and(|(ceiling, value)| value > ceiling);
    (low || high).then(|| conflict(one, one, "range"))
}

/// Names both sides with their reasons. The values are in `tenon image plan --explain`.
fn conflict(left: &Resource, right: &Resource, field: &str) -> Problem {
    let what = format!("{} is wanted in two ways ({field})", left.name());
    let mut sides: Vec<String> = Vec::new();
    for one in [left, right] {
        let value = one.fields.get(field).map_or_else(String::new, |value| format!(" = {value}"));
        for reason in &one.reasons {
            let line = format!("{}{value}: {}", reason.feature, reason.why);
            if !sides.contains(&line) {
                sides.push(line);
            }
        }
    }
    let name = left.name();
    let keep = left.reasons.first().map_or("FEATURE", |reason| reason.feature.as_str());
    let fix = format!(
        "add an exception {{resource: {name}, keep: {keep}, reason: …}} with the feature that is right"
    );
    Problem::new(&CONFLICT, what).fix(fix).details(sides)
}

/// Exceptions must say why, and must be needed.
pub fn judge(exceptions: &[Exception], used: impl Fn(&Exception) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    for exception in exceptions {
        let of = exception.resource.as_ref().or(exception.rule.as_ref());
        let of = of.map_or("nothing", String::as_str);
        if exception.reason.chars().count() < SHORTEST_REASON {
            let what = format!("the exception for {of} has too short a reason");
            problems.push(Problem::new(&SHORT_REASON, what));
        } else if !used(exception) {
            let what = format!("the exception for {of} is not needed");
            problems.push(Problem::new(&EXCEPTION_UNUSED, what));
        }
    }
    problems
}

/// Exceptions whose day lies before `today`, a day of the same form.
pub fn expired(exceptions: &[Exception], today: &str) -> Vec<Problem> {
    let past = |one: &&Exception| one.expires.as_deref().is_some_and(|day| day < today);
    let problem = |one: &Exception| {
        let of = one.resource.as_ref().or(one.rule.as_ref()).map_or("nothing", String::as_str);
        Problem::new(&EXCEPTION_EXPIRED, format!("the exception for {of} has expired"))
    };
    exceptions.iter().filter(past).map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Place;

    fn wish(feature: &str, kind: &str, table: Value) -> Resource {
        let table = table.as_object().unwrap().clone();
        Resource::read(kind, &table, feature, &Place::default()).unwrap().0
    }

    fn exception(resource: &str, keep: &str) -> Exception {
        Exception {
            rule: None,
            resource: Some(resource.into()),
            keep: Some(keep.into()),
            reason: "the node routes the traffic of its pods".into(),
            expires: None,
            feature: "base".into(),
        }
    }

    #[test]
    fn equal_and_compatible_wishes_are_one() {
        let merged = merge(
            vec![
                wish(
                    "cis",
                    "sysctl",
                    json!({"key": "a", "floor": 5, "reason": "x", "rules": ["r"]}),
                ),
                wish(
                    "base",
                    "sysctl",
                    json!({"key": "a", "floor": 9, "ceiling": 20, "reason": "y"}),
                ),
                wish(
                    "base",
                    "mount",
                    json!({"path": "/t", "source": "tmpfs", "type": "tmpfs",
                                             "options": ["nodev"]}),
                ),
                wish(
                    "cis",
                    "mount",
                    json!({"path": "/t", "source": "tmpfs", "type": "tmpfs",
                                            "options": ["noexec"]}),
                ),
                wish("base", "package", json!({"name": "containerd", "version": "2.1"})),
                wish("cis", "package", json!({"name": "containerd", "version": "2.1.9"})),
            ],
            &[],
        );
        assert!(merged.problems.is_empty(), "{:?}", merged.problems);
        let [package, sysctl, mount] = &merged.resources[..] else { panic!("{merged:?}") };
        assert_eq!(package.text("version"), Some("2.1.9"));
        assert_eq!((sysctl.number("floor"), sysctl.number("ceiling")), (Some(9), Some(20)));
        assert_eq!(sysctl.reasons.len(), 2);
        assert_eq!(mount.texts("options"), ["nodev", "noexec"]);
    }

    #[test]
    fn a_conflict_names_both_sides_and_an_exception_settles_it() {
        let wishes = || {
            vec![
                wish("cis", "sysctl", json!({"key": "f", "value": "0", "reason": "no router"})),
                wish("base", "sysctl", json!({"key": "f", "value": "1", "reason": "pods"})),
            ]
        };
        let merged = merge(wishes(), &[]);
        assert_eq!(merged.problems.len(), 1);
        assert_eq!(merged.problems[0].details, ["base = \"1\": pods", "cis = \"0\": no router"]);
        let merged = merge(wishes(), &[exception("sysctl/f", "base")]);
        assert!(merged.problems.is_empty());
        assert_eq!(merged.settled, ["sysctl/f"]);
        assert_eq!(merged.resources[0].text("value"), Some("1"));
    }

    #[test]
    fn an_argument_of_the_kernel_is_wanted_unless_it_says_otherwise() {
        let key = "systemd.unified_cgroup_hierarchy";
        let merged = merge(
            vec![
                wish("base", "kernel-argument", json!({"key": key, "present": false})),
                wish("config", "kernel-argument", json!({"key": key, "value": "0"})),
            ],
            &[],
        );
        assert_eq!(merged.problems.len(), 1, "{merged:?}");
        assert!(merged.problems[0].what.ends_with("(present)"), "{}", merged.problems[0].what);
    }

    #[test]
    fn an_exception_lasts_to_the_end_of_its_day() {
        let mut one = exception("sysctl/f", "base");
        one.expires = Some("2027-01-31".into());
        assert!(expired(&[one.clone()], "2027-01-31").is_empty());
        assert_eq!(expired(&[one], "2027-02-01").len(), 1);
        assert!(expired(&[exception("sysctl/f", "base")], "2027-02-01").is_empty());
    }

    #[test]
    fn opposites_are_conflicts() {
        for (wanted, unwanted, key) in [
            (
                ("package", json!({"name": "ufw"})),
                ("package-absent", json!({"name": "ufw"})),
                "ufw",
            ),
            (
                ("link", json!({"path": "/a", "target": "b"})),
                ("absent", json!({"path": "/a"})),
                "/a",
            ),
        ] {
            let wishes = || {
                vec![
                    wish("base", wanted.0, wanted.1.clone()),
                    wish("cis", unwanted.0, unwanted.1.clone()),
                ]
            };
            assert_eq!(merge(wishes(), &[]).problems.len(), 1, "{key}");
            let name = format!("{}/{key}", unwanted.0);
            let merged = merge(wishes(), &[exception(&name, "cis")]);
            assert_eq!(merged.resources.len(), 1);
            assert_eq!(merged.resources[0].kind.name, unwanted.0);
        }
    }

    #[test]
    fn a_value_outside_its_range_is_a_conflict() {
        let wishes = vec![
            wish("base", "sysctl", json!({"key": "p", "floor": 100})),
            wish("cis", "sysctl", json!({"key": "p", "value": "50"})),
        ];
        assert_eq!(merge(wishes, &[]).problems.len(), 1);
    }

    #[test]
    fn the_order_of_wishes_changes_nothing() {
        let wishes = [
            wish("cis", "sysctl", json!({"key": "a", "floor": 5, "reason": "x"})),
            wish("base", "sysctl", json!({"key": "a", "floor": 9, "reason": "y"})),
            wish("stig", "sysctl", json!({"key": "b", "value": "1"})),
            wish("base", "unit", json!({"name": "u", "drop-ins": {"a": "1"}})),
            wish("gpu", "unit", json!({"name": "u", "drop-ins": {"b": "2"}})),
        ];
        let first = merge(wishes.to_vec(), &[]).resources;
        for turn in 1..wishes.len() {
            let mut turned = wishes.to_vec();
            turned.rotate_left(turn);
            assert_eq!(merge(turned.clone(), &[]).resources, first);
            turned.reverse();
            assert_eq!(merge(turned, &[]).resources, first);
        }
    }

    #[test]
    fn exceptions_are_judged() {
        let mut short = exception("sysctl/a", "base");
        short.reason = "because".into();
        let list = [short, exception("sysctl/b", "base")];
        let problems = judge(&list, |_| false);
        let codes: Vec<_> = problems.iter().map(|problem| problem.page.slug).collect();
        assert_eq!(codes, ["image-short-reason", "image-exception-unused"]);
        assert!(judge(&list[1..], |_| true).is_empty());
    }
}
