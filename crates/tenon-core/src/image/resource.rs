//! One thing that is true of an image, read from a table in a profile or in the user's config.

use serde_json::{Map, Value, json};

use super::kind::{self, Kind, Shape};
use crate::codes::image::{BAD_RESOURCE, UNKNOWN_FIELD, UNKNOWN_KIND};
use crate::nearest::nearest;
use crate::problem::{Place, Problem};

/// Fields that every resource may have besides those of its kind.
const COMMON: &[&str] = &["reason", "rules", "required", "only", "arch", "release"];

/// Fields that are addresses. They stand in the image, so a login in them would be given away.
const ADDRESSES: &[&str] = &["url", "reference"];

/// A wish for the image, and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    pub kind: &'static Kind,
    pub key: String,
    /// Values by name, checked against the kind.
    pub fields: Map<String, Value>,
    /// Who asked for it and why; sorted.
    pub reasons: Vec<Reason>,
    /// Rules of benchmarks that it satisfies; sorted.
    pub rules: Vec<String>,
    /// Kubernetes does not work without it.
    pub required: bool,
}

/// Why a feature wants something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    pub feature: String,
    pub why: String,
}

/// For which images a wish is meant; empty lists mean all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    pub families: Vec<String>,
    pub architectures: Vec<String>,
    pub releases: Vec<String>,
}

impl Scope {
    pub fn holds(&self, family: &str, architecture: &str, release: &str) -> bool {
        let fits =
            |list: &[String], value: &str| list.is_empty() || list.iter().any(|v| v == value);
        fits(&self.families, family)
            && fits(&self.architectures, architecture)
            && fits(&self.releases, release)
    }
}

impl Resource {
    /// Reads a table of a profile. `place` names the file and the table.
    pub fn read(
        kind_name: &str,
        table: &Map<String, Value>,
        feature: &str,
        place: &Place,
    ) -> Result<(Resource, Scope), Vec<Problem>> {
        let Some(kind) = kind::find(kind_name) else {
            let known = kind::KINDS.iter().map(|kind| kind.name);
            let problem = Problem::new(&UNKNOWN_KIND, format!("no kind of resource `{kind_name}`"));
            return Err(vec![with_nearest(problem, kind_name, known).at(place.clone())]);
        };
        let mut problems = Vec::new();
        let fields = own_fields(kind, table, place, &mut problems);
        let key = key_of(kind, table, place, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let why = text_of(table, "reason").unwrap_or_default();
        let resource = Resource {
            kind,
            key,
            fields,
            reasons: vec![Reason { feature: feature.to_owned(), why }],
            rules: texts_of(table, "rules"),
            required: table.get("required") == Some(&Value::Bool(true)),
        };
        let scope = Scope {
            families: texts_of(table, "only"),
            architectures: texts_of(table, "arch"),
            releases: texts_of(table, "release"),
        };
        Ok((resource, scope))
    }

    /// Reads back what [`Resource::to_json`] wrote.
    pub fn from_json(value: &Value, place: &Place) -> Result<Resource, Vec<Problem>> {
        let text = |name: &str| value[name].as_str().unwrap_or_default();
        let mut table = value["fields"].as_object().cloned().unwrap_or_default();
        for common in ["rules", "required"] {
            table.insert(common.to_owned(), value[common].clone());
        }
        if let Some(kind) = kind::find(text("kind")) {
            let parts = split(kind, text("key"));
            table.extend(parts.map(|(name, part)| (name.to_owned(), json!(part))));
        }
        let (mut resource, _) = Resource::read(text("kind"), &table, "", place)?;
        let reason = |one: &Value| {
            let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            Reason { feature: text("feature"), why: text("why") }
        };
        let reasons = value["reasons"].as_array().into_iter().flatten();
        resource.reasons = reasons.map(reason).collect();
        Ok(resource)
    }

    /// `sysctl/net.ipv4.ip_forward`, by which people ask for it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.kind.name, self.key)
    }

    /// True if a feature is among those that want it.
    pub fn asked_by(&self, feature: &str) -> bool {
        self.reasons.iter().any(|reason| reason.feature == feature)
    }

    /// One part of a key that is made of several: the `file` of a setting.
    pub fn part(&self, name: &str) -> &str {
        split(self.kind, &self.key).find(|(found, _)| *found == name).map_or("", |(_, part)| part)
    }

    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    pub fn number(&self, field: &str) -> Option<i64> {
        self.fields.get(field).and_then(Value::as_i64)
    }

