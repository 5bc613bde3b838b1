//! `manifest.json`, the first member of a bundle: what was looked for, what was found, what was
//! left out and why.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name and version of the schema.
pub const SCHEMA: &str = "tenon.logs/1";
/// Its name in the bundle.
pub const NAME: &str = "manifest.json";
/// The groups that tell why a node does not join.
const USEFUL: [&str; 3] = ["bootstrap", "kubelet", "containerd"];
/// The second member.
pub const README: &str = "README.txt";

/// How collecting one item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Ok,
    Truncated,
    Absent,
    NotApplicable,
    Denied,
    Timeout,
    Error,
    SkippedBudget,
    SkippedOption,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Truncated => "truncated",
            Status::Absent => "absent",
            Status::NotApplicable => "not-applicable",
            Status::Denied => "denied",
            Status::Timeout => "timeout",
            Status::Error => "error",
            Status::SkippedBudget => "skipped-budget",
            Status::SkippedOption => "skipped-option",
        }
    }

    /// True when the item has content.
    pub fn has_content(self) -> bool {
        matches!(self, Status::Ok | Status::Truncated | Status::Timeout)
    }
}

/// One item: a member of the bundle, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    pub id: String,
    pub group: String,
    /// Name in the bundle; of an item without content, the name it would have.
    pub path: String,
    /// Where it came from: a path on the node, `journal:unit=…`, a command line, an address.
    #[serde(default)]
    pub source: String,
    pub status: Status,
    #[serde(default)]
    pub required: bool,
    pub bytes: u64,
    pub original_bytes: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    pub ms: u64,
    pub redactions: u64,
    #[serde(default)]
    pub note: String,
    /// Of a file of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeMark>,
}

/// What a path on the node was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeMark {
    /// `file`, `directory`, `link`, `other`
    pub kind: String,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// A path that was listed and not read: a directory, a link, a socket, a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub source: String,
    #[serde(flatten)]
    pub node: NodeMark,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tool {
    pub version: String,
    pub commit: String,
}

/// Which node it was.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeIdentity {
    pub instance_id: String,
    #[serde(rename = "type")]
    pub instance_type: String,
    pub family: String,
    pub arch: String,
    pub kubernetes: String,
    pub boot_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub items: u64,
    pub bytes: u64,
    pub compressed_bytes: u64,
    pub redactions: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub schema: String,
    pub tool: Tool,
    pub node: NodeIdentity,
    /// `2026-11-15T22:57:43Z`
    pub started: String,
    pub elapsed_ms: u64,
    /// The run was stopped before its end.
    #[serde(default)]
    pub partial: bool,
    pub options: Value,
    pub totals: Totals,
    pub items: Vec<Item>,
    #[serde(default)]
    pub listed: Vec<Listed>,
    /// The verdict in a few words, when there is one.
    #[serde(default)]
    pub doctor: Value,
}

impl Manifest {
    /// Required items that have no content, although they were wanted and could have some.
    pub fn missing(&self) -> Vec<&Item> {
        let lacks = |item: &&Item| {
            let left_out = matches!(item.status, Status::SkippedOption | Status::NotApplicable);
            item.required && !left_out && !item.status.has_content()
        };
        self.items.iter().filter(lacks).collect()
    }

    /// True when nothing of what tells about a join may be read.
    pub fn is_useless(&self) -> bool {
        let useful = |item: &&Item| USEFUL.contains(&item.group.as_str());
        let mut items = self.items.iter().filter(useful).peekable();
        let denied = self.items.iter().filter(useful).any(|item| item.status == Status::Denied);
        denied && items.peek().is_some() && items.all(|item| item.sha256.is_empty())
    }

    /// How many items ended in this way.
    pub fn count(&self, status: Status) -> usize {
        self.items.iter().filter(|item| item.status == status).count()
    }

