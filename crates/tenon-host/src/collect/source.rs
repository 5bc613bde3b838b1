//! One face for a live node, a dead node's volume and a collected bundle.
//!
//! Whatever can be asked of one can be asked of the others. What a source cannot know is
//! [`Answer::Unknown`] with the reason, and never counts as fine.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use tenon_core::codes;
use tenon_core::collect::journal::Entry;
use tenon_core::collect::manifest::NodeMark;
use tenon_core::problem::Problem;

use super::bundle::Bundle;
use super::collected::Collected;
use super::journal::{self, Query, Reader};
use crate::root::{self, Root};
use crate::systemd::{Manager, UnitState};

/// What a source says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    Known(T),
    /// The source can tell, and there is none.
    Absent,
    /// Not possible here: why.
    Unknown(String),
}

impl<T> Answer<T> {
    pub fn known(self) -> Option<T> {
        match self {
            Answer::Known(value) => Some(value),
            _ => None,
        }
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Answer::Known(value) => Answer::Known(change(value)),
            Answer::Absent => Answer::Absent,
            Answer::Unknown(why) => Answer::Unknown(why),
        }
    }
}

/// Which of the three it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Live,
    Root,
    Bundle,
}

/// What a path is. `mode` has the permission bits only.
pub type Node = NodeMark;

/// What is known of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unit {
    /// The manager's own words; None where none runs.
    pub state: Option<UnitState>,
    /// A target or another unit pulls it in.
    pub enabled: bool,
    pub masked: bool,
    /// Its own file, not its drop-ins.
    pub file: Option<String>,
}

/// Where unit files lie, the winner first.
const UNIT_PLACES: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// Directories that exist only while a node runs.
const LIVE_PLACES: [&str; 4] = ["/proc/", "/sys/", "/run/", "/dev/"];
const TEXT_CAP: u64 = 1 << 20;

#[derive(Debug)]
enum Held {
    Live(Root),
    Root(Root),
    Bundle(Box<Collected>),
}

/// A node, in one of its three forms.
#[derive(Debug)]
pub struct Source {
    held: Held,
    /// Stands in for the journal, for nodes that are described by hand.
    entries: Option<Vec<Entry>>,
}

impl Source {
    /// This machine.
    pub fn live() -> Result<Source, Problem> {
        Ok(Source::new(Held::Live(open(Path::new("/"))?)))
    }

    /// The volume of another machine, mounted at a directory; `/` is this machine.
    pub fn root(directory: &Path) -> Result<Source, Problem> {
        match directory == Path::new("/") {
            true => Source::live(),
            false => Ok(Source::new(Held::Root(open(directory)?))),
        }
    }

    /// A bundle of `tenon logs collect`.
    pub fn bundle(file: &Path) -> Result<Source, Problem> {
        Ok(Source::new(Held::Bundle(Box::new(Collected::new(Bundle::open(file)?)))))
    }

    fn new(held: Held) -> Source {
        Source { held, entries: None }
    }

    /// Gives the source a journal of its own, instead of files.
    pub fn with_journal(mut self, entries: Vec<Entry>) -> Source {
        self.entries = Some(entries);
        self
    }

    pub fn kind(&self) -> Kind {
        match self.held {
            Held::Live(_) => Kind::Live,
            Held::Root(_) => Kind::Root,
            Held::Bundle(_) => Kind::Bundle,
        }
    }

    pub fn is_live(&self) -> bool {
        self.kind() == Kind::Live
    }

    /// The directory behind it; None for a bundle.
    pub fn root_handle(&self) -> Option<&Root> {
        match &self.held {
            Held::Live(root) | Held::Root(root) => Some(root),
            Held::Bundle(_) => None,
        }
    }

    /// The bundle behind it.
    pub fn bundle_handle(&self) -> Option<&Bundle> {
        match &self.held {
            Held::Bundle(collected) => Some(&collected.bundle),
            _ => None,
        }
    }

    /// A whole file, up to `cap` bytes.
    pub fn read(&self, path: &str, cap: u64) -> Answer<Vec<u8>> {
        match &self.held {
            Held::Live(root) | Held::Root(root) => self.read_root(root, path, cap),
            Held::Bundle(collected) => collected.read(path, cap),
        }
    }

