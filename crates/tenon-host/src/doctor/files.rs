//! The part of a snapshot that is read from files, the journal and the service manager.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use rustix::fs::{Mode, OFlags, fstat, fstatvfs};
use tenon_core::collect::journal::Entry;
use tenon_core::doctor::{
    Disk, FILES, FOLDERS, LOGS, Line, PROGRAMS, Snapshot, UNITS, Unit, View, certificates_only,
};

use super::Options;
use crate::collect::{Answer, Match, Query, Source};
use crate::root::Root;
use crate::systemd::{Manager, UnitState};

/// The largest file that is read whole.
const FILE_CAP: u64 = 1 << 20;
/// Where a bundle keeps the snapshot of its node.
const RECORDED: &str = "probes/results.json";
const RECORDED_CAP: u64 = 16 << 20;
/// How much of the end of a log file is read.
const LOG_TAIL: u64 = 256 << 10;
/// How much of each journal is read, and with `--deep`.
const JOURNAL: (u64, u64) = (1 << 20, 64 << 20);
/// Files that the kubelet and containerd start with: the newest says when the node was last
/// configured.
const INPUTS: &[&str] = &[
    "/etc/eks/kubelet/environment",
    "/etc/kubernetes/kubelet/config.json",
    "/etc/kubernetes/pki/ca.crt",
    "/etc/containerd/config.toml",
    "/var/lib/kubelet/kubeconfig",
];
/// Journals besides those of [`UNITS`].
const MORE_JOURNALS: &[&str] = &["cloud-init.service", "cloud-config.service"];

/// Takes over what a bundle recorded of its node.
pub(super) fn recorded(source: &Source, node: &mut Snapshot) {
    let Some(bundle) = source.bundle_handle() else { return };
    let bytes = bundle.read(RECORDED, RECORDED_CAP).and_then(Result::ok);
    if let Some(recorded) = bytes.and_then(|bytes| serde_json::from_slice::<Snapshot>(&bytes).ok())
    {
        *node = Snapshot { kind: node.kind, ..recorded };
    }
}

/// Reads everything but the probes.
pub(super) fn read(source: &Source, options: &Options, node: &mut Snapshot) {
    for path in FILES {
        match path.strip_suffix("/*") {
            None => read_file(source, path, node),
            Some(folder) => {
                for name in source.list(folder).known().unwrap_or_default() {
                    read_file(source, &format!("{folder}/{name}"), node);
                }
            }
        }
    }
    // What those name in turn: first the kubeconfig, then what stands in it.
    for _ in 0..2 {
        for path in View::new(node, None).named_files() {
            read_file(source, &path, node);
        }
    }
    for folder in FOLDERS {
        if !node.folders.contains_key(*folder)
            && let Answer::Known(names) = source.list(folder)
        {
            node.folders.insert((*folder).to_owned(), names);
        }
    }
    read_journal(source, options, node);
    for (path, identifier) in LOGS {
        let text = tail(source, path);
        let line = |message: &str| Line {
            identifier: (*identifier).to_owned(),
            message: message.to_owned(),
            ..Line::default()
        };
        node.journal.extend(text.lines().map(line));
    }
    match source.root_handle() {
        Some(root) => read_root(source, root, node),
        None => read_bundled_units(source, node),
    }
}

fn read_file(source: &Source, path: &str, node: &mut Snapshot) {
    if node.files.contains_key(path) {
        return;
    }
    match source.read(path, FILE_CAP) {
        Answer::Known(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            // A key must not even enter the snapshot.
            let text = match text.contains("PRIVATE KEY-----") {
                true => certificates_only(&text),
                false => text.into_owned(),
            };
            node.files.insert(path.to_owned(), text);
        }
        Answer::Unknown(why) if why.contains("ermission") => node.denied.push(path.to_owned()),
        Answer::Unknown(_) | Answer::Absent => {}
    }
}

fn read_journal(source: &Source, options: &Options, node: &mut Snapshot) {
    let units = UNITS.iter().chain(MORE_JOURNALS).map(|unit| Match::Unit((*unit).to_owned()));
    let most_bytes = if options.deep { JOURNAL.1 } else { JOURNAL.0 };
    for of in units.chain([Match::Kernel]) {
        let query = Query { of, since_us: options.since_us, most_bytes };
        let entries = source.journal(&query).known().unwrap_or_default();
        node.journal.extend(entries.into_iter().map(line));
    }
}

