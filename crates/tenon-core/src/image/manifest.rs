//! What is in an image: one document, from the plan and from what was found in the root. It
//! answers without a package tool, and two of them can be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::check::{Check, State};
use super::item::Act;
use super::merge::Exception;
use super::packages::{Installed, Package};
use super::plan::ImagePlan;
use super::resource::Resource;
use crate::codes::image::BAD_MANIFEST;
use crate::problem::Problem;

pub const SCHEMA: &str = "tenon.image-manifest/1";
const DIFF: &str = "tenon.image-diff/1";

/// What a look into the root gave.
#[derive(Debug, Clone, Default)]
pub struct Found {
    pub packages: Installed,
    /// Versions of the kernels that it can boot.
    pub kernels: Vec<String>,
    /// Modules that did not come with the kernel.
    pub modules: Vec<String>,
    pub files: Vec<FoundFile>,
    /// Of Tenon's own program in the root.
    pub tenon_sha256: Option<String>,
    pub checks: Vec<Check>,
}

/// A file that the plan speaks of, as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    pub path: String,
    pub sha256: String,
    pub mode: u32,
}

/// The paths that the manifest tells about: files that the plan writes or unpacks.
pub fn paths(plan: &ImagePlan) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for item in &plan.items {
        match &item.act {
            Act::File { path, .. } | Act::Seed { path, .. } => drop(paths.insert(path.clone())),
            Act::Download { path, members, .. } if members.is_empty() => {
                paths.insert(path.clone());
            }
            Act::Download { path, members, .. } => {
                let below = |to: &String| match to.starts_with('/') {
                    true => to.clone(),
                    false => format!("{path}/{to}"),
                };
                paths.extend(members.iter().map(|(_, to)| below(to)));
            }
            _ => {}
        }
    }
    paths
}

/// A time in seconds, as a day and an hour.
pub fn date(epoch: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(epoch).ok();
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default()
}

/// The whole document; sorted, and with no clock but the given one.
pub fn render(plan: &ImagePlan, found: &Found, tenon_version: &str, epoch: i64) -> Value {
    let package = |(name, one): (&String, &Package)| json!({"name": name, "version": one.version, "arch": one.architecture});
    let file = |one: &FoundFile| json!({"path": one.path, "sha256": one.sha256, "mode": format!("{:04o}", one.mode)});
    json!({
        "schema": SCHEMA,
        "name": plan.name,
        "tenon": {"version": tenon_version, "sha256": found.tenon_sha256},
        "built": {"date": date(epoch), "epoch": epoch},
        "base": {"family": plan.family.name, "release": plan.release},
        "arch": plan.architecture,
        "kubernetes": plan.kubernetes,
        "profiles": plan.profiles,
        "components": components(plan),
        "packages": found.packages.iter().map(package).collect::<Vec<_>>(),
        "kernel": {"versions": found.kernels, "args": arguments(plan)},
        "modules": found.modules,
        "images": images(plan),
        "files": found.files.iter().map(file).collect::<Vec<_>>(),
        "rules": rules(plan, &found.checks),
        "exceptions": plan.exceptions.iter().map(Exception::to_json).collect::<Vec<_>>(),
        "planHash": plan.hash(),
    })
}

fn of_kind<'a>(plan: &'a ImagePlan, kind: &'a str) -> impl Iterator<Item = &'a Resource> {
    plan.resources.iter().filter(move |one| one.kind.name == kind)
}

fn components(plan: &ImagePlan) -> Vec<Value> {
    let urls = plan.downloads().filter_map(|act| match act {
        Act::Download { path, url, sha256, .. } => Some((path.as_str(), (url, sha256))),
        _ => None,
    });
    let urls: BTreeMap<_, _> = urls.collect();
    let component = |one: &Resource| {
        let (url, sha256) = urls.get(one.key.as_str())?;
        Some(json!({
            "name": one.text("component"), "version": one.text("version"), "source": "upstream",
            "url": url, "sha256": sha256, "licence": one.text("licence"),
        }))
    };
    let mut list: Vec<_> = of_kind(plan, "download").filter_map(component).collect();
    list.sort_by_key(|one| one["name"].to_string());
    list
}

fn arguments(plan: &ImagePlan) -> Vec<String> {
    let present = of_kind(plan, "kernel-argument");
    let present = present.filter(|one| one.fields.get("present") != Some(&json!(false)));
    let words = |one: &Resource| match one.text("value") {
        Some(value) => format!("{}={value}", one.key),
        None => one.key.clone(),
    };
    present.map(words).collect()
}

