//! The journal of a node, read from its files: on the node itself, on a mounted volume, with
//! no program of systemd.
//!
//! Entries of one unit are found through the index inside each file; the files are merged by
//! time. The newest entries are the ones that are kept, so a read begins at the end, goes back
//! as far as it may, and then gives the entries in their order.

mod file;
mod program;

use std::fs::File;

use rustix::fs::{Mode, OFlags};
use tenon_core::collect::journal::{Entry, Writer};
use tenon_core::hex::hex;

use self::file::{Head, JournalFile, Track};
use crate::root::{self, Root};

pub use self::program::ask_journalctl;

/// Where journals lie; both have a directory per machine id.
const PLACES: [&str; 2] = ["/var/log/journal", "/run/log/journal"];
/// More files than this are not opened, the oldest first.
const MOST_FILES: usize = 256;

/// The fields of an entry that are read.
const FIELDS: &[&str] =
    &["MESSAGE", "PRIORITY", "_SYSTEMD_UNIT", "UNIT", "SYSLOG_IDENTIFIER", "_PID", "SYSLOG_PID"];

/// Which entries are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// What a unit wrote, and what the service manager wrote about it.
    Unit(String),
    Identifier(String),
    Kernel,
    /// Everything.
    All,
}

impl Match {
    /// The same as text, as bundles name it: `unit=kubelet.service`.
    pub fn key(&self) -> String {
        match self {
            Match::Unit(unit) => format!("unit={unit}"),
            Match::Identifier(name) => format!("identifier={name}"),
            Match::Kernel => "kernel".to_owned(),
            Match::All => "all".to_owned(),
        }
    }

    /// Reads the text back; None if it is none.
    pub fn from_key(key: &str) -> Option<Match> {
        match key.split_once('=') {
            Some(("unit", unit)) => Some(Match::Unit(unit.to_owned())),
            Some(("identifier", name)) => Some(Match::Identifier(name.to_owned())),
            None if key == "kernel" => Some(Match::Kernel),
            None if key == "all" => Some(Match::All),
            _ => None,
        }
    }

    /// The fields to look for; the second of a unit counts only from the service manager.
    fn fields(&self) -> Vec<(&'static str, &str)> {
        match self {
            Match::Unit(unit) => vec![("_SYSTEMD_UNIT", unit), ("UNIT", unit)],
            Match::Identifier(name) => vec![("SYSLOG_IDENTIFIER", name)],
            Match::Kernel => vec![("_TRANSPORT", "kernel")],
            Match::All => vec![],
        }
    }
}

/// How much is wanted.
#[derive(Debug, Clone)]
pub struct Query {
    pub of: Match,
    /// Nothing older, in microseconds since 1970.
    pub since_us: Option<u64>,
    /// The newest entries whose lines fit in this.
    pub most_bytes: u64,
}

/// One index of one file, and the part of it that is read.
#[derive(Debug)]
struct Stream {
    file: JournalFile,
    track: Track,
    /// Entries count only if process 1 wrote them.
    manager_only: bool,
    next: u64,
    end: u64,
    head: Option<Head>,
}

/// The journal files of a root.
#[derive(Debug)]
pub struct Reader {
    streams: Vec<Stream>,
    last: Option<(u64, u64, String)>,
    /// The stream that was read last.
    attended: usize,
    /// Files that could not be read, with the reason.
    pub broken: Vec<String>,
    /// Older entries exist and were left out.
    pub cut: bool,
    /// A file was not opened for want of permission.
    pub denied: bool,
}

impl Reader {
    /// Opens every file that may hold what is wanted; None if there is no journal.
    pub fn open(root: &Root, query: &Query) -> Option<Reader> {
        let mut reader = Reader {
            streams: Vec::new(),
            last: None,
            attended: 0,
            broken: Vec::new(),
            cut: false,
            denied: false,
        };
        let mut any = false;
        for path in files(root) {
            any = true;
            for index in 0..query.of.fields().len().max(1) {
                match open(root, &path) {
                    Ok(file) if query.since_us.is_some_and(|since| file.last_us < since) => {}
                    Ok(file) => reader.streams.extend(Stream::new(file, &query.of, index)),
                    Err(why) => {
                        reader.denied |= why.contains("Permission denied");
                        if index == 0 {
                            reader.broken.push(format!("{path}: {why}"));
                        }
                    }
                }
            }
        }
        any.then_some(reader)
    }

    /// True when no file has anything of what is wanted.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Goes back from the end until the query is satisfied. `go_on` is asked now and then.
    pub fn rewind(&mut self, query: &Query, go_on: &dyn Fn() -> bool) {
        for stream in &mut self.streams {
            stream.next = stream.end;
            stream.step_back();
            stream.file.forget();
        }
        let (mut bytes, mut count) = (0_u64, 0_u64);
        let mut writer = Writer::default();
        loop {
            let heads = self.streams.iter().enumerate();
            let newest = heads.filter_map(|(index, stream)| {
                stream.head.as_ref().map(|head| (head.time_us, head.sequence, index))
            });
            let Some((time, _, index)) = newest.max() else { break };
            self.attend(index);
            let stream = &mut self.streams[index];
            count += 1;
            let late = count % 64 == 0 && !go_on();
            if query.since_us.is_some_and(|since| time < since) || late {
                self.cut |= late;
                break;
            }
            if let Some(entry) = stream.entry() {
                bytes += writer.line(&entry).len() as u64;
            }
            if bytes > query.most_bytes {
                self.cut = true;
                break;
            }
            stream.next -= 1;
            stream.step_back();
        }
        for stream in &mut self.streams {
            stream.look();
            stream.file.forget();
        }
    }

