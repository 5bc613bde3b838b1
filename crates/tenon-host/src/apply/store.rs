//! One file outside the plan, such as the config cache: the same protocol, not recorded.

use tenon_core::pki::BOOTSTRAP_DIRECTORY;
use tenon_core::plan::diff::{DirectoryChange, FileChange, Observed, Paths, parents};
use tenon_core::problem::Problem;
use tenon_core::stages::paths::HOME;

use super::directories::Directories;
use super::files::{self, Batch, own};
use super::{Lock, observe, preflight};
use crate::root::Root;
use crate::stop;

/// Directories that only root may enter.
const PRIVATE: [&str; 2] = [HOME, BOOTSTRAP_DIRECTORY];

/// Makes the file hold exactly this, and says whether it had to be written.
pub fn store(
    root: &Root,
    _lock: &Lock,
    path: &str,
    mode: u32,
    body: &[u8],
) -> Result<bool, Problem> {
    put(root, path, mode, body)
}

/// The same for a caller that holds a lock of its own. Missing directories are made.
pub fn put(root: &Root, path: &str, mode: u32, body: &[u8]) -> Result<bool, Problem> {
    stop::check()?;
    put_regardless(root, path, mode, body)
}

/// The same after a stop was asked for, to record that.
pub fn put_regardless(root: &Root, path: &str, mode: u32, body: &[u8]) -> Result<bool, Problem> {
    let mut directories = Directories::new(root);
    let mut paths = Paths::default();
    paths.files.insert(path.to_owned());
    let tree = observe::observe(&mut directories, &paths)?;
    let previous = match tree.get(path) {
        Some(Observed::File(held)) if held.bytes == body && held.mode == mode => return Ok(false),
        Some(Observed::File(held)) => Some(held.clone()),
        _ => None,
    };
    let missing = |dir: &&str| tree.get(*dir) == Some(&Observed::Absent);
    let mut missing: Vec<_> = parents(path).filter(missing).collect();
    missing.reverse();
    let new = |path: &str| DirectoryChange {
        path: path.to_owned(),
        mode: if PRIVATE.iter().any(|it| path.starts_with(it)) { 0o700 } else { 0o755 },
        exists: false,
    };
    let file = FileChange {
        path: path.to_owned(),
        body: body.to_vec(),
        mode,
        owner: own(),
        secret: true,
        because: "asked for".into(),
        previous,
    };
    let batch = Batch {
        directories: missing.into_iter().map(new).collect(),
        files: vec![file],
        removals: Vec::new(),
        saved_first: false,
    };
    preflight::check(&mut directories, &batch)?;
    files::write(&mut directories, &batch, 1, &|_| Ok(()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_is_written_once_with_its_parents() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let lock = Lock::take(&root, Duration::ZERO).unwrap();
        assert!(store(&root, &lock, "/run/eks/cache.json", 0o600, b"one").unwrap());
        assert!(!store(&root, &lock, "/run/eks/cache.json", 0o600, b"one").unwrap());
        assert!(store(&root, &lock, "/run/eks/cache.json", 0o600, b"two").unwrap());
        let path = dir.path().join("run/eks/cache.json");
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let names: Vec<_> = std::fs::read_dir(dir.path().join("run/eks")).unwrap().collect();
        assert_eq!(names.len(), 1);
    }
}
