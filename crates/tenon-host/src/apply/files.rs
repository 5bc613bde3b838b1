//! Writes a batch of files so that each has its old or its new content at every instant.
//!
//! Temporaries first, in the directory of their target, with mode and owner before content;
//! then all of them to disk; then the renames, one after another in plan order; then the
//! removals; then each directory to disk, children before parents. Until the first rename
//! nothing has happened that is not taken back on an error.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::LazyLock;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::{Errno, retry_on_intr};
use tenon_core::codes;
use tenon_core::codes::Page;
use tenon_core::plan::diff::{DirectoryChange, FileChange, LINK_MODE, Owner, parents};
use tenon_core::problem::Problem;

use super::directories::{Directories, split, temporary_name};

/// Below this many files threads cost more than they save.
const PARALLEL_FROM: usize = 3;
/// The most threads that sync at once, this one included. A thread costs some 16 system calls,
/// and one journal commit serves every file that waits for it: more threads gain nothing.
pub const MOST_THREADS: usize = 4;
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
const LABEL: &str = "security.selinux";

/// What is written in one go.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Outermost first.
    pub directories: Vec<DirectoryChange>,
    /// In the order in which they appear.
    pub files: Vec<FileChange>,
    /// The first file saves what the others replace: its name must be on disk before theirs.
    pub saved_first: bool,
    pub removals: Vec<String>,
}

/// Called by name before each step. Production looks for a stop here, tests fail here.
pub type Probe<'a> = &'a (dyn Fn(&'static str) -> Result<(), Problem> + Sync);

/// Every name that a probe is called with, in the order of a batch.
pub const POINTS: &[&str] =
    &["directory", "temporary", "content", "sync", "rename", "remove", "directory-sync", "end"];

/// A written file that does not have its name yet.
struct Temporary<'b> {
    target: &'b FileChange,
    name: String,
    /// None for a link.
    file: Option<OwnedFd>,
}

/// Writes the batch, or leaves everything as it was.
pub fn write(
    directories: &mut Directories<'_>,
    batch: &Batch,
    threads: usize,
    probe: Probe<'_>,
) -> Result<(), Problem> {
    let mut made = Vec::new();
    let mut temporaries = Vec::new();
    let prepared = prepare(directories, batch, threads, probe, &mut made, &mut temporaries);
    if let Err(problem) = prepared {
        discard(directories, &temporaries);
        unmake(directories, &made);
        return Err(problem);
    }
    let saved = batch.saved_first.then_some(made.as_slice());
    let synced = match rename(directories, &temporaries, saved, probe) {
        Ok(synced) => synced,
        Err((problem, renamed)) => {
            discard(directories, &temporaries[renamed..]);
            return Err(problem);
        }
    };
    drop(temporaries);
    remove(directories, &batch.removals, probe)?;
    sync_directories(directories, batch, &synced, probe)?;
    probe("end")
}

fn prepare<'b>(
    directories: &mut Directories<'_>,
    batch: &'b Batch,
    threads: usize,
    probe: Probe<'_>,
    made: &mut Vec<String>,
    temporaries: &mut Vec<Temporary<'b>>,
) -> Result<(), Problem> {
    for directory in &batch.directories {
        probe("directory")?;
        make_directory(directories, directory, made)
            .map_err(|error| write_problem("making", &directory.path, error))?;
    }
    for target in &batch.files {
        probe("temporary")?;
        let name = temporary_name(&target.path);
        let file = create(directories, target, &name)
            .map_err(|error| write_problem("creating a temporary for", &target.path, error))?;
        temporaries.push(Temporary { target, name, file });
        let Some(file) = temporaries.last().and_then(|it| it.file.as_ref()) else { continue };
        dress(directories, target, file.as_fd())
            .map_err(|error| write_problem("setting mode and owner of", &target.path, error))?;
        probe("content")?;
        write_all(file.as_fd(), &target.body)
            .map_err(|error| write_problem("writing", &target.path, error))?;
    }
    probe("sync")?;
    sync_files(directories, temporaries, threads)
}

/// The problem of a step before the first rename.
pub(crate) fn write_problem(doing: &str, path: &str, error: io::Error) -> Problem {
    let page = match Errno::from_io_error(&error) {
        Some(Errno::NOSPC | Errno::DQUOT) => &codes::host::NO_SPACE,
        Some(Errno::ROFS) => &codes::host::READ_ONLY,
        _ => &codes::host::FILE_WRITE,
    };
    problem(page, doing, path, error)
}

fn problem(page: &'static Page, doing: &str, path: &str, error: io::Error) -> Problem {
    Problem::new(page, format!("{doing} {path}")).cause(error)
}

