//! The system calls of a run, as strace saw them.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use crate::desk::{Desk, TENON, skipped};

/// Calls that change a file system, besides opening a file for writing.
const CHANGING: &[&str] = &[
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "chmod",
    "fchmod",
    "fchmodat",
    "chown",
    "fchown",
    "fchownat",
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "truncate",
    "ftruncate",
    "utimensat",
    "setxattr",
    "fsetxattr",
    "mount",
    "umount2",
];

/// One system call: its name and its line.
#[derive(Debug)]
pub struct Call {
    pub name: String,
    pub line: String,
}

pub struct Trace {
    pub output: Output,
    pub calls: Vec<Call>,
}

/// Runs `tenon` under strace; None, with a word about it, where that is not possible.
pub fn tenon(desk: &Desk, arguments: &[&str]) -> Option<Trace> {
    let probe = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skipped("counts of system calls", "strace is missing or may not trace here");
        return None;
    }
    let file = desk.side.path().join("strace.txt");
    let output = desk
        .command("/usr/bin/env", &["PATH=/usr/bin:/bin", "strace", "-f", "-y", "-qq"])
        .args(["-e", "signal=none", "-s", "256", "-o"])
        .arg(&file)
        .arg(TENON)
        .args(arguments)
        .output()
        .unwrap();
    let calls = fs::read_to_string(&file).unwrap().lines().filter_map(parse).collect();
    Some(Trace { output, calls })
}

/// Reads `1234  name(arguments) = result`. The second half of an interrupted line is no call.
fn parse(line: &str) -> Option<Call> {
    let line = line.split_once(' ')?.1.trim_start();
    let name = line.split_once('(')?.0;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| Call { name: name.to_owned(), line: line.to_owned() })
}

impl Call {
    pub fn says(&self, word: &str) -> bool {
        self.line.contains(word)
    }

    /// Opens a file such that it can be changed.
    fn opens_for_writing(&self) -> bool {
        let flags = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"];
        self.name.starts_with("open") && flags.iter().any(|flag| self.says(flag))
    }

    /// Changes the file system, or would if it did not end with an error.
    pub fn changes_files(&self) -> bool {
        CHANGING.contains(&self.name.as_str()) || self.opens_for_writing()
    }

    /// Begins a process; a thread is none.
    pub fn begins_process(&self) -> bool {
        match self.name.as_str() {
            "fork" | "vfork" => true,
            "clone" | "clone3" => !self.says("CLONE_THREAD"),
            _ => false,
        }
    }
}

impl Trace {
    pub fn named(&self, name: &str) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.name == name).collect()
    }

    /// How often each call was made. Unoptimised builds of the standard library ask the kernel
    /// about every descriptor before they close it; what is shipped does not.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for call in &self.calls {
            if !(cfg!(debug_assertions) && call.name == "fcntl" && call.says("F_GETFD")) {
                *counts.entry(call.name.as_str()).or_default() += 1;
            }
        }
        counts
    }
}
