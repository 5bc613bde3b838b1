//! Many wishes into one description. Two wishes for the same thing agree, are compatible, or are
//! a conflict that only an exception with a reason can settle; the order of features never
//! decides a value.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::exception::{CONFIG, Exception, contradictions, decision};
use super::kind::{Field, Merge};
use super::resource::Resource;
use crate::codes::image::CONFLICT;
use crate::glob::fits;
use crate::hex::sha256;
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
        groups.entry((wish.kind.rank(), wish.identity())).or_default().push(wish);
    }
    let mut merged = Merged::default();
    for group in groups.into_values() {
        merged.add(group, exceptions);
    }
    merged.resources.sort_by(|a, b| (a.kind.rank(), &a.key).cmp(&(b.kind.rank(), &b.key)));
    merged.opposites(exceptions);
    merged.problems.extend(contradictions(exceptions));
    merged
}

impl Merged {
    /// Makes one resource of a group, if its members can agree or an exception keeps some of them.
    fn add(&mut self, mut group: Vec<Resource>, exceptions: &[Exception]) {
        spell_alike(&mut group);
        group.sort_by_cached_key(|one| (one.reasons.clone(), one.to_json().to_string()));
        let name = group[0].name();
        let field = match agreed(&group) {
            Ok(one) => return self.resources.push(one),
            Err(field) => field,
        };
        if let Some(exception) = decision(exceptions, &name) {
            let stays = |one: &&Resource| one.is_of(exception) || is_beyond(exception, one);
            let kept: Vec<_> = group.iter().filter(stays).cloned().collect();
            if let Some(Ok(one)) = (!kept.is_empty()).then(|| agreed(&kept)) {
                self.settled.push(name);
                return self.resources.push(one);
            }
        }
        self.problems.push(conflict(&name, &group.iter().collect::<Vec<_>>(), field));
    }

    /// Kinds that want the opposite of each other: a package and its absence, a path and its
    /// absence, a unit that starts and a mask.
    fn opposites(&mut self, exceptions: &[Exception]) {
        let pairs: Vec<(String, String)> = self
            .resources
            .iter()
            .flat_map(|wanted| self.resources.iter().map(move |unwanted| (wanted, unwanted)))
            .filter(|(wanted, unwanted)| are_opposites(wanted, unwanted))
            .map(|(wanted, unwanted)| (wanted.name(), unwanted.name()))
            .collect();
        for (wanted, unwanted) in pairs {
            self.oppose(&wanted, &unwanted, exceptions);
        }
    }

    fn oppose(&mut self, wanted: &str, unwanted: &str, exceptions: &[Exception]) {
        let find = |name: &str| self.resources.iter().find(|one| one.name() == name);
        // An earlier exception may have removed one of them.
        let (Some(first), Some(second)) = (find(wanted), find(unwanted)) else { return };
        for name in [wanted, unwanted] {
            let Some(exception) = decision(exceptions, name) else { continue };
            let loser = match (first.is_of(exception), second.is_of(exception)) {
                (true, false) if !is_beyond(exception, second) => unwanted,
                (false, true) if !is_beyond(exception, first) => wanted,
                _ => continue,
            };
            self.settled.push(name.to_owned());
            self.resources.retain(|one| one.name() != loser);
            return;
        }
        let problem = conflict(wanted, &[first, second], "presence");
        self.problems.push(problem);
    }
}

impl Resource {
    /// True if the feature that the exception keeps asked for it.
    fn is_of(&self, exception: &Exception) -> bool {
        exception.keep.as_deref().is_some_and(|keep| self.asked_by(keep))
    }
}

/// Gives all wishes for one thing the same spelling: that of a wish which serves rules, since
/// auditors look for it, and else the first in order.
fn spell_alike(group: &mut [Resource]) {
    let spelling = group.iter().min_by_key(|one| (one.rules.is_empty(), &one.key));
    let Some(key) = spelling.map(|one| one.key.clone()) else { return };
    for one in group {
        one.key.clone_from(&key);
    }
}

/// True for what the user asks for: whoever made a profile's exception did not know of it.
fn is_beyond(exception: &Exception, one: &Resource) -> bool {
    exception.feature != CONFIG && one.asked_by(CONFIG)
}

fn are_opposites(wanted: &Resource, unwanted: &Resource) -> bool {
    match (wanted.kind.name, unwanted.kind.name) {
        ("package", "package-absent") => wanted.key == unwanted.key,
        ("unit", "mask") => {
            let starts =
                wanted.text("state") == Some("enabled") || wanted.text("content").is_some();
            starts && wanted.key == unwanted.key
        }
        ("file" | "link" | "directory" | "download", "absent") => {
            covers(&unwanted.key, &wanted.key)
        }
        _ => false,
    }
}

