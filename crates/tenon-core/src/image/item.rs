//! What is done to a root, and checked on it: resources, lowered to packages, accounts, files,
//! links and a few commands. Many resources share a file (settings of the kernel, of sshd), so
//! that `plan` shows the exact bytes and `apply` knows nothing of benchmarks.

use std::collections::BTreeMap;

use serde_json::Value;

pub use super::act::Act;
use super::audit;
use super::cached;
use super::family::Family;
use super::resource::Resource;
use crate::codes::image::CONFLICT;
use crate::problem::Problem;

/// One thing to make true, and the resources that ask for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub act: Act,
    /// Names of resources: `sysctl/kernel.panic`.
    pub from: Vec<String>,
}

impl Item {
    fn new(act: Act, from: &Resource) -> Item {
        Item { act, from: vec![from.name()] }
    }

    /// True if it says where packages come from, and so must be true before they come.
    pub fn is_source(&self) -> bool {
        self.from.iter().all(|name| name.starts_with("repository/"))
    }
}

/// The line of a shared file that a resource asks for.
type Line<'a> = &'a dyn Fn(&Resource) -> Option<String>;

const SYSCTLS: &str = "/etc/sysctl.d/90-tenon.conf";
const LOADED: &str = "/etc/modules-load.d/tenon.conf";
const DENIED: &str = "/etc/modprobe.d/tenon-denied.conf";
const LIMITS: &str = "/etc/security/limits.d/90-tenon.conf";
const MANAGER_LIMITS: &str = "/etc/systemd/system.conf.d/90-tenon-limits.conf";
const SSHD: &str = "/etc/ssh/sshd_config.d/00-tenon.conf";
const SUDO: &str = "/etc/sudoers.d/90-tenon";
const UNITS: &str = "/etc/systemd/system";

/// Lowers resources in the order in which they must be made true.
pub fn lower(resources: &[Resource], family: &Family, architecture: &str) -> Vec<Item> {
    let mut items = Vec::new();
    for resource in resources {
        single(resource, family, architecture, &mut items);
    }
    let shared: [(&str, &str, u32, &str, Line<'_>); 7] = [
        ("sysctl", SYSCTLS, 0o644, "", &sysctl),
        ("module", LOADED, 0o644, "", &loaded),
        ("module", DENIED, 0o644, "", &denied),
        ("limit", LIMITS, 0o644, "", &limit),
        ("limit", MANAGER_LIMITS, 0o644, "[Manager]\n", &manager_limit),
        ("sshd", SSHD, 0o600, "", &sshd),
        ("sudo", SUDO, 0o440, "", &sudo),
    ];
    for (kind, path, mode, head, line) in shared {
        let of_kind = resources.iter().filter(|resource| resource.kind.name == kind);
        items.extend(together(of_kind, path, mode, head, line));
    }
    items.extend(audit_files(resources, architecture));
    items.extend(package_sets(resources, family, architecture));
    items.sort_by_key(|item| item.act.rank());
    items
}

/// Packages that must agree on their version, by the name of their set.
fn package_sets(resources: &[Resource], family: &Family, architecture: &str) -> Vec<Item> {
    let mut sets: BTreeMap<&str, Vec<&Resource>> = BTreeMap::new();
    for one in resources.iter().filter(|one| one.kind.name == "package") {
        if let Some(name) = one.text("set") {
            sets.entry(name).or_default().push(one);
        }
    }
    let item = |(name, members): (&str, Vec<&Resource>)| {
        let real = |one: &&Resource| family.packages(&one.key, architecture);
        let act =
            Act::Set { name: name.to_owned(), packages: members.iter().flat_map(real).collect() };
        Item { act, from: members.iter().map(|one| one.name()).collect() }
    };
    sets.into_iter().map(item).collect()
}

/// Lines of many resources in one file.
fn together<'a>(
    resources: impl Iterator<Item = &'a Resource>,
    path: &str,
    mode: u32,
    head: &str,
    line: Line<'_>,
) -> Option<Item> {
    let mut content =
        format!("# Written by tenon image; see `tenon image plan --explain`.\n{head}");
    let mut from = Vec::new();
    for resource in resources {
        if let Some(line) = line(resource) {
            content.push_str(&line);
            content.push('\n');
            from.push(resource.name());
        }
    }
    let act = file(path, content, mode);
    (!from.is_empty()).then_some(Item { act, from })
}

fn file(path: &str, content: String, mode: u32) -> Act {
    Act::File { path: path.into(), content, mode, owner: "root:root".into(), if_absent: false }
}

fn sysctl(one: &Resource) -> Option<String> {
    let floor = || one.number("floor").or(one.number("ceiling")).map(|number| number.to_string());
    let value = one.text("value").map(str::to_owned).or_else(floor)?;
    Some(format!("{} = {value}", one.key))
}

fn loaded(one: &Resource) -> Option<String> {
    (one.text("state") == Some("loaded")).then(|| one.key.clone())
}

