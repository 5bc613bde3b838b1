//! The desk of a tester: a pretended machine, a pretended metadata service, and the binary.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tenon_host::rehearsal::SAMPLE;
use tenon_host::simulator::Simulator;
use tenon_host::simulator::faults::Faults;
use tenon_host::simulator::machine::{MachineProfile, populate};
use tenon_host::simulator::profile::Profile;

pub const TENON: &str = env!("CARGO_BIN_EXE_tenon");
/// An address at which nothing answers.
pub const NOBODY: &str = "http://127.0.0.1:1";

/// Everything that one run needs, gone when dropped.
pub struct Desk {
    /// The pretended machine.
    pub root: TempDir,
    /// Configs, links and other things beside the machine.
    pub side: TempDir,
    pub simulator: Simulator,
}

impl Desk {
    /// A machine whose user data is the sample config.
    pub fn new() -> Self {
        Desk::of(&profile(), Faults::default())
    }

    pub fn of(profile: &Profile, faults: Faults) -> Self {
        let desk = Desk {
            root: tempfile::tempdir().unwrap(),
            side: tempfile::tempdir().unwrap(),
            simulator: Simulator::start(profile, faults).unwrap(),
        };
        furnish(desk.root.path());
        desk
    }

    pub fn root(&self) -> &str {
        self.root.path().to_str().unwrap()
    }

    pub fn path(&self, below_root: &str) -> PathBuf {
        self.root.path().join(below_root)
    }

    /// Writes a file beside the machine and gives its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.side.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes a file of the machine.
    pub fn machine_file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The binary under another name.
    pub fn named(&self, name: &str) -> PathBuf {
        let link = self.side.path().join(name);
        if !link.exists() {
            symlink(TENON, &link).unwrap();
        }
        link
    }

    /// Gathers the facts of the machine into a file.
    pub fn facts(&self) -> String {
        let output = self.run(&["facts", "--root", self.root()]);
        assert_eq!(code(&output), 0, "{output:?}");
        self.file("facts.json", &stdout(&output))
    }

    pub fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = quiet_command(program);
        command.args(arguments).env("AWS_EC2_METADATA_SERVICE_ENDPOINT", self.simulator.endpoint());
        command
    }

    /// Runs `tenon` with these arguments.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(TENON, arguments).output().unwrap()
    }

    /// Makes the files of the node, with further arguments.
    pub fn init(&self, more: &[&str]) -> Output {
        let mut arguments = vec!["init", "--root", self.root(), "--skip", "run"];
        arguments.extend(more);
        self.run(&arguments)
    }
}

/// A command in an empty environment that finds no metadata service and no input.
pub fn quiet_command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command
        .env_clear()
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", NOBODY)
        // Whoever asks AWS in spite of everything finds nobody there either.
        .env("AWS_ENDPOINT_URL", NOBODY)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs `tenon` on a desk without machine and metadata service.
pub fn tenon(arguments: &[&str]) -> Output {
    quiet_command(TENON).args(arguments).output().unwrap()
}

/// An instance whose user data is the sample config.
pub fn profile() -> Profile {
    Profile::new("m6i.large").with_user_data(SAMPLE.as_bytes().to_vec())
}

/// Puts the files of a kernel and a node image into a directory.
pub fn furnish(root: &Path) {
    let profile = profile();
    let machine = MachineProfile {
        cpus: 2,
        memory_mib: 8192,
        kubelet_version: "v1.34.1-eks-113cf36".into(),
        containerd_version: "2.1.5".into(),
        hostname: profile.hostname,
        mac: profile.mac,
        nvidia: false,
    };
    populate(root, &machine).unwrap();
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {output:?}"))
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

/// Mode and content of every file below a directory, by path.
pub fn files_below(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                directories.push(path);
            } else if meta.is_file() {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, (meta.permissions().mode() & 0o7777, fs::read(&path).unwrap()));
            }
        }
    }
    files
}

pub fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits until something has happened; a test that waits in vain fails.
pub fn until(what: &str, happened: impl Fn() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Says why a test does nothing on this machine.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub fn skipped(what: &str, why: &str) {
    eprintln!("skipped: {what}: {why}");
}