    /// A small text file without the blanks at its end.
    pub fn read_text(&self, path: &str) -> Answer<String> {
        self.read(path, TEXT_CAP).map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    /// The names in a directory, sorted.
    pub fn list(&self, path: &str) -> Answer<Vec<String>> {
        match &self.held {
            Held::Live(root) | Held::Root(root) => {
                let directory = OFlags::PATH | OFlags::DIRECTORY;
                match root.open_at(path, directory, Mode::empty()).and_then(|_| root.list(path)) {
                    Ok(names) if names.is_empty() && self.is_unmounted(path) => no_live_files(path),
                    Ok(names) => Answer::Known(names),
                    Err(error) => self.failed(path, &error),
                }
            }
            Held::Bundle(collected) => collected.list(path),
        }
    }

    /// What a path is, links not followed.
    pub fn stat(&self, path: &str) -> Answer<Node> {
        match &self.held {
            Held::Live(root) | Held::Root(root) => match stat(root, path) {
                Ok(node) => Answer::Known(node),
                Err(error) => self.failed(path, &error),
            },
            Held::Bundle(collected) => collected.stat(path),
        }
    }

    /// Entries of the journal, oldest first, the newest kept.
    pub fn journal(&self, query: &Query) -> Answer<Vec<Entry>> {
        if let Some(entries) = &self.entries {
            return Answer::Known(of(entries, query));
        }
        match &self.held {
            Held::Live(root) | Held::Root(root) => {
                if let Some(mut reader) = Reader::open(root, query) {
                    reader.rewind(query, &|| true);
                    let entries: Vec<_> = std::iter::from_fn(|| reader.next_entry()).collect();
                    if !entries.is_empty() || reader.broken.is_empty() {
                        return Answer::Known(entries);
                    }
                    if !self.is_live() {
                        return Answer::Unknown(reader.broken.join("; "));
                    }
                }
                let asked = self.is_live().then(|| journal::ask_journalctl(query)).flatten();
                asked.map_or_else(
                    || Answer::Unknown("there is no journal that can be read".into()),
                    Answer::Known,
                )
            }
            Held::Bundle(collected) => collected.journal(query),
        }
    }

    /// What is known of a unit: `kubelet.service`.
    pub fn unit(&self, name: &str) -> Answer<Unit> {
        match &self.held {
            Held::Live(root) => match Manager::connect(root).and_then(|it| it.state(name)) {
                Ok(state) if state.load == "not-found" => Answer::Absent,
                Ok(state) => {
                    let mut unit = unit_files(root, name).unwrap_or_default();
                    unit.masked |= state.load == "masked";
                    Answer::Known(Unit { state: Some(state), ..unit })
                }
                Err(problem) => Answer::Unknown(problem.what.clone()),
            },
            Held::Root(root) => unit_files(root, name).map_or(Answer::Absent, Answer::Known),
            Held::Bundle(collected) => collected.unit(name),
        }
    }

    /// The boot that the node is in, or was in last: 32 hex digits.
    pub fn boot_id(&self) -> Answer<String> {
        if let Some(last) = self.entries.as_ref().and_then(|entries| entries.last()) {
            return Answer::Known(last.boot.clone());
        }
        let file = self.read_text("/proc/sys/kernel/random/boot_id");
        match (file, &self.held) {
            (Answer::Known(id), _) if !id.is_empty() => Answer::Known(id.replace('-', "")),
            (_, Held::Root(root)) => journal::last_boot(root).map_or_else(
                || Answer::Unknown("the volume has no journal that names a boot".into()),
                Answer::Known,
            ),
            (answer, _) => answer,
        }
    }

    /// When the last boot began, in microseconds since 1970; None if nothing tells.
    pub fn boot_start_us(&self) -> Option<u64> {
        match &self.held {
            Held::Live(_) => {
                let uptime = self.read_text("/proc/uptime").known()?;
                let up_s = uptime.split('.').next()?.parse::<u64>().ok()?;
                let now =
                    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
                Some(now.as_secs().saturating_sub(up_s) * 1_000_000)
            }
            Held::Root(root) => journal::last_boot_start(root),
            Held::Bundle(_) => None,
        }
    }

    fn read_root(&self, root: &Root, path: &str, cap: u64) -> Answer<Vec<u8>> {
        match read_file(root, path, cap) {
            Ok(Some(bytes)) => Answer::Known(bytes),
            Ok(None) => Answer::Unknown(format!("{path} is larger than {cap} bytes")),
            Err(error) => self.failed(path, &error),
        }
    }

    fn failed<T>(&self, path: &str, error: &std::io::Error) -> Answer<T> {
        match root::absent(error) {
            true if self.is_unmounted(path) => no_live_files(path),
            true => Answer::Absent,
            false => Answer::Unknown(format!("{path}: {error}")),
        }
    }

    /// True for what a volume cannot have although the node had it.
    fn is_unmounted(&self, path: &str) -> bool {
        let path = format!("{}/", path.trim_end_matches('/'));
        self.kind() == Kind::Root && LIVE_PLACES.iter().any(|place| path.starts_with(place))
    }
}

fn open(directory: &Path) -> Result<Root, Problem> {
    Root::open(directory).map_err(|error| {
        let what = format!("opening {}", directory.display());
        Problem::new(&codes::host::FILE_READ, what).cause(error)
    })
}

fn no_live_files<T>(path: &str) -> Answer<T> {
    Answer::Unknown(format!("{path} exists only while the node runs"))
}

/// Reads a regular file; None if it is larger than the cap.
fn read_file(root: &Root, path: &str, cap: u64) -> std::io::Result<Option<Vec<u8>>> {
    let file = open_regular(root, path)?;
    let mut bytes = Vec::new();
    file.take(cap + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= cap).then_some(bytes))
}

