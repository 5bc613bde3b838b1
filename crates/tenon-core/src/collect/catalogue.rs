//! The catalogue: what is collected, as data.
//!
//! The embedded table holds what a node of any family may have; users add entries of their own
//! in `/etc/tenon/collect.d`. An entry that is wrong in the embedded table fails a test; one
//! that a user wrote is a finding with its file.

use serde::Deserialize;
use toml::{Table, Value};

use crate::codes::logs as pages;
use crate::problem::Problem;

/// Groups by their worth for a node that does not join: a short budget spends itself on the
/// first ones.
pub const GROUPS: &[&str] = &[
    "identity",
    "bootstrap",
    "verdict",
    "kubelet",
    "containerd",
    "network",
    "cni",
    "probes",
    "pods",
    "system",
    "kernel",
    "storage",
    "security",
    "gpu",
    "docker",
    "logs",
    "user",
];

/// The group of entries that users add.
pub const USER_GROUP: &str = "user";

const MIB: u64 = 1 << 20;
/// Of an entry that asks for nothing else.
pub const USUAL_CAP: u64 = 10 * MIB;
/// The most that an entry may ask for.
pub const LARGEST_CAP: u64 = 64 * MIB;
const USUAL_TIMEOUT_S: u64 = 30;

/// How the content of an entry is got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    File(String),
    Glob(String),
    Tree(String),
    /// `unit=NAME`, `identifier=NAME` or `kernel`.
    Journal(String),
    /// Program and arguments; never a shell.
    Command(Vec<String>),
    /// On the loopback interface only.
    Http(String),
    Socket(String),
    /// A walk through the kernel's own files.
    Proc(String),
    /// Tenon's own knowledge, by the name of the file that holds it.
    Facts(String),
}

impl Kind {
    pub fn name(&self) -> &'static str {
        match self {
            Kind::File(_) => "file",
            Kind::Glob(_) => "glob",
            Kind::Tree(_) => "tree",
            Kind::Journal(_) => "journal",
            Kind::Command(_) => "command",
            Kind::Http(_) => "http",
            Kind::Socket(_) => "socket",
            Kind::Proc(_) => "proc",
            Kind::Facts(_) => "facts",
        }
    }

    /// What it reads, in one line.
    pub fn target(&self) -> String {
        match self {
            Kind::Command(argv) => argv.join(" "),
            Kind::File(text)
            | Kind::Glob(text)
            | Kind::Tree(text)
            | Kind::Journal(text)
            | Kind::Http(text)
            | Kind::Socket(text)
            | Kind::Proc(text)
            | Kind::Facts(text) => text.clone(),
        }
    }

    /// True when only a running node can answer.
    pub fn needs_live(&self) -> bool {
        matches!(self, Kind::Command(_) | Kind::Http(_) | Kind::Socket(_) | Kind::Proc(_))
    }

    /// The end of the name in the bundle.
    fn extension(&self) -> String {
        match self {
            Kind::Journal(_) => ".log".to_owned(),
            Kind::Command(_) | Kind::Http(_) | Kind::Socket(_) => ".txt".to_owned(),
            Kind::Glob(_) | Kind::Tree(_) => String::new(),
            Kind::File(path) | Kind::Proc(path) | Kind::Facts(path) => {
                let name = path.rsplit('/').next().unwrap_or_default();
                let dot = name.rfind('.').filter(|at| *at > 0 && !name.starts_with('.'));
                dot.map_or_else(|| ".txt".to_owned(), |at| name[at..].to_owned())
            }
        }
    }
}

/// Which end is kept when the cap is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    Head,
    Tail,
    Both,
}

impl Keep {
    pub fn name(self) -> &'static str {
        match self {
            Keep::Head => "head",
            Keep::Tail => "tail",
            Keep::Both => "both",
        }
    }
}

/// How likely the content holds secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sensitivity {
    Low,
    Medium,
    High,
}

impl Sensitivity {
    pub fn name(self) -> &'static str {
        match self {
            Sensitivity::Low => "low",
            Sensitivity::Medium => "medium",
            Sensitivity::High => "high",
        }
    }
}

/// One thing to collect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: String,
    pub group: String,
    pub kind: Kind,
    pub cap: u64,
    pub keep: Keep,
    pub timeout_s: u64,
    pub sensitivity: Sensitivity,
    pub required: bool,
    pub when: Option<String>,
}

