//! Exceptions: decisions that somebody took and can be asked about. One settles a conflict, sets
//! a need aside or waives a rule. It says why, and may say for which images, for which paths and
//! until when.

use serde_json::{Map, Value, json};

use super::family::FAMILIES;
use super::need::Need;
use super::resource::{Resource, Scope, identity};
use crate::codes::image::{
    BAD_EXCEPTION, CONFLICT, EXCEPTION_EXPIRED, EXCEPTION_UNUSED, SHORT_REASON, UNKNOWN_FIELD,
};
use crate::nearest::nearest;
use crate::problem::{Place, Problem};

/// The feature that stands for the user's config.
pub const CONFIG: &str = "config";
/// Fields of an exception.
pub const FIELDS: &[&str] = &["rule", "resource", "keep", "reason", "scope", "expires"];
const SCOPE: &[&str] = &["families", "releases", "arch", "paths"];
/// The shortest reason that says something.
const SHORTEST_REASON: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exception {
    /// A rule of a benchmark that is waived.
    pub rule: Option<String>,
    /// The resource whose conflict is settled: `sysctl/net.ipv4.ip_forward`.
    pub resource: Option<String>,
    /// The feature whose wish is kept.
    pub keep: Option<String>,
    pub reason: String,
    /// The images that it is meant for.
    pub images: Scope,
    /// Needs below these paths are set aside, and no others; empty means all.
    pub paths: Vec<String>,
    /// A day, `2027-01-31`.
    pub expires: Option<String>,
    /// Who made it: a profile's name or `config`.
    pub feature: String,
}

impl Exception {
    /// Reads a table of a profile, a config or a plan. `place` names the file and the table.
    pub fn read(value: &Value, feature: &str, place: &Place) -> Result<Exception, Vec<Problem>> {
        let empty = Map::new();
        let table = value.as_object().unwrap_or(&empty);
        let mut reader = Reader { place, problems: Vec::new() };
        reader.known(table, FIELDS, "an exception");
        let scope = reader.scope(table);
        let list = |name: &str| scope.get(name).map(texts).unwrap_or_default();
        let exception = Exception {
            rule: reader.text(table, "rule"),
            resource: reader.text(table, "resource"),
            keep: reader.text(table, "keep"),
            reason: reader.text(table, "reason").unwrap_or_default(),
            images: Scope {
                families: list("families"),
                architectures: list("arch"),
                releases: list("releases"),
            },
            paths: list("paths"),
            expires: reader.text(table, "expires"),
            feature: feature.to_owned(),
        };
        reader.judge(&exception);
        if reader.problems.is_empty() { Ok(exception) } else { Err(reader.problems) }
    }

    /// What it is about, for messages: the resource, or else the rule.
    pub fn subject(&self) -> &str {
        self.resource.as_deref().or(self.rule.as_deref()).unwrap_or_default()
    }

    /// The rule that it waives as a whole; one that names a resource settles only that.
    pub fn waives(&self) -> Option<&str> {
        self.rule.as_deref().filter(|_| self.resource.is_none())
    }

    /// True if it names this resource, in whatever spelling.
    pub fn is_about(&self, name: &str) -> bool {
        self.resource.as_deref().is_some_and(|own| identity(own) == identity(name))
    }

    /// True if a resource may break a need.
    pub fn sets_aside(&self, resource: &Resource, need: &Need) -> bool {
        self.is_about(&resource.name())
            && (self.paths.is_empty() || self.paths.iter().any(|path| need.is_below(path)))
    }

    pub fn to_json(&self) -> Value {
        let Scope { families, architectures, releases } = &self.images;
        let limits = [families, releases, architectures, &self.paths];
        let named = SCOPE.iter().zip(limits).filter(|(_, list)| !list.is_empty());
        let scope: Map<_, _> =
            named.map(|(name, list)| ((*name).to_owned(), json!(list))).collect();
        json!({
            "rule": self.rule,
            "resource": self.resource,
            "keep": self.keep,
            "reason": self.reason,
            "scope": (!scope.is_empty()).then_some(scope),
            "expires": self.expires,
            "feature": self.feature,
        })
    }

