//! Takes one entry of the catalogue: reads it in its own way and says how that ended.
//!
//! An item that cannot be read is an item with a reason. No error leaves this file.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tenon_core::collect::catalogue::{Entry, Kind};
use tenon_core::collect::journal::Writer;
use tenon_core::collect::manifest::{Item, Listed, NodeMark, Status};
use tenon_core::glob::fits;
use tenon_core::hex::hex;

use super::child::{self, End};
use super::journal::{Match, Query, Reader};
use super::loopback;
use super::own::{self, Own};
use super::run::Shared;
use super::sink::{Packed, Part, Sink, Spool};
use super::source::{self, Answer};
use super::tar;
use crate::root;

/// The most members of one glob or tree.
const MOST_MEMBERS: usize = 400;
/// The most names of one tree that are listed.
const MOST_LISTED: usize = 4000;
const DEEPEST: usize = 10;

/// One member of the bundle, or the reason why there is none.
pub type Taken = (Item, Option<Part>);

/// Everything that one entry gave.
#[derive(Debug, Default)]
pub struct Harvest {
    pub items: Vec<Taken>,
    pub listed: Vec<Listed>,
}

/// How the reading of a content ended, with a note.
pub struct Outcome {
    pub status: Status,
    pub note: String,
    pub original: u64,
}

impl Outcome {
    pub fn ok(original: u64) -> Self {
        Outcome { status: Status::Ok, note: String::new(), original }
    }

    pub fn with(status: Status, note: impl Into<String>) -> Self {
        Outcome { status, note: note.into(), original: 0 }
    }
}

impl From<io::Error> for Outcome {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            _ if root::absent(&error) => Outcome::with(Status::Absent, ""),
            io::ErrorKind::PermissionDenied => Outcome::with(Status::Denied, ""),
            _ => Outcome::with(Status::Error, error.to_string()),
        }
    }
}

/// One entry being taken.
pub struct Job<'j> {
    pub shared: &'j Shared,
    pub entry: &'j Entry,
    /// This entry's own deadline.
    pub end: Instant,
    harvest: Harvest,
    /// Of a tree: what is left of the cap.
    left: u64,
}

/// Takes an entry.
pub fn take(shared: &Shared, entry: &Entry, spool: &mut Spool) -> Harvest {
    let cap = entry.cap.min(shared.options.max_item.unwrap_or(u64::MAX));
    let end = Instant::now() + Duration::from_secs(entry.timeout_s);
    let end = end.min(shared.end);
    let mut job = Job { shared, entry, end, harvest: Harvest::default(), left: cap };
    job.run(spool);
    job.harvest
}

/// An item of this entry without content.
pub fn blank(entry: &Entry, status: Status, note: &str) -> Item {
    let source = match &entry.kind {
        Kind::Journal(key) => format!("journal:{key}"),
        Kind::Facts(name) | Kind::Proc(name) => format!("tenon:{name}"),
        kind => kind.target(),
    };
    Item {
        id: entry.id.clone(),
        group: entry.group.clone(),
        path: entry.path(),
        source,
        status,
        required: entry.required,
        bytes: 0,
        original_bytes: 0,
        sha256: String::new(),
        ms: 0,
        redactions: 0,
        note: note.to_owned(),
        node: None,
    }
}