impl Entry {
    /// The name in the bundle: `kubelet/journal.log`. Globs and trees are directories.
    pub fn path(&self) -> String {
        format!("{}/{}{}", self.group, self.id, self.kind.extension())
    }
}

/// An entry as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    file: Option<String>,
    glob: Option<String>,
    tree: Option<String>,
    journal: Option<String>,
    command: Option<Vec<String>>,
    http: Option<String>,
    socket: Option<String>,
    proc: Option<String>,
    facts: Option<String>,
    cap: Option<String>,
    keep: Option<Keep>,
    timeout: Option<u64>,
    sensitivity: Option<Sensitivity>,
    #[serde(default)]
    required: bool,
    when: Option<String>,
}

/// The embedded entries, by worth.
pub fn embedded() -> Result<Vec<Entry>, Problem> {
    let mut entries = read(include_str!("catalogue.toml"), "the embedded catalogue", None)?;
    entries.sort_by_key(|entry| worth(&entry.group));
    Ok(entries)
}

/// The entries of a user's file; all of them are of the group `user`.
pub fn user(text: &str, file: &str, commands: bool) -> Result<Vec<Entry>, Problem> {
    let entries = read(text, file, Some(USER_GROUP))?;
    let refused = entries.iter().find(|entry| match entry.kind {
        Kind::Command(_) => !commands,
        Kind::Proc(_) | Kind::Facts(_) => true,
        _ => false,
    });
    match refused {
        None => Ok(entries),
        Some(entry) => {
            let what = format!("{file}: entry `{}` is of kind {}", entry.id, entry.kind.name());
            Err(Problem::new(&pages::COMMAND_NOT_ALLOWED, what))
        }
    }
}

/// The logs of one pod, named as `NAMESPACE/NAME`; None if it is not such a name.
pub fn pod(name: &str) -> Option<Entry> {
    let (namespace, pod) = name.split_once('/')?;
    let plain = |text: &str| {
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
        !text.is_empty() && text.len() <= 253 && text.bytes().all(allowed) && !text.contains("..")
    };
    (plain(namespace) && plain(pod)).then(|| Entry {
        id: format!("{namespace}_{pod}"),
        group: "pods".to_owned(),
        kind: Kind::Glob(format!("/var/log/pods/{namespace}_{pod}_*/*/*.log")),
        cap: USUAL_CAP,
        keep: Keep::Tail,
        timeout_s: USUAL_TIMEOUT_S,
        sensitivity: Sensitivity::High,
        required: false,
        when: None,
    })
}

/// Where a group stands.
pub fn worth(group: &str) -> usize {
    GROUPS.iter().position(|known| *known == group).unwrap_or(GROUPS.len())
}

fn read(text: &str, file: &str, group: Option<&str>) -> Result<Vec<Entry>, Problem> {
    let bad = |what: String| Problem::new(&pages::BAD_CATALOGUE, format!("{file}: {what}"));
    let table: Table = toml::from_str(text).map_err(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
        bad(format!("not TOML near line {line}"))
    })?;
    let mut entries = Vec::new();
    for (name, content) in table {
        let Value::Table(mut content) = content else {
            return Err(bad(format!("`{name}` is not a table of entries")));
        };
        let sensitivity = match content.remove("sensitivity") {
            Some(value) => value.try_into().map_err(|_| bad(format!("sensitivity of `{name}`")))?,
            None => Sensitivity::High,
        };
        for (id, value) in content {
            let place = format!("{name}.{id}");
            let written: Written = value.try_into().map_err(|_| bad(format!("entry `{place}`")))?;
            let group = group.unwrap_or(&name).to_owned();
            let entry = entry(id, group, written, sensitivity);
            entries.push(entry.map_err(|what| bad(format!("entry `{place}`: {what}")))?);
        }
    }
    Ok(entries)
}

fn entry(
    id: String,
    group: String,
    written: Written,
    sensitivity: Sensitivity,
) -> Result<Entry, &'static str> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if id.is_empty() || id.len() > 64 || !id.bytes().all(plain) {
        return Err("an id has lower-case letters, digits and dashes");
    }
    let Written { cap, keep, timeout, required, when, .. } = &written;
    let (cap, keep, timeout, required, when) =
        (cap.clone(), *keep, *timeout, *required, when.clone());
    let own_sensitivity = written.sensitivity;
    let kind = kind(written)?;
    let cap = cap.map_or(Some(USUAL_CAP), |text| size(&text)).filter(|cap| *cap <= LARGEST_CAP);
    let usual = if matches!(kind, Kind::Journal(_)) { Keep::Tail } else { Keep::Head };
    Ok(Entry {
        id,
        group,
        kind,
        cap: cap.ok_or("a cap is a size up to 64MiB")?,
        keep: keep.unwrap_or(usual),
        timeout_s: timeout.unwrap_or(USUAL_TIMEOUT_S).clamp(1, 60),
        sensitivity: own_sensitivity.unwrap_or(sensitivity),
        required,
        when,
    })
}

