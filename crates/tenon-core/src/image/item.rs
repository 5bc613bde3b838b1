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
use crate::plan::mounts::escaped_path;
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
        let acts = acts(resource, family, architecture).into_iter();
        items.extend(acts.map(|act| Item::new(act, resource)));
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

/// The acts of a resource that shares its file with no other; those that do are in `lower`.
fn acts(one: &Resource, family: &Family, architecture: &str) -> Vec<Act> {
    let names = |logical: &str| family.packages(logical, architecture).into_iter();
    match one.kind.name {
        "repository" => family.repository(one).into(),
        "package" => {
            let version = one.text("version").map(str::to_owned);
            let lock = one.flag("lock");
            let act = |name| Act::Package { name, version: version.clone(), lock };
            names(&one.key).map(act).collect()
        }
        "package-absent" => names(&one.key).map(|name| Act::NoPackage { name }).collect(),
        "stamp" => {
            let act = |package| Act::Stamp { path: one.key.clone(), package };
            names(one.text("package").unwrap_or_default()).take(1).map(act).collect()
        }
        "download" => vec![download(one, family, architecture)],
        "unit" => unit(one, family),
        "mount" => mount(one),
        "cached-image" => cached_image(one),
        "group" | "user" => account(one).into_iter().collect(),
        _ => single(one).or_else(|| edit(one)).into_iter().collect(),
    }
}

fn owned(list: Vec<&str>) -> Vec<String> {
    list.into_iter().map(str::to_owned).collect()
}

fn text(one: &Resource, name: &str) -> String {
    one.text(name).unwrap_or_default().to_owned()
}

fn account(one: &Resource) -> Option<Act> {
    let (name, id) = (one.key.clone(), one.number("id"));
    Some(match one.kind.name {
        "group" => Act::Group { name, id, system: one.flag("system") },
        _ => Act::User {
            name,
            id,
            shell: text(one, "shell"),
            home: text(one, "home"),
            locked: one.flag("locked"),
            groups: owned(one.texts("groups")),
        },
    })
}

fn download(one: &Resource, family: &Family, architecture: &str) -> Act {
    let sums = one.table("sha256");
    let sum = sums.iter().find(|(arch, _)| *arch == architecture);
    let members = one.table("members").into_iter();
    let (url, version) = (text(one, "url"), text(one, "version"));
    Act::Download {
        path: one.key.clone(),
        url: filled(&url, &version, family.name, architecture),
        sha256: sum.map_or_else(String::new, |(_, sum)| (*sum).to_owned()),
        members: members.map(|(from, to)| (from.to_owned(), to.to_owned())).collect(),
        mode: one.mode().unwrap_or(0o755),
    }
}

fn cached_image(one: &Resource) -> Vec<Act> {
    let (reference, digest) = (text(one, "reference"), text(one, "digest"));
    let (pin, names) = (one.flag("pin"), owned(one.texts("names")));
    let mut acts = cached::unit(&reference, &digest, pin, &names);
    acts.push(Act::CachedImage { reference, digest, pin, names });
    acts
}

/// What stands at a path of its own, or is nowhere in the root.
fn single(one: &Resource) -> Option<Act> {
    let owner = || one.text("owner").unwrap_or("root:root").to_owned();
    let (path, content) = (one.key.clone(), text(one, "content"));
    Some(match one.kind.name {
        "directory" => Act::Directory { path, mode: one.mode().unwrap_or(0o755), owner: owner() },
        "tenon" => Act::Tenon { path },
        "file" if one.flag("seed") => {
            Act::Seed { path, content, mode: one.mode().unwrap_or(0o644), owner: owner() }
        }
        "file" => Act::File {
            path,
            content,
            mode: one.mode().unwrap_or(0o644),
            owner: owner(),
            if_absent: one.flag("if-absent"),
        },
        "link" => Act::Link { path, target: text(one, "target") },
        "mask" => Act::Link { path: format!("{UNITS}/{path}"), target: "/dev/null".into() },
        "absent" => Act::Absent { path },
        "access" => {
            Act::Access { path, mode: one.mode(), owner: one.text("owner").map(str::to_owned) }
        }
        "crypto-policy" => file("/etc/crypto-policies/config", text(one, "policy") + "\n", 0o644),
        "manual" => Act::Manual { name: path, text: text(one, "text") },
        _ => return None,
    })
}

/// What is changed inside a file of somebody else, or by a program.
fn edit(one: &Resource) -> Option<Act> {
    let part = |name: &str| one.part(name).to_owned();
    Some(match one.kind.name {
        "block" => {
            let (path, marker) = (part("path"), part("marker"));
            Act::Block { path, marker, content: text(one, "content") }
        }
        "setting" => {
            Act::Setting { path: part("file"), name: part("name"), value: text(one, "value") }
        }
        "pam" => Act::Pam {
            path: part("file"),
            module: part("module"),
            arguments: text(one, "arguments").split_whitespace().map(str::to_owned).collect(),
        },
        "kernel-argument" => Act::KernelArgument {
            name: one.key.clone(),
            value: one.text("value").map(str::to_owned),
            present: one.fields.get("present") != Some(&Value::Bool(false)),
        },
        "command" => Act::Command {
            name: one.key.clone(),
            words: owned(one.texts("words")),
            inputs: owned(one.texts("inputs")),
            outputs: owned(one.texts("outputs")),
        },
        _ => return None,
    })
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

fn unit(one: &Resource, family: &Family) -> Vec<Act> {
    let name = &one.key;
    let mut acts = Vec::new();
    if let Some(content) = one.text("content") {
        acts.push(file(&format!("{UNITS}/{name}"), content.to_owned(), 0o644));
    }
    for (drop_in, content) in one.table("drop-ins") {
        acts.push(file(&format!("{UNITS}/{name}.d/{drop_in}"), content.to_owned(), 0o644));
    }
    let home = match one.text("content") {
        Some(_) => UNITS,
        None => family.units,
    };
    for target in one.texts("wanted-by") {
        let path = format!("{UNITS}/{target}.wants/{name}");
        match one.text("state") {
            Some("enabled") => acts.push(Act::Link { path, target: format!("{home}/{name}") }),
            Some("disabled") => acts.push(Act::Absent { path }),
            _ => {}
        }
    }
    acts
}

/// File systems of the kernel that systemd mounts itself, and refuses a unit for. A plan that asks
/// for one has it checked on the running machine.
const BY_SYSTEMD: &[&str] = &["/sys/fs/bpf"];

fn mount(one: &Resource) -> Vec<Act> {
    if BY_SYSTEMD.contains(&one.key.as_str()) {
        return Vec::new();
    }
    let name = format!("{}.mount", escaped_path(&one.key));
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
    vec![Act::Link { path: link, target: path.clone() }, file(&path, content, 0o644)]
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
    problems.extend(removed(items));
    problems
}

/// Packages that are wanted and unwanted under two names of which the family makes one.
fn removed(items: &[Item]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for unwanted in items {
        let Act::NoPackage { name } = &unwanted.act else { continue };
        let is_it =
            |item: &&Item| matches!(&item.act, Act::Package { name: own, .. } if own == name);
        if let Some(wanted) = items.iter().find(is_it) {
            let sides: Vec<_> = wanted.from.iter().chain(&unwanted.from).cloned().collect();
            let what = format!("the package {name} is wanted and unwanted");
            let fix = format!("leave one of the two out: {}", sides.join(", "));
            problems.push(Problem::new(&CONFLICT, what).fix(fix).details(sides));
        }
    }
    problems
}
