//! The last step before a snapshot: what belongs to one machine or to the build goes, and what
//! must never be in an image is looked for.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::{Value, json};
use tenon_core::codes::image::STUB_KUBELET;
use tenon_core::image::secrets;
use tenon_core::problem::Problem;

use super::packages;
use super::site::{Found, found, matching};
use crate::apply::Lock;
use crate::apply::directories::unreadable;
use crate::apply::discard::discard;
use crate::apply::store;
use crate::root::{Root, absent, read_up_to};
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
    "/root/.viminfo",
    "/home/*/.viminfo",
    "/root/.lesshst",
    "/home/*/.lesshst",
    "/var/lib/amazon/ssm/*",
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
/// Files that hold credentials by their name, wherever they are.
const NAMED: &[&str] = &[".netrc", "_netrc", ".git-credentials", ".dockercfg"];
/// What is not searched: the kernel's own trees, and where packages alone put programs, libraries,
/// documentation and test data. Those hold examples of keys, and words that look for keys; what
/// packages bring is public anyway. Of /usr, what is left is /usr/local, /usr/etc and the like.
const PASSED_BY: &[&str] = &[
    "/proc",
    "/sys",
    "/dev",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/include",
    "/usr/share",
    "/usr/src",
    "/usr/games",
];
/// Searched although it is below /usr/lib: the plan holds what users wrote.
const OWN: &str = "/usr/lib/tenon";
/// On a running machine it is in memory and in no snapshot.
const IN_MEMORY: &str = "/run";
/// Of a larger file, so much of its begin and of its end is searched.
const PART: u64 = 8 << 20;
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
        let head = read_up_to(File::from(file), 4096).ok()?;
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
    for place in ["", OWN] {
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
    if PASSED_BY.contains(&path) || (path == IN_MEMORY && root.is_host()) {
        return Ok(());
    }
    match look(root, if path.is_empty() { "/" } else { path })? {
        Found::Directory(_) if depth < DEEPEST => {
            for path in names(root, path)? {
                search(root, &path, left, depth + 1)?;
            }
        }
        Found::File(_) => {
            let named = NAMED.iter().any(|name| path.ends_with(&format!("/{name}")));
            let what = match named {
                true => Some("a file of credentials"),
                false => secret(root, path).map_err(|error| unreadable(path, error))?,
            };
            left.extend(what.map(|what| (path.to_owned(), what)));
        }
        _ => {}
    }
    Ok(())
}

/// What kind of secret a file holds.
fn secret(root: &Root, path: &str) -> io::Result<Option<&'static str>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = match root.open_at(path, flags, rustix::fs::Mode::empty()) {
        Ok(file) => File::from(file),
        // On a running machine files come and go.
        Err(error) if absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let found = secrets::find(&read_up_to(&file, PART)?);
    if found.is_some() || length <= PART {
        return Ok(found);
    }
    file.seek(SeekFrom::Start(length - PART))?;
    Ok(secrets::find(&read_up_to(file, PART)?))
}