fn kind(written: Written) -> Result<Kind, &'static str> {
    let path = |text: &str| text.starts_with('/') && !text.split('/').any(|part| part == "..");
    let kinds: Vec<Kind> = [
        written.file.map(Kind::File),
        written.glob.map(Kind::Glob),
        written.tree.map(Kind::Tree),
        written.journal.map(Kind::Journal),
        written.command.map(Kind::Command),
        written.http.map(Kind::Http),
        written.socket.map(Kind::Socket),
        written.proc.map(Kind::Proc),
        written.facts.map(Kind::Facts),
    ]
    .into_iter()
    .flatten()
    .collect();
    let [kind] = <[Kind; 1]>::try_from(kinds).map_err(|_| "needs exactly one kind")?;
    match &kind {
        Kind::File(text) | Kind::Glob(text) | Kind::Tree(text) | Kind::Socket(text)
            if !path(text) =>
        {
            Err("the path is not absolute, or climbs")
        }
        Kind::Http(url) if !is_loopback(url) => Err("only loopback addresses are asked"),
        Kind::Command(argv) if argv.is_empty() => Err("the command is empty"),
        Kind::Journal(key) if key != "kernel" && !key.contains('=') => {
            Err("a journal is unit=NAME, identifier=NAME or kernel")
        }
        _ => Ok(kind),
    }
}

fn is_loopback(url: &str) -> bool {
    ["http://127.0.0.1:", "http://[::1]:"].iter().any(|begin| url.starts_with(begin))
}

/// `10MiB`, `512KiB`, `1GiB` or bytes.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_embedded_entry_is_whole_and_unique() {
        let entries = embedded().unwrap();
        assert!(entries.len() > 150, "{}", entries.len());
        let paths: BTreeSet<_> = entries.iter().map(Entry::path).collect();
        assert_eq!(paths.len(), entries.len());
        for entry in &entries {
            assert!(GROUPS.contains(&entry.group.as_str()), "{}", entry.path());
            assert!(entry.cap > 0 && entry.cap <= LARGEST_CAP);
        }
        let groups: BTreeSet<_> = entries.iter().map(|entry| entry.group.as_str()).collect();
        assert_eq!(groups.len() + 1, GROUPS.len(), "all groups but the user's");
        assert_eq!(entries[0].group, "identity");
    }

    #[test]
    fn users_entries_are_checked() {
        let good = "[mine]\nlog = { file = \"/var/log/x.log\", cap = \"1MiB\", keep = \"tail\" }";
        let entries = user(good, "a.toml", false).unwrap();
        assert_eq!(entries[0].path(), "user/log.log");
        assert_eq!(entries[0].sensitivity, Sensitivity::High);
        let command = "[mine]\nx = { command = [\"id\"] }";
        assert_eq!(user(command, "a.toml", true).unwrap().len(), 1);
        assert_eq!(user(command, "a.toml", false).unwrap_err().exit(), 3);
        for wrong in [
            "[mine]\nx = { file = \"relative\" }",
            "[mine]\nx = { file = \"/a/../b\" }",
            "[mine]\nx = { file = \"/a\", tree = \"/b\" }",
            "[mine]\nx = {}",
            "[mine]\nX = { file = \"/a\" }",
            "[mine]\nx = { file = \"/a\", cap = \"65MiB\" }",
            "[mine]\nx = { file = \"/a\", colour = \"red\" }",
            "[mine]\nx = { http = \"http://169.254.169.254:80/\" }",
            "[mine]\nx = { facts = \"units.json\" }",
            "x = 1",
            "[mine",
        ] {
            assert_eq!(user(wrong, "a.toml", true).unwrap_err().exit(), 3, "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [("1", 1), ("512KiB", 512 << 10), ("1GiB", 1 << 30)] {
            assert_eq!(size(text), Some(bytes));
        }
        for wrong in ["", "x", "1TiB", "-1", "99999999999999999999GiB"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
