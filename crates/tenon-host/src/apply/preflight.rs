//! Whether there is room for a batch, asked before the first write.

use std::collections::BTreeMap;

use rustix::fs::{StatVfs, StatVfsMountFlags};
use tenon_core::codes;
use tenon_core::problem::Problem;

use super::directories::{Directories, unreadable};
use super::files::Batch;
use crate::root::Root;

/// What one file system must take.
struct Need {
    /// One of the paths that need it, for the message.
    path: String,
    room: StatVfs,
    device: u64,
    bytes: u64,
    inodes: u64,
}

/// Refuses a batch that a file system cannot hold: read-only, too few bytes, too few inodes.
pub fn check(directories: &mut Directories<'_>, batch: &Batch) -> Result<(), Problem> {
    let root = directories.root();
    for need in needs(directories, batch)?.into_values() {
        judge(&need, root)?;
    }
    Ok(())
}

fn needs(directories: &mut Directories<'_>, batch: &Batch) -> Result<BTreeMap<u64, Need>, Problem> {
    let mut needs = BTreeMap::new();
    let files = batch.files.iter().map(|file| (&file.path, file.body.len() as u64));
    let made = batch.directories.iter().filter(|dir| !dir.exists).map(|dir| (&dir.path, 1));
    for (path, bytes) in files.chain(made) {
        let need = entry(directories, &mut needs, path)?;
        let block = need.room.f_frsize.max(1);
        need.bytes += bytes.div_ceil(block) * block;
        need.inodes += 1;
    }
    for path in &batch.removals {
        entry(directories, &mut needs, path)?;
    }
    Ok(needs)
}

fn entry<'n>(
    directories: &mut Directories<'_>,
    needs: &'n mut BTreeMap<u64, Need>,
    path: &str,
) -> Result<&'n mut Need, Problem> {
    let near = directories.nearest(path).map_err(|error| unreadable(path, error))?;
    let device = near.device();
    if let std::collections::btree_map::Entry::Vacant(vacant) = needs.entry(device) {
        let room =
            rustix::fs::fstatvfs(near.fd()).map_err(|error| unreadable(path, error.into()))?;
        vacant.insert(Need { path: path.to_owned(), room, device, bytes: 0, inodes: 0 });
    }
    needs
        .get_mut(&device)
        .ok_or_else(|| Problem::new(&codes::usage::BUG, "a file system vanished from a map"))
}

fn judge(need: &Need, root: &Root) -> Result<(), Problem> {
    let Need { path, room, bytes, inodes, .. } = need;
    if room.f_flag.contains(StatVfsMountFlags::RDONLY) {
        let what = format!("{path} lies on a read-only file system{}", mount_words(need, root));
        return Err(Problem::new(&codes::host::READ_ONLY, what));
    }
    // The reserve of a file system is there for root.
    let blocks = if rustix::process::geteuid().is_root() { room.f_bfree } else { room.f_bavail };
    let free = blocks.saturating_mul(room.f_frsize);
    if *bytes > free {
        let what = format!(
            "{bytes} bytes are needed for {path} and the rest of this run, {free} are free{}",
            mount_words(need, root)
        );
        return Err(Problem::new(&codes::host::NO_SPACE, what));
    }
    // File systems without a fixed number of inodes say 0.
    if room.f_files > 0 && *inodes > room.f_ffree {
        let what = format!(
            "{inodes} inodes are needed for {path} and the rest of this run, {} are free{}",
            room.f_ffree,
            mount_words(need, root)
        );
        return Err(Problem::new(&codes::host::NO_INODES, what));
    }
    Ok(())
}

/// Names the mount of a file system, ` (mounted at /etc)`; empty when it cannot be told.
fn mount_words(need: &Need, root: &Root) -> String {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let id = format!("{}:{}", rustix::fs::major(need.device), rustix::fs::minor(need.device));
    let real = root.join(&need.path);
    let mounts = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(2) == Some(&id.as_str())).then(|| words.get(4).copied()).flatten()
    });
    let above = mounts.filter(|point| real.starts_with(point));
    let point = above.max_by_key(|point| point.len());
    point.map_or_else(String::new, |point| format!(" (mounted at {point})"))
}
