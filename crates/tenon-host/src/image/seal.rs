//! The last step before a snapshot: what belongs to one machine or to the build goes, and what
//! must never be in an image is looked for.

use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::{Value, json};
use tenon_core::codes::image::STUB_KUBELET;
use tenon_core::problem::Problem;

use super::packages;
use super::site::{Found, found, matching};
use crate::apply::Lock;
use crate::apply::directories::unreadable;
use crate::apply::discard::discard;
use crate::apply::store;
use crate::root::Root;
use crate::stop;

/// The schema of the answer.
pub const SCHEMA: &str = "tenon.image-seal/1";

/// What goes, as patterns.
const REMOVED: &[&str] = &[
    "/etc/ssh/ssh_host_*",
    "/var/lib/dbus/machine-id",
    "/var/lib/systemd/random-seed",
    "/var/lib/systemd/credential.secret",
    "/var/lib/cloud/*",
    "/var/lib/tenon/record.json",
    "/var/lib/tenon/generations",
    "/var/lib/tenon/cache",
    "/var/lib/dhcp/*",
    "/var/lib/NetworkManager/*",
    "/root/.ssh/authorized_keys*",
    "/home/*/.ssh/authorized_keys*",
    "/root/.*_history",
    "/home/*/.*_history",
    "/root/.cache",
    "/home/*/.cache",
    "/var/cache/apt/*",
    "/var/cache/dnf/*",
    "/var/cache/yum/*",
    "/var/cache/debconf/*-old",
    "/var/lib/apt/lists/*",
    "/tmp/*",
    "/var/tmp/*",
];
/// Files below go, directories stay: services expect them.
const EMPTIED: &[&str] = &["/var/log"];
/// Empty, it is filled at the first boot.
const MACHINE_ID: &str = "/etc/machine-id";

/// Files that hold credentials by their very name.
const CREDENTIALS: &[&str] = &[
    "/root/.aws/credentials",
    "/home/*/.aws/credentials",
    "/root/.docker/config.json",
    "/home/*/.docker/config.json",
    "/root/.netrc",
    "/home/*/.netrc",
    "/root/.git-credentials",
    "/home/*/.git-credentials",
    "/root/.kube/config",
    "/home/*/.kube/config",
    "/root/.ssh/id_*",
    "/home/*/.ssh/id_*",
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/bootstrap-kubelet.conf",
    "/var/lib/kubelet/kubeconfig",
    "/var/lib/kubelet/pki/*",
];
/// Where builds and machines leave things; what packages bring to /usr is theirs.
const SEARCHED: &[&str] =
    &["/etc", "/root", "/home", "/var", "/opt", "/srv", "/usr/local", "/boot"];
/// Nothing that is a key or a token is larger.
const LARGEST: u64 = 1 << 20;
const DEEPEST: usize = 40;

const KUBELETS: &[&str] = &["/usr/bin/kubelet", "/usr/local/bin/kubelet"];
const STUB: &[u8] = b"tenon stub kubelet";

/// What a seal did and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sealed {
    pub removed: Vec<String>,
    /// What must not be in an image, with what it is.
    pub left: Vec<(String, &'static str)>,
}

impl Sealed {
    pub fn to_json(&self) -> Value {
        let left = |(path, what): &(String, &str)| json!({"path": path, "what": what});
        json!({
            "schema": SCHEMA,
            "sealed": self.left.is_empty(),
            "removed": self.removed,
            "left": self.left.iter().map(left).collect::<Vec<_>>(),
        })
    }
}

/// Seals a root. `test` lets the stub kubelet of test builds pass.
pub fn seal(root: &Root, test: bool) -> Result<Sealed, Problem> {
    if let (false, Some(path)) = (test, stub(root)) {
        return Err(Problem::new(&STUB_KUBELET, format!("{path} is a stub")));
    }
    let lock = Lock::take(root, Duration::ZERO)?;
    packages::forget_policy(root)?;
    let mut sealed = Sealed::default();
    for pattern in REMOVED {
        for path in matching(root, pattern)? {
            stop::check()?;
            if discard(root, &path)? {
                sealed.removed.push(path);
            }
        }
    }
    for place in EMPTIED {
        empty(root, place, &mut sealed.removed, 0)?;
    }
    if root.exists("/etc") && store(root, &lock, MACHINE_ID, 0o444, b"")? {
        sealed.removed.push(MACHINE_ID.to_owned());
    }
    sealed.left = left(root)?;
    Ok(sealed)
}

