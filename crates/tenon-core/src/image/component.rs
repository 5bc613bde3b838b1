//! Components: programs whose version somebody chooses. Each comes from the distribution, as a
//! package, or from its publisher, as a download with a known sha256.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::exception::Exception;
use super::profile::Profile;
use super::resource::{Resource, Scope};
use crate::codes::image::{COMPONENT_VERSION, UNKNOWN_COMPONENT};
use crate::nearest::nearest;
use crate::problem::{Place, Problem};

/// The profile that a config's components become.
pub const FEATURE: &str = "components";

static TABLE: &str = include_str!("../../../../profiles/components.toml");
/// Pin files by the minor version of Kubernetes.
static PINS: &[(&str, &str)] = &[("1.34", include_str!("../../../../profiles/pins/1.34.toml"))];

/// What a config says about a component.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Component {
    pub version: Option<String>,
    pub source: Option<Source>,
    /// By architecture.
    pub sha256: BTreeMap<String, String>,
    /// The file that speaks of it last.
    pub origin: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Distribution,
    Upstream,
}

impl Source {
    pub fn read(word: &str) -> Option<Source> {
        match word {
            "distro" => Some(Source::Distribution),
            "upstream" => Some(Source::Upstream),
            _ => None,
        }
    }
}

/// Every known component with its row of the table.
pub fn table() -> Map<String, Value> {
    toml::from_str(TABLE).unwrap_or_default()
}

/// A problem if there is no such component.
pub fn check(name: &str) -> Option<Problem> {
    let table = table();
    if table.contains_key(name) {
        return None;
    }
    let problem = Problem::new(&UNKNOWN_COMPONENT, format!("there is no component `{name}`"));
    Some(match nearest(name, table.keys().map(String::as_str)) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem,
    })
}

/// The profile that makes the chosen components true.
pub fn profile(
    components: &BTreeMap<String, Component>,
    kubernetes: &str,
) -> Result<Profile, Vec<Problem>> {
    let mut profile = Profile { name: FEATURE.to_owned(), ..Profile::default() };
    profile.about = "Components whose version the config chooses".to_owned();
    let (table, pins) = (table(), pins(kubernetes));
    let mut problems = Vec::new();
    for (name, component) in components {
        let chosen = Chosen { name, row: &table[name], pins: &pins, component };
        match chosen.version(kubernetes) {
            Ok(version) => problems.extend(chosen.add(&version, &mut profile).err()),
            Err(problem) => problems.push(vec![problem]),
        }
    }
    let problems: Vec<_> = problems.into_iter().flatten().collect();
    if problems.is_empty() { Ok(profile) } else { Err(problems) }
}

fn pins(kubernetes: &str) -> Map<String, Value> {
    let is_minor = |minor: &str| {
        kubernetes.strip_prefix(minor).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let text = PINS.iter().find(|(minor, _)| is_minor(minor)).map_or("", |(_, text)| *text);
    toml::from_str(text).unwrap_or_default()
}

/// One component with all that is known about it.
struct Chosen<'a> {
    name: &'a str,
    row: &'a Value,
    pins: &'a Map<String, Value>,
    component: &'a Component,
}

