//! One run of the collector: entries in the order of their worth, a few workers, budgets of
//! time and size, and a bundle at the end whatever happened on the way.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_core::codes::logs as pages;
use tenon_core::collect::catalogue::{self, Entry};
use tenon_core::collect::manifest::{Item, Status};
use tenon_core::problem::Problem;
use tenon_core::redact::{self, Book};

use super::archive::Collected;
use super::item::{self, Harvest};
use super::sink::{Room, Spool};
use super::source::Source;
use super::spool;
use crate::root::Root;
use crate::stop;

/// How long after its deadline an item that cannot be interrupted is waited for.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Packed bytes that may be held in memory when no disk has room.
const MEMORY_SPOOL: u64 = 16 << 20;
/// Below this a disk does not hold a spool.
const SMALLEST_DISK_SPOOL: u64 = 4 << 20;

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct Options {
    pub only: Vec<String>,
    pub skip: Vec<String>,
    pub since_us: Option<u64>,
    pub max_size: u64,
    pub max_item: Option<u64>,
    pub budget: Duration,
    pub jobs: usize,
    pub redact: bool,
    /// Also what takes long.
    pub deep: bool,
    /// Times are left out, so that equal nodes give equal bytes.
    pub reproducible: bool,
    /// Where spools may lie; None holds them in memory.
    pub spool: Option<PathBuf>,
    /// Packed bytes that the spool's disk may take.
    pub disk_room: u64,
}

impl Options {
    /// The parameters of the run, for the manifest.
    pub fn to_json(&self) -> Value {
        json!({
            "only": self.only, "skip": self.skip, "sinceUs": self.since_us,
            "maxSize": self.max_size, "maxItem": self.max_item,
            "timeBudgetMs": u64::try_from(self.budget.as_millis()).unwrap_or(u64::MAX),
            "jobs": self.jobs, "redacted": self.redact, "deep": self.deep,
            "spool": if self.spool.is_some() { "disk" } else { "memory" },
        })
    }

    fn leaves_out(&self, entry: &Entry) -> bool {
        let named = |list: &[String]| {
            list.iter().any(|name| {
                *name == entry.group || *name == format!("{}/{}", entry.group, entry.id)
            })
        };
        !self.only.is_empty() && !named(&self.only) || named(&self.skip)
    }
}

/// What all workers see.
#[derive(Debug)]
pub struct Shared {
    pub source: Source,
    pub options: Options,
    pub book: Arc<Book>,
    /// Items that the caller made: verdicts, probes, facts.
    pub given: BTreeMap<String, Vec<u8>>,
    pub end: Instant,
    room: Arc<Room>,
    queue: Mutex<VecDeque<(usize, Entry)>>,
    busy: Mutex<BTreeMap<usize, Instant>>,
    entries: Vec<Entry>,
}

impl Shared {
    /// The directory that is read. A bundle is never collected from.
    pub fn root(&self) -> io::Result<&Root> {
        self.source.root_handle().ok_or_else(|| io::Error::other("a bundle has no files to read"))
    }

    /// True when the run must end: time, a signal.
    pub fn is_stopped(&self) -> bool {
        stop::check().is_err() || Instant::now() >= self.end
    }

    /// True when nothing more may be read: the above, or the size.
    pub fn is_over(&self) -> bool {
        self.is_stopped() || self.room.is_full()
    }

    fn next(&self) -> Option<(usize, Entry)> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// News for whoever watches.
#[derive(Debug, Clone)]
pub struct Progress<'p> {
    pub done: usize,
    pub of: usize,
    pub item: &'p Item,
    pub bytes: u64,
    pub left: Duration,
}

/// What is collected, and how.
#[derive(Debug)]
pub struct Order {
    pub source: Source,
    pub entries: Vec<Entry>,
    pub options: Options,
    pub book: Book,
    pub given: BTreeMap<String, Vec<u8>>,
}