fn stub(root: &Root) -> Option<&'static str> {
    let is_stub = |path: &&&str| {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = root.open_at(path, flags, rustix::fs::Mode::empty()).ok()?;
        let head = crate::root::read_up_to(std::fs::File::from(file), 4096).ok()?;
        head.windows(STUB.len()).any(|window| window == STUB).then_some(())
    };
    KUBELETS.iter().find(|path| is_stub(path).is_some()).copied()
}

fn look(root: &Root, path: &str) -> Result<Found, Problem> {
    found(root, path, OFlags::NOFOLLOW).map_err(|error| unreadable(path, error))
}

fn names(root: &Root, path: &str) -> Result<Vec<String>, Problem> {
    let names = root.list(path).map_err(|error| unreadable(path, error))?;
    Ok(names.into_iter().map(|name| format!("{path}/{name}")).collect())
}

fn empty(root: &Root, place: &str, removed: &mut Vec<String>, depth: usize) -> Result<(), Problem> {
    if depth > DEEPEST || !matches!(look(root, place)?, Found::Directory(_)) {
        return Ok(());
    }
    for path in names(root, place)? {
        match look(root, &path)? {
            Found::Directory(_) => empty(root, &path, removed, depth + 1)?,
            _ => {
                discard(root, &path)?;
                removed.push(path);
            }
        }
    }
    Ok(())
}

/// Looks for keys, tokens and credentials.
fn left(root: &Root) -> Result<Vec<(String, &'static str)>, Problem> {
    let mut left = Vec::new();
    for pattern in CREDENTIALS {
        for path in matching(root, pattern)? {
            if matches!(look(root, &path)?, Found::File(_)) && !path.ends_with(".pub") {
                left.push((path, "a file of credentials"));
            }
        }
    }
    for place in SEARCHED {
        search(root, place, &mut left, 0)?;
    }
    left.sort();
    left.dedup_by(|one, other| one.0 == other.0);
    Ok(left)
}

fn search(
    root: &Root,
    path: &str,
    left: &mut Vec<(String, &'static str)>,
    depth: usize,
) -> Result<(), Problem> {
    stop::check()?;
    match look(root, path)? {
        Found::Directory(_) if depth < DEEPEST => {
            for path in names(root, path)? {
                search(root, &path, left, depth + 1)?;
            }
        }
        Found::File(_) => {
            // A larger file is no key, and one that cannot be read is not the image's secret.
            let bytes = root.read(path, LARGEST).ok().flatten().unwrap_or_default();
            if let Some(what) = secret(&bytes) {
                left.push((path.to_owned(), what));
            }
        }
        _ => {}
    }
    Ok(())
}

/// What kind of secret some bytes hold.
fn secret(bytes: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let private = |line: &str| line.starts_with("-----BEGIN ") && line.contains("PRIVATE KEY-----");
    if text.lines().any(private) {
        return Some("a private key");
    }
    let words = || text.split(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)));
    let is_key_id = |word: &str| {
        let rest = word.strip_prefix("AKIA").or_else(|| word.strip_prefix("ASIA"));
        rest.is_some_and(|rest| {
            rest.len() == 16 && rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        })
    };
    if words().any(is_key_id) {
        return Some("an AWS access key");
    }
    let is_token = |word: &str| {
        word.starts_with("eyJ")
            && word.len() > 40
            && word.split('.').filter(|p| p.len() > 8).count() == 3
    };
    words().any(is_token).then_some("a token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_form() {
        let token = format!("token: eyJhbGciOiJ.{}.{}\n", "a".repeat(30), "b".repeat(20));
        for (text, expected) in [
            ("x\n-----BEGIN OPENSSH PRIVATE KEY-----\n", Some("a private key")),
            ("-----BEGIN CERTIFICATE-----\n", None),
            ("key=AKIAIOSFODNN7EXAMPLE\n", Some("an AWS access key")),
            ("AKIAshort", None),
            (token.as_str(), Some("a token")),
            ("grep -q 'BEGIN RSA PRIVATE KEY' file\n", None),
        ] {
            assert_eq!(secret(text.as_bytes()), expected, "{text}");
        }
    }
}