    pub fn flag(&self, field: &str) -> bool {
        self.fields.get(field) == Some(&Value::Bool(true))
    }

    pub fn texts(&self, field: &str) -> Vec<&str> {
        let list = self.fields.get(field).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Names and texts of a table, in order of name.
    pub fn table(&self, field: &str) -> Vec<(&str, &str)> {
        let table = self.fields.get(field).and_then(Value::as_object);
        table
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| value.as_str().map(|value| (name.as_str(), value)))
            .collect()
    }

    /// The mode as a number; the reader has checked its form.
    pub fn mode(&self) -> Option<u32> {
        self.text("mode").and_then(|text| u32::from_str_radix(text, 8).ok())
    }

    pub fn to_json(&self) -> Value {
        let reason = |reason: &Reason| json!({"feature": reason.feature, "why": reason.why});
        json!({
            "kind": self.kind.name,
            "key": self.key,
            "fields": self.fields,
            "reasons": self.reasons.iter().map(reason).collect::<Vec<_>>(),
            "rules": self.rules,
            "required": self.required,
        })
    }
}

/// The names of the fields of a key, each with its part. The last part has no `:`.
fn split<'k>(kind: &Kind, key: &'k str) -> impl Iterator<Item = (&'static str, &'k str)> {
    let parts: Vec<&str> = match kind.keys().count() {
        1 => vec![key],
        _ => key.rsplit_once(':').map_or(vec![key, ""], |(first, last)| vec![first, last]),
    };
    kind.keys().zip(parts)
}

/// The key of a table: its parts joined by `:`.
fn key_of(
    kind: &Kind,
    table: &Map<String, Value>,
    place: &Place,
    problems: &mut Vec<Problem>,
) -> String {
    let mut parts = Vec::new();
    for name in kind.keys() {
        let part = text_of(table, name).unwrap_or_default();
        if part.is_empty() {
            problems.push(bad(place, format!("a {} needs a `{name}`", kind.name)));
        } else if !parts.is_empty() && part.contains(':') {
            problems.push(bad(place, format!("`{name}` of a {} has no `:`", kind.name)));
        }
        parts.push(part);
    }
    parts.join(":")
}

/// Checks each field of a table against the kind.
fn own_fields(
    kind: &'static Kind,
    table: &Map<String, Value>,
    place: &Place,
    problems: &mut Vec<Problem>,
) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in table {
        if kind.keys().any(|key| key == name) || COMMON.contains(&name.as_str()) {
            continue;
        }
        match kind.field(name) {
            Some(_) if ADDRESSES.contains(&name.as_str()) && has_login(value) => {
                let what = format!("`{name}` of a {} has no user and no password", kind.name);
                problems.push(bad(place, what));
            }
            Some(field) if fits(field.shape, value) => {
                fields.insert(name.clone(), value.clone());
            }
            Some(field) => problems.push(bad(place, wrong_shape(kind, name, field.shape))),
            None => {
                let known =
                    kind.fields.iter().map(|field| field.name).chain(COMMON.iter().copied());
                let what = format!("a {} has no field `{name}`", kind.name);
                let problem = Problem::new(&UNKNOWN_FIELD, what);
                problems.push(with_nearest(problem, name, known).at(place.clone()));
            }
        }
    }
    for field in kind.fields.iter().filter(|field| field.needed) {
        if !table.contains_key(field.name) {
            problems.push(bad(place, format!("a {} needs a `{}`", kind.name, field.name)));
        }
    }
    fields
}

fn fits(shape: Shape, value: &Value) -> bool {
    match shape {
        Shape::Text => value.is_string(),
        Shape::Flag => value.is_boolean(),
        Shape::Number => value.is_i64() || value.is_u64(),
        Shape::Mode => value.as_str().is_some_and(is_mode),
        Shape::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        Shape::Table => value.as_object().is_some_and(|table| table.values().all(Value::is_string)),
        Shape::Tables => value.as_array().is_some_and(|list| list.iter().all(Value::is_object)),
    }
}

/// True for `https://user:password@host/…`, and not for `host/image@sha256:…`.
fn has_login(address: &Value) -> bool {
    let text = address.as_str().unwrap_or_default();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.split_once('@').is_some_and(|(_, host)| !host.starts_with("sha256:"))
}