fn denied(one: &Resource) -> Option<String> {
    let is_denied = one.text("state") == Some("denied");
    is_denied.then(|| format!("install {0} /bin/false\nblacklist {0}", one.key))
}

/// The key is `DOMAIN/ITEM`.
fn limit(one: &Resource) -> Option<String> {
    let (domain, item) = one.key.split_once('/')?;
    let (soft, hard) = (one.text("soft")?, one.text("hard")?);
    Some(format!("{domain} soft {item} {soft}\n{domain} hard {item} {hard}"))
}

/// Limits of log-ins, which services do not have.
const OF_LOGINS: &[&str] = &["maxlogins", "maxsyslogins", "priority"];

/// The same for services, which never pass through PAM: `*/nofile` is `DefaultLimitNOFILE`.
fn manager_limit(one: &Resource) -> Option<String> {
    let item = one.key.strip_prefix("*/").filter(|item| !OF_LOGINS.contains(item))?.to_uppercase();
    let number = |name: &str| match one.text(name)? {
        "unlimited" | "-1" => Some("infinity"),
        other => Some(other),
    };
    Some(format!("DefaultLimit{item}={}:{}", number("soft")?, number("hard")?))
}

fn sshd(one: &Resource) -> Option<String> {
    Some(format!("{} {}", one.key, one.text("value")?))
}

fn sudo(one: &Resource) -> Option<String> {
    Some(match one.text("value") {
        // Auditors do not know that a number may stand in quotes.
        Some(value) if value.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("Defaults {}={value}", one.key)
        }
        Some(value) => format!("Defaults {}=\"{value}\"", one.key),
        None => format!("Defaults {}", one.key),
    })
}

/// One file per group of rules, in the order of the groups' names.
fn audit_files(resources: &[Resource], architecture: &str) -> Vec<Item> {
    let rules = || resources.iter().filter(|resource| resource.kind.name == "audit");
    let mut groups: Vec<_> = rules().filter_map(|rule| rule.text("group")).collect();
    groups.sort_unstable();
    groups.dedup();
    let of_group = |group: &str| {
        let path = format!("/etc/audit/rules.d/{group}.rules");
        let members = rules().filter(|rule| rule.text("group") == Some(group));
        together(members, &path, 0o600, "", &|rule| audit::lines(rule, architecture))
    };
    groups.into_iter().filter_map(of_group).collect()
}

/// Lowers a resource that shares its file with no other.
fn single(one: &Resource, family: &Family, architecture: &str, items: &mut Vec<Item>) {
    let text = |name: &str| one.text(name).unwrap_or_default().to_owned();
    let part = |name: &str| one.part(name).to_owned();
    let owner = || one.text("owner").unwrap_or("root:root").to_owned();
    let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let key = one.key.clone();
    let act = match one.kind.name {
        "package" => {
            let version = one.text("version").map(str::to_owned);
            for name in family.packages(&key, architecture) {
                let act = Act::Package { name, version: version.clone(), lock: one.flag("lock") };
                items.push(Item::new(act, one));
            }
            return;
        }
        "package-absent" => {
            let names = family.packages(&key, architecture).into_iter();
            items.extend(names.map(|name| Item::new(Act::NoPackage { name }, one)));
            return;
        }
        "group" => Act::Group { name: key, id: one.number("id"), system: one.flag("system") },
        "user" => Act::User {
            name: key,
            id: one.number("id"),
            shell: text("shell"),
            home: text("home"),
            locked: one.flag("locked"),
            groups: owned(one.texts("groups")),
        },
        "directory" => {
            Act::Directory { path: key, mode: one.mode().unwrap_or(0o755), owner: owner() }
        }
        "download" => {
            let sums = one.table("sha256");
            let sum = sums.iter().find(|(arch, _)| *arch == architecture);
            let members = one.table("members").into_iter();
            Act::Download {
                path: key,
                url: filled(&text("url"), &text("version"), family.name, architecture),
                sha256: sum.map_or_else(String::new, |(_, sum)| (*sum).to_owned()),
                members: members.map(|(from, to)| (from.to_owned(), to.to_owned())).collect(),
                mode: one.mode().unwrap_or(0o755),
            }
        }
        "tenon" => Act::Tenon { path: key },
        "stamp" => {
            let names = family.packages(&text("package"), architecture).into_iter();
            let stamp = |package| Act::Stamp { path: key.clone(), package };
            return items.extend(names.take(1).map(|name| Item::new(stamp(name), one)));
        }
        "file" if one.flag("seed") => Act::Seed {
            path: key,
            content: text("content"),
            mode: one.mode().unwrap_or(0o644),
            owner: owner(),
        },
        "file" => Act::File {
            path: key,
            content: text("content"),
            mode: one.mode().unwrap_or(0o644),
            owner: owner(),
            if_absent: one.flag("if-absent"),
        },
        "block" => {
            Act::Block { path: part("path"), marker: part("marker"), content: text("content") }
        }
        "setting" => Act::Setting { path: part("file"), name: part("name"), value: text("value") },
        "pam" => Act::Pam {
            path: part("file"),
            module: part("module"),
            arguments: text("arguments").split_whitespace().map(str::to_owned).collect(),
        },
        "link" => Act::Link { path: key, target: text("target") },
        "absent" => Act::Absent { path: key },
        "access" => {
            Act::Access { path: key, mode: one.mode(), owner: one.text("owner").map(str::to_owned) }
        }
        "kernel-argument" => Act::KernelArgument {
            name: key,
            value: one.text("value").map(str::to_owned),
            present: one.fields.get("present") != Some(&Value::Bool(false)),
        },
        "unit" => return unit(one, family, items),
        "mask" => Act::Link { path: format!("{UNITS}/{key}"), target: "/dev/null".into() },
        "mount" => return mount(one, items),
        "cached-image" => {
            let (reference, digest) = (text("reference"), text("digest"));
            let (pin, names) = (one.flag("pin"), owned(one.texts("names")));
            let unit = cached::unit(&reference, &digest, pin, &names);
            items.extend(unit.into_iter().map(|act| Item::new(act, one)));
            Act::CachedImage { reference, digest, pin, names }
        }
        "repository" => {
            return items.extend(family.repository(one).map(|act| Item::new(act, one)));
        }
        "crypto-policy" => file("/etc/crypto-policies/config", text("policy") + "\n", 0o644),
        "command" => Act::Command {
            name: key,
            words: owned(one.texts("words")),
            inputs: owned(one.texts("inputs")),
            outputs: owned(one.texts("outputs")),
        },
        "manual" => Act::Manual { name: key, text: text("text") },
        // These share files; see `lower`.
        _ => return,
    };
    items.push(Item::new(act, one));
}