fn images(plan: &ImagePlan) -> Vec<Value> {
    let image = |one: &Resource| json!({"ref": one.text("reference"), "digest": one.text("digest"), "pinned": one.flag("pin")});
    of_kind(plan, "cached-image").map(image).collect()
}

/// A rule passes if everything that serves it holds.
fn rules(plan: &ImagePlan, checks: &[Check]) -> Value {
    let of = |state: State| -> BTreeSet<&str> {
        let checks = checks.iter().filter(|check| check.state == state);
        checks.flat_map(|check| check.rules.iter().map(String::as_str)).collect()
    };
    let (passed, failed) = (of(State::Pass), of(State::Fail));
    let excepted = plan.exceptions.iter().filter(|one| one.rule.is_some()).count();
    json!({
        "passed": passed.difference(&failed).count(),
        "failed": failed.len(),
        "excepted": excepted,
        "manual": of(State::Manual).len(),
    })
}

/// The few words that go to `/etc/eks/release`.
pub fn release_words(manifest: &Value) -> String {
    let text = |pointer: &str| {
        manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    format!(
        "NAME={}\nBASE={}-{}\nARCH={}\nKUBERNETES_VERSION={}\nBUILD_TIME={}\nPLAN={}\n",
        text("/name"),
        text("/base/family"),
        text("/base/release"),
        text("/arch"),
        text("/kubernetes"),
        text("/built/date"),
        text("/planHash"),
    )
}

/// One difference between two images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub part: &'static str,
    pub key: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Lists of a manifest: the field that names an entry, and those that tell what it is.
const LISTS: &[(&str, &str, &[&str])] = &[
    ("components", "name", &["version", "sha256"]),
    ("packages", "name", &["version"]),
    ("images", "ref", &["digest"]),
    ("files", "path", &["sha256", "mode"]),
    ("exceptions", "reason", &["resource", "rule", "keep"]),
];
/// Single values, and lists of words that are compared as one.
const VALUES: &[&str] = &[
    "/name",
    "/tenon/version",
    "/tenon/sha256",
    "/base/family",
    "/base/release",
    "/arch",
    "/kubernetes",
    "/profiles",
    "/kernel/versions",
    "/kernel/args",
    "/modules",
    "/rules/failed",
    "/planHash",
];

/// What changed from one image to another. The times of their builds do not count.
pub fn diff(before: &Value, after: &Value) -> Result<Vec<Change>, Problem> {
    for (one, which) in [(before, "first"), (after, "second")] {
        if one["schema"] != SCHEMA {
            let what = format!("the {which} file is not of the schema {SCHEMA}");
            return Err(Problem::new(&BAD_MANIFEST, what));
        }
    }
    let mut changes = Vec::new();
    let value = |of: &Value, pointer: &str| of.pointer(pointer).filter(|v| !v.is_null()).map(words);
    for pointer in VALUES {
        let pair = (value(before, pointer), value(after, pointer));
        add(&mut changes, "image", &pointer[1..].replace('/', "."), pair);
    }
    for (part, key, fields) in LISTS {
        let (old, new) =
            (entries(&before[*part], key, fields), entries(&after[*part], key, fields));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            add(&mut changes, part, name, (old.get(name).cloned(), new.get(name).cloned()));
        }
    }
    Ok(changes)
}

fn add(
    changes: &mut Vec<Change>,
    part: &'static str,
    key: &str,
    pair: (Option<String>, Option<String>),
) {
    let (before, after) = pair;
    if before != after {
        changes.push(Change { part, key: key.to_owned(), before, after });
    }
}