    /// Reads back what [`Exception::to_json`] wrote.
    pub fn from_json(value: &Value, place: &Place) -> Result<Exception, Vec<Problem>> {
        let mut table = value.as_object().cloned().unwrap_or_default();
        let feature = table.remove("feature");
        table.retain(|_, value| !value.is_null());
        let feature = feature.as_ref().and_then(Value::as_str).unwrap_or_default();
        Exception::read(&Value::Object(table), feature, place)
    }
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Collects what is wrong with one table.
struct Reader<'a> {
    place: &'a Place,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn wrong(&mut self, what: &str) {
        self.problems.push(Problem::new(&BAD_EXCEPTION, what).at(self.place.clone()));
    }

    fn known(&mut self, table: &Map<String, Value>, fields: &[&str], of: &str) {
        for name in table.keys().filter(|name| !fields.contains(&name.as_str())) {
            let problem = Problem::new(&UNKNOWN_FIELD, format!("{of} has no field `{name}`"));
            let problem = match nearest(name, fields.iter().copied()) {
                Some(near) => problem.fix(format!("did you mean `{near}`?")),
                None => problem,
            };
            self.problems.push(problem.at(self.place.clone()));
        }
    }

    fn text(&mut self, table: &Map<String, Value>, name: &str) -> Option<String> {
        match table.get(name)? {
            Value::String(text) => Some(text.clone()),
            _ => {
                self.wrong(&format!("`{name}` of an exception is not text"));
                None
            }
        }
    }

    fn scope(&mut self, table: &Map<String, Value>) -> Map<String, Value> {
        let Some(value) = table.get("scope") else { return Map::new() };
        let lists = |table: &&Map<String, Value>| {
            let is_texts = |value: &Value| {
                value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
            };
            table.values().all(is_texts)
        };
        let Some(scope) = value.as_object().filter(lists) else {
            self.wrong("`scope` of an exception is not a table of lists of texts");
            return Map::new();
        };
        self.known(scope, SCOPE, "the scope of an exception");
        for family in scope.get("families").map(texts).unwrap_or_default() {
            if !FAMILIES.iter().any(|known| known.name == family) {
                self.wrong("`scope.families` of an exception names no known family");
            }
        }
        scope.clone()
    }

    fn judge(&mut self, exception: &Exception) {
        if exception.subject().is_empty() {
            self.wrong("an exception needs a `rule` or a `resource`");
        }
        if exception.keep.is_some() && exception.resource.is_none() {
            self.wrong("an exception that keeps a feature needs a `resource`");
        }
        if exception.expires.as_deref().is_some_and(|day| !is_day(day)) {
            self.wrong("`expires` of an exception is not a day such as \"2027-01-31\"");
        }
        if exception.reason.trim().chars().count() < SHORTEST_REASON {
            let what = format!("the exception for {} has too short a reason", exception.subject());
            self.problems.push(Problem::new(&SHORT_REASON, what).at(self.place.clone()));
        }
    }
}

fn is_day(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let digits = |text: &str, length: usize| {
        let is_number = text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| is_number)
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// The exception that decides about a resource: the user's before a profile's.
pub fn decision<'a>(exceptions: &'a [Exception], resource: &str) -> Option<&'a Exception> {
    let of_it = || exceptions.iter().filter(|one| one.is_about(resource));
    let deciding = || of_it().filter(|one| one.keep.is_some());
    deciding().find(|one| one.feature == CONFIG).or_else(|| deciding().next())
}

/// Profiles whose exceptions want different things of one resource; order must not decide.
pub fn contradictions(exceptions: &[Exception]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, one) in exceptions.iter().enumerate() {
        let Some(name) = one.resource.as_deref() else { continue };
        let decided = decision(exceptions, name).is_some_and(|one| one.feature == CONFIG);
        let other = exceptions[..at].iter().find(|other| {
            other.is_about(name)
                && other.keep.is_some()
                && one.keep.is_some()
                && other.keep != one.keep
        });
        if let (Some(other), false) = (other, decided) {
            let what = format!("two exceptions decide differently about {name}");
            let side = |one: &Exception| {
                let keep = one.keep.as_deref().unwrap_or_default();
                format!("{} keeps {keep}: {}", one.feature, one.reason)
            };
            let fix = "add an exception of your own for it to spec.exceptions";
            problems.push(Problem::new(&CONFLICT, what).fix(fix).details([side(other), side(one)]));
        }
    }
    problems
}

/// The exceptions that decide nothing, told.
pub fn unused<'a>(
    exceptions: &[Exception],
    used: impl Fn(&Exception) -> bool,
    rules: impl Iterator<Item = &'a str> + Clone,
) -> Vec<Problem> {
    let problem = |one: &Exception| {
        let what = format!("the exception for {} is not needed", one.subject());
        let problem = Problem::new(&EXCEPTION_UNUSED, what);
        match one.waives().and_then(|rule| nearest(rule, rules.clone())) {
            Some(near) => problem.fix(format!("did you mean the rule `{near}`?")),
            None => problem,
        }
    };
    exceptions.iter().filter(|one| !used(one)).map(problem).collect()
}