    /// `README.txt`: ten lines for whoever opens the archive.
    pub fn readme(&self) -> String {
        let NodeIdentity { instance_id, instance_type, family, kubernetes, .. } = &self.node;
        let known =
            |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        let missing: Vec<_> = self.missing().into_iter().map(reason).collect();
        let top = self.doctor["top"].as_str().unwrap_or("no verdict was made");
        let counts =
            [Status::Ok, Status::Truncated, Status::Denied, Status::Timeout, Status::Error]
                .map(|status| format!("{} {}", self.count(status), status.name()));
        let mut text = format!(
            "Logs of a Kubernetes node, collected by tenon {}\n\
             node     {} ({}, {}), kubernetes {}\n\
             taken    {}, {} ms{}\n\
             verdict  {top}\n\
             items    {}\n\
             missing  {}\n\
             secrets  {} replaced by <redacted:CLASS:n>; equal numbers are equal secrets\n",
            self.tool.version,
            known(instance_id),
            known(instance_type),
            known(family),
            known(kubernetes),
            self.started,
            self.elapsed_ms,
            if self.partial { ", stopped before its end" } else { "" },
            counts.join(", "),
            if missing.is_empty() {
                "nothing that is required".to_owned()
            } else {
                missing.join("; ")
            },
            self.totals.redactions,
        );
        text.push_str(
            "read     tenon logs show BUNDLE; tenon logs grep BUNDLE WORD; tenon doctor --bundle BUNDLE\n\
             begin    kubelet/journal.log, bootstrap/, containerd/journal.log\n\
             reasons  manifest.json has a status for every item, and why\n",
        );
        text
    }
}

/// An item and why it has no content.
pub fn reason(item: &Item) -> String {
    match item.note.as_str() {
        "" => format!("{} ({})", item.path, item.status.name()),
        note => format!("{} ({}: {})", item.path, item.status.name(), one_line(note)),
    }
}

/// A note on one line: a bundle from elsewhere must not write lines of the answer.
pub fn one_line(note: &str) -> String {
    note.split(['\n', '\r']).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_cannot_forge_a_line() {
        let note = "x\nok  1 KiB  kubelet/journal.log".to_owned();
        let item = Item { note, ..item("a/b", Status::Absent, true) };
        assert_eq!(reason(&item), "a/b (absent: x ok  1 KiB  kubelet/journal.log)");
    }

    fn item(path: &str, status: Status, required: bool) -> Item {
        Item {
            id: "x".into(),
            group: "g".into(),
            path: path.into(),
            source: String::new(),
            status,
            required,
            bytes: 0,
            original_bytes: 0,
            sha256: String::new(),
            ms: 0,
            redactions: 0,
            note: String::new(),
            node: None,
        }
    }

    fn manifest(items: Vec<Item>) -> Manifest {
        Manifest {
            schema: SCHEMA.into(),
            tool: Tool::default(),
            node: NodeIdentity::default(),
            started: "2026-11-15T00:00:00Z".into(),
            elapsed_ms: 1,
            partial: false,
            options: Value::Null,
            totals: Totals::default(),
            items,
            listed: Vec::new(),
            doctor: Value::Null,
        }
    }

    #[test]
    fn a_bundle_is_useless_when_all_that_matters_was_denied() {
        let denied = Item { group: "kubelet".into(), ..item("kubelet/a", Status::Denied, true) };
        let read = Item { sha256: "x".into(), status: Status::Ok, ..denied.clone() };
        let absent = Item { status: Status::Absent, ..denied.clone() };
        for (items, expected) in [
            (vec![denied.clone(), absent.clone()], true),
            (vec![denied, read], false),
            (vec![absent], false),
            (vec![], false),
        ] {
            assert_eq!(manifest(items).is_useless(), expected);
        }
    }

    #[test]
    fn the_readme_has_ten_lines_and_names_what_is_missing() {
        let manifest =
            manifest(vec![item("g/a", Status::Denied, true), item("g/b", Status::Absent, false)]);
        let text = manifest.readme();
        assert_eq!(text.lines().count(), 10);
        assert!(text.contains("g/a (denied)") && !text.contains("g/b ("));
        let skipped = item("g/c", Status::SkippedOption, true);
        assert_eq!(Manifest { items: vec![skipped], ..manifest.clone() }.missing().len(), 0);
        let json = serde_json::to_string(&manifest).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&json).unwrap(), manifest);
        assert!(json.contains("\"status\":\"denied\""));
    }
}
