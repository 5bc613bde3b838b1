//! Removes a file or a whole directory below the root. Links are removed, never followed.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use tenon_core::codes;
use tenon_core::problem::Problem;

use super::directories::split;
use crate::root::{Root, absent};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes what stands at a node path. True if there was something.
pub fn discard(root: &Root, path: &str) -> Result<bool, Problem> {
    remove_below(root, path).map_err(|error| {
        Problem::new(&codes::host::RENAME_STOPPED, format!("removing {path}")).cause(error)
    })
}

fn remove_below(root: &Root, path: &str) -> io::Result<bool> {
    let (parent, name) = split(path);
    let parent = match root.open_at(parent, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
        Err(error) if absent(&error) => return Ok(false),
        opened => opened?,
    };
    let name = std::ffi::CString::new(name)?;
    let kind = match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(false),
        stat => FileType::from_raw_mode(stat?.st_mode),
    };
    remove_entry(rustix::fd::AsFd::as_fd(&parent), &name, kind)?;
    rustix::fs::fsync(&parent)?;
    Ok(true)
}

fn remove_entry(parent: BorrowedFd<'_>, name: &CStr, kind: FileType) -> io::Result<()> {
    if kind != FileType::Directory {
        return Ok(rustix::fs::unlinkat(parent, name, AtFlags::empty())?);
    }
    let directory = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            let kind = known_kind(&directory, &entry)?;
            remove_entry(rustix::fd::AsFd::as_fd(&directory), entry.file_name(), kind)?;
        }
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Some file systems do not tell what an entry is when they list it.
fn known_kind(
    directory: &rustix::fd::OwnedFd,
    entry: &rustix::fs::DirEntry,
) -> io::Result<FileType> {
    match entry.file_type() {
        FileType::Unknown => {
            let stat = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(FileType::from_raw_mode(stat.st_mode))
        }
        kind => Ok(kind),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_goes_and_what_its_links_point_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("var/lib/kubelet/pki/old/deep")).unwrap();
        fs::create_dir_all(at("keep")).unwrap();
        fs::write(at("keep/file"), "x").unwrap();
        fs::write(at("var/lib/kubelet/pki/kubelet.crt"), "x").unwrap();
        symlink(at("keep"), at("var/lib/kubelet/pki/old/link")).unwrap();
        symlink(at("keep/file"), at("var/lib/kubelet/cpu_manager_state")).unwrap();
        for path in ["/var/lib/kubelet/pki", "/var/lib/kubelet/cpu_manager_state"] {
            assert!(discard(&root, path).unwrap(), "{path}");
            assert!(!discard(&root, path).unwrap(), "{path} is gone");
        }
        assert_eq!(fs::read_dir(at("var/lib/kubelet")).unwrap().count(), 0);
        assert_eq!(fs::read(at("keep/file")).unwrap(), b"x");
        assert!(!discard(&root, "/no/such/place").unwrap());
    }
}
