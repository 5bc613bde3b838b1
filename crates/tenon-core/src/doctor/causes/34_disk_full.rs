//! No room, or no disk.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 34,
    slug: "disk-full",
    title: "a disk or its inodes are full, or an array does not work",
    step: Step::Disks,
    alone: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["no space left on device"], "go src/syscall/zerrors_linux_amd64.go"),
        Signal::confirmed(Log::Containerd, &["no space left on device"], "go src/syscall/zerrors_linux_amd64.go"),
        Signal::confirmed(Log::Bootstrap, &["no space left on device"], "go src/syscall/zerrors_linux_amd64.go"),
        Signal::confirmed(Log::Bootstrap, &["TN07003"], "tenon-core/src/codes/host.rs"),
    ],
    checks: &[
        Check::proves("disk-space", space),
        Check::proves("arrays", arrays),
        Check::supports("root-grown", grown),
    ],
    why: "neither kubelet nor containerd can write: the file system is full, has no inodes, was not grown to its disk, or the array below it has lost a member",
    fix: "free space (old images first: `crictl rmi --prune`), grow the file system, or replace the instance",
    command: "df -h; df -i",
    ..Cause::BLANK
};

fn space(view: &View) -> Found {
    if view.node.disks.is_empty() {
        return Found::Unknown("the room on the disks is not known");
    }
    let mut evidence = Vec::new();
    for disk in &view.node.disks {
        if disk.bytes > 0 && disk.free_bytes * 100 < disk.bytes {
            evidence.push(Evidence::file(&disk.path, format!("{} of {} bytes are free", disk.free_bytes, disk.bytes)));
        }
        if disk.inodes > 0 && disk.free_inodes * 1000 < disk.inodes {
            evidence.push(Evidence::file(&disk.path, format!("{} of {} inodes are free", disk.free_inodes, disk.inodes)));
        }
    }
    Found::of(evidence)
}

/// `[2/1] [U_]` has lost a member; `inactive` was never assembled.
fn arrays(view: &View) -> Found {
    let Some(text) = view.file("/proc/mdstat") else { return Found::NotApplicable };
    let mut name = "";
    let mut evidence = Vec::new();
    for line in text.lines() {
        if let Some((array, rest)) = line.split_once(" : ") {
            name = array;
            if rest.starts_with("inactive") {
                evidence.push(Evidence::file("/proc/mdstat", format!("{name} is inactive")));
            }
        } else if line.contains("raid0") {
            continue;
        } else if line.rsplit('[').next().is_some_and(|state| state.starts_with(['U', '_']) && state.contains('_')) {
            evidence.push(Evidence::file("/proc/mdstat", format!("{name} has lost a member")));
        }
    }
    Found::of(evidence)
}

fn grown(view: &View) -> Found {
    let small = |disk: &&super::super::snapshot::Disk| {
        disk.device_bytes > 0 && disk.bytes * 2 < disk.device_bytes && disk.free_bytes * 10 < disk.bytes
    };
    let bad = view.node.disks.iter().find(small);
    Found::maybe(bad.map(|disk| {
        Evidence::file(&disk.path, format!("{} bytes on a disk of {}", disk.bytes, disk.device_bytes))
    }))
}
