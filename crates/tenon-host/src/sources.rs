//! Reads the sources of the config chain: user data, files, directories, standard input.
//!
//! Paths are taken as the caller names them, not below `--root`: they are arguments of whoever
//! runs the command. Every read is bounded; what lies beyond the bound is not read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use tenon_core::codes;
use tenon_core::config::SourceRead;
use tenon_core::decode::Origin;
use tenon_core::problem::{Finding, Place, Problem};

use crate::root::read_up_to;
use crate::stop::{self, SLICE};

/// What is read when no source is named.
pub const DEFAULT: &str = "imds://user-data";

/// The longest wait for a writer, and for what it writes, when a source is a pipe.
const LONGEST_PIPE: Duration = Duration::from_secs(30);

/// Names that editors and package managers leave behind.
const BACKUP_ENDINGS: &[&str] =
    &["~", ".bak", ".orig", ".old", ".rpmnew", ".rpmsave", ".swp", ".tmp", "#"];

/// Where the two sources that are not files come from.
pub struct Inputs<'a> {
    /// Reads the instance's user data; None when there is none.
    pub user_data: &'a mut dyn FnMut() -> Result<Option<Vec<u8>>, Problem>,
    pub stdin: &'a mut dyn Read,
}

/// The sources, read, and what was odd about them.
#[derive(Default)]
pub struct Sources {
    pub list: Vec<SourceRead>,
    pub findings: Vec<Finding>,
}

/// Reads the named sources in order. A directory becomes one source per file in it.
pub fn read(uris: &[String], inputs: &mut Inputs<'_>) -> Result<Sources, Problem> {
    let default = [DEFAULT.to_owned()];
    let uris = if uris.is_empty() { &default } else { uris };
    let mut sources = Sources::default();
    for (index, uri) in uris.iter().enumerate() {
        sources.read(index, uri, inputs)?;
    }
    Ok(sources)
}

/// What a source's text says it is.
#[derive(Debug, PartialEq)]
enum Named<'a> {
    UserData { exact: bool },
    Stdin,
    Path(&'a str),
    Unknown,
}

fn classify(uri: &str) -> Named<'_> {
    match uri.split_once("://") {
        Some(("imds", _)) => Named::UserData { exact: uri == DEFAULT },
        Some(("file", path)) => Named::Path(path),
        Some((scheme, _)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => Named::Unknown,
        _ if uri == "-" || uri == "stdin:" => Named::Stdin,
        _ => Named::Path(uri),
    }
}

impl Sources {
    fn read(&mut self, index: usize, uri: &str, inputs: &mut Inputs<'_>) -> Result<(), Problem> {
        match classify(uri) {
            Named::UserData { exact } => {
                if !exact {
                    self.warn(
                        &codes::config::OTHER_IMDS,
                        "another imds:// source is read as user data",
                        uri,
                    );
                }
                let bytes = (inputs.user_data)()?;
                self.add(DEFAULT, Origin::Imds, bytes);
                Ok(())
            }
            Named::Stdin => self.stdin(index, inputs),
            Named::Path(path) if Path::new(path).is_dir() => self.directory(index, path),
            Named::Path(path) => {
                let bytes = read_file(Path::new(path));
                let bytes = bytes.map_err(|error| unreadable(index, uri, &error))?;
                self.add(&format!("file://{path}"), Origin::File, Some(bytes));
                Ok(())
            }
            Named::Unknown => {
                let what = format!("source {} has an unknown scheme", index + 1);
                let fix = "use imds://user-data, file://PATH, a path, or `-`";
                Err(Problem::new(&codes::usage::BAD_USAGE, what).fix(fix))
            }
        }
    }

    fn stdin(&mut self, index: usize, inputs: &mut Inputs<'_>) -> Result<(), Problem> {
        if self.list.iter().any(|source| source.origin == Origin::Stdin) {
            let what = "standard input is named as a source twice";
            return Err(Problem::new(&codes::usage::BAD_USAGE, what).fix("name `-` once"));
        }
        let bytes = bounded(&mut *inputs.stdin, Origin::Stdin);
        let bytes = bytes.map_err(|error| unreadable(index, "stdin:", &error))?;
        self.add("stdin:", Origin::Stdin, Some(bytes));
        Ok(())
    }

