//! What Kubernetes needs of a machine, whoever hardens it: paths that must allow execution,
//! modules that must load, ports that must be open, settings with a floor. Each need is held
//! against every resource of another kind that could break it.

use serde_json::Value;

use super::exception::Exception;
use super::kind::ONLY;
use super::resource::{Reason, Resource, Scope, identity, wrong};
use crate::codes::image::{BAD_RESOURCE, NEED_BROKEN, UNKNOWN_FIELD};
use crate::nearest::nearest;
use crate::problem::Problem;

/// One need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    pub what: What,
    /// The path, module, port, unit or resource that it is about.
    pub name: String,
    /// The least number of a floor; what a resource beside another one is needed for.
    pub bound: Option<String>,
    pub reason: Reason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Exec,
    Write,
    Module,
    Port,
    Hook,
    Unit,
    Umask,
    Floor,
    Beside,
    Changing,
    Without,
}

/// A word of a profile, what it means, how it is said, and the word of its bound.
type Row = (&'static str, What, &'static str, Option<&'static str>);

static ROWS: &[Row] = &[
    ("exec", What::Exec, "programs run below {}", None),
    ("write", What::Write, "{} is written at boot", None),
    ("module", What::Module, "module {} is loaded", None),
    ("port", What::Port, "port {} is reachable", None),
    ("hook", What::Hook, "packets pass the hook {} of the firewall", None),
    ("unit", What::Unit, "{} runs", None),
    ("umask", What::Umask, "pods read files that {} writes", None),
    ("floor", What::Floor, "{} is at least {bound}", Some("least")),
    ("beside", What::Beside, "{bound} has {} beside it", Some("where")),
    ("changing", What::Changing, "{} changes all the time", None),
    ("without", What::Without, "there is no {}", None),
];

impl Need {
    /// Reads `{exec = "/opt/cni/bin", reason = "…"}`.
    pub fn read(value: &Value, feature: &str) -> Result<(Need, Scope), Problem> {
        let text = |name: &str| match value.get(name) {
            Some(Value::Number(number)) => Some(number.to_string()),
            other => other.and_then(Value::as_str).map(str::to_owned),
        };
        let bad = |what: String| Problem::new(&BAD_RESOURCE, what);
        let found = ROWS.iter().find_map(|row| Some((row, text(row.0)?)));
        let Some(((word, what, _, bound_word), name)) = found else {
            let words: Vec<_> = ROWS.iter().map(|row| row.0).collect();
            return Err(bad(format!("a need is one of {}", words.join(", "))));
        };
        let bound = bound_word.and_then(text);
        if let (Some(bound_word), None) = (bound_word, &bound) {
            return Err(bad(format!("a need `{word}` also has a `{bound_word}`")));
        }
        let known: Vec<&str> =
            [*word, "reason", ONLY.name].into_iter().chain(*bound_word).collect();
        if let Some(problem) = unknown(value, &known) {
            return Err(problem);
        }
        if let Some(problem) = value.get(ONLY.name).and_then(|only| wrong("need", &ONLY, only)) {
            return Err(problem);
        }
        let why = text("reason").unwrap_or_default();
        let families = value.get("only").and_then(Value::as_array).into_iter().flatten();
        let families = families.filter_map(Value::as_str).map(str::to_owned).collect();
        let reason = Reason { feature: feature.to_owned(), why };
        let need = Need { what: *what, name, bound, reason };
        Ok((need, Scope { families, ..Scope::default() }))
    }

    /// True if the resource, made true among the others, would break the need.
    fn broken_by(&self, resource: &Resource, others: &[Resource]) -> bool {
        let (key, name) = (resource.key.as_str(), self.name.as_str());
        let state = |state: &str| resource.text("state") == Some(state);
        let option = |option: &str| resource.texts("options").contains(&option);
        let content = || resource.text("content").unwrap_or_default();
        match (self.what, resource.kind.name) {
            // What is mounted below has programs of its own.
            (What::Exec, "mount") => {
                (is_below(name, key) || is_below(key, name)) && option("noexec")
            }
            (What::Write, "mount") => is_below(name, key) && option("ro"),
            (What::Module, "module") => {
                resource.identity() == identity(&format!("module/{name}")) && state("denied")
            }
            (What::Unit, "mask") => key == name,
            (What::Unit, "unit") => key == name && state("disabled"),
            (What::Unit, "link") => {
                is_unit_file(key, name) && resource.text("target") == Some("/dev/null")
            }
            // systemd takes an empty file for a mask, too.
            (What::Unit, "file") => is_unit_file(key, name) && content().is_empty(),
            (What::Port, "unit") => is_firewall(key) && state("enabled"),
            (What::Port, "file") => {
                let number = name.split_once('/').map_or(name, |(_, number)| number);
                drops(content(), "input") && !opens(content(), number)
            }
            (What::Hook, "file") => drops(content(), name),
            (What::Umask, "unit") => key == name && has_tight_umask(resource),
            (What::Floor, _) => {
                resource.identity() == identity(name) && self.is_undercut_by(resource)
            }
            (What::Beside, _) => {
                let when = self.bound.as_deref().unwrap_or_default();
                says(resource, when) && others.iter().all(|other| other.name() != name)
            }
            (What::Changing, "file") => key.ends_with("aide.conf") && watches(content(), name),
            (What::Without, _) => name == "swap" && is_swap(resource),
            _ => false,
        }
    }

    /// True if what is needed lies at or below a directory.
    pub fn is_below(&self, directory: &str) -> bool {
        let is_path = matches!(self.what, What::Exec | What::Write | What::Changing);
        is_path && is_below(&self.name, directory)
    }

    fn is_undercut_by(&self, resource: &Resource) -> bool {
        let least: i64 = self.bound.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
        let text = |field| resource.text(field).and_then(|text| text.parse::<i64>().ok());
        let found = ["value", "soft", "hard"].into_iter().filter_map(text);
        found.chain(resource.number("ceiling")).any(|number| number < least)
    }

    /// The word of a profile for it.
    pub fn word(&self) -> &'static str {
        self.row().0
    }

    pub fn says(&self) -> String {
        let bound = self.bound.as_deref().unwrap_or_default();
        self.row().2.replace("{bound}", bound).replace("{}", &self.name)
    }

    fn row(&self) -> &'static Row {
        ROWS.iter().find(|row| row.1 == self.what).unwrap_or(&ROWS[0])
    }
}

