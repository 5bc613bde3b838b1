//! The daemons of a node that run, from `/proc`.

use tenon_core::checks::snapshot::Process;

use crate::root::Root;

const DAEMONS: [&str; 3] = ["containerd", "kube-proxy", "kubelet"];
/// Ticks of `/proc/PID/stat` in a second: the same on every architecture that Tenon runs on.
const TICKS: i64 = 100;
/// The start time is the 20th field after the program's name, which may hold anything.
const START_FIELD: usize = 19;

/// The running daemons, by name; none where there is no `/proc`.
pub(super) fn running(root: &Root) -> Vec<Process> {
    let Some(booted_us) = boot_time_us(root) else { return Vec::new() };
    let names = root.list("/proc").unwrap_or_default();
    let pids = names.iter().filter_map(|name| name.parse().ok());
    pids.filter_map(|pid| daemon(root, pid, booted_us)).collect()
}

fn boot_time_us(root: &Root) -> Option<i64> {
    let text = root.read_text("/proc/stat").ok()??;
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(seconds.trim().parse::<i64>().ok()? * 1_000_000)
}

fn daemon(root: &Root, pid: u32, booted_us: i64) -> Option<Process> {
    // A process may end between the listing and the look: it does not run then.
    let name = root.read_text(&format!("/proc/{pid}/comm")).ok()??;
    if !DAEMONS.contains(&name.as_str()) {
        return None;
    }
    let line = root.read(&format!("/proc/{pid}/cmdline"), 1 << 20).ok()??;
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let stat = root.read_text(&format!("/proc/{pid}/stat")).ok()??;
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    let ticks: i64 = fields.clone().nth(START_FIELD)?.parse().ok()?;
    Some(Process {
        name,
        pid,
        arguments: words.skip(1).map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
        started_us: booted_us + ticks * (1_000_000 / TICKS),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn daemons_are_found_with_arguments_and_start() {
        let dir = tempfile::tempdir().unwrap();
        let proc = |name: &str, text: &[u8]| {
            let path = dir.path().join("proc").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        proc("stat", b"cpu 1 2\nbtime 1000\n");
        for (pid, name) in [("12", "kubelet"), ("13", "bash")] {
            proc(&format!("{pid}/comm"), format!("{name}\n").as_bytes());
            proc(&format!("{pid}/cmdline"), b"/usr/bin/kubelet\0--v=2\0--x=a b\0");
            let fields: Vec<String> = (4..=52).map(|n| n.to_string()).collect();
            let stat = format!("{pid} ({name} )x) S {}", fields.join(" "));
            proc(&format!("{pid}/stat"), stat.as_bytes());
        }
        let found = running(&Root::open(dir.path()).unwrap());
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].pid, found[0].arguments.as_slice()),
            (12, &["--v=2".to_owned(), "--x=a b".to_owned()][..])
        );
        assert_eq!(found[0].started_us, 1_000_000_000 + 22 * 10_000);
    }
}
