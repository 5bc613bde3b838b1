//! Many wishes into one description. Two wishes for the same thing agree, are compatible, or are
//! a conflict that only an exception with a reason can settle; the order of features never
//! decides a value.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::exception::{CONFIG, Exception, decision};
use super::kind::{Field, Merge};
use super::resource::Resource;
use crate::codes::image::CONFLICT;
use crate::problem::Problem;

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
        let mut outcome = agreed(&group);
        if let (Err(_), Some((keep, by))) = (&outcome, kept(exceptions, &name))
            && group.iter().any(|one| one.asked_by(keep))
        {
            // What the user asks for was not known to whoever made a profile.
            let stays = |one: &Resource| by != CONFIG && one.asked_by(CONFIG);
            group.retain(|one| one.asked_by(keep) || stays(one));
            self.settled.push(name);
            outcome = agreed(&group);
        }
        match outcome {
            Ok(one) => self.resources.push(one),
            Err(problem) => self.problems.push(problem),
        }
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
        let pair = [wanted, unwanted];
        for name in pair.map(|at| self.resources[at].name()) {
            let Some((keep, by)) = kept(exceptions, &name) else { continue };
            let Some(winner) = pair.into_iter().find(|at| self.resources[*at].asked_by(keep))
            else {
                continue;
            };
            let loser = if winner == wanted { unwanted } else { wanted };
            if by != CONFIG && self.resources[loser].asked_by(CONFIG) {
                continue;
            }
            self.settled.push(name);
            self.resources.remove(loser);
            return;
        }
        let (wanted, unwanted) = (&self.resources[wanted], &self.resources[unwanted]);
        self.problems.push(conflict(wanted, unwanted, "presence"));
    }
}

/// The feature that an exception keeps, and who made the exception.
fn kept<'a>(exceptions: &'a [Exception], name: &str) -> Option<(&'a str, &'a str)> {
    let one = decision(exceptions, name)?;
    Some((one.keep.as_deref()?, one.feature.as_str()))
}

/// All wishes for one thing as one, or the first conflict among them.
fn agreed(group: &[Resource]) -> Result<Resource, Problem> {
    let mut one = group[0].clone();
    if is_empty_range(&one) {
        return Err(conflict(&one, &one, "range"));
    }
    for next in &group[1..] {
        one = together(&one, next).map_err(|field| conflict(&one, next, field))?;
    }
    Ok(one)
}

/// Both wishes as one, or the name of the field over which they differ.
fn together(left: &Resource, right: &Resource) -> Result<Resource, &'static str> {
    let mut fields = Map::new();
    for field in left.kind.fields {
        let pair = (left.fields.get(field.name), right.fields.get(field.name));
        let value = match pair {
            (Some(left), Some(right)) => Some(join(field, left, right).ok_or(field.name)?),
            (one, other) => one.or(other).cloned(),
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
    if is_empty_range(&both) { Err("range") } else { Ok(both) }
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

/// True for a floor above a ceiling, and for a value outside of both.
fn is_empty_range(one: &Resource) -> bool {
    let value = one.text("value").and_then(|text| text.parse::<i64>().ok());
    let (floor, ceiling) = (one.number("floor"), one.number("ceiling"));
    let low = floor.is_some_and(|floor| ceiling.or(value).is_some_and(|top| top < floor))
        || floor.zip(value).is_some_and(|(floor, value)| value < floor);
    let high = ceiling.zip(value).is_some_and(|(ceiling, value)| value > ceiling);
    low || high
}

/// Names both sides with their reasons. The values are in `tenon image plan --explain`.
fn conflict(left: &Resource, right: &Resource, field: &str) -> Problem {
    let what = format!("{} is wanted in two ways ({field})", left.name());
    let mut sides: Vec<String> = Vec::new();
    for one in [left, right] {
        let said = |name: &str| match (name, one.fields.get(name)?) {
            (name, value) if name == field => Some(format!(" = {value}")),
            (name, value) => Some(format!(" {name} {value}")),
        };
        let names = if field == "range" { &["value", "floor", "ceiling"][..] } else { &[field] };
        let value: String = names.iter().filter_map(|name| said(name)).collect();
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
            resource: Some(resource.into()),
            keep: Some(keep.into()),
            reason: "the node routes the traffic of its pods".into(),
            feature: "base".into(),
            ..Exception::default()
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

    /// Who asked for 1 and for 0, who made the exception and what it keeps, and what comes of it.
    #[test]
    fn only_the_user_decides_against_the_user() {
        for (asked, by, keep, comes) in [
            (["base", "cis"], "cis", "base", Some("1")),
            (["base", "config"], "cis", "base", None),
            (["base", "config"], "config", "base", Some("1")),
            (["base", "config"], "config", "config", Some("0")),
            (["base", "cis"], "config", "cis", Some("0")),
            (["base", "cis"], "config", "nobody", None),
        ] {
            let wishes = [(asked[0], "1"), (asked[1], "0")]
                .map(|(who, value)| wish(who, "sysctl", json!({"key": "f", "value": value})));
            let shipped = exception("sysctl/f", "base");
            let own = Exception { feature: by.into(), ..exception("sysctl/f", keep) };
            let merged = merge(wishes.to_vec(), &[shipped, own]);
            let found = merged.resources.first().and_then(|one| one.text("value"));
            assert_eq!((found, merged.problems.len()), (comes, usize::from(comes.is_none())));
        }
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
            let typo = merge(wishes(), &[exception(&name, "ciss")]);
            assert_eq!((typo.resources.len(), typo.problems.len()), (2, 1));
        }
    }

    #[test]
    fn a_value_outside_its_range_is_a_conflict() {
        let wishes = vec![
            wish("base", "sysctl", json!({"key": "p", "floor": 100})),
            wish("cis", "sysctl", json!({"key": "p", "value": "50"})),
        ];
        let problems = merge(wishes.clone(), &[]).problems;
        assert_eq!(problems[0].details, ["base floor 100: ", "cis value \"50\": "]);
        let merged = merge(wishes, &[exception("sysctl/p", "base")]);
        assert_eq!((merged.resources.len(), merged.problems.len()), (1, 0));
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
}
