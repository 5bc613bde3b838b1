//! Walks through `/proc` and `/sys`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Own;
use crate::collect::item::Job;
use crate::collect::run::Shared;
use crate::collect::sink::Sink;

/// More variables than this make starting a process slow, and are a known fault.
const MANY_VARIABLES: usize = 500;
/// File systems that may hang when asked.
const REMOTE: [&str; 6] = ["nfs", "nfs4", "cifs", "fuse", "ceph", "lustre"];
const SLICES: [&str; 4] = ["system.slice", "runtime.slice", "kubepods.slice", "user.slice"];
const SLICE_FILES: [&str; 9] = [
    "cpu.max",
    "cpu.weight",
    "cpu.stat",
    "memory.max",
    "memory.min",
    "memory.high",
    "memory.current",
    "memory.events",
    "pids.max",
];

fn text(job: &Job<'_>, path: &str) -> Option<String> {
    job.shared.source.read_text(path).known()
}

/// The numbers of all processes.
fn pids(job: &Job<'_>) -> Vec<u32> {
    let names = job.shared.source.list("/proc").known().unwrap_or_default();
    let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// The process table: state, threads, memory, times and arguments.
pub fn processes(job: &Job<'_>, sink: &mut Sink<'_>) -> Own {
    sink.take(b"pid ppid state threads rss_kib utime stime start command\n");
    for pid in pids(job) {
        let Some(stat) = text(job, &format!("/proc/{pid}/stat")) else { continue };
        // The name in brackets may hold anything, so fields count from its end.
        let Some((head, tail)) = stat.rsplit_once(") ") else { continue };
        let name = head.split_once('(').map_or("", |(_, name)| name);
        let field: Vec<&str> = tail.split(' ').collect();
        let at = |index: usize| field.get(index).copied().unwrap_or("-");
        let rss = at(21).parse::<u64>().unwrap_or_default() * 4;
        let arguments = job.shared.source.read(&format!("/proc/{pid}/cmdline"), 64 << 10).known();
        let arguments = arguments.unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).replace(['\0', '\n'], " ");
        let command = if arguments.trim().is_empty() { format!("[{name}]") } else { arguments };
        let (state, parent, threads) = (at(0), at(1), at(17));
        let (user, system, start) = (at(11), at(12), at(19));
        let line =
            format!("{pid} {parent} {state} {threads} {rss} {user} {system} {start} {command}\n");
        sink.take(line.as_bytes());
        if job.is_late() {
            break;
        }
    }
    Own::Taken
}

/// How many variables each process has; never their values.
pub fn environments(job: &Job<'_>) -> Own {
    let mut lines = String::from("pid variables\n");
    for pid in pids(job) {
        let Some(bytes) = job.shared.source.read(&format!("/proc/{pid}/environ"), 4 << 20).known()
        else {
            continue;
        };
        let count = bytes.split(|byte| *byte == 0).filter(|variable| !variable.is_empty()).count();
        let many = if count >= MANY_VARIABLES { " many" } else { "" };
        lines.push_str(&format!("{pid} {count}{many}\n"));
        if job.is_late() {
            break;
        }
    }
    Own::Text(lines.into_bytes())
}

/// Control groups whose processes were held back.
pub fn throttling(job: &Job<'_>) -> Own {
    let mut lines = String::new();
    let mut waiting = vec![("/sys/fs/cgroup".to_owned(), 0)];
    while let Some((directory, depth)) = waiting.pop() {
        if let Some(stat) = text(job, &format!("{directory}/cpu.stat")) {
            let held = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
            if held.is_some_and(|count| count != "0") {
                lines.push_str(&format!("{directory}\n  {}\n", stat.replace('\n', "\n  ")));
            }
        }
        for name in job.shared.source.list(&directory).known().unwrap_or_default() {
            let path = format!("{directory}/{name}");
            let is_directory = || {
                job.shared.source.stat(&path).known().is_some_and(|node| node.kind == "directory")
            };
            if depth < 8 && !name.contains('.') | name.contains(".s") && is_directory() {
                waiting.push((path, depth + 1));
            }
        }
        if job.is_late() {
            break;
        }
    }
    Own::lines(lines)
}

/// Every kernel setting that may be read.
pub fn sysctls(job: &Job<'_>, sink: &mut Sink<'_>) -> Own {
    let mut waiting = vec!["/proc/sys".to_owned()];
    while let Some(directory) = waiting.pop() {
        let names = job.shared.source.list(&directory).known().unwrap_or_default();
        for name in names.iter().rev() {
            let path = format!("{directory}/{name}");
            match job.shared.source.stat(&path).known() {
                Some(node) if node.kind == "directory" => waiting.push(path),
                // Reading needs a right to read: some settings can only be written.
                Some(node) if node.mode & 0o444 != 0 => {
                    let Some(value) = text(job, &path) else { continue };
                    let key = path["/proc/sys/".len()..].replace('/', ".");
                    sink.take(format!("{key} = {}\n", value.replace('\n', " ")).as_bytes());
                }
                _ => {}
            }
        }
        if job.is_late() {
            break;
        }
    }
    Own::Taken
}

/// Room and inodes of each mounted file system.
pub fn mounts(shared: &Shared) -> Own {
    let Some(table) = shared.source.read_text("/proc/self/mounts").known() else {
        return Own::Absent("no table of mounts".into());
    };
    let mut found: Vec<Value> = Vec::new();
    let mut seen: BTreeMap<String, ()> = BTreeMap::new();
    for line in table.lines() {
        let mut words = line.split(' ');
        let (Some(device), Some(point), Some(kind)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let remote = REMOTE.iter().any(|name| kind.starts_with(name));
        if remote || seen.insert(point.to_owned(), ()).is_some() {
            continue;
        }
        let Ok(stat) = rustix::fs::statvfs(point.replace("\\040", " ")) else { continue };
        if stat.f_blocks == 0 {
            continue;
        }
        found.push(json!({
            "device": device, "mount": point, "type": kind,
            "bytes": stat.f_blocks * stat.f_frsize, "free": stat.f_bavail * stat.f_frsize,
            "inodes": stat.f_files, "inodesFree": stat.f_favail,
        }));
    }
    Own::json(&json!({"mounts": found}))
}

/// Version of the control groups and the settings of the main slices.
pub fn slices(shared: &Shared) -> Own {
    let controllers = shared.source.read_text("/sys/fs/cgroup/cgroup.controllers").known();
    let mut found: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
    for slice in SLICES {
        for file in SLICE_FILES {
            if let Some(value) =
                shared.source.read_text(&format!("/sys/fs/cgroup/{slice}/{file}")).known()
            {
                found.entry(slice).or_default().insert(file, value);
            }
        }
    }
    let version = if controllers.is_some() { 2 } else { 1 };
    match shared.source.is_live() || controllers.is_some() {
        true => Own::json(
            &json!({"cgroupVersion": version, "controllers": controllers, "slices": found}),
        ),
        false => Own::NotApplicable("only a running node can tell".into()),
    }
}
