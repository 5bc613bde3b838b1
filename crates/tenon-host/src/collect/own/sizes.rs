//! What fills the disk: the largest files, and the layers of containers.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use serde_json::json;

use super::Own;
use crate::collect::item::Job;

const SNAPSHOTS: &str = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots";
/// How many are named.
const LARGEST: usize = 40;
/// Where nothing of the disk lies.
const OTHER: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// Sizes of a tree on one file system; `visit` gets each file. False when time ran out.
fn walk(job: &Job<'_>, top: &str, visit: &mut dyn FnMut(&str, u64)) -> bool {
    let Ok(root) = job.shared.root() else { return true };
    let opened = |path: &str| {
        root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
    };
    let Ok(Ok(device)) = opened(top).map(|fd| rustix::fs::fstat(&fd).map(|stat| stat.st_dev))
    else {
        return true;
    };
    let mut waiting = vec![top.trim_end_matches('/').to_owned()];
    while let Some(directory) = waiting.pop() {
        if job.is_late() {
            return false;
        }
        let Ok(fd) = opened(if directory.is_empty() { "/" } else { &directory }) else { continue };
        let Ok(entries) = rustix::fs::Dir::read_from(&fd) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(stat) = rustix::fs::statat(&fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            else {
                continue;
            };
            if name == "." || name == ".." || stat.st_dev != device {
                continue;
            }
            let path = format!("{directory}/{name}");
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if !OTHER.contains(&path.as_str()) => waiting.push(path),
                FileType::RegularFile => {
                    visit(&path, u64::try_from(stat.st_blocks).unwrap_or_default() * 512);
                }
                _ => {}
            }
        }
    }
    true
}

/// The largest files of the root's own file system, and what each directory below it holds.
pub fn large_files(job: &Job<'_>) -> Own {
    let mut largest: Vec<(u64, String)> = Vec::new();
    let mut directories: BTreeMap<String, u64> = BTreeMap::new();
    let whole = walk(job, "/", &mut |path, bytes| {
        let two: Vec<&str> = path.split('/').take(3).collect();
        *directories.entry(two.join("/")).or_default() += bytes;
        if largest.len() < LARGEST || largest.last().is_some_and(|(least, _)| bytes > *least) {
            largest.push((bytes, path.to_owned()));
            largest.sort_unstable_by(|left, right| right.cmp(left));
            largest.truncate(LARGEST);
        }
    });
    let mut sums: Vec<_> = directories.into_iter().map(|(path, bytes)| (bytes, path)).collect();
    sums.sort_unstable_by(|left, right| right.cmp(left));
    let mut text = String::from(if whole { "" } else { "time ran out: not all files were seen\n" });
    for (title, rows) in [("directories", &sums), ("files", &largest)] {
        text.push_str(&format!("largest {title}\n"));
        for (bytes, path) in rows.iter().take(LARGEST) {
            text.push_str(&format!("{bytes:>14} {path}\n"));
        }
    }
    Own::Text(text.into_bytes())
}

/// Bytes of each layer that containers wrote into.
pub fn overlays(job: &Job<'_>) -> Own {
    let Some(layers) = job.shared.source.list(SNAPSHOTS).known() else {
        return Own::Absent("no overlays of containerd".into());
    };
    let mut found = BTreeMap::new();
    for layer in layers {
        let mut bytes = 0;
        let top = Path::new(SNAPSHOTS).join(&layer).join("fs");
        let whole = walk(job, &top.to_string_lossy(), &mut |_, size| bytes += size);
        found.insert(layer, bytes);
        if !whole {
            break;
        }
    }
    Own::json(&json!({"bytesBySnapshot": found}))
}
