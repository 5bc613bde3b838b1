//! What is in an image: one document, from the plan and from what was found in the root. It
//! answers without a package tool, and two of them can be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::check::{Check, State};
use super::exception::Exception;
use super::item::Act;
use super::origin::Origins;
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
    /// As closely as the root knows it.
    pub release: String,
    pub packages: Installed,
    pub origins: Origins,
    /// The snapshot that packages are taken from.
    pub snapshot: Option<String>,
    /// Versions of the kernels that it can boot.
    pub kernels: Vec<String>,
    /// The one that starts.
    pub kernel: Option<String>,
    /// Modules that did not come with the kernel, and their versions.
    pub modules: BTreeMap<String, Option<String>>,
    pub files: Vec<FoundFile>,
    /// Of Tenon's own program in the root.
    pub tenon_sha256: Option<String>,
    pub checks: Vec<Check>,
}

/// What only the build can tell.
#[derive(Debug, Clone, Default)]
pub struct Build<'a> {
    pub version: &'a str,
    /// The commit that Tenon was built from.
    pub commit: Option<&'a str>,
    /// Seconds since 1970.
    pub epoch: i64,
    /// The image that the build machine was started from.
    pub source_image: Option<&'a str>,
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
            Act::File { path, .. } | Act::Seed { path, .. } | Act::Stamp { path, .. } => {
                paths.insert(path.clone());
            }
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
pub fn render(plan: &ImagePlan, found: &Found, build: &Build<'_>) -> Value {
    let module =
        |(name, version): (&String, &Option<String>)| json!({"name": name, "version": version});
    let file = |one: &FoundFile| json!({"path": one.path, "sha256": one.sha256, "mode": format!("{:04o}", one.mode)});
    json!({
        "schema": SCHEMA,
        "name": plan.name,
        "tenon": {
            "version": build.version,
            "commit": build.commit,
            "sha256": found.tenon_sha256,
        },
        "built": {"date": date(build.epoch), "epoch": build.epoch},
        "base": {
            "family": plan.family.name,
            "release": found.release,
            "snapshot": found.snapshot,
            "sourceImage": build.source_image,
        },
        "arch": plan.architecture,
        "kubernetes": plan.kubernetes,
        "profiles": plan.profiles,
        "components": components(plan, &found.packages),
        "packages": packages(found),
        "kernel": {
            "version": found.kernel,
            "installed": found.kernels,
            "args": arguments(plan),
        },
        "modules": found.modules.iter().map(module).collect::<Vec<_>>(),
        "images": images(plan),
        "files": found.files.iter().map(file).collect::<Vec<_>>(),
        "rules": rules(plan, &found.checks),
        "exceptions": plan.exceptions.iter().map(Exception::to_json).collect::<Vec<_>>(),
        "planHash": plan.hash(),
    })
}

/// Every package: one name may be there in several versions and for several architectures.
fn packages(found: &Found) -> Vec<Value> {
    let package = |name: &String, one: &Package| json!({"name": name, "version": one.version, "arch": one.architecture, "origin": found.origins.get(name)});
    let mut list = Vec::new();
    for (name, one) in &found.packages {
        let mut all: Vec<&Package> = one.others.iter().chain([one]).collect();
        all.sort_by_key(|one| (&one.version, &one.architecture));
        list.extend(all.into_iter().map(|one| package(name, one)));
    }
    list
}

fn of_kind<'a>(plan: &'a ImagePlan, kind: &'a str) -> impl Iterator<Item = &'a Resource> {
    plan.resources.iter().filter(move |one| one.kind.name == kind)
}