/// Exceptions whose day lies before `today`, a day of the same form.
pub fn expired(exceptions: &[Exception], today: &str) -> Vec<Problem> {
    let past = |one: &&Exception| one.expires.as_deref().is_some_and(|day| day < today);
    let problem = |one: &Exception| {
        let what = format!("the exception for {} has expired", one.subject());
        Problem::new(&EXCEPTION_EXPIRED, what)
    };
    exceptions.iter().filter(past).map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exception(value: Value) -> Exception {
        let mut value = value;
        value["reason"] = json!("the node routes the traffic of its pods");
        Exception::read(&value, "base", &Place::default()).unwrap()
    }

    #[test]
    fn every_mistake_of_a_table_is_told() {
        let reason = "long enough to say something";
        for (value, told) in [
            (
                json!({"rule": "r", "reason": "because"}),
                "the exception for r has too short a reason",
            ),
            (json!({"reason": reason}), "an exception needs a `rule` or a `resource`"),
            (
                json!({"rule": "r", "keep": "base", "reason": reason}),
                "an exception that keeps a feature needs a `resource`",
            ),
            (
                json!({"rule": "r", "expires": "2027-13-01", "reason": reason}),
                "`expires` of an exception is not a day such as \"2027-01-31\"",
            ),
            (
                json!({"rule": 5, "resource": "a/b", "reason": reason}),
                "`rule` of an exception is not text",
            ),
            (
                json!({"rule": "r", "reson": "", "reason": reason}),
                "an exception has no field `reson`",
            ),
            (
                json!({"rule": "r", "scope": {"family": []}, "reason": reason}),
                "the scope of an exception has no field `family`",
            ),
            (
                json!({"rule": "r", "scope": ["debian"], "reason": reason}),
                "`scope` of an exception is not a table of lists of texts",
            ),
            (
                json!({"rule": "r", "scope": {"families": ["debain"]}, "reason": reason}),
                "`scope.families` of an exception names no known family",
            ),
        ] {
            let problems = Exception::read(&value, "p", &Place::default()).unwrap_err();
            let whats: Vec<_> = problems.iter().map(|problem| problem.what.as_str()).collect();
            assert_eq!(whats, [told]);
        }
    }

    #[test]
    fn an_exception_is_read_back_as_it_was_written() {
        for value in [
            json!({"rule": "r"}),
            json!({"resource": "mount//var", "scope": {"families": ["debian"], "releases": ["trixie"],
                   "arch": ["x86_64"], "paths": ["/var/lib"]}, "expires": "2027-01-31"}),
        ] {
            let one = exception(value);
            assert_eq!(Exception::from_json(&one.to_json(), &Place::default()).unwrap(), one);
        }
    }

    #[test]
    fn it_lasts_to_the_end_of_its_day() {
        let one = [exception(json!({"rule": "r", "expires": "2027-01-31"}))];
        assert!(expired(&one, "2027-01-31").is_empty());
        assert_eq!(expired(&one, "2027-02-01").len(), 1);
        assert!(expired(&[exception(json!({"rule": "r"}))], "2027-02-01").is_empty());
    }

    #[test]
    fn the_user_decides_and_profiles_must_agree() {
        let keep = |keep: &str, feature: &str| {
            let one = exception(json!({"resource": "sysctl/a", "keep": keep}));
            Exception { feature: feature.to_owned(), ..one }
        };
        let profiles = [keep("base", "cis"), keep("cis", "stig")];
        assert_eq!(contradictions(&profiles).len(), 1);
        assert!(contradictions(&[keep("base", "cis"), keep("base", "stig")]).is_empty());
        let all = [profiles.to_vec(), vec![keep("config", "config")]].concat();
        assert!(contradictions(&all).is_empty());
        assert_eq!(decision(&all, "sysctl/a").unwrap().feature, "config");
        assert_eq!(decision(&all, "sysctl/b"), None);
    }

    #[test]
    fn what_is_not_needed_is_refused_with_the_nearest_rule() {
        let list = [exception(json!({"rule": "sysctl_panik"})), exception(json!({"rule": "x"}))];
        let problems = unused(&list, |one| one.subject() == "x", ["sysctl_panic"].into_iter());
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].fix_text(), "did you mean the rule `sysctl_panic`?");
    }

    #[test]
    fn a_day_is_one_of_the_calendar() {
        for day in ["2027-01-31", "2028-02-29", "2000-02-29", "2027-12-31"] {
            assert!(is_day(day), "{day}");
        }
        for no_day in [
            "2027-02-29",
            "2020-02-31",
            "2100-02-29",
            "2027-04-31",
            "2027-13-01",
            "2027-00-10",
            "+027-01-01",
            "2027-1-1",
        ] {
            assert!(!is_day(no_day), "{no_day}");
        }
    }
}