    /// The next entry, oldest first.
    pub fn next_entry(&mut self) -> Option<Entry> {
        loop {
            let heads = self.streams.iter().enumerate();
            let oldest = heads.filter_map(|(index, stream)| {
                stream.head.as_ref().map(|head| (head.time_us, head.sequence, index))
            });
            let (time, sequence, index) = oldest.min()?;
            self.attend(index);
            let stream = &mut self.streams[index];
            let entry = stream.entry();
            stream.next += 1;
            stream.look();
            let Some(entry) = entry else { continue };
            // Both indexes of a unit may name an entry.
            let this = Some((time, sequence, entry.message.clone()));
            if this != self.last {
                self.last = this;
                return Some(entry);
            }
        }
    }

    /// Only the stream that is being read keeps pages in memory.
    fn attend(&mut self, index: usize) {
        if index != self.attended {
            self.streams[self.attended].file.forget();
            self.attended = index;
        }
    }

    /// Fields that could not be unpacked.
    pub fn unreadable(&self) -> u64 {
        self.streams.iter().map(|stream| stream.file.unreadable).sum()
    }
}

impl Stream {
    fn new(mut file: JournalFile, of: &Match, index: usize) -> Option<Stream> {
        let track = match of.fields().get(index) {
            Some((field, value)) => file.with(field, value),
            None => file.all(),
        };
        file.forget();
        let end = track.length;
        (end > 0).then_some(Stream {
            file,
            track,
            manager_only: index == 1,
            next: 0,
            end,
            head: None,
        })
    }

    /// Looks at the entry that comes next, past those that are broken.
    fn look(&mut self) {
        self.head = None;
        while self.next < self.end && self.head.is_none() {
            self.head = self.file.entry_at(&self.track, self.next);
            self.next += u64::from(self.head.is_none());
        }
    }

    /// Looks at the entry before `next`, past those that are broken.
    fn step_back(&mut self) {
        self.head = None;
        while self.next > 0 && self.head.is_none() {
            self.head = self.file.entry_at(&self.track, self.next - 1);
            self.next -= u64::from(self.head.is_none());
        }
    }

    /// The entry of the head; None if it does not count.
    fn entry(&mut self) -> Option<Entry> {
        let head = self.head?;
        let mut entry =
            Entry { time_us: head.time_us, boot: hex(&head.boot), priority: 6, ..Entry::default() };
        let (mut about, mut by_manager) = (String::new(), false);
        self.file.fields(&head, FIELDS, &mut |name, value| {
            let text = || String::from_utf8_lossy(value).into_owned();
            match name {
                "MESSAGE" => entry.message = text(),
                "PRIORITY" => entry.priority = text().parse().unwrap_or(6),
                "_SYSTEMD_UNIT" => entry.unit = text(),
                "UNIT" => about = text(),
                "SYSLOG_IDENTIFIER" => entry.identifier = text(),
                // What a program says of itself does not make it the manager.
                "_PID" => {
                    entry.pid = text().parse().unwrap_or_default();
                    by_manager = entry.pid == 1;
                }
                "SYSLOG_PID" if entry.pid == 0 => {
                    entry.pid = text().trim().parse().unwrap_or_default();
                }
                _ => {}
            }
        });
        if by_manager && !about.is_empty() {
            entry.unit = about;
        }
        (by_manager || !self.manager_only).then_some(entry)
    }
}

/// Boot id of the newest entry of a root.
pub fn last_boot(root: &Root) -> Option<String> {
    newest(root)?.head.map(|head| hex(&head.boot))
}

/// Time of the first entry of the last boot, as far as the newest file knows it.
pub fn last_boot_start(root: &Root) -> Option<u64> {
    let mut stream = newest(root)?;
    let mut first = stream.head?;
    while stream.next > 0 {
        stream.next -= 1;
        stream.step_back();
        match stream.head {
            Some(head) if head.boot == first.boot => first = head,
            _ => break,
        }
    }
    Some(first.time_us)
}

/// The file with the newest entry, at that entry.
fn newest(root: &Root) -> Option<Stream> {
    let query = Query { of: Match::All, since_us: None, most_bytes: 0 };
    let streams = Reader::open(root, &query)?.streams;
    let mut newest = streams.into_iter().max_by_key(|stream| stream.file.last_us)?;
    newest.next = newest.track.length;
    newest.step_back();
    Some(newest)
}

/// The files of the machine's own journal, newest names last; users' journals are left alone.
fn files(root: &Root) -> Vec<String> {
    let mut found = Vec::new();
    for place in PLACES {
        for machine in root.list(place).unwrap_or_default() {
            let directory = format!("{place}/{machine}");
            let names = root.list(&directory).unwrap_or_default();
            let ours = names.into_iter().filter(|name| {
                name.starts_with("system")
                    && (name.ends_with(".journal") || name.ends_with(".journal~"))
            });
            found.extend(ours.map(|name| format!("{directory}/{name}")));
        }
    }
    let excess = found.len().saturating_sub(MOST_FILES);
    found.drain(..excess);
    found
}

fn open(root: &Root, path: &str) -> Result<JournalFile, String> {
    let opened = root.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
    let file = File::from(opened.map_err(|error| match root::absent(&error) {
        true => "gone".to_owned(),
        false => error.to_string(),
    })?);
    JournalFile::open(file)
}

#[cfg(test)]
mod tests;