fn is_mode(text: &str) -> bool {
    text.len() == 4 && text.starts_with('0') && text.bytes().all(|b| (b'0'..=b'7').contains(&b))
}

fn wrong_shape(kind: &Kind, name: &str, shape: Shape) -> String {
    let wanted = match shape {
        Shape::Text => "text",
        Shape::Flag => "true or false",
        Shape::Number => "a whole number",
        Shape::Mode => "a mode of four octal digits such as \"0644\"",
        Shape::Texts => "a list of texts",
        Shape::Table => "a table of texts",
        Shape::Tables => "a list of tables",
    };
    format!("`{name}` of a {} is {wanted}", kind.name)
}

fn bad(place: &Place, what: String) -> Problem {
    Problem::new(&BAD_RESOURCE, what).at(place.clone())
}

fn with_nearest<'a>(
    problem: Problem,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Problem {
    match nearest(name, known) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem,
    }
}

fn text_of(table: &Map<String, Value>, name: &str) -> Option<String> {
    table.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn texts_of(table: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = table.get(name).and_then(Value::as_array).into_iter().flatten();
    let mut texts: Vec<_> = list.filter_map(Value::as_str).map(str::to_owned).collect();
    texts.sort_unstable();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, table: Value) -> Result<(Resource, Scope), Vec<String>> {
        let table = table.as_object().unwrap().clone();
        let problems = |list: Vec<Problem>| list.iter().map(|p| p.what.clone()).collect();
        Resource::read(kind, &table, "base", &Place::default()).map_err(problems)
    }

    #[test]
    fn addresses_have_no_login() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let image = |reference: &str| {
            read("cached-image", json!({"name": "x", "reference": reference, "digest": digest}))
        };
        let told = image("user:hunter2@registry.example/x").unwrap_err();
        assert_eq!(told, ["`reference` of a cached-image has no user and no password"]);
        for good in ["registry.example:5000/x", "pause:3.9@sha256:00", "r.example/x@sha256:00"] {
            assert!(image(good).is_ok(), "{good}");
        }
        let table = json!({"name": "x", "url": "https://hunter2@r.example/x"});
        let told = read("repository", table).unwrap_err();
        assert!(told.iter().any(|what| what.starts_with("`url` of a repository has no user")));
        assert!(!told.concat().contains("hunter2"), "{told:?}");
    }

    #[test]
    fn a_table_becomes_a_resource() {
        let (resource, scope) = read(
            "sysctl",
            json!({"key": "kernel.panic", "value": "10", "reason": "r", "rules": ["b", "a"],
                   "required": true, "only": ["debian"]}),
        )
        .unwrap();
        assert_eq!(resource.name(), "sysctl/kernel.panic");
        assert_eq!((resource.text("value"), resource.required), (Some("10"), true));
        assert_eq!(resource.rules, ["a", "b"]);
        assert!(scope.holds("debian", "x86_64", "bookworm"));
        assert!(!scope.holds("al2023", "x86_64", "2023"));
    }

    #[test]
    fn a_key_of_two_parts_names_both() {
        let table = json!({"file": "/a:b", "name": "UMASK", "value": "027"});
        let (one, _) = read("setting", table).unwrap();
        assert_eq!(one.name(), "setting//a:b:UMASK");
        assert_eq!((one.part("file"), one.part("name")), ("/a:b", "UMASK"));
        assert_eq!(Resource::from_json(&one.to_json(), &Place::default()).unwrap().key, one.key);
        let table = json!({"file": "/a", "name": "U:V", "value": "027"});
        assert_eq!(read("setting", table).unwrap_err(), ["`name` of a setting has no `:`"]);
        let table = json!({"path": "/a", "content": "c"});
        assert_eq!(read("block", table).unwrap_err(), ["a block needs a `marker`"]);
    }

    #[test]
    fn mistakes_are_all_named() {
        assert_eq!(read("sysctrl", json!({})).unwrap_err(), ["no kind of resource `sysctrl`"]);
        let problems =
            read("file", json!({"path": "/a", "mod": "0644", "content": 5})).unwrap_err();
        assert_eq!(
            problems,
            ["`content` of a file is text", "a file has no field `mod`", "a file needs a `mode`"]
        );
        assert_eq!(
            read("directory", json!({"path": "/a", "mode": "644"})).unwrap_err(),
            ["`mode` of a directory is a mode of four octal digits such as \"0644\""]
        );
    }
}
