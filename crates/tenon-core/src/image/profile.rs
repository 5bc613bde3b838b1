//! Profiles: files of wishes, needs and exceptions. Shipped ones are embedded; users bring more.

use serde_json::{Map, Value};

use super::exception::Exception;
use super::kind::KINDS;
use super::need::Need;
use super::resource::{Resource, Scope};
use crate::codes::image::{BAD_PROFILE, UNKNOWN_PROFILE};
use crate::nearest::nearest;
use crate::problem::{Place, Problem};

/// The shipped profiles, in the order in which their reasons are printed.
static SHIPPED: &[(&str, &str)] = &[
    ("base", include_str!("../../../../profiles/base.toml")),
    ("cis", include_str!("../../../../profiles/cis.toml")),
    ("cis-level2", include_str!("../../../../profiles/cis-level2.toml")),
    ("minimal", include_str!("../../../../profiles/minimal.toml")),
    ("stig", include_str!("../../../../profiles/stig.toml")),
    ("fedramp", include_str!("../../../../profiles/fedramp.toml")),
    ("fedramp-high", include_str!("../../../../profiles/fedramp-high.toml")),
    ("fips", include_str!("../../../../profiles/fips.toml")),
    ("gpu-nvidia", include_str!("../../../../profiles/gpu-nvidia.toml")),
    ("neuron", include_str!("../../../../profiles/neuron.toml")),
    ("efa", include_str!("../../../../profiles/efa.toml")),
    ("selinux", include_str!("../../../../profiles/selinux.toml")),
    ("selinux-permissive", include_str!("../../../../profiles/selinux-permissive.toml")),
    ("apparmor", include_str!("../../../../profiles/apparmor.toml")),
];

/// Names of the shipped profiles.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// A profile as its file says it.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    pub name: String,
    pub about: String,
    /// Profiles that it stands on; `debian:apparmor` is for one family.
    pub requires: Vec<String>,
    /// Profiles that it cannot stand beside and families that it cannot be made on, with the
    /// reason.
    pub forbids: Vec<(String, String)>,
    pub wishes: Vec<(Resource, Scope)>,
    pub needs: Vec<(Need, Scope)>,
    pub exceptions: Vec<Exception>,
}

/// Reads a shipped profile.
pub fn shipped(name: &str) -> Result<Profile, Vec<Problem>> {
    match SHIPPED.iter().find(|(known, _)| *known == name) {
        Some((name, text)) => Profile::read(name, text),
        None => {
            let problem = Problem::new(&UNKNOWN_PROFILE, format!("there is no profile `{name}`"));
            let fix = match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the profiles are {}", names().collect::<Vec<_>>().join(", ")),
            };
            Err(vec![problem.fix(fix)])
        }
    }
}

impl Profile {
    /// Names of the profiles that it stands on in a family.
    pub fn stands_on<'a>(&'a self, family: &'a str) -> impl Iterator<Item = &'a str> {
        self.requires.iter().filter_map(move |name| match name.split_once(':') {
            Some((only, name)) => (only == family).then_some(name),
            None => Some(name.as_str()),
        })
    }

    /// Reads the text of a profile; all that is wrong with it is reported at once.
    pub fn read(name: &str, text: &str) -> Result<Profile, Vec<Problem>> {
        let source = format!("profile:{name}");
        let place = |path: String| Place { source: source.clone(), path, ..Place::default() };
        let document: Map<String, Value> = toml::from_str(text).map_err(|error| {
            let what = format!("profile `{name}` is no TOML");
            vec![Problem::new(&BAD_PROFILE, what).at(place(String::new())).cause(error.message())]
        })?;
        let mut profile = Profile { name: name.to_owned(), ..Profile::default() };
        let mut problems = Vec::new();
        for (key, value) in &document {
            match (key.as_str(), value) {
                ("about", Value::String(text)) => profile.about.clone_from(text),
                ("requires", Value::Array(list)) => profile.requires = texts(list),
                ("forbids", Value::Object(table)) => profile.forbids = pairs(table),
                ("exception", Value::Array(list)) => {
                    for (at, one) in list.iter().enumerate() {
                        match Exception::read(one, name, &place(format!("exception[{at}]"))) {
                            Ok(exception) => profile.exceptions.push(exception),
                            Err(more) => problems.extend(more),
                        }
                    }
                }
                ("need", Value::Array(list)) => {
                    for (at, one) in list.iter().enumerate() {
                        match Need::read(one, name) {
                            Ok(need) => profile.needs.push(need),
                            Err(problem) => problems.push(problem.at(place(format!("need[{at}]")))),
                        }
                    }
                }
                (kind, Value::Array(list)) => {
                    for (at, one) in list.iter().enumerate() {
                        let empty = Map::new();
                        let table = one.as_object().unwrap_or(&empty);
                        let place = place(format!("{kind}[{at}]"));
                        match Resource::read(kind, table, name, &place) {
                            Ok(wish) => profile.wishes.push(wish),
                            Err(more) => problems.extend(more),
                        }
                    }
                }
                (key, _) => problems.push(strange(key).at(place(key.to_owned()))),
            }
        }
        if problems.is_empty() { Ok(profile) } else { Err(problems) }
    }
}

fn strange(key: &str) -> Problem {
    let known = ["about", "requires", "forbids", "exception", "need"];
    let known = known.into_iter().chain(KINDS.iter().map(|kind| kind.name));
    let problem = Problem::new(&BAD_PROFILE, format!("a profile has no `{key}` of this form"));
    match nearest(key, known) {
        Some(near) => problem.fix(format!("did you mean `[[{near}]]`?")),
        None => problem,
    }
}

fn texts(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn pairs(table: &Map<String, Value>) -> Vec<(String, String)> {
    let pair = |(name, why): (&String, &Value)| Some((name.clone(), why.as_str()?.to_owned()));
    table.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_profile_reads() {
        for name in names() {
            let profile = shipped(name).unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
            assert!(!profile.about.is_empty() && !profile.wishes.is_empty(), "{name}");
            for (wish, _) in &profile.wishes {
                assert!(!wish.reasons[0].why.is_empty(), "{name}: {} says not why", wish.name());
            }
        }
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let problems = Profile::read("mine", "about = 5\n[[sysctrl]]\nkey = \"a\"\n").unwrap_err();
        let told: Vec<_> =
            problems.iter().map(|p| p.place.as_ref().unwrap().path.clone()).collect();
        assert_eq!(told, ["about", "sysctrl[0]"]);
        assert!(shipped("ciss").unwrap_err()[0].fix.as_deref().unwrap().contains("cis"));
    }
}