pub(crate) fn parent_fd<'d>(
    directories: &'d mut Directories<'_>,
    path: &str,
) -> io::Result<BorrowedFd<'d>> {
    let (parent, _) = split(path);
    let directory = directories.get(parent)?;
    directory.map(|directory| directory.fd()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn make_directory(
    directories: &mut Directories<'_>,
    change: &DirectoryChange,
    made: &mut Vec<String>,
) -> io::Result<()> {
    let (_, name) = split(&change.path);
    if !change.exists {
        let parent = parent_fd(directories, &change.path)?;
        rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(change.mode))?;
        made.push(change.path.clone());
    }
    let directory = directories.refresh(&change.path)?;
    if directory.owner() != own() && is_root() {
        give(directory.fd(), own())?;
    }
    // The umask may have taken bits away.
    if directory.mode() != change.mode {
        rustix::fs::fchmod(directory.fd(), Mode::from_raw_mode(change.mode))?;
    }
    Ok(())
}

fn create(
    directories: &mut Directories<'_>,
    target: &FileChange,
    name: &str,
) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let parent = parent_fd(directories, &target.path)?;
    let open = || match target.mode {
        LINK_MODE => rustix::fs::symlinkat(&target.body[..], parent, name).map(|()| None),
        _ => rustix::fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR).map(Some),
    };
    match open() {
        // Left by a killed run after the sweep of this one, which only the holder of the lock
        // can have been: ourselves, in an earlier batch.
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
            Ok(open()?)
        }
        result => Ok(result?),
    }
}

/// Gives a temporary the owner, mode and label of its target, before any content.
fn dress(
    directories: &mut Directories<'_>,
    target: &FileChange,
    file: BorrowedFd<'_>,
) -> io::Result<()> {
    if is_root() {
        give(file, target.owner)?;
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(target.mode))?;
    if target.previous.is_some() {
        copy_label(directories, target, file)?;
    }
    Ok(())
}

pub(crate) fn give(file: BorrowedFd<'_>, owner: Owner) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    Ok(rustix::fs::fchown(file, Some(uid), Some(gid))?)
}

/// Keeps the SELinux label that the old file has, where it has one.
fn copy_label(
    directories: &mut Directories<'_>,
    target: &FileChange,
    file: BorrowedFd<'_>,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let parent = parent_fd(directories, &target.path)?;
    let old = match rustix::fs::openat(parent, split(&target.path).1, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        result => result?,
    };
    let mut label = [0; 512];
    match rustix::fs::fgetxattr(&old, LABEL, &mut label) {
        Ok(length) => {
            Ok(rustix::fs::fsetxattr(file, LABEL, &label[..length], XattrFlags::empty())?)
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn write_all(file: BorrowedFd<'_>, mut body: &[u8]) -> io::Result<()> {
    while !body.is_empty() {
        match retry_on_intr(|| rustix::io::write(file, body))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => body = &body[count..],
        }
    }
    Ok(())
}

/// True for paths that do not outlive a boot.
fn is_volatile(path: &str) -> bool {
    path.starts_with("/run/")
}

fn sync_files(
    directories: &mut Directories<'_>,
    temporaries: &[Temporary<'_>],
    threads: usize,
) -> Result<(), Problem> {
    let durable: Vec<_> =
        temporaries.iter().filter(|temporary| !is_volatile(&temporary.target.path)).collect();
    let parallel = threads > 1
        && durable.len() >= PARALLEL_FROM
        && !durable.iter().all(|temporary| on_tmpfs(directories, &temporary.target.path));
    if !parallel {
        return durable.into_iter().try_for_each(sync_file);
    }
    let threads = threads.min(MOST_THREADS).min(durable.len());
    let mut shares = durable.chunks(durable.len().div_ceil(threads));
    let own = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(|| sync_share(share))).collect();
        let mut result = sync_share(own);
        for other in others {
            let panicked = |_| Err(Problem::new(&codes::usage::BUG, "a thread that syncs ended"));
            result = result.and(other.join().unwrap_or_else(panicked));
        }
        result
    })
}

