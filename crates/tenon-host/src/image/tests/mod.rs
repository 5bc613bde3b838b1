//! The whole room on temporary roots: made true, made true again, interrupted, attacked, changed
//! behind its back.

mod crowded;
mod fetching;
mod hostile;
mod isolated;
mod live;
mod manifested;
mod placed;
mod sealed;
mod teeth;
mod twice;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;
use tempfile::TempDir;
use tenon_core::hex::sha256;
use tenon_core::image::family;
use tenon_core::image::plan::{ImagePlan, Wanted, resolve};
use tenon_core::image::profile::Profile;
use tenon_core::problem::Problem;

use super::apply::{self, Options, Report};
use super::cache::Cache;
use crate::root::Root;

/// One of every kind that needs neither packages from a mirror nor a program inside the root.
const PROFILE: &str = r##"
about = "one of each"
[[repository]]
name = "lab"
url = "http://127.0.0.1:9/"
fingerprint = "D66F A356 A596 854F 6EE7  C522 D079 0881 D62A CFD4"
key = """
-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEavprNhYJKwYBBAHaRw8BAQdArrgCLYo6RF0+6D46+xB6zVFaJ83DO9pCvlIk
WpzDLPa0FWxhYiA8bGFiQGV4YW1wbGUuY29tPoiQBBMWCAA4FiEE1m+jVqWWhU9u
58Ui0HkIgdYqz9QFAmr6azYCGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ
0HkIgdYqz9QE6AEAzKjz6J9S0pVOMOanGw/DtXP8Te2Nf1DcO+S3kXKkeuoBALD7
9jcC7pa+wok8kBnef47uQthYt8U+V7kXirg/68MO
=s5ez
-----END PGP PUBLIC KEY BLOCK-----
"""
reason = "r"
[[package]]
name = "runc"
version = "1.1"
lock = true
reason = "r"
[[package-absent]]
name = "telnet"
reason = "r"
[[group]]
name = "nodes"
reason = "r"
[[user]]
name = "etcd"
shell = "/usr/sbin/nologin"
home = "/var/lib/etcd"
locked = true
groups = ["adm"]
reason = "r"
[[directory]]
path = "/etc/kubernetes/manifests"
mode = "0750"
reason = "r"
[[file]]
path = "/etc/motd"
mode = "0640"
content = "welcome\n"
reason = "r"
[[file]]
path = "/etc/kept"
mode = "0644"
content = "not written\n"
if-absent = true
reason = "r"
[[block]]
path = "/etc/hosts"
marker = "nodes"
content = "10.0.0.1 one\n"
reason = "r"
[[setting]]
name = "UMASK"
file = "/etc/login.defs"
value = "027"
reason = "r"
[[pam]]
module = "pam_unix.so"
file = "/etc/pam.d/common-auth"
arguments = "-nullok remember=24"
reason = "r"
[[limit]]
item = "*/core"
soft = "0"
hard = "0"
reason = "r"
[[link]]
path = "/etc/localtime"
target = "/usr/share/zoneinfo/UTC"
reason = "r"
[[absent]]
path = "/etc/cron.d/old*"
reason = "r"
[[access]]
path = "/etc/crontab"
mode = "0600"
reason = "r"
[[sysctl]]
key = "kernel.panic"
value = "10"
reason = "r"
[[sysctl]]
key = "kernel.pid_max"
floor = 4194304
reason = "r"
[[sshd]]
directive = "PermitRootLogin"
value = "no"
reason = "r"
[[module]]
name = "overlay"
state = "loaded"
reason = "r"
[[kernel-argument]]
key = "audit"
value = "1"
reason = "r"
[[kernel-argument]]
key = "quiet"
present = false
reason = "r"
[[unit]]
name = "tenon-x.service"
content = "[Service]\nExecStart=/bin/true\n"
state = "enabled"
wanted-by = ["multi-user.target"]
reason = "r"
[[mask]]
unit = "ufw.service"
reason = "r"
[[mount]]
path = "/var/lib/containerd"
source = "LABEL=containerd"
type = "xfs"
options = ["nodev"]
reason = "r"
[[module]]
name = "usb-storage"
state = "denied"
reason = "r"
[[sudo]]
default = "use_pty"
reason = "r"
[[audit]]
rule = "-w /etc/passwd -p wa -k identity"
group = "50-identity"
reason = "r"
[[crypto-policy]]
name = "system"
policy = "FIPS"
reason = "r"
[[manual]]
name = "look"
text = "somebody must look"
reason = "r"
"##;

/// A root, a cache beside it, and a plan for both.
struct Stage {
    place: TempDir,
    plan: ImagePlan,
}

impl Stage {
    fn new() -> Stage {
        Stage::with("")
    }

    /// A stage whose plan has more resources; downloads of the cache are named by [`Stage::pin`].
    fn with(more: &str) -> Stage {
        // In memory where there is such a place: these tests sync some ten thousand times.
        let memory = Path::new("/dev/shm");
        Stage::in_place(if memory.is_dir() { memory } else { Path::new("/tmp") }, more)
    }