/// The first field of a need that has no place in it: another need, or a word that is not known.
fn unknown(value: &Value, known: &[&str]) -> Option<Problem> {
    let mut names = value.as_object()?.keys();
    let name = names.find(|name| !known.contains(&name.as_str()))?;
    if ROWS.iter().any(|row| row.0 == name) {
        let what = format!("a need is one thing, and this one is `{}` and `{name}`", known[0]);
        let fix = format!("write a [[need]] of its own for `{name}`");
        return Some(Problem::new(&BAD_RESOURCE, what).fix(fix));
    }
    let problem =
        Problem::new(&UNKNOWN_FIELD, format!("a need `{}` has no field `{name}`", known[0]));
    Some(match nearest(name, known.iter().copied()) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem.fix(format!("its fields are {}", known.join(", "))),
    })
}

/// True if systemd would take a path for the file of a unit.
fn is_unit_file(path: &str, unit: &str) -> bool {
    let directory = path.strip_suffix(unit).and_then(|rest| rest.strip_suffix('/'));
    directory.is_some_and(|directory| directory.ends_with("/systemd/system"))
}

/// Managers of firewalls that close what they do not know.
fn is_firewall(unit: &str) -> bool {
    ["ufw.service", "firewalld.service"].contains(&unit)
}

/// True if rules of nftables refuse what no line of a hook names.
fn drops(rules: &str, hook: &str) -> bool {
    let rules = without_comments(rules);
    // A chain says its hook and its policy before its first rule, on one line or on several.
    rules.split('{').any(|chain| {
        let head: String = chain.split_whitespace().collect::<Vec<_>>().join(" ");
        head.contains(&format!("hook {hook} ")) && head.contains("policy drop")
    })
}

/// True if rules name the port, or a range that holds it.
fn opens(rules: &str, port: &str) -> bool {
    let Some((first, last)) = range(port) else { return false };
    let rules = without_comments(rules);
    let words = rules.split(|c: char| !c.is_ascii_digit() && c != '-');
    words.filter_map(range).any(|(from, to)| from <= first && last <= to)
}