fn line(entry: Entry) -> Line {
    let Entry { time_us, boot, unit, identifier, message, .. } = entry;
    Line { time_us, boot, unit, identifier, message }
}

/// The end of a log file.
fn tail(source: &Source, path: &str) -> String {
    let Some(root) = source.root_handle() else {
        let whole = source.read(path, 64 << 20).known().unwrap_or_default();
        let from = whole.len().saturating_sub(usize::try_from(LOG_TAIL).unwrap_or(usize::MAX));
        return String::from_utf8_lossy(&whole[from..]).into_owned();
    };
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file =
            File::from(root.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?);
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

fn read_root(source: &Source, root: &Root, node: &mut Snapshot) {
    for path in PROGRAMS {
        if let Some(machine) = elf_machine(root, path) {
            node.programs.insert((*path).to_owned(), machine);
        }
    }
    node.changed_us = INPUTS.iter().filter_map(|path| modified_us(root, path)).max();
    if source.is_live() || is_mount_point(root) {
        node.disks = ["/", "/var", "/var/lib/containerd", "/var/lib/kubelet"]
            .iter()
            .filter_map(|path| disk(root, path, node))
            .collect();
        node.disks.dedup_by(|next, first| (next.bytes, next.inodes) == (first.bytes, first.inodes));
    }
    if source.is_live()
        && let Ok(manager) = Manager::connect(root)
    {
        for name in UNITS {
            if let Ok(state) = manager.state(name) {
                node.units.insert((*name).to_owned(), unit(state));
            }
        }
    }
}

fn read_bundled_units(source: &Source, node: &mut Snapshot) {
    if !node.units.is_empty() {
        return;
    }
    for name in UNITS {
        if let Answer::Known(found) = source.unit(name)
            && let Some(state) = found.state
        {
            node.units.insert((*name).to_owned(), unit(state));
        }
    }
}

fn unit(state: UnitState) -> Unit {
    let UnitState { load, active, sub, result, restarts, .. } = state;
    Unit { load, active, sub, result, restarts }
}

/// The `e_machine` of an ELF file.
fn elf_machine(root: &Root, path: &str) -> Option<u16> {
    let fd = root.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).ok()?;
    let mut head = [0; 20];
    File::from(fd).read_exact(&mut head).ok()?;
    head.starts_with(b"\x7fELF").then(|| u16::from_le_bytes([head[18], head[19]]))
}

fn modified_us(root: &Root, path: &str) -> Option<u64> {
    let fd = root.open_at(path, OFlags::PATH, Mode::empty()).ok()?;
    let stat = fstat(&fd).ok()?;
    u64::try_from(stat.st_mtime).ok()?.checked_mul(1_000_000)
}

/// A directory that is no volume of its own says nothing about the node's disks.
fn is_mount_point(root: &Root) -> bool {
    let device = |path: &std::path::Path| rustix::fs::stat(path).ok().map(|stat| stat.st_dev);
    device(root.path()) != device(&root.path().join(".."))
}

fn disk(root: &Root, path: &str, node: &Snapshot) -> Option<Disk> {
    let fd = root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let room = fstatvfs(&fd).ok()?;
    Some(Disk {
        path: path.to_owned(),
        bytes: room.f_blocks * room.f_frsize,
        free_bytes: room.f_bavail * room.f_frsize,
        inodes: room.f_files,
        free_inodes: room.f_ffree,
        device_bytes: device_bytes(root, path, node).unwrap_or_default(),
    })
}

/// Size of the disk that a file system lies on, its other partitions included.
fn device_bytes(root: &Root, path: &str, node: &Snapshot) -> Option<u64> {
    let mounts = node.files.get("/proc/mounts")?;
    let mounted = |line: &str| {
        let mut words = line.split_whitespace();
        let device = words.next()?.strip_prefix("/dev/")?.to_owned();
        (words.next()? == path).then_some(device)
    };
    let device = mounts.lines().find_map(mounted)?;
    let sectors = |path: String| root.read_text(&path).ok()??.parse::<u64>().ok();
    let folder = format!("/sys/class/block/{device}");
    let whole =
        sectors(format!("{folder}/../size")).or_else(|| sectors(format!("{folder}/size")))?;
    whole.checked_mul(512)
}