fn entries(list: &Value, key: &str, fields: &[&str]) -> BTreeMap<String, String> {
    let entry = |one: &Value| {
        let told = fields.iter().filter(|field| !one[**field].is_null());
        let told: Vec<_> = told.map(|field| words(&one[*field])).collect();
        (words(&one[key]), told.join(" "))
    };
    list.as_array().into_iter().flatten().map(entry).collect()
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(words).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

impl Change {
    /// `~ packages runc  1.1.5 → 1.1.12`
    pub fn line(&self) -> String {
        let Change { part, key, .. } = self;
        // A hash is told by its first digits, as people compare it.
        let short = |text: &str| {
            let word = |word: &str| match word.len() >= 64 {
                true => word.chars().take(16).chain(['…']).collect(),
                false => word.to_owned(),
            };
            text.split(' ').map(word).collect::<Vec<String>>().join(" ")
        };
        match (&self.before, &self.after) {
            (None, Some(after)) => format!("+ {part} {key}  {}\n", short(after)),
            (Some(before), None) => format!("- {part} {key}  {}\n", short(before)),
            (before, after) => {
                let side = |side: &Option<String>| short(side.as_deref().unwrap_or_default());
                format!("~ {part} {key}  {} → {}\n", side(before), side(after))
            }
        }
    }
}

/// All changes, for programs.
pub fn diff_json(changes: &[Change]) -> Value {
    let change = |one: &Change| json!({"part": one.part, "key": one.key, "before": one.before, "after": one.after});
    json!({
        "schema": DIFF,
        "changed": !changes.is_empty(),
        "changes": changes.iter().map(change).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::image::config::{self, Text};
    use crate::image::plan;

    /// A small image with one of each: component, package, image, file.
    pub fn sample() -> Value {
        let sum = "a".repeat(64);
        let text = format!(
            "apiVersion: tenon.dev/v1alpha1\nkind: NodeImage\nmetadata: {{name: small}}\nspec:\n  family: debian\n  \
             profiles: [base]\n  components:\n    kubelet: {{version: \"1.34.2\", source: upstream, sha256: {{x86_64: \"{sum}\"}}}}\n    \
             crictl: {{source: none}}\n    ecr-credential-provider: {{source: none}}\n  \
             cachedImages:\n  - {{name: pause, ref: registry.k8s.io/pause, digest: \"sha256:{sum}\", pin: true}}\n"
        );
        let config = config::read(&[Text { name: "image.yaml".into(), text }], &[]).unwrap();
        let plan = plan::resolve(&config.wanted(None, Vec::new()).unwrap()).unwrap();
        let package = Package {
            version: "1:1.6.20+ds1-1".into(),
            architecture: "amd64".into(),
            locked: true,
        };
        let found = Found {
            packages: [("containerd".to_owned(), package)].into(),
            kernels: vec!["6.1.0-40-cloud-amd64".into()],
            files: vec![FoundFile { path: "/usr/bin/kubelet".into(), sha256: sum, mode: 0o755 }],
            ..Found::default()
        };
        render(&plan, &found, "0.1.0", 1_700_000_000)
    }

    #[test]
    fn a_manifest_tells_all_parts() {
        let manifest = sample();
        assert_eq!(manifest["built"]["date"], "2023-11-14T22:13:20Z");
        assert_eq!(manifest["components"][0]["name"], "kubelet");
        assert_eq!(manifest["images"][0]["pinned"], true);
        assert_eq!(manifest["files"][0]["mode"], "0755");
        assert!(release_words(&manifest).contains("KUBERNETES_VERSION=1.34.2\n"));
        assert_eq!(manifest.to_string(), sample().to_string());
    }

    #[test]
    fn changes_are_named_and_times_are_not() {
        let before = sample();
        let mut after = before.clone();
        after["built"]["epoch"] = json!(1);
        assert!(diff(&before, &after).unwrap().is_empty());
        after["packages"][0]["version"] = json!("2.0");
        after["files"] = json!([]);
        after["kubernetes"] = json!("1.35.0");
        let lines: Vec<_> = diff(&before, &after).unwrap().iter().map(Change::line).collect();
        assert_eq!(
            lines,
            [
                "~ image kubernetes  1.34.2 → 1.35.0\n",
                "~ packages containerd  1:1.6.20+ds1-1 → 2.0\n",
                "- files /usr/bin/kubelet  aaaaaaaaaaaaaaaa… 0755\n",
            ]
        );
        assert!(diff(&before, &json!({})).is_err());
    }

    #[test]
    fn a_rule_with_one_failure_has_not_passed() {
        let check = |state: State| Check {
            act: String::new(),
            key: String::new(),
            half: crate::image::check::Half::Files,
            state,
            expected: String::new(),
            actual: String::new(),
            from: Vec::new(),
            rules: vec!["r".into()],
            remedy: String::new(),
        };
        let config = config::ImageConfig {
            family: crate::image::family::find("debian"),
            ..Default::default()
        };
        let plan = plan::resolve(&config.wanted(None, Vec::new()).unwrap()).unwrap();
        let counts = rules(&plan, &[check(State::Pass), check(State::Fail)]);
        assert_eq!((&counts["passed"], &counts["failed"]), (&json!(0), &json!(1)));
    }
}