impl Job<'_> {
    fn run(&mut self, spool: &mut Spool) {
        let live = self.shared.source.is_live();
        if self.entry.kind.needs_live() && !live {
            return self.without(Status::NotApplicable, "only a running node can tell");
        }
        if let Some(why) = own::unmet(self.shared, self.entry) {
            return self.without(Status::NotApplicable, &why);
        }
        let entry = self.entry;
        match &entry.kind {
            Kind::File(path) => self.one_file(spool, path),
            Kind::Glob(pattern) => self.glob(spool, pattern),
            Kind::Tree(path) => self.tree(spool, path),
            Kind::Journal(key) => self.journal(spool, key),
            Kind::Command(argv) => self.command(spool, argv),
            Kind::Http(url) => self.http(spool, url),
            Kind::Socket(path) => self.socket(spool, path),
            Kind::Proc(name) | Kind::Facts(name) => self.own(spool, name),
        }
    }

    /// True when reading must end: deadline, budget or a stop.
    pub fn is_late(&self) -> bool {
        Instant::now() >= self.end || self.shared.is_over()
    }

    /// Why a content is not whole.
    pub fn cut_short(&self, original: u64) -> Outcome {
        let timeout = self.shared.is_stopped() || Instant::now() >= self.end;
        let (status, note) = match timeout {
            true => (Status::Timeout, "not read to its end"),
            false => (Status::Truncated, "the size of the bundle is spent"),
        };
        Outcome { status, note: note.to_owned(), original }
    }

    fn without(&mut self, status: Status, note: &str) {
        self.harvest.items.push((blank(self.entry, status, note), None));
    }

    /// Runs a reader into a fresh sink and files what came of it.
    fn fill(
        &mut self,
        spool: &mut Spool,
        mut item: Item,
        read: impl FnOnce(&Self, &mut Sink<'_>) -> Result<Outcome, Outcome>,
    ) {
        let started = Instant::now();
        let book = self.shared.options.redact.then_some(&*self.shared.book);
        let mut sink = Sink::new(spool, book);
        let outcome = read(self, &mut sink).unwrap_or_else(|outcome| outcome);
        let kept = sink.bytes() > 0 || outcome.status.has_content();
        item.ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        (item.status, item.note, item.original_bytes) =
            (outcome.status, outcome.note, outcome.original);
        let part = match sink.finish() {
            Ok(packed) if kept && outcome.status.has_content() => {
                Some(file_away(&mut item, packed))
            }
            Ok(_) => None,
            Err(error) => {
                item.status = Status::Error;
                item.note = format!("the spool: {error}");
                None
            }
        };
        self.harvest.items.push((item, part));
    }

    fn one_file(&mut self, spool: &mut Spool, path: &str) {
        let mut item = blank(self.entry, Status::Ok, "");
        if let Answer::Known(node) = self.shared.source.stat(path) {
            item.node = Some(node);
        }
        let cap = self.left;
        let volume = !self.shared.source.is_live();
        self.fill(spool, item, |job, sink| {
            job.file(sink, path, cap).map_err(|outcome| match job.shared.source.stat(path) {
                // A volume cannot tell whether the running node had it.
                Answer::Unknown(why) if outcome.status == Status::Absent && volume => {
                    Outcome::with(Status::NotApplicable, why)
                }
                _ => outcome,
            })
        });
    }

    fn glob(&mut self, spool: &mut Spool, pattern: &str) {
        let paths = match self.expand(pattern) {
            Ok(paths) => paths,
            Err(outcome) => return self.without(outcome.status, &outcome.note),
        };
        if paths.is_empty() {
            return self.without(Status::Absent, "");
        }
        let cap = self.left;
        // What stands before the first star is common to all and says nothing.
        let fixed = pattern.split('/').take_while(|part| !part.contains('*')).count();
        let fixed = fixed.min(pattern.split('/').count() - 1);
        for path in paths {
            let relative = path.split('/').skip(fixed).collect::<Vec<_>>().join("/");
            self.member(spool, &path, &relative, cap);
        }
    }

    /// One file of a glob or tree; gives the bytes that were kept.
    fn member(&mut self, spool: &mut Spool, path: &str, relative: &str, cap: u64) -> u64 {
        let Answer::Known(node) = self.shared.source.stat(path) else { return 0 };
        if node.kind != "file" {
            self.list(path, node);
            return 0;
        }
        let mut item = blank(self.entry, Status::Ok, "");
        item.path = member_path(&self.entry.path(), relative);
        path.clone_into(&mut item.source);
        item.node = Some(node);
        item.required = false;
        match self.shared.is_over() {
            true => {
                item.status = Status::SkippedBudget;
                self.harvest.items.push((item, None));
            }
            false => self.fill(spool, item, |job, sink| job.file(sink, path, cap)),
        }
        self.harvest.items.last().map_or(0, |(item, _)| item.bytes)
    }

    fn list(&mut self, path: &str, node: NodeMark) {
        if self.harvest.listed.len() < MOST_LISTED {
            self.harvest.listed.push(Listed { source: path.to_owned(), node });
        }
    }

    /// The paths that a pattern names, sorted.
    fn expand(&self, pattern: &str) -> Result<Vec<String>, Outcome> {
        let mut found = vec![String::new()];
        for part in pattern.trim_start_matches('/').split('/') {
            let mut next = Vec::new();
            for base in &found {
                if !part.contains('*') {
                    next.push(format!("{base}/{part}"));
                    continue;
                }
                let names = match self.shared.root()?.list(if base.is_empty() { "/" } else { base })
                {
                    Ok(names) => names,
                    Err(error) if root::absent(&error) => continue,
                    Err(error) => return Err(error.into()),
                };
                let fitting = names.iter().filter(|name| fits(name, part));
                next.extend(fitting.map(|name| format!("{base}/{name}")));
            }
            found = next;
        }
        let root = self.shared.root()?;
        found.retain(|path| source::stat(root, path).is_ok());
        found.truncate(MOST_MEMBERS);
        Ok(found)
    }

    fn tree(&mut self, spool: &mut Spool, top: &str) {
        let listing = self.shared.source.list(top);
        match (&listing, self.shared.root().map(|root| root.list(top))) {
            (Answer::Absent, _) => self.without(Status::Absent, ""),
            (Answer::Unknown(why), Ok(Err(error)))
                if error.kind() == io::ErrorKind::PermissionDenied =>
            {
                self.without(Status::Denied, why);
            }
            (Answer::Unknown(why), _) => {
                let status = if self.shared.source.is_live() {
                    Status::Error
                } else {
                    Status::NotApplicable
                };
                self.without(status, why);
            }
            (Answer::Known(_), _) => self.walk(spool, top),
        }
    }

    /// Takes the files of a tree, breadth first, links not followed.
    fn walk(&mut self, spool: &mut Spool, top: &str) {
        let base = self.entry.path();
        let mut waiting = std::collections::VecDeque::from([(top.to_owned(), 0)]);
        let mut members = 0;
        while let Some((directory, depth)) = waiting.pop_front() {
            let mark = self.shared.root().ok().and_then(|root| {
                let node = source::stat(root, &directory).ok()?;
                // A link at the top was followed to a directory.
                Some(NodeMark { kind: "directory".into(), target: None, ..node })
            });
            if let Some(mark) = mark {
                self.list(&directory, mark);
            }
            let Answer::Known(names) = self.shared.source.list(&directory) else { continue };
            for name in names {
                let path = format!("{directory}/{name}");
                let Answer::Known(node) = self.shared.source.stat(&path) else { continue };
                if node.kind == "directory" {
                    if depth < DEEPEST {
                        waiting.push_back((path, depth + 1));
                    }
                } else if members < MOST_MEMBERS && self.left > 0 && !self.is_late() {
                    let relative = path[top.len()..].trim_start_matches('/').to_owned();
                    let kept = self.member(spool, &path, &relative, self.left);
                    members += usize::from(node.kind == "file");
                    self.left = self.left.saturating_sub(kept);
                } else {
                    self.list(&path, node);
                }
            }
        }
        let mut item = blank(self.entry, Status::Ok, "");
        item.path = base;
        if members >= MOST_MEMBERS || self.left == 0 {
            item.status = Status::Truncated;
            "the cap was reached; the rest is listed".clone_into(&mut item.note);
        }
        // The tree itself has no content; its files have.
        self.harvest.items.push((item, None));
    }

    fn journal(&mut self, spool: &mut Spool, key: &str) {
        let Some(of) = Match::from_key(key) else {
            return self.without(Status::Error, "no such kind of journal entries");
        };
        let query = Query { of, since_us: self.shared.options.since_us, most_bytes: self.left };
        let item = blank(self.entry, Status::Ok, "");
        self.fill(spool, item, |job, sink| job.read_journal(sink, &query));
    }

    fn read_journal(&self, sink: &mut Sink<'_>, query: &Query) -> Result<Outcome, Outcome> {
        let mut writer = Writer::default();
        let reader = Reader::open(self.shared.root()?, query);
        let Some(mut reader) = reader else { return self.ask_source(sink, query) };
        reader.rewind(query, &|| !self.is_late());
        let mut outcome = Outcome::ok(0);
        while let Some(entry) = reader.next_entry() {
            sink.take(writer.line(&entry).as_bytes());
            if self.is_late() {
                outcome = self.cut_short(0);
                break;
            }
        }
        if sink.bytes() == 0 && reader.is_empty() {
            return match (reader.denied, reader.broken.first()) {
                (true, _) => Err(Outcome::with(Status::Denied, "the journal may not be read")),
                (false, Some(why)) => Err(Outcome::with(Status::Error, why.clone())),
                (false, None) => Err(Outcome::with(Status::Absent, "no entries")),
            };
        }
        if reader.cut && outcome.status == Status::Ok {
            outcome = Outcome::with(Status::Truncated, "kept: tail");
        }
        let mut notes: Vec<String> = vec![outcome.note];
        notes.extend(reader.broken.iter().map(|file| format!("unreadable file {file}")));
        if reader.unreadable() > 0 {
            notes.push(format!("{} packed fields unreadable", reader.unreadable()));
        }
        notes.retain(|note| !note.is_empty());
        Ok(Outcome { note: notes.join("; "), original: sink.bytes(), ..outcome })
    }

    /// Without journal files: what the source has instead, `journalctl` on a live node.
    fn ask_source(&self, sink: &mut Sink<'_>, query: &Query) -> Result<Outcome, Outcome> {
        let entries = self.shared.source.journal(query).known().unwrap_or_default();
        if entries.is_empty() {
            return Err(Outcome::with(Status::Absent, "there is no journal"));
        }
        let mut writer = Writer::default();
        entries.iter().for_each(|entry| sink.take(writer.line(entry).as_bytes()));
        let mut outcome = Outcome::ok(sink.bytes());
        "not from journal files".clone_into(&mut outcome.note);
        Ok(outcome)
    }

    fn command(&mut self, spool: &mut Spool, argv: &[String]) {
        if child::find(&argv[0]).is_none() {
            return self.without(Status::Absent, "the program is not installed");
        }
        let cap = self.left;
        let item = blank(self.entry, Status::Ok, "");
        self.fill(spool, item, |job, sink| job.output_of(sink, argv, cap));
    }

    /// The output of a program, through the cap.
    pub fn output_of(
        &self,
        sink: &mut Sink<'_>,
        argv: &[String],
        cap: u64,
    ) -> Result<Outcome, Outcome> {
        let mut bytes = 0;
        let mut take = |chunk: &[u8]| {
            let room = usize::try_from(cap - bytes).unwrap_or(usize::MAX);
            sink.take(&chunk[..chunk.len().min(room)]);
            bytes += chunk.len().min(room) as u64;
            bytes < cap
        };
        let (ended, words) = child::run(argv, self.end, &|| self.shared.is_stopped(), &mut take)?;
        // What a program says of its failure may hold anything.
        let words = tenon_core::redact::text(&self.shared.book, &words);
        Ok(match ended {
            End::Exit(0) => Outcome::ok(bytes),
            End::Exit(code) if bytes > 0 => {
                Outcome { note: format!("exit {code}: {words}"), ..Outcome::ok(bytes) }
            }
            End::Exit(code) => {
                return Err(Outcome::with(failed(&words), format!("exit {code}: {words}")));
            }
            End::Cap => {
                Outcome { status: Status::Truncated, note: "kept: head".into(), original: bytes }
            }
            End::Deadline | End::Stopped => Outcome {
                status: Status::Timeout,
                note: "killed at its deadline; partial".into(),
                original: bytes,
            },
        })
    }

    fn http(&mut self, spool: &mut Spool, url: &str) {
        let cap = self.left;
        let item = blank(self.entry, Status::Ok, "");
        self.fill(spool, item, |job, sink| loopback::get(job, sink, url, cap));
    }

    fn socket(&mut self, spool: &mut Spool, path: &str) {
        let item = blank(self.entry, Status::Ok, "");
        self.fill(spool, item, |job, sink| {
            UnixStream::connect(job.shared.root()?.join(path))?;
            sink.take(b"somebody listens\n");
            Ok(Outcome::ok(sink.bytes()))
        });
    }

    /// What Tenon itself knows or finds out.
    fn own(&mut self, spool: &mut Spool, name: &str) {
        let mut item = blank(self.entry, Status::Ok, "");
        if let Some(path) = own::file_behind(self.shared, name) {
            item.node = self.shared.source.stat(&path).known();
            item.source = path;
        }
        self.fill(spool, item, |job, sink| {
            let cap = usize::try_from(job.left).unwrap_or(usize::MAX);
            match own::find_out(job, name, sink) {
                Own::Text(text) => {
                    sink.take(&text[..text.len().min(cap)]);
                    Ok(Outcome::ok(text.len() as u64))
                }
                Own::Taken => Ok(Outcome::ok(sink.bytes())),
                Own::Absent(why) => Err(Outcome::with(Status::Absent, why)),
                Own::NotApplicable(why) => Err(Outcome::with(Status::NotApplicable, why)),
                Own::Error(why) => Err(Outcome::with(Status::Error, why)),
            }
        });
    }
}