impl Chosen<'_> {
    fn pin(&self) -> &Value {
        self.pins.get(self.name).unwrap_or(&Value::Null)
    }

    fn is_distributed(&self) -> bool {
        self.component.source == Some(Source::Distribution)
    }

    /// The version; a package may be without, which means the distribution's.
    fn version(&self, kubernetes: &str) -> Result<Option<String>, Problem> {
        let pinned = || self.pin()["version"].as_str().map(str::to_owned);
        match self.component.version.clone().or_else(pinned) {
            None if !self.is_distributed() => {
                let what = format!(
                    "component {} has no version, and the pins of Kubernetes {kubernetes} have none",
                    self.name
                );
                Err(Problem::new(&COMPONENT_VERSION, what))
            }
            version => Ok(version),
        }
    }

    fn add(&self, version: &Option<String>, profile: &mut Profile) -> Result<(), Vec<Problem>> {
        let package = self.row["package"].as_str();
        if self.is_distributed() {
            let Some(package) = package else {
                let what = format!("no distribution has a package for component {}", self.name);
                return Err(vec![Problem::new(&COMPONENT_VERSION, what)]);
            };
            let mut wish = json!({"name": package, "source": "distro"});
            if let Some(version) = version {
                wish["version"] = json!(version);
            }
            return self.wish("package", wish, profile);
        }
        if let Some(package) = package {
            self.wish("package-absent", json!({"name": package}), profile)?;
            profile.exceptions.push(Exception {
                resource: Some(format!("package/{package}")),
                keep: Some(FEATURE.to_owned()),
                reason: format!("the config asks for {} from its publisher", self.name),
                feature: FEATURE.to_owned(),
                ..Exception::default()
            });
        }
        for unit in self.row["unit"].as_array().into_iter().flatten() {
            self.wish("unit", unit.clone(), profile)?;
        }
        let mut wish =
            json!({"component": self.name, "version": version, "sha256": self.sums(version)});
        for field in ["path", "url", "members", "licence"] {
            if !self.row[field].is_null() {
                wish[field] = self.row[field].clone();
            }
        }
        self.wish("download", wish, profile)
    }

    /// Checksums of the config; those of the pin file where it pins the same version.
    fn sums(&self, version: &Option<String>) -> Value {
        let same = self.pin()["version"].as_str() == version.as_deref();
        let pinned = self.pin()["sha256"].as_object().filter(|_| same).cloned();
        let mut sums = pinned.unwrap_or_default();
        for (architecture, sum) in &self.component.sha256 {
            sums.insert(architecture.clone(), json!(sum));
        }
        Value::Object(sums)
    }

    fn wish(
        &self,
        kind: &str,
        mut table: Value,
        profile: &mut Profile,
    ) -> Result<(), Vec<Problem>> {
        let chosen = match &self.component.version {
            Some(_) => format!("{} as chosen in {}", self.name, self.component.origin),
            None if self.is_distributed() => format!("{} of the distribution", self.name),
            None => format!("{} as the pin file has it", self.name),
        };
        table["reason"] = json!(chosen);
        let table = table.as_object().cloned().unwrap_or_default();
        let place = Place::field(format!("spec.components.{}", self.name));
        let (wish, _) = Resource::read(kind, &table, FEATURE, &place)?;
        profile.wishes.push((wish, Scope::default()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(version: Option<&str>) -> Component {
        Component {
            version: version.map(str::to_owned),
            source: Some(Source::Upstream),
            sha256: [("x86_64".to_owned(), "a".repeat(64))].into(),
            origin: "image.yaml".into(),
        }
    }

    #[test]
    fn every_row_of_the_table_becomes_wishes() {
        let names: Vec<String> = table().keys().cloned().collect();
        assert_eq!(names.len(), 8, "{names:?}");
        for name in names {
            let profile = profile(&[(name.clone(), upstream(Some("1.2.3")))].into(), "1.34.2");
            let profile = profile.unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
            assert!(profile.wishes.iter().any(|(wish, _)| wish.kind.name == "download"), "{name}");
        }
    }

    #[test]
    fn upstream_takes_the_place_of_the_package() {
        let profile =
            profile(&[("runc".into(), upstream(Some("1.3.3")))].into(), "1.34.2").unwrap();
        let names: Vec<_> = profile.wishes.iter().map(|(wish, _)| wish.name()).collect();
        assert_eq!(names, ["package-absent/runc", "download//usr/bin/runc"]);
        assert_eq!(profile.exceptions[0].resource.as_deref(), Some("package/runc"));
        assert_eq!(profile.wishes[1].0.reasons[0].why, "runc as chosen in image.yaml");
    }

    #[test]
    fn a_distribution_needs_no_version_and_a_publisher_does() {
        let own = Component { source: Some(Source::Distribution), ..Component::default() };
        let found = profile(&[("runc".into(), own.clone())].into(), "1.34.2").unwrap();
        assert_eq!(found.wishes[0].0.name(), "package/runc");
        let found = profile(&[("kubelet".into(), own)].into(), "1.34.2").unwrap_err();
        assert!(found[0].what.contains("no distribution has a package"));
        let found = profile(&[("runc".into(), upstream(None))].into(), "1.34.2").unwrap_err();
        assert_eq!(found[0].page.code, "TN03842");
    }

    #[test]
    fn a_pin_gives_version_and_checksums() {
        let text =
            format!("[runc]\nversion = '1.3.3'\nsha256 = {{aarch64 = '{}'}}\n", "b".repeat(64));
        let pins: Map<String, Value> = toml::from_str(&text).unwrap();
        let row = json!({});
        let mut component = upstream(None);
        let chosen = Chosen { name: "runc", row: &row, pins: &pins, component: &component };
        let version = chosen.version("1.34.2").unwrap();
        assert_eq!(version.as_deref(), Some("1.3.3"));
        assert_eq!(chosen.sums(&version).as_object().unwrap().len(), 2);
        component.version = Some("1.3.4".into());
        let chosen = Chosen { name: "runc", row: &row, pins: &pins, component: &component };
        assert_eq!(chosen.sums(&component.version).as_object().unwrap().len(), 1);
    }

    #[test]
    fn shipped_pins_are_toml_with_whole_checksums() {
        for (minor, text) in PINS {
            let pins: Map<String, Value> = toml::from_str(text).unwrap();
            for (name, pin) in pins {
                assert!(check(&name).is_none() && pin["version"].is_string(), "{minor} {name}");
                for sum in pin["sha256"].as_object().unwrap().values() {
                    assert_eq!(sum.as_str().unwrap().len(), 64, "{minor} {name}");
                }
            }
        }
    }
}
