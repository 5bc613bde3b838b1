//! From what is wanted to a plan: profiles composed, wishes merged, needs kept, resources lowered.
//! The same input gives the same bytes on any machine.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::catalogue::{self, Catalogue};
use super::component;
use super::exception::{self, CONFIG, Exception};
use super::family::{self, Family};
use super::item::{self, Act, Item};
use super::key;
use super::merge;
use super::need::{self, Need};
use super::profile::{self, Profile};
use super::resource::Resource;
use crate::codes::image::{
    BAD_PLAN, BAD_RESOURCE, EDITED_PLAN, NO_CHECKSUM, PARTS_DIFFER, PROFILES_CLASH,
};
use crate::hex::sha256;
use crate::plan::baked;
use crate::problem::{Place, Problem};

/// The schema of a plan.
pub const SCHEMA: &str = "tenon.image-plan/1";

/// What is asked for, read from the command line and the user's config.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub name: String,
    pub family: &'static Family,
    /// `bookworm`, `2023.9`
    pub release: String,
    /// `x86_64` or `aarch64`
    pub architecture: String,
    /// `1.34.2`
    pub kubernetes: String,
    /// Names of profiles, in any order.
    pub profiles: Vec<String>,
    /// Profiles of the user, by name.
    pub own_profiles: Vec<Profile>,
    /// Wishes of the config itself.
    pub wishes: Vec<Resource>,
    pub exceptions: Vec<Exception>,
}

/// A whole image, described.
#[derive(Debug, Clone)]
pub struct ImagePlan {
    pub name: String,
    pub family: &'static Family,
    pub release: String,
    pub architecture: String,
    pub kubernetes: String,
    /// In the order of composition.
    pub profiles: Vec<String>,
    pub resources: Vec<Resource>,
    pub items: Vec<Item>,
    pub exceptions: Vec<Exception>,
    pub needs: Vec<Need>,
}

/// Composes the plan, or says everything that stands against it.
pub fn resolve(wanted: &Wanted) -> Result<ImagePlan, Vec<Problem>> {
    let profiles = compose(wanted)?;
    let in_scope = |scope: &super::resource::Scope| {
        scope.holds(wanted.family.name, &wanted.architecture, &wanted.release)
    };
    let needs: Vec<Need> = profiles
        .iter()
        .flat_map(|profile| &profile.needs)
        .filter(|(_, scope)| in_scope(scope))
        .map(|(need, _)| need.clone())
        .collect();
    let shipped = profiles.iter().flat_map(|profile| &profile.wishes);
    let shipped = shipped.filter(|(_, scope)| in_scope(scope)).map(|(wish, _)| wish.clone());
    let mut wishes: Vec<Resource> = shipped.chain(wanted.wishes.iter().cloned()).collect();
    for wish in &mut wishes {
        fill(wish, wanted, &needs);
    }
    let shipped = profiles.iter().flat_map(|profile| &profile.exceptions);
    let exceptions = shipped.chain(&wanted.exceptions).filter(|one| in_scope(&one.images));
    let exceptions: Vec<Exception> = exceptions.cloned().collect();
    let rules = rules(&wishes, &profiles, wanted.family);

    let mut merged = merge::merge(unwaived(wishes, &exceptions), &exceptions);
    repeat_sshd(&mut merged.resources);
    let mut problems = merged.problems;
    let kept = used(&exceptions, &merged.settled, &rules, (&needs, &merged.resources));
    problems.extend(need::broken(&needs, &merged.resources, &kept));
    // What a profile ships covers every composition; what the user adds must be needed here.
    let own = |one: &Exception| one.feature != CONFIG || kept.contains(one);
    problems.extend(exception::unused(&exceptions, own, rules.iter().map(String::as_str)));
    problems.extend(without_checksum(&merged.resources, &wanted.architecture));
    problems.extend(parts_differ(&merged.resources));
    let items = item::lower(&merged.resources, wanted.family, &wanted.architecture);
    problems.extend(item::clashes(&items));
    problems.extend(wrong_keys(&items));
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(ImagePlan {
        name: wanted.name.clone(),
        family: wanted.family,
        release: wanted.release.clone(),
        architecture: wanted.architecture.clone(),
        kubernetes: wanted.kubernetes.clone(),
        profiles: profiles
            .into_iter()
            .map(|profile| profile.name)
            .filter(|name| name != component::FEATURE)
            .collect(),
        resources: merged.resources,
        items,
        exceptions: kept,
        needs,
    })
}