/// Puts version and architecture into an address.
pub(super) fn filled(url: &str, version: &str, family: &str, architecture: &str) -> String {
    let go = match architecture {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    url.replace("{version}", version)
        .replace("{arch}", architecture)
        .replace("{goarch}", go)
        .replace("{family}", family)
}

fn unit(one: &Resource, family: &Family, items: &mut Vec<Item>) {
    let name = &one.key;
    if let Some(content) = one.text("content") {
        let path = format!("{UNITS}/{name}");
        items.push(Item::new(file(&path, content.to_owned(), 0o644), one));
    }
    for (drop_in, content) in one.table("drop-ins") {
        let path = format!("{UNITS}/{name}.d/{drop_in}");
        items.push(Item::new(file(&path, content.to_owned(), 0o644), one));
    }
    let home = match one.text("content") {
        Some(_) => UNITS,
        None => family.units,
    };
    for target in one.texts("wanted-by") {
        let path = format!("{UNITS}/{target}.wants/{name}");
        let act = match one.text("state") {
            Some("enabled") => Act::Link { path, target: format!("{home}/{name}") },
            Some("disabled") => Act::Absent { path },
            _ => continue,
        };
        items.push(Item::new(act, one));
    }
}

fn mount(one: &Resource, items: &mut Vec<Item>) {
    let name = format!("{}.mount", escaped(&one.key));
    let options = match one.texts("options") {
        list if list.is_empty() => String::new(),
        list => format!("Options={}\n", list.join(",")),
    };
    let content = format!(
        "[Unit]\nDescription={}\n\n[Mount]\nWhat={}\nWhere={}\nType={}\n{options}\n[Install]\nWantedBy=local-fs.target\n",
        one.reasons.first().map_or("", |reason| reason.why.as_str()),
        one.text("source").unwrap_or_default(),
        one.key,
        one.text("type").unwrap_or_default(),
    );
    let path = format!("{UNITS}/{name}");
    let link = format!("{UNITS}/local-fs.target.wants/{name}");
    items.push(Item::new(Act::Link { path: link, target: path.clone() }, one));
    items.push(Item::new(file(&path, content, 0o644), one));
}

/// Items that say different things of one path: it could never be what both ask for.
pub fn clashes(items: &[Item]) -> Vec<Problem> {
    let mut places: BTreeMap<&str, &Item> = BTreeMap::new();
    let mut problems = Vec::new();
    for item in items {
        let Some(path) = item.act.place() else { continue };
        match places.insert(path, item) {
            Some(other) if other.act != item.act => {
                let what = format!("{path} is wanted in two ways");
                let sides: Vec<_> = other.from.iter().chain(&item.from).cloned().collect();
                let fix =
                    "leave one of the two out: what stands at a path is one resource's to say";
                problems.push(Problem::new(&CONFLICT, what).fix(fix).details(sides));
            }
            _ => {}
        }
    }
    problems
}

/// A path as systemd names a unit after it.
fn escaped(path: &str) -> String {
    let mut name = String::new();
    for byte in path.trim_matches('/').bytes() {
        match byte {
            b'/' => name.push('-'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b':' | b'.' => {
                name.push(char::from(byte));
            }
            other => name.push_str(&format!("\\x{other:02x}")),
        }
    }
    if name.is_empty() { "-".into() } else { name }
}