/// `10250`, `30000-32767`
fn range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn without_comments(rules: &str) -> String {
    rules
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// True if the unit's own text or a drop-in keeps others from reading what the unit writes.
fn has_tight_umask(unit: &Resource) -> bool {
    let texts =
        unit.table("drop-ins").into_iter().map(|(_, text)| text).chain(unit.text("content"));
    let masks = texts.flat_map(str::lines).filter_map(|line| line.trim().strip_prefix("UMask="));
    masks.filter_map(|mask| u32::from_str_radix(mask, 8).ok()).any(|mask| mask & 0o055 != 0)
}

/// True if the resource says `setting//etc/selinux/config:SELINUX=enforcing`, itself or as a line of
/// a whole file.
fn says(resource: &Resource, what: &str) -> bool {
    let value = resource.text("value").or(resource.text("policy")).unwrap_or_default();
    let line = what.rsplit(['/', ':']).next().unwrap_or_default();
    let in_file = || {
        let content = resource.text("content").unwrap_or_default();
        content.lines().any(|found| found.trim() == line)
    };
    format!("{}={value}", resource.name()) == what || resource.kind.name == "file" && in_file()
}

/// True if a config of AIDE takes a path in and does not leave it out again.
fn watches(config: &str, path: &str) -> bool {
    let above = |line: &str| {
        let named = line.split_whitespace().next().unwrap_or_default();
        named.starts_with('/') && is_below(path, named)
    };
    let left_out = config.lines().filter_map(|line| line.strip_prefix('!')).any(above);
    !left_out && config.lines().any(above)
}

fn is_swap(resource: &Resource) -> bool {
    let in_table = |line: &str| line.split_whitespace().nth(2) == Some("swap");
    match resource.kind.name {
        "mount" => resource.text("type") == Some("swap"),
        "unit" => resource.key.ends_with(".swap") && resource.text("state") == Some("enabled"),
        "block" | "file" if resource.part("path") == "/etc/fstab" => {
            resource.text("content").unwrap_or_default().lines().any(in_table)
        }
        _ => false,
    }
}

fn is_below(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Paths that change all the time, as AIDE leaves them out.
pub fn changing_paths(needs: &[Need]) -> String {
    let changing = needs.iter().filter(|need| need.what == What::Changing);
    let mut paths: Vec<_> = changing.map(|need| format!("!{}", need.name)).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.join("\n")
}

/// Ports of one protocol that must be open, as nftables writes a set.
pub fn ports(needs: &[Need], protocol: &str) -> String {
    let ports = needs.iter().filter(|need| need.what == What::Port);
    let of_it = |need: &Need| Some(need.name.strip_prefix(protocol)?.strip_prefix('/')?.to_owned());
    let mut ports: Vec<_> = ports.filter_map(of_it).collect();
    ports.sort_by_key(|port| port.split('-').next().and_then(|first| first.parse::<u32>().ok()));
    ports.dedup();
    ports.join(", ")
}

/// Every resource that breaks a need, with the need.
pub fn breaches<'a>(
    needs: &'a [Need],
    resources: &'a [Resource],
) -> impl Iterator<Item = (&'a Resource, &'a Need)> {
    resources.iter().flat_map(move |resource| {
        let broken = needs.iter().filter(move |need| need.broken_by(resource, resources));
        broken.map(move |need| (resource, need))
    })
}

/// Every breach, unless an exception for the resource says why that is right.
pub fn broken(needs: &[Need], resources: &[Resource], exceptions: &[Exception]) -> Vec<Problem> {
    let open = breaches(needs, resources).filter(|(resource, need)| {
        !exceptions.iter().any(|exception| exception.sets_aside(resource, need))
    });
    let problem = |(resource, need): (&Resource, &Need)| {
        let what = format!("{} breaks what Kubernetes needs: {}", resource.name(), need.says());
        let sides = resource.reasons.iter().chain([&need.reason]);
        let sides = sides.map(|reason| format!("{}: {}", reason.feature, reason.why));
        Problem::new(&NEED_BROKEN, what).details(sides.collect::<Vec<_>>())
    };
    open.map(problem).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::problem::Place;

    fn resource(kind: &str, table: Value) -> Resource {
        let table = table.as_object().unwrap().clone();
        Resource::read(kind, &table, "cis", &Place::default()).unwrap().0
    }

    fn need(value: Value) -> Need {
        Need::read(&value, "base").unwrap().0
    }

    #[test]
    fn each_kind_of_need_is_held_against_what_breaks_it() {
        let mount = |path: &str, option: &str| json!({"path": path, "source": "s", "type": "ext4", "options": [option]});
        let link = |unit: &str, target: &str| json!({"path": format!("/etc/systemd/system/{unit}"), "target": target});
        let cases = [
            (json!({"exec": "/opt/cni/bin"}), "mount", mount("/opt", "noexec"), true),
            (json!({"exec": "/opt/cni/bin"}), "mount", mount("/opt", "nodev"), false),
            (json!({"exec": "/opt/cni/bin"}), "mount", mount("/tmp", "noexec"), false),
            (json!({"exec": "/option"}), "mount", mount("/opt", "noexec"), false),
            (json!({"exec": "/opt/cni/bin"}), "mount", mount("/opt", "nodev,noexec"), true),
            (
                json!({"exec": "/var/lib/kubelet"}),
                "mount",
                mount("/var/lib/kubelet/plugins", "noexec"),
                true,
            ),
            (json!({"unit": "a.service"}), "link", link("a.service", "/dev/null"), true),
            (json!({"unit": "a.service"}), "link", link("a.service", "/usr/lib/a"), false),
            (json!({"unit": "a.service"}), "link", link("b-a.service", "/dev/null"), false),
            (
                json!({"module": "br_netfilter"}),
                "module",
                json!({"name": "br-netfilter", "state": "denied"}),
                true,
            ),
            (
                json!({"floor": "sysctl/user.max_user_namespaces", "least": 1}),
                "sysctl",
                json!({"key": "user/max_user_namespaces", "value": "0"}),
                true,
            ),
            (json!({"write": "/etc/kubernetes"}), "mount", mount("/etc", "ro"), true),
            (
                json!({"module": "overlay"}),
                "module",
                json!({"name": "overlay", "state": "denied"}),
                true,
            ),
            (
                json!({"module": "overlay"}),
                "module",
                json!({"name": "overlay", "state": "loaded"}),
                false,
            ),
            (
                json!({"unit": "containerd.service"}),
                "mask",
                json!({"unit": "containerd.service"}),
                true,
            ),
            (
                json!({"port": "tcp/10250"}),
                "unit",
                json!({"name": "ufw.service", "state": "enabled", "wanted-by": ["a.target"]}),
                true,
            ),
        ];
        for (wanted, kind, table, breaks) in cases {
            let found = broken(&[need(wanted.clone())], &[resource(kind, table)], &[]);
            assert_eq!(!found.is_empty(), breaks, "{wanted} {kind}");
        }
    }

    #[test]
    fn a_need_is_one_thing_with_its_own_fields() {
        for (table, what, fix) in [
            (
                json!({"exec": "/a", "write": "/a"}),
                "a need is one thing, and this one is `exec` and `write`",
                "write a [[need]] of its own for `write`",
            ),
            (
                json!({"exec": "/a", "reasn": "r"}),
                "a need `exec` has no field `reasn`",
                "did you mean `reason`?",
            ),
            (
                json!({"exec": "/a", "least": 5}),
                "a need `exec` has no field `least`",
                "its fields are exec, reason, only",
            ),
            (
                json!({"exec": "/a", "only": ["debain"]}),
                "`only` of a need is one of al2023, debian, ubuntu",
                "did you mean `debian`?",
            ),
        ] {
            let problem = Need::read(&table, "p").unwrap_err();
            assert_eq!((problem.what.as_str(), problem.fix_text()), (what, fix));
            assert_eq!(problem.exit(), 3);
        }
        assert!(Need::read(&json!({"floor": "a/b", "least": 5, "only": ["debian"]}), "p").is_ok());
    }

    #[test]
    fn rules_open_a_port_by_number_or_by_range() {
        let rules = |inner: &str| {
            format!(
                "table inet t {{\n chain input {{\n  type filter hook input priority 0;\n  policy drop;\n  {inner}\n }}\n}}\n"
            )
        };
        for (inner, opened) in [
            ("tcp dport { 22, 10250 } accept", true),
            ("tcp dport 10000-11000 accept", true),
            ("tcp dport 10250-10256 accept", true),
            ("tcp dport 102500 accept", false),
            ("tcp dport 22 accept # not 10250", false),
            ("tcp dport 10000-10249 accept", false),
        ] {
            assert_eq!(opens(&rules(inner), "10250"), opened, "{inner}");
            assert!(drops(&rules(inner), "input") && !drops(&rules(inner), "forward"), "{inner}");
        }
        assert!(!opens(&rules("tcp dport 30000-32000 accept"), "30000-32767"));
        assert!(!drops(
            &rules("accept").replace("policy drop;", "policy accept; # policy drop"),
            "input"
        ));
    }

    #[test]
    fn ports_are_a_sorted_set() {
        let needs = ["tcp/10250", "tcp/22", "udp/8472", "tcp/30000-32767", "tcp/22"]
            .map(|port| need(json!({"port": port})));
        assert_eq!(ports(&needs, "tcp"), "22, 10250, 30000-32767");
        assert_eq!(ports(&needs, "udp"), "8472");
    }

    /// `noexec` on /opt breaks two needs; the exception reaches as far as its paths.
    #[test]
    fn an_exception_is_limited_to_its_paths() {
        let needs = ["/opt/cni/bin", "/opt/nvidia"].map(|path| need(json!({"exec": path})));
        let mount = resource(
            "mount",
            json!({"path": "/opt", "source": "s", "type": "ext4", "options": ["noexec"]}),
        );
        for (paths, left) in
            [(vec![], 0), (vec!["/opt/cni"], 1), (vec!["/opt"], 0), (vec!["/op"], 2)]
        {
            let exception = Exception {
                resource: Some("mount//opt".into()),
                paths: paths.iter().map(|path| (*path).to_owned()).collect(),
                ..Exception::default()
            };
            let found = broken(&needs, std::slice::from_ref(&mount), &[exception]);
            assert_eq!(found.len(), left, "{paths:?}");
        }
    }
}
