//! One thing that is true of an image, read from a table in a profile or in the user's config.

use serde_json::{Map, Value, json};

use super::effective::dotted;
use super::form::Form;
use super::kind::{self, COMMON, Field, Kind, Shape};
use super::root_facts::is_of;
use crate::codes::image::{BAD_RESOURCE, UNKNOWN_FIELD, UNKNOWN_KIND};
use crate::nearest::nearest;
use crate::problem::{Place, Problem};

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
            && (self.releases.is_empty() || self.releases.iter().any(|one| is_of(release, one)))
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
            let said = value.get(common).map(|said| (common.to_owned(), said.clone()));
            table.extend(said);
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

    /// What it is about, however that is written.
    pub fn identity(&self) -> String {
        identity(&self.name())
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

/// The name of a resource in the one spelling for all that mean the same thing. What is written
/// to files keeps its own, since auditors look for that.
pub fn identity(name: &str) -> String {
    match name.split_once('/') {
        Some(("sysctl", key)) => format!("sysctl/{}", dotted(key)),
        Some(("sshd", _)) => name.to_ascii_lowercase(),
        Some(("module", _)) => name.replace('-', "_"),
        _ => name.to_owned(),
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
        } else if let Some(problem) = misformed(kind.name, name, kind::key_form(name), &part) {
            problems.push(problem.at(place.clone()));
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
    for (name, value) in table.iter().filter(|(name, _)| kind.keys().all(|key| key != *name)) {
        let common = COMMON.iter().find(|field| field.name == name);
        match kind.field(name).or(common) {
            Some(_) if ADDRESSES.contains(&name.as_str()) && has_login(value) => {
                let what = format!("`{name}` of a {} has no user and no password", kind.name);
                problems.push(bad(place, what));
            }
            Some(field) => match wrong(kind.name, field, value) {
                Some(problem) => problems.push(problem.at(place.clone())),
                None if common.is_none() => {
                    fields.insert(name.clone(), normal(field, value));
                }
                None => {}
            },
            None => {
                let known = kind.fields.iter().chain(COMMON).map(|field| field.name);
                let what = format!("a {} has no field `{name}`", kind.name);
                let problem = Problem::new(&UNKNOWN_FIELD, what);
                problems.push(with_nearest(problem, name, known).at(place.clone()));
            }
        }
    }
    problems.extend(missing(kind, table).map(|what| bad(place, what)));
    fields
}

/// Fields that a table lacks: those that are needed, and those that another one needs.
fn missing(kind: &Kind, table: &Map<String, Value>) -> impl Iterator<Item = String> {
    let said = |name: &str| table.get(name).is_some_and(|value| *value != json!([]));
    let lack = move |field: &Field| match field.beside {
        _ if field.needed && !table.contains_key(field.name) => {
            Some(format!("a {} needs a `{}`", kind.name, field.name))
        }
        Some(other) if table.contains_key(field.name) && !said(other) => {
            Some(format!("a {} with a `{}` needs a `{other}`", kind.name, field.name))
        }
        _ => None,
    };
    kind.fields.iter().filter_map(lack)
}

/// What is wrong with a value; `of` is what the field belongs to.
pub(super) fn wrong(of: &str, field: &Field, value: &Value) -> Option<Problem> {
    if !fits(field.shape, value) {
        return Some(Problem::new(&BAD_RESOURCE, wrong_shape(of, field.name, field.shape)));
    }
    let texts: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        Value::Object(table) if field.form == Form::Name => {
            table.keys().map(String::as_str).collect()
        }
        Value::Object(table) => table.values().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    texts.into_iter().find_map(|text| misformed(of, field.name, field.form, text))
}

fn misformed(of: &str, name: &str, form: Form, text: &str) -> Option<Problem> {
    if form.holds(text) {
        return None;
    }
    let right = form.words();
    let problem = Problem::new(&BAD_RESOURCE, format!("`{name}` of a {of} is {right}"));
    Some(match form.nearest(text) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem.fix(format!("give `{name}` this form: {right}")),
    })
}

/// The value in the spelling that is compared and written.
fn normal(field: &Field, value: &Value) -> Value {
    let texts = |value: &Value| field.form.normal(value.as_str().unwrap_or_default());
    match (field.shape, value) {
        (Shape::Texts, Value::Array(list)) => {
            json!(list.iter().flat_map(texts).collect::<Vec<_>>())
        }
        (Shape::Table, Value::Object(table)) => {
            let one =
                |(name, value): (&String, &Value)| (name.clone(), json!(texts(value).concat()));
            Value::Object(table.iter().map(one).collect())
        }
        _ => value.clone(),
    }
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

fn wrong_shape(of: &str, name: &str, shape: Shape) -> String {
    let wanted = match shape {
        Shape::Text => "text",
        Shape::Flag => "true or false",
        Shape::Number => "a whole number",
        Shape::Mode => "a mode of four octal digits such as \"0644\"",
        Shape::Texts => "a list of texts",
        Shape::Table => "a table of texts",
        Shape::Tables => "a list of tables",
    };
    format!("`{name}` of a {of} is {wanted}")
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

    /// A kind, a table, and what is told of it; nothing means that it is right.
    #[test]
    fn each_text_has_the_form_of_its_field() {
        let path = "a path from `/` on, without `.`, `..`, empty parts, a `/` at the end and \
                    control characters";
        let name = "one word without `/`, spaces and control characters";
        let sum = |digit: &str| json!({"x86_64": digit.repeat(64)});
        let download = |sum: Value| json!({"path": "/a", "component": "c", "version": "1", "url": "u", "sha256": sum});
        let cases = [
            ("absent", json!({"path": "/etc/../media"}), format!("`path` of a absent is {path}")),
            ("absent", json!({"path": "/srv/"}), format!("`path` of a absent is {path}")),
            ("absent", json!({"path": "/etc/cron.d/*"}), String::new()),
            ("access", json!({"path": "etc/a"}), format!("`path` of a access is {path}")),
            (
                "setting",
                json!({"file": "/a//b", "name": "n", "value": "v"}),
                format!("`file` of a setting is {path}"),
            ),
            ("link", json!({"path": "/a", "target": ""}), "`target` of a link is not empty".into()),
            ("mask", json!({"unit": "../a"}), format!("`unit` of a mask is {name}")),
            ("package", json!({"name": "a b"}), format!("`name` of a package is {name}")),
            (
                "unit",
                json!({"name": "a.service", "drop-ins": {"../b": ""}}),
                format!("`drop-ins` of a unit is {name}"),
            ),
            (
                "unit",
                json!({"name": "a.service", "state": "enabled"}),
                "a unit with a `state` needs a `wanted-by`".into(),
            ),
            (
                "limit",
                json!({"item": "nofile", "soft": "1", "hard": "1"}),
                "`item` of a limit is a domain and an item such as `*/nofile`".into(),
            ),
            (
                "absent",
                json!({"path": "/a", "only": "debian"}),
                "`only` of a absent is a list of texts".into(),
            ),
            (
                "absent",
                json!({"path": "/a", "arch": ["arm64"]}),
                "`arch` of a absent is one of x86_64, aarch64".into(),
            ),
            ("download", download(sum("A")), String::new()),
            (
                "download",
                download(json!({"x86_64": "abc"})),
                "`sha256` of a download is 64 hexadecimal digits".into(),
            ),
        ];
        for (kind, table, told) in cases {
            let found = read(kind, table.clone()).err().unwrap_or_default();
            assert_eq!(found.join("; "), told, "{kind} {table}");
        }
        let (one, _) = read("download", download(sum("A"))).unwrap();
        assert_eq!(one.table("sha256"), [("x86_64", "a".repeat(64).as_str())]);
    }

    #[test]
    fn a_wrong_word_is_told_the_nearest_right_one() {
        for (kind, table, fix) in [
            ("module", json!({"name": "a", "state": "load"}), "did you mean `loaded`?"),
            ("absent", json!({"path": "/a", "only": ["debain"]}), "did you mean `debian`?"),
        ] {
            let table = table.as_object().unwrap().clone();
            let problems = Resource::read(kind, &table, "p", &Place::default()).unwrap_err();
            assert_eq!((problems.len(), problems[0].exit()), (1, 3));
            assert_eq!(problems[0].fix_text(), fix);
        }
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