    fn in_place(place: &Path, more: &str) -> Stage {
        let place = tempfile::tempdir_in(place).unwrap();
        let stage = Stage { plan: plan(&format!("{PROFILE}{more}")), place };
        for (path, text) in [
            ("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n"),
            ("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"),
            ("etc/group", "root:x:0:\nadm:x:4:\n"),
            ("etc/shadow", "root:*:19000:0:99999:7:::\n"),
            ("etc/hosts", "127.0.0.1 localhost\n"),
            ("etc/kept", "theirs\n"),
            ("etc/login.defs", "UMASK\t022\n"),
            ("etc/cron.d/old-job", "x"),
            ("etc/crontab", "x"),
            ("etc/pam.d/common-auth", "auth required pam_unix.so nullok\n"),
            ("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\n"),
            ("etc/sudoers", "root ALL=(ALL) ALL\n@includedir /etc/sudoers.d\n"),
            ("etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n"),
            ("usr/lib/sysctl.d/50-default.conf", "kernel.panic = 0\n"),
            (
                "var/lib/dpkg/status",
                "Package: runc\nStatus: install ok installed\nVersion: 1.1.5\n\n\
                 Package: dash\nStatus: install ok installed\nVersion: 0.5\n",
            ),
        ] {
            stage.write(path, text.as_bytes());
        }
        let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        stage.write("bin/sh", &[b"\x7fELF\x02\x01".as_slice(), &[0; 12], &[machine, 0]].concat());
        for name in ["proc", "sys", "dev", "run", "tmp"] {
            fs::create_dir(stage.at(name)).unwrap();
        }
        stage
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("root")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    fn root(&self) -> Root {
        Root::open(&self.path()).unwrap()
    }

    fn cache(&self) -> Cache {
        Cache::open(&self.place.path().join("cache")).unwrap()
    }

    fn write(&self, path: &str, body: &[u8]) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, body).unwrap();
    }

    /// Puts content into the cache under its hash, which it gives.
    fn pin(place: &Path, body: &[u8]) -> String {
        let hash = sha256(body);
        let directory = place.join("cache/sha256");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(&hash), body).unwrap();
        hash
    }

    fn apply(&self) -> Result<Report, Problem> {
        self.apply_with(&|_| Ok(()))
    }

    fn apply_with(&self, probe: crate::apply::Probe<'_>) -> Result<Report, Problem> {
        let cache = self.cache();
        let options = Options { cache: Some(&cache), live: false, files_only: false, probe };
        apply::apply(&self.plan, &self.root(), options)
    }

    /// Everything below the root: kind, mode, owner and content.
    fn picture(&self) -> Picture {
        picture(&self.path())
    }

    /// The same with paths from the root on, so that two stages can be compared.
    fn relative(&self) -> Picture {
        let root = self.path();
        let cut = |path: PathBuf| path.strip_prefix(&root).unwrap().to_owned();
        self.picture().into_iter().map(|(path, rest)| (cut(path), rest)).collect()
    }
}

/// Mode, owner and content or target of each path.
type Picture = BTreeMap<PathBuf, (u32, u32, u32, String)>;

fn picture(place: &Path) -> Picture {
    let (mut found, mut todo) = (BTreeMap::new(), vec![place.to_owned()]);
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let body = match meta.file_type() {
                kind if kind.is_symlink() => {
                    fs::read_link(&path).unwrap().to_string_lossy().into_owned()
                }
                kind if kind.is_dir() => {
                    todo.push(path.clone());
                    String::new()
                }
                _ => sha256(&fs::read(&path).unwrap()),
            };
            found.insert(path, (meta.permissions().mode(), meta.uid(), meta.gid(), body));
        }
    }
    found
}

fn plan(profile: &str) -> ImagePlan {
    let architecture = if cfg!(target_arch = "aarch64") { "aarch64" } else { "x86_64" };
    let wanted = Wanted {
        name: "test".into(),
        family: family::find("debian").unwrap(),
        release: "bookworm".into(),
        architecture: architecture.into(),
        kubernetes: "1.34.2".into(),
        profiles: vec!["test".into()],
        own_profiles: vec![Profile::read("test", profile).unwrap()],
        wishes: Vec::new(),
        exceptions: Vec::new(),
    };
    resolve(&wanted).unwrap()
}

/// A compressed archive of these files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    zip.write_all(&tar_of(files)).unwrap();
    zip.finish().unwrap()
}

fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, body) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(body.len() as u64);
        header.set_mode(0o755);
        // As bytes: the library would refuse names that lead elsewhere.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        tar.append(&header, *body).unwrap();
    }
    tar.into_inner().unwrap()
}

/// A download of one file or of members of an archive.
fn download(path: &str, hash: &str, members: &str) -> String {
    format!(
        "[[download]]\npath = '{path}'\ncomponent = 'c'\nversion = '1'\nurl = 'http://x/c'\n\
         sha256 = {{x86_64 = '{hash}', aarch64 = '{hash}'}}\n{members}reason = 'r'\n"
    )
}

/// Names of the steps that a run took, besides looking at items.
fn steps(run: impl FnOnce(crate::apply::Probe<'_>)) -> Vec<&'static str> {
    let seen = Mutex::new(Vec::new());
    run(&|name| {
        if name != "item" {
            seen.lock().unwrap().push(name);
        }
        Ok(())
    });
    seen.into_inner().unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
