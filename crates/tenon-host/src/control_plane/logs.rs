//! The last words of a container that does not come up, from the kubelet's own files.

use crate::root::Root;

const PODS: &str = "/var/log/pods";
/// How much of a log is read, and how much of it is shown.
const LOG_CAP: u64 = 4 << 20;
const LINES: usize = 8;
const WIDTH: usize = 400;

/// The last lines of a static pod's container; none if it never ran.
pub(super) fn last_words(root: &Root, pod: &str, node: &str, container: &str) -> Vec<String> {
    newest_log(root, pod, node, container).map(|text| tail(&text)).unwrap_or_default()
}

/// `/var/log/pods/kube-system_POD-NODE_UID/CONTAINER/N.log` with the largest N. Static pods keep
/// their UID as long as their manifest, so the last directory by name is any of few.
fn newest_log(root: &Root, pod: &str, node: &str, container: &str) -> Option<String> {
    let start = format!("kube-system_{pod}-{node}_");
    let directories = root.list(PODS).ok()?;
    let logs = directories.iter().filter(|name| name.starts_with(&start)).flat_map(|name| {
        let directory = format!("{PODS}/{name}/{container}");
        let names = root.list(&directory).unwrap_or_default();
        names.into_iter().filter_map(move |name| {
            let number: u32 = name.strip_suffix(".log")?.parse().ok()?;
            Some((number, format!("{directory}/{name}")))
        })
    });
    let (_, path) = logs.max()?;
    let bytes = root.read(&path, LOG_CAP).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines without the runtime's own stamp (`TIME stderr F `).
fn tail(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let words =
        |line: &&str| line.splitn(4, ' ').nth(3).unwrap_or(line).chars().take(WIDTH).collect();
    last.iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_run_of_the_container_speaks() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("var/log/pods/kube-system_etcd-cp-1_abc/etcd");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("2.log"), "t stderr F old\n").unwrap();
        let lines: String =
            (0..20).map(|n| format!("2026-01-01T00:00:00Z stderr F line {n} x\n")).collect();
        std::fs::write(place.join("10.log"), lines).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let words = last_words(&root, "etcd", "cp-1", "etcd");
        assert_eq!(words.len(), 8);
        assert_eq!(words[7], "line 19 x");
        assert!(last_words(&root, "etcd", "cp-2", "etcd").is_empty());
    }
}