/// Collects. `watch` is told of every entry that is done.
pub fn collect(order: Order, watch: &mut dyn FnMut(&Progress<'_>)) -> Collected {
    let started = Instant::now();
    // The node has better things to do. Also lowers the rank of what is read and written.
    let _ = rustix::process::nice(10);
    let Order { source, entries, options, book, given } = order;
    let most_packed = if options.spool.is_some() { options.disk_room } else { MEMORY_SPOOL };
    let room = Arc::new(Room {
        content: AtomicU64::new(0),
        most_content: options.max_size,
        packed: AtomicU64::new(0),
        most_packed,
    });
    let wanted =
        entries.iter().cloned().enumerate().filter(|(_, entry)| !options.leaves_out(entry));
    let queue: VecDeque<_> = wanted.collect();
    let shared = Arc::new(Shared {
        source,
        end: started + options.budget,
        options,
        book: Arc::new(book),
        given,
        room,
        queue: Mutex::new(queue),
        busy: Mutex::default(),
        entries,
    });
    let harvests = gather(&shared, watch);
    Collected::new(shared, harvests, started)
}

impl Collected {
    fn new(shared: Arc<Shared>, mut harvests: BTreeMap<usize, Harvest>, started: Instant) -> Self {
        let over = shared.room.is_full();
        for (index, entry) in shared.entries.iter().enumerate() {
            let (status, note) = match shared.options.leaves_out(entry) {
                true => (Status::SkippedOption, ""),
                false if stop::check().is_err() => (Status::SkippedBudget, "the run was stopped"),
                false if over => (Status::SkippedBudget, "the size of the bundle is spent"),
                false => (Status::SkippedBudget, "the time of the run is spent"),
            };
            harvests.entry(index).or_insert_with(|| Harvest {
                items: vec![(item::blank(entry, status, note), None)],
                ..Harvest::default()
            });
        }
        let (mut items, mut listed) = (Vec::new(), Vec::new());
        for harvest in harvests.into_values() {
            items.extend(harvest.items);
            listed.extend(harvest.listed);
        }
        for (item, _) in &mut items {
            // The arguments of a user's own command may hold anything.
            if shared.options.redact && !item.source.starts_with('/') {
                item.source = redact::text(&shared.book, &item.source);
            }
        }
        items.sort_by(|(left, _), (right, _)| {
            let rank = |item: &Item| catalogue::worth(&item.group);
            (rank(left), &left.path).cmp(&(rank(right), &right.path))
        });
        let elapsed = started.elapsed();
        Collected {
            items,
            listed,
            elapsed,
            partial: stop::check().is_err(),
            options: shared.options.clone(),
        }
    }
}

/// Runs the workers and waits for what they bring.
fn gather(shared: &Arc<Shared>, watch: &mut dyn FnMut(&Progress<'_>)) -> BTreeMap<usize, Harvest> {
    let (report, reports) = mpsc::channel();
    let of = shared.queue.lock().unwrap_or_else(PoisonError::into_inner).len();
    let mut workers = 0;
    for _ in 0..shared.options.jobs.max(1) {
        workers += usize::from(start(shared, &report));
    }
    let mut harvests = BTreeMap::new();
    while workers > 0 {
        match reports.recv_timeout(stop::SLICE) {
            Ok(Report::Done(index, harvest)) => {
                // An entry that was given up may still come in; its place is taken.
                if let std::collections::btree_map::Entry::Vacant(place) = harvests.entry(index) {
                    let harvest = place.insert(harvest);
                    tell(shared, harvest, of, watch, index);
                }
            }
            Ok(Report::Ended) => workers -= 1,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                for index in given_up(shared) {
                    let note = "it did not answer and could not be interrupted";
                    let item = item::blank(&shared.entries[index], Status::Timeout, note);
                    harvests
                        .insert(index, Harvest { items: vec![(item, None)], ..Harvest::default() });
                    // Its worker hangs in the kernel; another takes its place.
                    workers -= usize::from(!start(shared, &report));
                }
            }
        }
    }
    harvests
}

enum Report {
    Done(usize, Harvest),
    Ended,
}

fn tell(
    shared: &Shared,
    harvest: &Harvest,
    of: usize,
    watch: &mut dyn FnMut(&Progress<'_>),
    index: usize,
) {
    let left = shared.end.saturating_duration_since(Instant::now());
    let waiting = shared.queue.lock().unwrap_or_else(PoisonError::into_inner).len();
    let blank = item::blank(&shared.entries[index], Status::Ok, "");
    let item = harvest.items.last().map_or(&blank, |(item, _)| item);
    let bytes = shared.room.content.load(Ordering::Relaxed);
    watch(&Progress { done: of - waiting, of, item, bytes, left });
}

/// Entries whose worker hangs beyond every deadline. Each is named once.
fn given_up(shared: &Shared) -> Vec<usize> {
    let mut busy = shared.busy.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let over = |index: &usize, started: &Instant| {
        let own = Duration::from_secs(shared.entries[*index].timeout_s);
        now > (*started + own).min(shared.end) + PATIENCE
    };
    let late: Vec<usize> = busy
        .iter()
        .filter(|(index, started)| over(index, started))
        .map(|(index, _)| *index)
        .collect();
    late.iter().for_each(|index| {
        busy.remove(index);
    });
    late
}

/// Starts a worker; false if it has nowhere to put what it reads.
fn start(shared: &Arc<Shared>, report: &mpsc::Sender<Report>) -> bool {
    let Ok(file) = spool_file(&shared.options) else { return false };
    let (shared, report) = (Arc::clone(shared), report.clone());
    let work = move || {
        let mut spool = Spool::new(file, Arc::clone(&shared.room));
        while !shared.is_over() {
            let Some((index, entry)) = shared.next() else { break };
            let lock = || shared.busy.lock().unwrap_or_else(PoisonError::into_inner);
            lock().insert(index, Instant::now());
            let harvest = item::take(&shared, &entry, &mut spool);
            let mine = lock().remove(&index).is_some();
            // Nobody listens any more when the run was closed over a hanging item.
            let told = report.send(Report::Done(index, harvest));
            if told.is_err() || !mine {
                return;
            }
        }
        let _ = report.send(Report::Ended);
    };
    std::thread::Builder::new().name("collect".into()).spawn(work).is_ok()
}

fn spool_file(options: &Options) -> io::Result<File> {
    match &options.spool {
        Some(directory) => spool::anonymous(directory),
        None => spool::memory(),
    }
}

/// How many packed bytes a directory's disk can take for a bundle and its spool, when a tenth
/// of it, or 512 MiB, is to stay free. 0 when a spool there is not worth it.
pub fn disk_room(directory: &std::path::Path) -> u64 {
    const KEEP_FREE: u64 = 512 << 20;
    let Ok(stat) = rustix::fs::statvfs(directory) else { return 0 };
    if spool::anonymous(directory).is_err() {
        return 0;
    }
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let keep = (stat.f_blocks.saturating_mul(stat.f_frsize) / 10).min(KEEP_FREE);
    // The bundle is written beside its spool.
    let room = free.saturating_sub(keep) / 2;
    if room < SMALLEST_DISK_SPOOL { 0 } else { room }
}

/// Where users put entries of their own.
const USER_ENTRIES: &str = "/etc/tenon/collect.d";

/// What was read, or nothing where the user may not read: the rest is still worth collecting.
fn permitted<T: Default>(path: &str, read: io::Result<T>) -> Result<T, Problem> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            tracing::warn!(path, "may not be read: entries there are left out");
            Ok(T::default())
        }
        read => read.map_err(|error| {
            let what = format!("reading {path}");
            Problem::new(&tenon_core::codes::host::FILE_READ, what).cause(error)
        }),
    }
}

