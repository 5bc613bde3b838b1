//! Content that has no name: files that vanish with the process, whatever ends it.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;

/// An anonymous file in this directory, readable by nobody else.
pub fn anonymous(directory: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, directory, flags, mode) {
        Ok(fd) => Ok(File::from(fd)),
        // Not every file system can; overlay and NFS of older kernels are among those.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => named_once(directory),
        Err(error) => Err(error.into()),
    }
}

/// A file in a fresh directory of our own, which loses its name before it gets content.
fn named_once(directory: &Path) -> io::Result<File> {
    let own = directory.join(format!(".tenon-spool-{}", std::process::id()));
    rustix::fs::mkdirat(CWD, &own, Mode::RWXU)?;
    let parent = rustix::fs::openat(
        CWD,
        &own,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&parent, "spool", flags, Mode::RUSR | Mode::WUSR);
    // Gone from the directory at once; a name that stays after an error is empty.
    let _ = rustix::fs::unlinkat(&parent, "spool", AtFlags::empty());
    let _ = rustix::fs::unlinkat(CWD, &own, AtFlags::REMOVEDIR);
    Ok(File::from(opened?))
}

/// An anonymous file wherever there is room, at last in memory.
pub fn anywhere() -> io::Result<File> {
    let places = [std::env::temp_dir(), "/var/tmp".into()];
    let found = places.iter().find_map(|place| anonymous(place).ok());
    found.map_or_else(memory, Ok)
}

/// An anonymous file in memory.
pub fn memory() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("tenon", MemfdFlags::CLOEXEC)?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_spool_has_no_name() {
        let dir = tempfile::tempdir().unwrap();
        for made in [anonymous(dir.path()), named_once(dir.path()), memory()] {
            let mut file = made.unwrap();
            file.write_all(b"content").unwrap();
            file.rewind().unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "content");
            assert_eq!(file.metadata().unwrap().nlink(), 0);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}