/// The named profiles and all that they stand on, in shipped order, users' last.
pub fn compose(wanted: &Wanted) -> Result<Vec<Profile>, Vec<Problem>> {
    let own = |name: &str| wanted.own_profiles.iter().find(|own| own.name == name).cloned();
    let read = |name: &str| own(name).map_or_else(|| profile::shipped(name), Ok);
    let mut found: Vec<Profile> = Vec::new();
    let mut open: Vec<String> = wanted.profiles.clone();
    let mut problems = Vec::new();
    while let Some(name) = open.pop() {
        if found.iter().any(|profile| profile.name == name) {
            continue;
        }
        match read(&name) {
            Ok(profile) => {
                open.extend(profile.stands_on(wanted.family.name).map(str::to_owned));
                found.push(profile);
            }
            Err(more) => problems.extend(more),
        }
    }
    for profile in &found {
        for (other, why) in &profile.forbids {
            if found.iter().any(|found| found.name == *other) {
                let what = format!("profile `{}` cannot stand beside `{other}`", profile.name);
                problems.push(Problem::new(&PROFILES_CLASH, what).why(why.clone()));
            }
            if wanted.family.name == other {
                let what = format!("profile `{}` cannot be made on {other}", profile.name);
                let fix = "leave the profile out, or build on another family";
                problems.push(Problem::new(&PROFILES_CLASH, what).why(why.clone()).fix(fix));
            }
        }
    }
    let rank = |profile: &Profile| {
        let shipped = profile::names().position(|name| name == profile.name);
        (shipped.unwrap_or(usize::MAX), profile.name.clone())
    };
    found.sort_by_key(rank);
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// Puts what is known only now into the texts of a wish. What bootstrap writes, too, comes from
/// its own room, so that the two never differ.
fn fill(wish: &mut Resource, wanted: &Wanted, needs: &[Need]) {
    let Some(Value::String(content)) = marked(wish) else { return };
    for (name, value) in FILLED {
        if content.contains(name) {
            *content = content.replace(name, &value(wanted, needs));
        }
    }
}

/// The text in which marks are filled in. A config says its texts whole: what looks like a mark there
/// is the user's own.
fn marked(wish: &mut Resource) -> Option<&mut Value> {
    match wish.reasons.iter().any(|reason| reason.feature == CONFIG) {
        true => None,
        false => wish.fields.get_mut("content"),
    }
}

type Filled = fn(&Wanted, &[Need]) -> String;
const FILLED: &[(&str, Filled)] = &[
    ("{{kubernetes}}", |wanted, _| wanted.kubernetes.clone()),
    ("{{tcp-ports}}", |_, needs| need::ports(needs, "tcp")),
    ("{{udp-ports}}", |_, needs| need::ports(needs, "udp")),
    ("{{changing-paths}}", |_, needs| need::changing_paths(needs)),
    ("{{credential-provider}}", |wanted, _| baked::credential_provider(&wanted.kubernetes)),
    ("{{containerd}}", |wanted, _| baked::containerd(&wanted.kubernetes)),
    ("{{runtime-spec}}", |_, _| baked::runtime_spec()),
];

/// Rules that somebody could waive: those that wishes serve, and those of the catalogues.
fn rules(wishes: &[Resource], profiles: &[Profile], family: &Family) -> BTreeSet<String> {
    let composed = |name: &str| profiles.iter().any(|profile| profile.name == name);
    let own = |one: &Catalogue| one.family == family.name && composed(&one.profile);
    let listed = catalogue::shipped().into_iter().filter(own).flat_map(|one| one.rules.into_keys());
    wishes.iter().flat_map(|wish| wish.rules.clone()).chain(listed).collect()
}

/// The wishes without those that serve waived rules and nothing else.
fn unwaived(mut wishes: Vec<Resource>, exceptions: &[Exception]) -> Vec<Resource> {
    let waived: BTreeSet<&str> = exceptions.iter().filter_map(Exception::waives).collect();
    let needless = |wish: &Resource| {
        let serves = |rule: &String| !waived.contains(rule.as_str());
        !wish.required && !wish.rules.is_empty() && !wish.rules.iter().any(serves)
    };
    wishes.retain(|wish| !needless(wish));
    wishes
}

/// Auditors read the main file of sshd alone: where it asks, all settled directives stand in it.
fn repeat_sshd(resources: &mut [Resource]) {
    const MARK: &str = "{{sshd}}\n";
    let of_kind = resources.iter().filter(|one| one.kind.name == "sshd");
    let line = |one: &Resource| format!("{} {}\n", one.key, one.text("value").unwrap_or_default());
    let lines: String = of_kind.map(line).collect();
    for one in resources {
        if let Some(Value::String(content)) = marked(one) {
            *content = content.replace(MARK, &lines);
        }
    }
}

/// The exceptions that decided something: a conflict settled, a need set aside, a rule waived.
fn used(
    exceptions: &[Exception],
    settled: &[String],
    rules: &BTreeSet<String>,
    (needs, resources): (&[Need], &[Resource]),
) -> Vec<Exception> {
    let decides = |one: &&Exception| match &one.resource {
        Some(name) => {
            let deciding = exception::decision(exceptions, name) == Some(*one);
            let mut breaches = need::breaches(needs, resources);
            (deciding && settled.iter().any(|settled| one.is_about(settled)))
                || breaches.any(|(resource, need)| one.sets_aside(resource, need))
        }
        None => one.waives().is_some_and(|rule| rules.contains(rule)),
    };
    exceptions.iter().filter(decides).cloned().collect()
}

/// Packages of one set that the profiles and the config want in different versions.
fn parts_differ(resources: &[Resource]) -> Vec<Problem> {
    let packages = || resources.iter().filter(|one| one.kind.name == "package");
    let sets: BTreeSet<&str> = packages().filter_map(|one| one.text("set")).collect();
    let mut problems = Vec::new();
    for set in sets {
        let versions = packages().filter(|one| one.text("set") == Some(set));
        let versions: Vec<_> =
            versions.filter_map(|one| Some((one.text("version")?, &one.key))).collect();
        if versions.windows(2).any(|pair| pair[0].0 != pair[1].0) {
            let told = versions.iter().map(|(version, key)| format!("{key} {version}"));
            let what = format!("the packages of {set} are wanted in different versions");
            problems.push(Problem::new(&PARTS_DIFFER, what).details(told.collect::<Vec<_>>()));
        }
    }
    problems
}

fn without_checksum(resources: &[Resource], architecture: &str) -> Vec<Problem> {
    let bad = |one: &&Resource| {
        let sums = one.table("sha256");
        let sum = sums.iter().find(|(arch, _)| *arch == architecture);
        !sum.is_some_and(|(_, sum)| sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let downloads = resources.iter().filter(|one| one.kind.name == "download");
    let problem = |one: &Resource| {
        let component = one.text("component").unwrap_or_default();
        let what = format!("component {component} has no sha256 for {architecture}");
        Problem::new(&NO_CHECKSUM, what)
    };
    downloads.filter(bad).map(problem).collect()
}

/// Keys that a resource gives and that are not what it pins.
fn wrong_keys(items: &[Item]) -> Vec<Problem> {
    let wrong = |item: &Item| match &item.act {
        Act::Key { path, fingerprint, content: Some(content) } => {
            let actual = key::fingerprint(content.as_bytes());
            let words = actual.as_deref().unwrap_or("none, or holds several keys");
            let what = format!("the fingerprint of the key for {path} is {words}");
            let why = format!("pinned is {fingerprint}");
            (actual.as_ref() != Some(fingerprint))
                .then(|| Problem::new(&BAD_RESOURCE, what).why(why))
        }
        _ => None,
    };
    items.iter().filter_map(wrong).collect()
}

impl ImagePlan {
    /// Reads back what [`ImagePlan::to_json`] wrote. Items are made anew from the resources: a
    /// file whose items say something else was edited, or made by another version.
    pub fn from_json(value: &Value) -> Result<ImagePlan, Vec<Problem>> {
        let bad = |what: &str| vec![Problem::new(&BAD_PLAN, what)];
        if value["schema"] != SCHEMA {
            return Err(bad(&format!("the plan is not of the schema {SCHEMA}")));
        }
        let text = |name: &str| match value[name].as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(bad(&format!("the plan has no `{name}`"))),
        };
        let list = |name: &str| value[name].as_array().into_iter().flatten();
        let family =
            family::find(&text("family")?).ok_or_else(|| bad("the plan names no known family"))?;
        let architecture = text("arch")?;
        let mut resources = Vec::new();
        for (at, one) in list("resources").enumerate() {
            let place = Place { path: format!("resources[{at}]"), ..Place::default() };
            resources.push(Resource::from_json(one, &place)?);
        }
        let mut exceptions = Vec::new();
        for (at, one) in list("exceptions").enumerate() {
            let place = Place { path: format!("exceptions[{at}]"), ..Place::default() };
            exceptions.push(Exception::from_json(one, &place)?);
        }
        let plan = ImagePlan {
            name: text("name")?,
            family,
            release: text("release")?,
            kubernetes: text("kubernetes")?,
            profiles: list("profiles").filter_map(Value::as_str).map(str::to_owned).collect(),
            items: item::lower(&resources, family, &architecture),
            architecture,
            resources,
            exceptions,
            // Needs have done their work when a plan is made; a plan does not carry them.
            needs: Vec::new(),
        };
        let problems = without_checksum(&plan.resources, &plan.architecture);
        if !problems.is_empty() {
            return Err(problems);
        }
        match plan.to_json() == *value {
            true => Ok(plan),
            false => {
                Err(vec![Problem::new(&EDITED_PLAN, "the plan does not follow from its resources")])
            }
        }
    }

    /// The plan as `apply --plan` reads it; sorted, without a clock.
    pub fn to_json(&self) -> Value {
        let item = |item: &Item| {
            let mut value = item.act.to_json();
            value["from"] = json!(item.from);
            value
        };
        json!({
            "schema": SCHEMA,
            "name": self.name,
            "family": self.family.name,
            "release": self.release,
            "arch": self.architecture,
            "kubernetes": self.kubernetes,
            "profiles": self.profiles,
            "resources": self.resources.iter().map(Resource::to_json).collect::<Vec<_>>(),
            "items": self.items.iter().map(item).collect::<Vec<_>>(),
            "exceptions": self.exceptions.iter().map(Exception::to_json).collect::<Vec<_>>(),
        })
    }

    /// Names the plan: equal plans have equal hashes.
    pub fn hash(&self) -> String {
        sha256(self.to_json().to_string().as_bytes())
    }

    /// Finds a resource by its name, `sysctl/kernel.panic`.
    pub fn resource(&self, name: &str) -> Option<&Resource> {
        self.resources.iter().find(|one| one.name() == name)
    }

    /// What has to be fetched before `apply`.
    pub fn downloads(&self) -> impl Iterator<Item = &Act> {
        let acts = self.items.iter().map(|item| &item.act);
        acts.filter(|act| matches!(act, Act::Download { .. } | Act::CachedImage { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::family::FAMILIES;

    fn wanted(profiles: &[(&str, &str)]) -> Wanted {
        let read = |(name, text): &(&str, &str)| Profile::read(name, text).unwrap();
        Wanted {
            name: "test".into(),
            family: family::find("debian").unwrap(),
            release: "bookworm".into(),
            architecture: "x86_64".into(),
            kubernetes: "1.34.2".into(),
            profiles: profiles.iter().map(|(name, _)| (*name).to_owned()).collect(),
            own_profiles: profiles.iter().map(read).collect(),
            wishes: Vec::new(),
            exceptions: Vec::new(),
        }
    }

    const NODE: &str = "about = 'n'\n[[need]]\nport = 'tcp/10250'\nreason = 'kubelet'\n\
        [[sysctl]]\nkey = 'net.ipv4.ip_forward'\nvalue = '1'\nreason = 'pods'\n\
        [[file]]\npath = '/etc/nft'\nmode = '0644'\ncontent = 'ports {{tcp-ports}}'\nreason = 'r'\n";
    const HARD: &str = "about = 'h'\nrequires = ['node']\n\
        [[sysctl]]\nkey = 'net.ipv4.ip_forward'\nvalue = '0'\nreason = 'no router'\n";
    const ANSWER: &str = "[[exception]]\nresource = 'sysctl/net.ipv4.ip_forward'\nkeep = 'node'\n\
        reason = 'the node routes pod traffic'\n";

    #[test]
    fn a_conflict_stops_the_plan_and_an_exception_settles_it() {
        let problems = resolve(&wanted(&[("node", NODE), ("hard", HARD)])).unwrap_err();
        assert_eq!(problems.len(), 1);
        let answered = format!("{HARD}{ANSWER}");
        let plan = resolve(&wanted(&[("hard", &answered), ("node", NODE)])).unwrap();
        let forward = plan.resource("sysctl/net.ipv4.ip_forward").unwrap();
        assert_eq!(forward.text("value"), Some("1"));
        assert_eq!(plan.exceptions.len(), 1);
        let Act::File { content, .. } = &plan.items[0].act else { panic!("{:?}", plan.items) };
        assert_eq!(content, "ports 10250");
    }

    #[test]
    fn the_order_of_profiles_changes_nothing() {
        let answered = format!("{HARD}{ANSWER}");
        let one = resolve(&wanted(&[("hard", &answered), ("node", NODE)])).unwrap();
        let other = resolve(&wanted(&[("node", NODE), ("hard", &answered)])).unwrap();
        assert_eq!(one.to_json(), other.to_json());
        assert_eq!(one.hash(), other.hash());
    }

    #[test]
    fn a_plan_is_read_back_and_an_edited_one_refused() {
        let plan = resolve(&wanted(&[("node", NODE)])).unwrap();
        let mut value = plan.to_json();
        let back = ImagePlan::from_json(&value).unwrap();
        assert_eq!((back.hash(), back.items), (plan.hash(), plan.items));
        value["items"][0]["with"]["mode"] = json!("0777");
        assert_eq!(ImagePlan::from_json(&value).unwrap_err()[0].page.code, "TN03813");
        value["schema"] = json!("other");
        assert_eq!(ImagePlan::from_json(&value).unwrap_err()[0].page.code, "TN03812");
    }

    #[test]
    fn packages_of_a_set_are_of_one_version() {
        const SET: &str = "about = 's'\n[[package]]\nname = 'a'\nset = 'gpu'\nreason = 'r'\n\
            [[package]]\nname = 'b'\nset = 'gpu'\nversion = '2.0'\nreason = 'r'\n";
        let plan = resolve(&wanted(&[("s", SET)])).unwrap();
        let sets = |item: &&Item| matches!(&item.act, Act::Set { packages, .. } if packages == &["a", "b"]);
        assert_eq!(plan.items.iter().filter(sets).count(), 1, "{:?}", plan.items);
        let other = SET.replacen("set = 'gpu'", "set = 'gpu'\nversion = '1.0'", 1);
        let problems = resolve(&wanted(&[("s", &other)])).unwrap_err();
        assert_eq!(problems[0].page.code, "TN03855");
        assert_eq!(problems[0].details, ["a 1.0", "b 2.0"]);
    }

    #[test]
    fn downloads_need_checksums() {
        let mut wanted = wanted(&[("node", NODE)]);
        let table = json!({"path": "/usr/bin/kubelet", "component": "kubelet", "version": "1",
                           "url": "https://example.com/{goarch}", "sha256": {"aarch64": "0".repeat(64)}});
        let wish =
            Resource::read("download", table.as_object().unwrap(), "config", &Place::default());
        wanted.wishes.push(wish.unwrap().0);
        let problems = resolve(&wanted).unwrap_err();
        assert!(problems[0].what.contains("kubelet has no sha256 for x86_64"));
        wanted.architecture = "aarch64".into();
        let plan = resolve(&wanted).unwrap();
        let Some(Act::Download { url, .. }) = plan.downloads().next() else { panic!() };
        assert_eq!(url, "https://example.com/arm64");
    }

    fn exception(value: Value) -> Exception {
        let mut value = value;
        value["reason"] = json!("a reason of at least twenty characters");
        Exception::read(&value, CONFIG, &Place::default()).unwrap()
    }

    /// What the user excepts on Debian, and the code of the refusal.
    #[test]
    fn exceptions_of_the_user_must_be_needed_here() {
        const RULED: &str = "about = 'r'\n\
            [[sysctl]]\nkey = 'a.one'\nvalue = '1'\nreason = 'r'\nrules = ['one']\n\
            [[sysctl]]\nkey = 'a.two'\nvalue = '1'\nreason = 'r'\nrules = ['one', 'two']\n\
            [[sysctl]]\nkey = 'a.must'\nvalue = '1'\nreason = 'r'\nrules = ['one']\nrequired = true\n";
        for (value, refused, left) in [
            (json!({"rule": "one"}), "", vec!["sysctl/a.must", "sysctl/a.two"]),
            (json!({"rule": "on"}), "TN03805", vec![]),
            (json!({"rule": "account_unique_id"}), "TN03805", vec![]),
            (json!({"resource": "sysctl/a.one", "keep": "ruled"}), "TN03805", vec![]),
            (
                json!({"rule": "one", "scope": {"families": ["al2023"]}}),
                "",
                vec!["sysctl/a.must", "sysctl/a.one", "sysctl/a.two"],
            ),
            (
                json!({"rule": "one", "scope": {"releases": ["bookworm"], "arch": ["x86_64"]}}),
                "",
                vec!["sysctl/a.must", "sysctl/a.two"],
            ),
        ] {
            let mut wanted = wanted(&[("ruled", RULED)]);
            wanted.exceptions.push(exception(value.clone()));
            match resolve(&wanted) {
                Ok(plan) => {
                    let names: Vec<_> = plan.resources.iter().map(Resource::name).collect();
                    assert_eq!(
                        (names, refused),
                        (left.iter().map(|s| (*s).to_owned()).collect(), "")
                    );
                }
                Err(problems) => assert_eq!(problems[0].page.code, refused, "{value}"),
            }
        }
    }

    /// Whatever breaks what Kubernetes requires needs an exception, of whatever kind it is.
    #[test]
    fn a_user_value_against_what_is_required_needs_an_exception() {
        for (name, kind, table) in [
            (
                "sysctl/net.ipv4.ip_forward",
                "sysctl",
                json!({"key": "net.ipv4.ip_forward", "value": "0"}),
            ),
            ("sysctl/kernel.panic", "sysctl", json!({"key": "kernel.panic", "floor": 20})),
            ("module/overlay", "module", json!({"name": "overlay", "state": "denied"})),
            ("package-absent/conntrack", "package-absent", json!({"name": "conntrack"})),
            ("mask/containerd.service", "mask", json!({"unit": "containerd.service"})),
            (
                "directory//etc/cni/net.d",
                "directory",
                json!({"path": "/etc/cni/net.d", "mode": "0700"}),
            ),
            (
                "mount//opt",
                "mount",
                json!({"path": "/opt", "source": "LABEL=opt", "type": "xfs", "options": ["noexec"]}),
            ),
        ] {
            let read = Resource::read(kind, table.as_object().unwrap(), CONFIG, &Place::default());
            let mut wanted = Wanted {
                profiles: vec!["base".into(), "cis".into()],
                wishes: vec![read.unwrap().0],
                ..wanted(&[])
            };
            let problems = resolve(&wanted).expect_err(name);
            assert!(
                ["TN03803", "TN03808"].contains(&problems[0].page.code),
                "{name}: {problems:?}"
            );
            wanted.exceptions.push(exception(json!({"resource": name, "keep": CONFIG})));
            let plan = resolve(&wanted).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
            assert!(plan.exceptions.iter().any(|one| one.feature == CONFIG), "{name}");
        }
    }

    /// A shipped exception that decides in no composition hides that profiles agree by now.
    #[test]
    fn every_shipped_exception_decides_somewhere() {
        for name in profile::names() {
            let mut open = profile::shipped(name).unwrap().exceptions;
            for (family, beside) in FAMILIES.iter().flat_map(|f| [(f, name), (f, "cis")]) {
                let profiles = vec![name.to_owned(), beside.to_owned()];
                let release = family.release.to_owned();
                let wanted = Wanted { family, release, profiles, ..wanted(&[]) };
                let kept = resolve(&wanted).map(|plan| plan.exceptions).unwrap_or_default();
                open.retain(|one| !kept.contains(one));
            }
            assert!(open.is_empty(), "{name}: {open:#?}");
        }
    }

    #[test]
    fn what_looks_like_a_mark_in_a_config_is_the_users_own() {
        let mut wanted = wanted(&[("node", NODE)]);
        let text = "{{kubernetes}} {{sshd}}\n";
        let table = json!({"path": "/etc/own", "mode": "0644", "content": text, "reason": "r"});
        let wish = Resource::read("file", table.as_object().unwrap(), CONFIG, &Place::default());
        wanted.wishes.push(wish.unwrap().0);
        let plan = resolve(&wanted).unwrap();
        assert_eq!(plan.resource("file//etc/own").unwrap().text("content"), Some(text));
    }
}
