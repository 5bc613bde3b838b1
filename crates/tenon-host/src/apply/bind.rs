//! Moves a directory onto another file system: stop its users, copy, mount, start them again.

use std::path::Path;
use std::time::Duration;

use tenon_core::plan::step::Bind;
use tenon_core::problem::Problem;

use super::copy_tree::copy_tree;
use super::units::Units;
use crate::root::Root;

const MOUNT_DEADLINE: Duration = Duration::from_secs(60);
const OWNER_DEADLINE: Duration = Duration::from_secs(90);

/// Makes a bind true. False if it was so already.
pub fn ensure(root: &Root, units: &mut Units<'_>, bind: &Bind) -> Result<bool, Problem> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if is_mount_point(&table, &root.join(&bind.at)) {
        return Ok(false);
    }
    let mut stopped = Vec::new();
    let moved = move_onto(root, units, bind, &mut stopped);
    // Whatever happened, what ran before runs again: on the new directory or on the old one.
    for owner in &stopped {
        let started = units.start(owner, OWNER_DEADLINE);
        if moved.is_ok() {
            started?;
        }
    }
    moved.map(|()| true)
}

fn move_onto(
    root: &Root,
    units: &mut Units<'_>,
    bind: &Bind,
    stopped: &mut Vec<String>,
) -> Result<(), Problem> {
    for owner in &bind.owners {
        if units.stop_if_active(owner)? {
            stopped.push(owner.clone());
        }
    }
    copy_tree(&root.join(&bind.at), &root.join(&bind.source))?;
    units.start(&bind.unit, MOUNT_DEADLINE)
}

/// True when the kernel's table of mounts has this path.
fn is_mount_point(table: &str, path: &Path) -> bool {
    let escaped = path.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040");
    table.lines().any(|line| line.split(' ').nth(4) == Some(escaped.as_str()))
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;
    use crate::systemd::fake::{Fake, FakeUnit, active};

    fn bind() -> Bind {
        Bind {
            at: "/var/lib/kubelet".into(),
            source: "/mnt/0/kubelet".into(),
            unit: "var-lib-kubelet.mount".into(),
            owners: vec!["kubelet.service".into(), "idle.service".into()],
        }
    }

    fn machine(mount: FakeUnit) -> (tempfile::TempDir, Fake) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("var/lib/kubelet")).unwrap();
        std::fs::write(dir.path().join("var/lib/kubelet/pod"), "data").unwrap();
        let fake = Fake::serve(dir.path());
        let running = FakeUnit { state: active(), ..FakeUnit::good() };
        fake.add("kubelet.service", running).add("idle.service", FakeUnit::good());
        fake.add("var-lib-kubelet.mount", mount);
        (dir, fake)
    }

    #[test]
    fn a_directory_is_copied_while_its_users_are_stopped() {
        let (dir, fake) = machine(FakeUnit::good());
        let (root, options) = (Root::open(dir.path()).unwrap(), Options::default());
        assert!(ensure(&root, &mut Units::new(&root, &options), &bind()).unwrap());
        assert_eq!(std::fs::read(dir.path().join("mnt/0/kubelet/pod")).unwrap(), b"data");
        assert_eq!(
            fake.log(),
            [
                "StopUnit kubelet.service",
                "StartUnit var-lib-kubelet.mount",
                "StartUnit kubelet.service"
            ]
        );
    }

    #[test]
    fn row_86_a_mount_that_does_not_come_up_leaves_the_old_directory_in_use() {
        let (dir, fake) = machine(FakeUnit { job: "failed", ..FakeUnit::good() });
        let (root, options) = (Root::open(dir.path()).unwrap(), Options::default());
        let problem = ensure(&root, &mut Units::new(&root, &options), &bind()).unwrap_err();
        assert_eq!(problem.exit(), 8);
        assert_eq!(fake.log().last().unwrap(), "StartUnit kubelet.service");
        assert!(dir.path().join("var/lib/kubelet/pod").exists());
    }

    #[test]
    fn a_mount_point_is_found_in_the_kernels_table() {
        let table = "36 35 98:0 /a /mnt/with\\040blank rw - xfs /dev/x rw\n";
        assert!(is_mount_point(table, Path::new("/mnt/with blank")));
        assert!(!is_mount_point(table, Path::new("/mnt")));
    }
}
