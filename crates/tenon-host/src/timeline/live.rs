//! Reads what this machine knows about its own boot.

use std::time::Duration;

use tenon_core::problem::Problem;
use tenon_core::timeline::Sources;

use crate::command;
use crate::root::Root;
use crate::systemd::Manager;

/// How long the manager may be asked about its units.
const UNITS_TIME: Duration = Duration::from_secs(20);
/// How long the journal may be read.
const JOURNAL_TIME: Duration = Duration::from_secs(30);
/// A boot is told in far less; what comes later is not read.
const JOURNAL_BYTES: u64 = 16 << 20;
/// Who says something about a boot. A run from user data speaks through cloud-init.
const SPEAKERS: &[&str] = &[
    "kubelet.service",
    "containerd.service",
    "tenon*",
    "nodeadm*",
    "cloud-final.service",
    "cloud-init.service",
];

/// Gathers the stamps of the manager and its units, and what the journal has to say. Without a
/// manager there is no timeline; without a journal there is less of one.
pub fn gather(root: &Root, journal_program: &str) -> Result<Sources, Problem> {
    let manager = Manager::connect(root).map_err(|problem| {
        problem.fix("run on a machine with systemd, or show a saved timeline: `--from FILE`")
    })?;
    let stamps = manager.stamps()?;
    let mut notes = Vec::new();
    let (units, unread) = manager.unit_times(UNITS_TIME)?;
    if unread > 0 {
        let seconds = UNITS_TIME.as_secs();
        notes.push(format!("{unread} units could not be read within {seconds} s"));
    }
    let argv = journal_command(root, journal_program);
    let journal = command::head(&argv, JOURNAL_TIME, JOURNAL_BYTES).unwrap_or_else(|problem| {
        let cause = problem.causes.first().or(problem.details.first()).cloned();
        notes.push(format!("no journal: {} {}", problem.what, cause.unwrap_or_default()));
        Vec::new()
    });
    Ok(Sources { stamps, units, journal, notes })
}

fn journal_command(root: &Root, program: &str) -> Vec<String> {
    let mut argv = vec![program.to_owned()];
    let options = ["--boot", "--quiet", "--no-pager", "--output=json"];
    argv.extend(options.map(str::to_owned));
    argv.push("--output-fields=MESSAGE,_SYSTEMD_UNIT".to_owned());
    if !root.is_host() {
        argv.push(format!("--root={}", root.path().display()));
    }
    argv.extend(SPEAKERS.iter().map(|unit| format!("--unit={unit}")));
    argv
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use tenon_core::timeline::Boot;

    use super::*;
    use crate::systemd::fake::{Fake, FakeUnit};

    fn journal(dir: &tempfile::TempDir, script: &str) -> String {
        let path = dir.path().join("journal");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn machine() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let fake = Fake::serve(dir.path());
        fake.manager(&[
            ("KernelTimestamp", 1_700_000_000_000_000),
            ("UserspaceTimestampMonotonic", 1000),
            ("UnitsLoadFinishTimestampMonotonic", 1500),
            ("FinishTimestampMonotonic", 9000),
        ]);
        fake.add("a.service", FakeUnit { stamps: [2000, 3000, 0], ..FakeUnit::good() });
        let ordered: &[&str] = &["a.service", "none.service"];
        let unit = FakeUnit { stamps: [4000, 0, 5000], ordered, ..FakeUnit::good() };
        fake.add("b.service", unit);
        fake.add("down.service", FakeUnit::good());
        let root = Root::open(dir.path()).unwrap();
        (dir, root)
    }

    #[test]
    fn a_machine_tells_its_boot() {
        let (dir, root) = machine();
        let line = r#"{"__MONOTONIC_TIMESTAMP":"6000","__REALTIME_TIMESTAMP":"1","_SYSTEMD_UNIT":"kubelet.service","MESSAGE":"Successfully registered node"}"#;
        let program = journal(&dir, &format!("echo \"$@\" >&2; echo '{line}'"));
        let sources = gather(&root, &program).unwrap();
        assert_eq!(sources.notes, Vec::<String>::new());
        let boot = Boot::of(&sources);
        let times = |name: &str| {
            let span = boot.spans.iter().find(|span| span.name == name);
            span.map(|span| (span.begin_us, span.end_us))
        };
        assert_eq!(times("kernel"), Some((0, 1000)));
        assert_eq!(times("a.service"), Some((2000, 3000)));
        assert_eq!(times("b.service"), Some((4000, 5000)), "a oneshot ends by going down");
        assert_eq!(times("down.service"), None);
        assert_eq!(boot.registered_us, Some(6000));
        let after = &boot.spans.iter().find(|span| span.name == "b.service").unwrap().after;
        assert_eq!(after, &["a.service", "service manager"]);
    }

    #[test]
    fn without_a_journal_the_units_remain() {
        let (dir, root) = machine();
        for program in [journal(&dir, "echo broken >&2; exit 1"), "/none/journalctl".to_owned()] {
            let sources = gather(&root, &program).unwrap();
            assert_eq!((sources.units.len(), sources.notes.len()), (3, 1));
            assert!(sources.notes[0].starts_with("no journal: "), "{:?}", sources.notes);
        }
    }

    #[test]
    fn without_a_manager_there_is_no_timeline() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(gather(&root, "true").unwrap_err().exit(), 6);
    }
}
