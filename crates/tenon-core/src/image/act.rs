//! The acts that an image is made of: each is one thing that `apply` makes true and `verify`
//! looks at. An act is data; the host knows how.

use std::borrow::Cow;

use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// The key that packages of a repository are signed with; without content it must be there.
    Key {
        path: String,
        fingerprint: String,
        content: Option<String>,
    },
    /// By its real name in this family.
    Package {
        name: String,
        version: Option<String>,
        lock: bool,
    },
    /// Installed packages of a set are of one version.
    Set {
        name: String,
        packages: Vec<String>,
    },
    NoPackage {
        name: String,
    },
    Group {
        name: String,
        id: Option<i64>,
        system: bool,
    },
    User {
        name: String,
        id: Option<i64>,
        shell: String,
        home: String,
        locked: bool,
        groups: Vec<String>,
    },
    Directory {
        path: String,
        mode: u32,
        owner: String,
    },
    /// Tenon's own program: the one that applies, or another build of it.
    Tenon {
        path: String,
    },
    /// From the cache; `members` says which entry of the archive goes where.
    Download {
        path: String,
        url: String,
        sha256: String,
        members: Vec<(String, String)>,
        mode: u32,
    },
    File {
        path: String,
        content: String,
        mode: u32,
        owner: String,
        if_absent: bool,
    },
    /// Written once: what the node makes of it later is its own.
    Seed {
        path: String,
        content: String,
        mode: u32,
        owner: String,
    },
    /// The version of an installed package, where bootstrap looks for it.
    Stamp {
        path: String,
        package: String,
    },
    /// Marked lines inside a file that others own.
    Block {
        path: String,
        marker: String,
        content: String,
    },
    /// One `name value` or `name = value` line of a file that others own.
    Setting {
        path: String,
        name: String,
        value: String,
    },
    /// Arguments of every line of a PAM file that names a module; `-nullok` takes one away.
    Pam {
        path: String,
        module: String,
        arguments: Vec<String>,
    },
    Link {
        path: String,
        target: String,
    },
    Absent {
        path: String,
    },
    /// Mode and owner of something that a package brought, if it is there.
    Access {
        path: String,
        mode: Option<u32>,
        owner: Option<String>,
    },
    KernelArgument {
        name: String,
        value: Option<String>,
        present: bool,
    },
    CachedImage {
        reference: String,
        digest: String,
        pin: bool,
        names: Vec<String>,
    },
    Command {
        name: String,
        words: Vec<String>,
        inputs: Vec<String>,
        outputs: Vec<String>,
    },
    Manual {
        name: String,
        text: String,
    },
}

impl Act {
    /// Its place in the order of apply: packages bring users and files, then ours are laid over.
    pub(super) fn rank(&self) -> usize {
        match self {
            Act::Key { .. } | Act::NoPackage { .. } => 0,
            Act::Package { .. } | Act::Set { .. } => 1,
            Act::Group { .. } => 2,
            Act::User { .. } => 3,
            Act::Directory { .. } => 4,
            Act::Tenon { .. } | Act::Download { .. } => 5,
            Act::File { .. }
            | Act::Seed { .. }
            | Act::Stamp { .. }
            | Act::Block { .. }
            | Act::Setting { .. }
            | Act::Pam { .. } => 6,
            Act::Link { .. } | Act::Absent { .. } => 7,
            Act::Access { .. } => 8,
            Act::KernelArgument { .. } => 9,
            Act::CachedImage { .. } => 10,
            Act::Command { .. } => 11,
            Act::Manual { .. } => 12,
        }
    }