fn file_away(item: &mut Item, packed: Packed) -> Part {
    item.bytes = packed.bytes;
    item.original_bytes = item.original_bytes.max(packed.bytes);
    item.sha256 = packed.sha256;
    item.redactions = packed.redactions;
    packed.part
}

fn failed(words: &str) -> Status {
    let words = words.to_ascii_lowercase();
    let denied =
        ["permission denied", "not permitted", "must be root", "need to be root", "requires root"];
    match denied.iter().any(|text| words.contains(text)) {
        true => Status::Denied,
        false => Status::Error,
    }
}

/// A name that fits into the archive, whatever the node calls the file.
fn member_path(base: &str, relative: &str) -> String {
    let clean: String =
        relative.chars().map(|c| if c.is_control() || c == '\u{fffd}' { '_' } else { c }).collect();
    let path = format!("{base}/{clean}");
    if clean == relative && tar::header(&path, 0, 0).is_some() {
        return path;
    }
    let short = hex(&Sha256::digest(relative.as_bytes())[..6]);
    let name = clean.rsplit('/').next().unwrap_or_default();
    let end: String = name.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
    format!("{base}/{short}-{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_one_that_fits() {
        assert_eq!(member_path("pods/x", "a/0.log"), "pods/x/a/0.log");
        for wild in ["a\nb", &"x".repeat(250), &format!("{}/{}", "y".repeat(200), "z".repeat(120))]
        {
            let path = member_path("pods/x", wild);
            assert!(tar::header(&path, 0, 0).is_some(), "{path}");
            assert!(!path.chars().any(char::is_control));
        }
        assert_ne!(member_path("a", "x\ny"), member_path("a", "x\ty"));
    }
}