fn components(plan: &ImagePlan, installed: &Installed) -> Vec<Value> {
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
    // A component of the distribution has the version that is installed.
    let packaged = |one: &Resource| {
        let names = plan.family.packages(&one.key, &plan.architecture);
        let version = names.iter().find_map(|name| installed.get(name)).map(|one| &one.version);
        json!({"name": one.key, "version": version, "source": "distro",
               "url": null, "sha256": null, "licence": null})
    };
    let distro = of_kind(plan, "package").filter(|one| one.text("source") == Some("distro"));
    let upstream = of_kind(plan, "download").filter_map(component);
    let mut list: Vec<_> = upstream.chain(distro.map(packaged)).collect();
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

/// A rule passes if everything that serves it holds. One that was decided against counts as
/// excepted, whatever else serves it.
fn rules(plan: &ImagePlan, checks: &[Check]) -> Value {
    let excepted: BTreeSet<&str> =
        plan.exceptions.iter().filter_map(|one| one.rule.as_deref()).collect();
    let of = |state: State| -> BTreeSet<&str> {
        let checks = checks.iter().filter(|check| check.state == state);
        let rules = checks.flat_map(|check| check.rules.iter().map(String::as_str));
        rules.filter(|rule| !excepted.contains(rule)).collect()
    };
    let (passed, failed, unknown) = (of(State::Pass), of(State::Fail), of(State::Unknown));
    let proven = passed.iter().filter(|rule| !failed.contains(*rule) && !unknown.contains(*rule));
    json!({
        "passed": proven.count(),
        "failed": failed.len(),
        "excepted": excepted.len(),
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

/// Lists of a manifest: the field that names an entry, or the first of several that is there, and
/// those that tell what it is.
const LISTS: &[(&str, &[&str], &[&str])] = &[
    ("components", &["name"], &["version", "source", "sha256"]),
    ("packages", &["name"], &["version", "arch", "origin"]),
    ("modules", &["name"], &["version"]),
    ("images", &["ref"], &["digest", "pinned"]),
    ("files", &["path"], &["sha256", "mode"]),
    ("exceptions", &["resource", "rule"], &["keep", "reason", "scope", "expires"]),
];
/// Single values, and lists of words that are compared as one.
const VALUES: &[&str] = &[
    "/name",
    "/tenon/version",
    "/tenon/commit",
    "/tenon/sha256",
    "/base/family",
    "/base/release",
    "/base/snapshot",
    "/base/sourceImage",
    "/arch",
    "/kubernetes",
    "/profiles",
    "/kernel/version",
    "/kernel/installed",
    "/kernel/args",
    "/rules/passed",
    "/rules/failed",
    "/rules/excepted",
    "/rules/manual",
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
    for (part, keys, fields) in LISTS {
        let [old, new] = [before, after].map(|of| entries(&of[*part], keys, fields));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            add(&mut changes, part, name, told(old.get(name), new.get(name)));
        }
    }
    Ok(changes)
}

/// An entry that came or went is told whole; of one that changed, what changed.
fn told(old: Option<&Entry>, new: Option<&Entry>) -> (Option<String>, Option<String>) {
    let differs = |at: usize| match (old, new) {
        (Some(old), Some(new)) => old.get(at) != new.get(at),
        _ => true,
    };
    let words = |entry: &Entry| {
        let changed = entry.iter().enumerate().filter(|(at, _)| differs(*at));
        let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "nothing".to_owned());
        match old.is_some() && new.is_some() {
            true => changed.map(|(_, value)| word(value)).collect::<Vec<_>>().join(" "),
            false => entry.iter().flatten().cloned().collect::<Vec<_>>().join(" "),
        }
    };
    (old.map(words), new.map(words))
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

/// The fields of an entry; None where it says nothing.
type Entry = Vec<Option<String>>;

fn entries(list: &Value, keys: &[&str], fields: &[&str]) -> BTreeMap<String, Entry> {
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for one in list.as_array().into_iter().flatten() {
        let said = |field: &&str| Some(&one[*field]).filter(|value| !value.is_null()).map(words);
        let key = keys.iter().find_map(said).unwrap_or_default();
        let entry: Entry = fields.iter().map(said).collect();
        match entries.get_mut(&key) {
            // Several of one name are told together.
            Some(before) => before.extend(entry),
            None => drop(entries.insert(key, entry)),
        }
    }
    entries
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
    use super::super::packages::rpm;
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
            others: Vec::new(),
        };
        let found = Found {
            release: "bookworm".into(),
            packages: [("containerd".to_owned(), package)].into(),
            origins: [("containerd".to_owned(), "Debian/bookworm".to_owned())].into(),
            kernels: vec!["6.1.0-40-cloud-amd64".into()],
            kernel: Some("6.1.0-40-cloud-amd64".into()),
            modules: [("nvidia".to_owned(), Some("570.133.20".to_owned()))].into(),
            tenon_sha256: Some("b".repeat(64)),
            files: vec![FoundFile { path: "/usr/bin/kubelet".into(), sha256: sum, mode: 0o755 }],
            ..Found::default()
        };
        let build = Build { version: "0.1.0", epoch: 1_700_000_000, ..Build::default() };
        render(&plan, &found, &build)
    }

    #[test]
    fn a_manifest_tells_all_parts() {
        let manifest = sample();
        assert_eq!(manifest["built"]["date"], "2023-11-14T22:13:20Z");
        let component = |name: &str| {
            let list = manifest["components"].as_array().unwrap();
            list.iter().find(|one| one["name"] == name).unwrap().clone()
        };
        assert_eq!(component("kubelet")["source"], "upstream");
        assert_eq!(component("containerd")["version"], "1:1.6.20+ds1-1");
        assert_eq!(manifest["images"][0]["pinned"], true);
        assert_eq!(manifest["files"][0]["mode"], "0755");
        assert_eq!(manifest["packages"][0]["origin"], "Debian/bookworm");
        assert_eq!(manifest["modules"], json!([{"name": "nvidia", "version": "570.133.20"}]));
        assert_eq!(manifest["kernel"]["version"], "6.1.0-40-cloud-amd64");
        // What nobody can tell is null, not an empty word.
        for pointer in ["/tenon/commit", "/base/snapshot", "/base/sourceImage"] {
            assert_eq!(manifest.pointer(pointer), Some(&Value::Null), "{pointer}");
        }
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

    /// Two exceptions with one reason are two; a field that was empty has come.
    #[test]
    fn entries_are_told_apart_by_what_they_are_about() {
        let reason = "the node routes the traffic of its pods";
        let list = |days: [Option<&str>; 2]| {
            let one = |(name, day): (&str, Option<&str>)| json!({"resource": name, "reason": reason, "expires": day});
            let list: Vec<_> = ["sysctl/a", "sysctl/b"].into_iter().zip(days).map(one).collect();
            json!({"schema": SCHEMA, "exceptions": list})
        };
        let changes = diff(&list([None, None]), &list([None, Some("2027-01-31")])).unwrap();
        let lines: Vec<_> = changes.iter().map(Change::line).collect();
        assert_eq!(lines, ["~ exceptions sysctl/b  nothing → 2027-01-31\n"]);
    }

    /// A kernel more is a change, though the newest is the same.
    #[test]
    fn several_packages_of_one_name_are_told_apart() {
        let list = |versions: &[&str]| {
            let one = |version: &&str| json!({"name": "kernel", "version": version});
            json!({"schema": SCHEMA, "packages": versions.iter().map(one).collect::<Vec<_>>()})
        };
        let installed = rpm("kernel 6.2 x86_64\nkernel 6.1 x86_64\n", "");
        let found = Found { packages: installed, ..Found::default() };
        let versions: Vec<_> = packages(&found).iter().map(|one| one["version"].clone()).collect();
        assert_eq!(versions, ["6.1", "6.2"]);
        let changes = diff(&list(&["6.1", "6.2"]), &list(&["6.2"])).unwrap();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(diff(&list(&["6.1", "6.2"]), &list(&["6.1", "6.2"])).unwrap().is_empty());
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