/// Opens a path if it is a regular file; a pipe or device is not even opened.
pub(super) fn open_regular(root: &Root, path: &str) -> std::io::Result<File> {
    let looked = root.open_at(path, OFlags::PATH, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&looked)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(std::io::Error::other("not a file"));
    }
    let file =
        root.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())?;
    Ok(File::from(file))
}

/// What a path is, links not followed.
pub(super) fn stat(root: &Root, path: &str) -> std::io::Result<Node> {
    let fd = root.open_at(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    let (kind, target) = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => ("file", None),
        FileType::Directory => ("directory", None),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(&fd, "", Vec::new())?;
            ("link", Some(target.to_string_lossy().into_owned()))
        }
        _ => ("other", None),
    };
    Ok(Node {
        kind: kind.to_owned(),
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        target,
    })
}

/// A unit as its files tell it; None if it has none.
pub(super) fn unit_files(root: &Root, name: &str) -> Option<Unit> {
    let place = UNIT_PLACES.iter().find(|place| {
        let fd = root.open_at(place, OFlags::PATH | OFlags::DIRECTORY, Mode::empty());
        fd.is_ok_and(|fd| rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    })?;
    let file = format!("{place}/{name}");
    let masked = stat(root, &file).is_ok_and(|node| node.target.as_deref() == Some("/dev/null"));
    let wanted =
        |directory: &String| directory.ends_with(".wants") || directory.ends_with(".requires");
    let enabled = UNIT_PLACES[..2].iter().any(|place| {
        let directories = root.list(place).unwrap_or_default();
        let mut pulling = directories.iter().filter(|directory| wanted(directory));
        pulling.any(|directory| stat(root, &format!("{place}/{directory}/{name}")).is_ok())
    });
    Some(Unit { state: None, enabled, masked, file: (!masked).then_some(file) })
}

/// The names of all unit files.
pub(super) fn unit_names(root: &Root) -> BTreeSet<String> {
    let ends = [".service", ".socket", ".timer", ".mount", ".target", ".slice", ".path"];
    let names = UNIT_PLACES.iter().flat_map(|place| root.list(place).unwrap_or_default());
    names.filter(|name| ends.iter().any(|end| name.ends_with(end)) && !name.contains('@')).collect()
}

/// The entries of a list that a query asks for.
fn of(entries: &[Entry], query: &Query) -> Vec<Entry> {
    use journal::Match;
    let wanted = |entry: &&Entry| match &query.of {
        Match::Unit(unit) => entry.unit == *unit,
        Match::Identifier(name) => entry.identifier == *name,
        Match::Kernel => entry.identifier == "kernel",
        Match::All => true,
    };
    let young = |entry: &&Entry| query.since_us.is_none_or(|since| entry.time_us >= since);
    entries.iter().filter(wanted).filter(young).cloned().collect()
}