    fn directory(&mut self, index: usize, path: &str) -> Result<(), Problem> {
        let uri = format!("file://{path}");
        let names = names(path).map_err(|error| unreadable(index, &uri, &error))?;
        let mut empty = true;
        for name in names {
            let full = Path::new(path).join(&name);
            let uri = format!("file://{}", full.display());
            if is_left_over(&name) {
                self.warn(
                    &codes::config::ENTRY_SKIPPED,
                    "a hidden or backup file is skipped",
                    &uri,
                );
                continue;
            }
            if !is_document(&name) {
                continue;
            }
            if full.is_dir() {
                self.warn(&codes::config::ENTRY_SKIPPED, "a directory inside is skipped", &uri);
                continue;
            }
            let bytes = read_file(&full).map_err(|error| unreadable(index, &uri, &error))?;
            self.add(&uri, Origin::File, Some(bytes));
            empty = false;
        }
        if empty {
            self.add(&uri, Origin::File, None);
        }
        Ok(())
    }

    fn add(&mut self, uri: &str, origin: Origin, bytes: Option<Vec<u8>>) {
        self.list.push(SourceRead { uri: uri.to_owned(), origin, bytes });
    }

    fn warn(&mut self, page: &'static codes::Page, what: &str, uri: &str) {
        let source_index = self.list.len();
        let place = Place { source_index, source: uri.to_owned(), ..Place::default() };
        self.findings.push(Finding::warning(Problem::new(page, what).at(place)));
    }
}

/// The names in a directory in byte order.
fn names(path: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

fn is_left_over(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.starts_with(['.', '#']) || BACKUP_ENDINGS.iter().any(|ending| lower.ends_with(ending))
}

fn is_document(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    [".yaml", ".yml", ".json"].iter().any(|ending| lower.ends_with(ending))
}

/// Reads a file. A pipe that nobody writes to does not hold the run up for ever: the open does
/// not wait for a writer, and the read waits for a limited time.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.read(true).custom_flags(flags).open(path)?;
    bounded(Patient { file, until: None }, Origin::File)
}

/// A reader of something that may have nothing to give yet.
struct Patient {
    file: File,
    /// Set once there was something to wait for.
    until: Option<Instant>,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait()?,
                // A pipe without a writer reads as empty before its first writer comes.
                Ok(0) if self.until.is_none() && is_pipe(&self.file)? => self.wait()?,
                done => return done,
            }
        }
    }
}

impl Patient {
    fn wait(&mut self) -> io::Result<()> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + LONGEST_PIPE);
        loop {
            let mut ready = [PollFd::new(&self.file, PollFlags::IN)];
            let slice = Timespec { tv_sec: 0, tv_nsec: SLICE.subsec_nanos().into() };
            if poll(&mut ready, Some(&slice))? > 0 {
                return Ok(());
            }
            if stop::asked() || Instant::now() >= until {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody wrote to this pipe"));
            }
        }
    }
}

fn is_pipe(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.file_type().is_fifo())
}

/// Reads up to one byte beyond the bound, so that the decoder sees and names the excess.
fn bounded(reader: impl Read, origin: Origin) -> io::Result<Vec<u8>> {
    read_up_to(reader, origin.limit() as u64 + 1)
}

