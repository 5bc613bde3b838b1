//! Mount units: their names, their text, and the steps that put them to work.

use std::time::Duration;

use super::step::{Action, FileBody, Ready, Step, Unit, UnitVerb};
use super::{Draft, Owner};

/// Directory of unit files that the administrator (and Tenon) owns.
pub(crate) const UNIT_DIRECTORY: &str = "/etc/systemd/system";

/// How long one mount may take.
const BOUND: Duration = Duration::from_secs(30);

/// One mount unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub what: String,
    pub at: String,
    pub kind: &'static str,
    pub options: &'static str,
    pub description: &'static str,
}

impl Mount {
    /// The unit's name, which systemd derives from the mount point.
    pub(crate) fn unit(&self) -> String {
        format!("{}.mount", escaped_path(&self.at))
    }

    /// Where the unit's file stands.
    pub(crate) fn path(&self) -> String {
        format!("{UNIT_DIRECTORY}/{}", self.unit())
    }

    /// Where the link stands that makes the unit part of every boot.
    pub(crate) fn wanted_path(&self) -> String {
        format!("{UNIT_DIRECTORY}/multi-user.target.wants/{}", self.unit())
    }

    pub(crate) fn text(&self) -> String {
        let Mount { what, at, kind, options, description } = self;
        let [what, at] = [what, at].map(|path| path.replace('%', "%%"));
        format!(
            "[Unit]\nDescription={description}\n\n[Mount]\nWhat={what}\nWhere={at}\nType={kind}\n\
             Options={options}\n\n[Install]\nWantedBy=multi-user.target\n"
        )
    }
}

/// Plans the units' files, and the reload that makes them known.
pub(crate) fn add_unit_files(mounts: &[&Mount], because: &str, draft: &mut Draft) {
    for mount in mounts {
        let file = FileBody::new(mount.path(), 0o644, mount.text());
        add(Action::File(file), because, draft);
    }
    let inputs = mounts.iter().map(|mount| mount.path()).collect();
    add(Action::Reload { inputs }, "mount units changed", draft);
}

/// Plans a mount's start.
pub(crate) fn start(mount: &Mount, because: &str, draft: &mut Draft) {
    let unit = Unit {
        name: mount.unit(),
        verb: UnitVerb::Start,
        inputs: Vec::new(),
        deadline: BOUND,
        ready: Ready::Job,
        requires: Vec::new(),
    };
    add(Action::Unit(unit), because, draft);
}

/// Plans the links that make the mounts part of every boot.
pub(crate) fn enable(mounts: &[&Mount], draft: &mut Draft) {
    for mount in mounts {
        let link = Action::Link { path: mount.wanted_path(), target: mount.path() };
        add(link, "mounted at every boot", draft);
    }
}

fn add(action: Action, because: &str, draft: &mut Draft) {
    draft.add(Owner::Node, Step::run(action, because));
}

/// systemd's way to write a path as a unit name: `/` as `-`, the rest as it is if it is a
/// letter, digit, `:`, `_` or an inner `.`, else as `\xNN`.
pub(crate) fn escaped_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return "-".into();
    }
    let mut name = String::new();
    for (index, byte) in parts.join("/").bytes().enumerate() {
        match byte {
            b'/' => name.push('-'),
            b'.' if index > 0 => name.push('.'),
            b':' | b'_' => name.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name.push_str(&format!("\\x{byte:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_names_follow_the_path() {
        // As `systemd-escape --path` prints them.
        let cases = [
            ("/mnt/k8s-disks/0", r"mnt-k8s\x2ddisks-0"),
            ("/var/lib/soci-snapshotter-grpc", r"var-lib-soci\x2dsnapshotter\x2dgrpc"),
            ("/var/lib/kubelet/", "var-lib-kubelet"),
            ("/.hidden/a.b", r"\x2ehidden-a.b"),
            ("/é x", r"\xc3\xa9\x20x"),
            ("/", "-"),
        ];
        for (path, expected) in cases {
            assert_eq!(escaped_path(path), expected, "{path}");
        }
    }
}