fn sync_share(share: &[&Temporary<'_>]) -> Result<(), Problem> {
    share.iter().try_for_each(|temporary| sync_file(temporary))
}

fn sync_file(temporary: &Temporary<'_>) -> Result<(), Problem> {
    let Some(file) = &temporary.file else { return Ok(()) };
    retry_on_intr(|| rustix::fs::fsync(file)).map_err(|error| {
        problem(&codes::host::SYNC_FAILED, "syncing", &temporary.target.path, error.into())
    })
}

fn on_tmpfs(directories: &mut Directories<'_>, path: &str) -> bool {
    let Ok(parent) = parent_fd(directories, path) else { return false };
    rustix::fs::fstatfs(parent).is_ok_and(|stat| stat.f_type == TMPFS_MAGIC)
}

/// Gives the temporaries their names. An error says how many have theirs. With `saved`, the
/// directories made by this batch, the first file is on disk before the second is renamed; the
/// directories synced for it are returned.
fn rename(
    directories: &mut Directories<'_>,
    temporaries: &[Temporary<'_>],
    saved: Option<&[String]>,
    probe: Probe<'_>,
) -> Result<Vec<String>, (Problem, usize)> {
    let mut synced = Vec::new();
    for (done, temporary) in temporaries.iter().enumerate() {
        probe("rename").map_err(|problem| {
            let told = format!("{done} of {} files have their new content", temporaries.len());
            (problem.details([told]), done)
        })?;
        let path = &temporary.target.path;
        let renamed = parent_fd(directories, path).and_then(|parent| {
            Ok(rustix::fs::renameat(parent, &temporary.name, parent, split(path).1)?)
        });
        renamed.map_err(|error| {
            let page =
                if done == 0 { &codes::host::FILE_WRITE } else { &codes::host::RENAME_STOPPED };
            (problem(page, "renaming to", path, error), done)
        })?;
        if let (0, Some(made)) = (done, saved) {
            synced = sync_name(directories, path, made).map_err(|problem| (problem, 1))?;
        }
    }
    Ok(synced)
}

/// Syncs the directory of a file, and the directories above it as far as they were just made.
/// Returns them all.
fn sync_name(
    directories: &mut Directories<'_>,
    path: &str,
    made: &[String],
) -> Result<Vec<String>, Problem> {
    let mut at = path;
    let mut synced = Vec::new();
    loop {
        let parent = split(at).0;
        sync_directory(directories, parent)?;
        synced.push(parent.to_owned());
        if !made.iter().any(|directory| directory == parent) {
            return Ok(synced);
        }
        at = parent;
    }
}

fn sync_directory(directories: &mut Directories<'_>, path: &str) -> Result<(), Problem> {
    let directory = directories
        .get(path)
        .and_then(|directory| directory.ok_or_else(|| io::ErrorKind::NotFound.into()));
    let synced =
        directory.and_then(|directory| Ok(retry_on_intr(|| rustix::fs::fsync(directory.fd()))?));
    synced.map_err(|error| problem(&codes::host::SYNC_FAILED, "syncing", path, error))
}

fn remove(
    directories: &mut Directories<'_>,
    paths: &[String],
    probe: Probe<'_>,
) -> Result<(), Problem> {
    for path in paths {
        probe("remove")?;
        let removed = parent_fd(directories, path).and_then(|parent| {
            match rustix::fs::unlinkat(parent, split(path).1, AtFlags::empty()) {
                Err(Errno::NOENT) => Ok(()),
                result => Ok(result?),
            }
        });
        removed.map_err(|error| problem(&codes::host::RENAME_STOPPED, "removing", path, error))?;
    }
    Ok(())
}

/// Syncs each directory that got or lost a name, children before parents. Those that were
/// `synced` after the first file got its name are synced again only if a later one changed them.
fn sync_directories(
    directories: &mut Directories<'_>,
    batch: &Batch,
    synced: &[String],
    probe: Probe<'_>,
) -> Result<(), Problem> {
    let mut files = batch.files.iter().map(|file| file.path.as_str());
    let saved = if batch.saved_first { files.next() } else { None };
    let later = files.chain(batch.removals.iter().map(String::as_str));
    let made = batch.directories.iter().map(|directory| directory.path.as_str());
    let early = made.chain(saved).filter(|path| !synced.iter().any(|dir| dir == split(path).0));
    let touched = later.chain(early).filter(|path| !is_volatile(path));
    let touched: BTreeSet<&str> = touched.map(|path| split(path).0).collect();
    let mut touched: Vec<&str> = touched.into_iter().collect();
    touched.sort_by_key(|path| std::cmp::Reverse(parents(path).count() + path.len().min(1)));
    for path in touched {
        probe("directory-sync")?;
        sync_directory(directories, path)?;
    }
    Ok(())
}

/// Removes temporaries. What cannot be removed is swept by the next run.
fn discard(directories: &mut Directories<'_>, temporaries: &[Temporary<'_>]) {
    for temporary in temporaries {
        if let Ok(parent) = parent_fd(directories, &temporary.target.path) {
            let _ = rustix::fs::unlinkat(parent, &temporary.name, AtFlags::empty());
        }
    }
}

/// Removes directories that this batch made, innermost first; one that is in use stays.
fn unmake(directories: &mut Directories<'_>, made: &[String]) {
    for path in made.iter().rev() {
        if let Ok(parent) = parent_fd(directories, path) {
            let _ = rustix::fs::unlinkat(parent, split(path).1, AtFlags::REMOVEDIR);
        }
    }
}

/// Who owns what this process creates.
pub fn own() -> Owner {
    static OWN: LazyLock<Owner> = LazyLock::new(|| Owner {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    });
    *OWN
}

fn is_root() -> bool {
    own().uid == 0
}
