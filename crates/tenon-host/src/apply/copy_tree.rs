//! Copies a directory with owners, modes, times, extended attributes and hard links.
//!
//! The copy is made beside its target and gets its name when it is whole: a copy that was
//! stopped starts afresh, one that is there is never touched again.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, fchown, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use tenon_core::codes;
use tenon_core::problem::Problem;

use crate::stop;

/// Where each file with several names was copied to, by device and inode.
type Linked = BTreeMap<(u64, u64), PathBuf>;

/// Copies `from` to `to`, unless `to` is there already. True if a copy was made.
pub fn copy_tree(from: &Path, to: &Path) -> Result<bool, Problem> {
    if to.exists() {
        return Ok(false);
    }
    let part = partial_name(to);
    let copied = clear(&part).and_then(|()| {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        match from.exists() {
            true => copy(from, &part, &mut Linked::new()),
            false => fs::create_dir(&part),
        }
    });
    let named = copied.and_then(|()| fs::rename(&part, to)).and_then(|()| sync_parent(to));
    match named {
        Ok(()) => Ok(true),
        Err(error) => {
            // What is left is cleared by the next copy.
            let _ = clear(&part);
            stop::check()?;
            let what = format!("copying {} to {}", from.display(), to.display());
            Err(Problem::new(&codes::host::COPY_STOPPED, what).cause(error))
        }
    }
}

fn partial_name(to: &Path) -> PathBuf {
    let mut name = to.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".tenon-part");
    to.with_file_name(name)
}

fn clear(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

fn copy(from: &Path, to: &Path, linked: &mut Linked) -> io::Result<()> {
    // Stops are noticed between files; the caller turns this error into the stop.
    stop::check().map_err(|_| io::Error::from(io::ErrorKind::Interrupted))?;
    let meta = fs::symlink_metadata(from)?;
    let key = (meta.dev(), meta.ino());
    if let Some(first) = linked.get(&key) {
        return fs::hard_link(first, to);
    }
    if !meta.is_dir() && meta.nlink() > 1 {
        linked.insert(key, to.to_owned());
    }
    let kind = meta.file_type();
    if kind.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name), linked)?;
        }
    } else if kind.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if kind.is_file() {
        copy_content(from, to, &meta)?;
    } else if kind.is_socket() {
        // A socket is nothing without the process that listens on it.
        linked.remove(&key);
        return Ok(());
    } else {
        make_node(to, &meta)?;
    }
    dress(from, to, &meta)
}

fn copy_content(from: &Path, to: &Path, meta: &Metadata) -> io::Result<()> {
    let mut target = File::create_new(to)?;
    fchown(&target, Some(meta.uid()), Some(meta.gid()))?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

fn make_node(to: &Path, meta: &Metadata) -> io::Result<()> {
    let kind = FileType::from_raw_mode(meta.mode());
    Ok(rustix::fs::mknodat(CWD, to, kind, Mode::from_raw_mode(meta.mode()), meta.rdev())?)
}

/// Gives the copy everything but its content: attributes, owner, mode, times, in this order,
/// since each may reset the next.
fn dress(from: &Path, to: &Path, meta: &Metadata) -> io::Result<()> {
    copy_attributes(from, to)?;
    lchown(to, Some(meta.uid()), Some(meta.gid()))?;
    if !meta.file_type().is_symlink() {
        let mode = Mode::from_raw_mode(meta.mode() & 0o7777);
        rustix::fs::chmodat(CWD, to, mode, AtFlags::empty())?;
    }
    let times = Timestamps {
        last_access: Timespec { tv_sec: meta.atime(), tv_nsec: meta.atime_nsec() },
        last_modification: Timespec { tv_sec: meta.mtime(), tv_nsec: meta.mtime_nsec() },
    };
    rustix::fs::utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    if meta.is_dir() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::fsync(rustix::fs::openat(CWD, to, flags, Mode::empty())?)?;
    }
    Ok(())
}

fn copy_attributes(from: &Path, to: &Path) -> io::Result<()> {
    let mut names = vec![0; 64 * 1024];
    let length = match rustix::fs::llistxattr(from, &mut names[..]) {
        Err(Errno::OPNOTSUPP) => return Ok(()),
        result => result?,
    };
    let mut value = vec![0; 64 * 1024];
    for name in names[..length].split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        let size = rustix::fs::lgetxattr(from, name, &mut value[..])?;
        rustix::fs::lsetxattr(to, name, &value[..size], XattrFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_copy_has_owners_modes_times_attributes_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("disk/0/kubelet"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/a"), "content").unwrap();
        fs::set_permissions(from.join("sub/a"), fs::Permissions::from_mode(0o4750)).unwrap();
        fs::hard_link(from.join("sub/a"), from.join("b")).unwrap();
        symlink("/nowhere", from.join("link")).unwrap();
        let empty = XattrFlags::empty();
        let attribute = rustix::fs::setxattr(from.join("b"), "user.colour", b"green", empty);
        let given = lchown(from.join("sub/a"), Some(1234), Some(5678)).is_ok();
        fs::set_permissions(from.join("sub/a"), fs::Permissions::from_mode(0o4750)).unwrap();
        let old = Timestamps {
            last_access: Timespec { tv_sec: 1, tv_nsec: 2 },
            last_modification: Timespec { tv_sec: 3, tv_nsec: 4 },
        };
        rustix::fs::utimensat(CWD, from.join("sub"), &old, AtFlags::empty()).unwrap();

        assert!(copy_tree(&from, &to).unwrap());
        let meta = fs::metadata(to.join("b")).unwrap();
        assert_eq!(fs::read_to_string(to.join("b")).unwrap(), "content");
        assert_eq!(meta.mode() & 0o7777, 0o4750);
        assert_eq!(meta.ino(), fs::metadata(to.join("sub/a")).unwrap().ino());
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("/nowhere"));
        let sub = fs::metadata(to.join("sub")).unwrap();
        assert_eq!((sub.mtime(), sub.mtime_nsec()), (3, 4));
        if given {
            assert_eq!((meta.uid(), meta.gid()), (1234, 5678));
        }
        if attribute.is_ok() {
            let mut value = [0; 16];
            let size = rustix::fs::getxattr(to.join("b"), "user.colour", &mut value[..]).unwrap();
            assert_eq!(&value[..size], b"green");
        }
        assert!(!copy_tree(&from, &to).unwrap(), "a copy that is there is left alone");
    }

    #[test]
    fn a_stopped_copy_starts_afresh() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("a"), "new").unwrap();
        fs::create_dir(dir.path().join("to.tenon-part")).unwrap();
        fs::write(dir.path().join("to.tenon-part/half"), "old").unwrap();
        assert!(copy_tree(&from, &to).unwrap());
        let names: Vec<_> = fs::read_dir(&to).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["a"]);
        assert!(!dir.path().join("to.tenon-part").exists());
    }
}