    /// A word for the kind of act, and what it is done to.
    pub fn name(&self) -> (&'static str, Cow<'_, str>) {
        match self {
            Act::Key { path, .. } => ("key", path.into()),
            Act::Package { name, .. } => ("package", name.into()),
            Act::NoPackage { name } => ("no-package", name.into()),
            Act::Set { name, .. } => ("package-set", name.into()),
            Act::Group { name, .. } => ("group", name.into()),
            Act::User { name, .. } => ("user", name.into()),
            Act::Directory { path, .. } => ("directory", path.into()),
            Act::Tenon { path } => ("tenon", path.into()),
            Act::Download { path, .. } => ("download", path.into()),
            Act::File { path, .. } => ("file", path.into()),
            Act::Seed { path, .. } => ("seed", path.into()),
            Act::Stamp { path, .. } => ("stamp", path.into()),
            Act::Block { path, marker, .. } => ("block", format!("{path}:{marker}").into()),
            Act::Setting { path, name, .. } => ("setting", format!("{path}:{name}").into()),
            Act::Pam { path, module, .. } => ("pam", format!("{path}:{module}").into()),
            Act::Link { path, .. } => ("link", path.into()),
            Act::Absent { path } => ("absent", path.into()),
            Act::Access { path, .. } => ("access", path.into()),
            Act::KernelArgument { name, .. } => ("kernel-argument", name.into()),
            Act::CachedImage { reference, .. } => ("cached-image", reference.into()),
            Act::Command { name, .. } => ("command", name.into()),
            Act::Manual { name, .. } => ("manual", name.into()),
        }
    }

    /// The path at which it stands alone: no other act may say what is there.
    pub fn place(&self) -> Option<&str> {
        match self {
            Act::Key { path, .. }
            | Act::Directory { path, .. }
            | Act::File { path, .. }
            | Act::Seed { path, .. }
            | Act::Stamp { path, .. }
            | Act::Tenon { path }
            | Act::Link { path, .. } => Some(path),
            Act::Download { path, members, .. } if members.is_empty() => Some(path),
            _ => None,
        }
    }

    /// The whole act; texts of files included, so that a plan is complete.
    pub fn to_json(&self) -> Value {
        let (kind, key) = self.name();
        let mode = |mode: u32| format!("{mode:04o}");
        let rest = match self {
            Act::Key { fingerprint, content, .. } => {
                json!({"fingerprint": fingerprint, "content": content})
            }
            Act::Package { version, lock, .. } => json!({"version": version, "lock": lock}),
            Act::NoPackage { .. } | Act::Absent { .. } | Act::Tenon { .. } => json!({}),
            Act::Group { id, system, .. } => json!({"id": id, "system": system}),
            Act::User { id, shell, home, locked, groups, .. } => {
                json!({"id": id, "shell": shell, "home": home, "locked": locked, "groups": groups})
            }
            Act::Directory { mode: bits, owner, .. } => {
                json!({"mode": mode(*bits), "owner": owner})
            }
            Act::Download { url, sha256, members, mode: bits, .. } => {
                json!({"url": url, "sha256": sha256, "members": members, "mode": mode(*bits)})
            }
            Act::File { content, mode: bits, owner, if_absent, .. } => json!({
                "content": content, "mode": mode(*bits), "owner": owner, "ifAbsent": if_absent,
            }),
            Act::Set { packages, .. } => json!({"packages": packages}),
            Act::Stamp { package, .. } => json!({"package": package}),
            Act::Seed { content, mode: bits, owner, .. } => {
                json!({"content": content, "mode": mode(*bits), "owner": owner})
            }
            Act::Block { content, .. } => json!({"content": content}),
            Act::Setting { value, .. } => json!({"value": value}),
            Act::Pam { arguments, .. } => json!({"arguments": arguments}),
            Act::Link { target, .. } => json!({"target": target}),
            Act::Access { mode: bits, owner, .. } => {
                json!({"mode": bits.map(mode), "owner": owner})
            }
            Act::KernelArgument { value, present, .. } => {
                json!({"value": value, "present": present})
            }
            Act::CachedImage { digest, pin, names, .. } => {
                json!({"digest": digest, "pin": pin, "names": names})
            }
            Act::Command { words, inputs, outputs, .. } => {
                json!({"words": words, "inputs": inputs, "outputs": outputs})
            }
            Act::Manual { text, .. } => json!({"text": text}),
        };
        json!({"act": kind, "key": key, "with": rest})
    }
}