/// True if what fits the pattern is the path, or a directory above it.
fn covers(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    pattern.split('/').all(|part| parts.next().is_some_and(|name| fits(name, part)))
}

/// All wishes of a group as one, or the name of the field over which they differ.
fn agreed(group: &[Resource]) -> Result<Resource, &'static str> {
    let mut one = group[0].clone();
    for next in &group[1..] {
        one = together(&one, next)?;
    }
    if is_empty_range(&one) { Err("range") } else { Ok(one) }
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

/// A floor above a ceiling, or a value outside of both.
fn is_empty_range(one: &Resource) -> bool {
    let value = one.text("value").and_then(|text| text.parse::<i64>().ok());
    let (floor, ceiling) = (one.number("floor"), one.number("ceiling"));
    let above = |low: Option<i64>, high: Option<i64>| low.zip(high).is_some_and(|(l, h)| l > h);
    above(floor, ceiling) || above(floor, value) || above(value, ceiling)
}

/// Names every side with its value and its reason.
fn conflict(name: &str, sides: &[&Resource], field: &str) -> Problem {
    let what = format!("{name} is wanted in two ways ({field})");
    let mut lines: Vec<String> = Vec::new();
    for one in sides {
        let value = match field {
            "range" => ["value", "floor", "ceiling"]
                .iter()
                .filter_map(|bound| Some(format!(" {bound} {}", one.fields.get(*bound)?)))
                .collect(),
            "presence" => format!(" {}", one.name()),
            // The content of a file may be a secret.
            "content" => one.text(field).map_or_else(String::new, |content| {
                let sum = sha256(content.as_bytes());
                format!(" = {} bytes, sha256 {}", content.len(), &sum[..12])
            }),
            _ => one.fields.get(field).map_or_else(String::new, |value| format!(" = {value}")),
        };
        for reason in &one.reasons {
            let line = format!("{}{value}: {}", reason.feature, reason.why);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    let keep = sides[0].reasons.first().map_or("FEATURE", |reason| reason.feature.as_str());
    let fix = format!(
        "add an exception {{resource: {name}, keep: {keep}, reason: …}} with the feature that is right"
    );
    Problem::new(&CONFLICT, what).fix(fix).details(lines)
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

    /// Two spellings of one thing with different values; the name of the conflict, and the
    /// exception by the other spelling that settles it.
    #[test]
    fn another_spelling_is_the_same_thing() {
        for (kind, key, field, first, second) in [
            ("sysctl", "key", "value", ("net.ipv4.ip_forward", "1"), ("net/ipv4/ip_forward", "0")),
            ("sshd", "directive", "value", ("PermitRootLogin", "no"), ("permitrootlogin", "yes")),
            ("module", "name", "state", ("br_netfilter", "loaded"), ("br-netfilter", "denied")),
        ] {
            let of = |feature, (name, value): (&str, &str), rules: &[&str]| {
                wish(feature, kind, json!({key: name, field: value, "rules": rules}))
            };
            let wishes = vec![of("config", second, &[]), of("base", first, &["r"])];
            let merged = merge(wishes.clone(), &[]);
            let what = format!("{kind}/{} is wanted in two ways ({field})", first.0);
            assert_eq!(merged.problems.iter().map(|p| &p.what).collect::<Vec<_>>(), [&what]);
            let name = format!("{kind}/{}", second.0);
            let own = Exception { feature: CONFIG.into(), ..exception(&name, "config") };
            let merged = merge(wishes, &[own]);
            let left: Vec<_> =
                merged.resources.iter().map(|one| (&*one.key, one.text(field))).collect();
            assert_eq!(left, [(first.0, Some(second.1))], "{:?}", merged.problems);
        }
    }

    #[test]
    fn a_conflict_does_not_tell_content() {
        let file = |who: &str, content: &str| {
            wish(who, "file", json!({"path": "/etc/key", "mode": "0600", "content": content}))
        };
        let merged = merge(vec![file("base", "hunter2"), file("cis", "hunter3")], &[]);
        let told = format!("{:?}", merged.problems);
        assert!(
            told.contains("7 bytes, sha256 f52fbd32b2b3") && !told.contains("hunter"),
            "{told}"
        );
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

    /// A profile keeps a package that the user does not want: only the user can settle that.
    #[test]
    fn opposites_of_the_user_need_the_user() {
        for (by, left, problems) in [("base", 2, 1), ("config", 1, 0)] {
            let wishes = vec![
                wish("base", "package", json!({"name": "ufw"})),
                wish("config", "package-absent", json!({"name": "ufw"})),
            ];
            let own = Exception { feature: by.into(), ..exception("package/ufw", "base") };
            let merged = merge(wishes, &[own]);
            assert_eq!((merged.resources.len(), merged.problems.len()), (left, problems), "{by}");
        }
    }
}