fn unreadable(index: usize, uri: &str, error: &io::Error) -> Problem {
    let what = format!("reading source {} of the config", index + 1);
    let place = Place { source_index: index, source: uri.to_owned(), ..Place::default() };
    let fix = "check the path given to --config-source";
    Problem::new(&codes::host::FILE_READ, what).at(place).fix(fix).cause(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_with(uris: &[&str], stdin: &str, user_data: Option<&str>) -> Result<Sources, Problem> {
        let uris: Vec<_> = uris.iter().map(|uri| (*uri).to_owned()).collect();
        let mut ask = || Ok(user_data.map(|text| text.as_bytes().to_vec()));
        let mut inputs = Inputs { user_data: &mut ask, stdin: &mut stdin.as_bytes() };
        read(&uris, &mut inputs)
    }

    fn texts(sources: &Sources) -> Vec<(String, Option<String>)> {
        let text = |source: &SourceRead| {
            source.bytes.clone().map(|bytes| String::from_utf8(bytes).unwrap())
        };
        sources.list.iter().map(|source| (source.uri.clone(), text(source))).collect()
    }

    #[test]
    fn texts_name_sources() {
        for (uri, expected) in [
            ("imds://user-data", Named::UserData { exact: true }),
            ("imds://other", Named::UserData { exact: false }),
            ("file:///etc/a.yaml", Named::Path("/etc/a.yaml")),
            ("file://rel/a.yaml", Named::Path("rel/a.yaml")),
            ("a.yaml", Named::Path("a.yaml")),
            ("-", Named::Stdin),
            ("stdin:", Named::Stdin),
            ("https://x/a.yaml", Named::Unknown),
        ] {
            assert_eq!(classify(uri), expected, "{uri}");
        }
    }

    #[test]
    fn none_named_means_user_data() {
        let sources = read_with(&[], "", Some("x")).unwrap();
        assert_eq!(texts(&sources), [("imds://user-data".to_owned(), Some("x".to_owned()))]);
        let sources = read_with(&["imds://x"], "", None).unwrap();
        assert_eq!(texts(&sources), [("imds://user-data".to_owned(), None)]);
        assert_eq!(sources.findings.len(), 1);
    }

    #[test]
    fn a_directory_gives_its_documents_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "B.JSON", "a.yml", ".hidden.yaml", "c.yaml~", "d.yaml.bak", "readme"]
        {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        std::fs::create_dir(dir.path().join("sub.yaml")).unwrap();
        let sources = read_with(&[dir.path().to_str().unwrap()], "", None).unwrap();
        let read: Vec<_> = texts(&sources).into_iter().filter_map(|(_, text)| text).collect();
        assert_eq!(read, ["B.JSON", "a.yml", "b.yaml"]);
        assert_eq!(sources.findings.len(), 4);
    }

    #[test]
    fn an_empty_directory_is_fine_and_a_missing_file_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let uri = format!("file://{}", dir.path().display());
        assert_eq!(texts(&read_with(&[&uri], "", None).unwrap()), [(uri.clone(), None)]);
        let missing = format!("{uri}/none.yaml");
        let problem = read_with(&["-", &missing], "", None).err().unwrap();
        assert_eq!(problem.exit(), 7);
        assert!(problem.what.contains("source 2"));
        assert_eq!(problem.place.as_ref().unwrap().source, missing);
    }

    #[test]
    fn a_pipe_is_read_once_its_writer_comes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe.yaml");
        std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        let writer = path.clone();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            std::fs::write(writer, "late").unwrap();
        });
        let sources = read_with(&[path.to_str().unwrap()], "", None).unwrap();
        writer.join().unwrap();
        assert_eq!(texts(&sources)[0].1.as_deref(), Some("late"));
    }

    #[test]
    fn the_wait_for_a_writer_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe.yaml");
        std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path).unwrap();
        let until = Some(Instant::now() + SLICE);
        let error = Patient { file, until }.wait().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn standard_input_is_read_once() {
        assert_eq!(texts(&read_with(&["-"], "in", None).unwrap())[0].1.as_deref(), Some("in"));
        assert_eq!(read_with(&["-", "stdin:"], "in", None).err().unwrap().exit(), 64);
        assert_eq!(read_with(&["ftp://x"], "", None).err().unwrap().exit(), 64);
    }

    #[test]
    fn a_read_stops_beyond_its_bound() {
        let big = "x".repeat(Origin::Stdin.limit() + 100);
        let sources = read_with(&["-"], &big, None).unwrap();
        assert_eq!(sources.list[0].bytes.as_ref().unwrap().len(), Origin::Stdin.limit() + 1);
    }
}