/// The entries of the user's files on this root.
pub fn user_entries(root: &Root, commands: bool) -> Result<Vec<Entry>, Problem> {
    let mut entries: Vec<Entry> = Vec::new();
    let names = permitted(USER_ENTRIES, root.list(USER_ENTRIES))?;
    for name in names.iter().filter(|name| name.ends_with(".toml")) {
        let path = format!("{USER_ENTRIES}/{name}");
        let bytes = permitted(&path, root.read(&path, 1 << 20))?;
        let text = String::from_utf8(bytes.unwrap_or_default())
            .map_err(|_| Problem::new(&pages::BAD_CATALOGUE, format!("{path}: not UTF-8")))?;
        for entry in catalogue::user(&text, &path, commands)? {
            if entries.iter().any(|known| known.path() == entry.path()) {
                let what = format!("{path}: entry `{}` has the name of another", entry.id);
                return Err(Problem::new(&pages::BAD_CATALOGUE, what));
            }
            entries.push(entry);
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_is_passed_over() {
        let read = |kind: io::ErrorKind| permitted::<Vec<String>>("/x", Err(kind.into()));
        assert!(read(io::ErrorKind::PermissionDenied).unwrap().is_empty());
        assert_eq!(read(io::ErrorKind::NotADirectory).unwrap_err().page.code, "TN07001");
    }
}
