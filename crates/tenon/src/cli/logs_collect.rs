//! `tenon logs collect`: one file with everything a diagnosis needs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use serde_json::{Value, json};
use tenon_core::codes;
use tenon_core::codes::logs as pages;
use tenon_core::collect::catalogue::{self, Entry};
use tenon_core::collect::journal::{stamp, unstamp};
use tenon_core::collect::manifest::{Manifest, Tool, reason};
use tenon_core::problem::Problem;
use tenon_core::redact::{Book, Class};
use tenon_host::collect::run::{disk_room, user_entries};
use tenon_host::collect::{Collected, Cover, Options, Order, Source, collect, identity, upload};
use tenon_host::stop;

use super::logs_progress::{Style, Teller};
use super::{Global, doctor, node_args, validate};
use crate::output::{self, Failure, Outcome};

const DEFAULT_DIRECTORY: &str = "var/log/tenon";
const PACKED_END: &str = ".tar.gz";
/// Ends of names that say another format.
const OTHER_ENDS: [&str; 12] =
    ["zst", "zstd", "tzst", "xz", "txz", "bz2", "tbz", "tbz2", "lz4", "zip", "7z", "tar"];
/// Memory, for a node whose disk is full.
const SPARE_DIRECTORY: &str = "run/tenon";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Packing {
    Gz,
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// File, directory, or - for standard output [default: /var/log/tenon]
    #[arg(long, value_name = "FILE|DIR|-", value_parser = out)]
    out: Option<PathBuf>,
    /// How the bundle is packed
    #[arg(long, value_enum, value_name = "gz", default_value = "gz")]
    format: Packing,
    /// Journals from then on: 24h, boot, or 2026-11-15T10:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only these groups, or items as GROUP/ID
    #[arg(long, value_name = "G,..", value_delimiter = ',')]
    only: Vec<String>,
    /// All but these
    #[arg(long, value_name = "G,..", value_delimiter = ',')]
    skip: Vec<String>,
    /// Logs of these pods, too
    #[arg(long, value_name = "NS/NAME", value_delimiter = ',')]
    pods: Vec<String>,
    /// Most bytes of all items together
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    max_size: u64,
    /// Most bytes of one item
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_item: Option<u64>,
    /// Longest time for everything
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = node_args::duration)]
    time_budget: Duration,
    /// How many items are read at once [default: CPUs, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16))]
    jobs: Option<u16>,
    /// Leave secrets in; twice to upload such a bundle
    #[arg(long, action = clap::ArgAction::Count)]
    no_redact: u8,
    /// Also replace the words in FILE, one per line
    #[arg(long, value_name = "FILE")]
    redact_also: Option<PathBuf>,
    /// Make no diagnosis for the bundle
    #[arg(long)]
    no_doctor: bool,
    /// Also what takes long, such as the driver's bug report
    #[arg(long)]
    deep: bool,
    /// Let files in /etc/tenon/collect.d run programs
    #[arg(long)]
    allow_commands: bool,
    /// Leave times out, so that equal nodes give equal bundles
    #[arg(long)]
    reproducible: bool,
    /// Send the bundle to a bucket with the node's role; the key may hold
    /// {instance}, {utc} and {cluster}
    #[arg(long, value_name = "s3://BUCKET/KEY", conflicts_with = "upload_url")]
    #[arg(value_parser = packed_name)]
    upload: Option<String>,
    /// Send the bundle with a PUT to a presigned address
    #[arg(long, value_name = "URL")]
    upload_url: Option<String>,
    /// How progress is told
    #[arg(long, value_enum, value_name = "auto|bar|json|none", default_value = "auto")]
    progress: Style,
}

/// Where the bundle goes; a directory may be called as it likes.
fn out(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { packed_name(text).map(PathBuf::from) }
}

/// A name that does not promise another packing than the one that is written.
fn packed_name(text: &str) -> Result<String, String> {
    let end = Path::new(text).extension().map(|end| end.to_ascii_lowercase());
    match OTHER_ENDS.iter().find(|other| end.as_deref() == Some(OsStr::new(other))) {
        Some(other) => {
            Err(format!("the bundle is a gzip, not a .{other}: end the name with {PACKED_END}"))
        }
        None => Ok(text.to_owned()),
    }
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = catalogue::size(text).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "a size such as 512KiB, 10MiB or 1GiB".to_owned())
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let destination = args.destination()?;
    stop::listen()
        .map_err(|error| Problem::new(&codes::usage::BUG, "listening for signals").cause(error))?;
    let started_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let source = Source::root(&global.root)?;
    let since_us = args.since_us(&source, started_s)?;
    let entries = args.entries(&source)?;
    let facts = global.facts.as_deref().map(node_args::read_facts).transpose()?;
    let known = identity::look(&source, facts.as_ref());
    let place = Place::new(args, global, &known.node.instance_id, started_s)?;
    let options = args.options(&place, since_us);
    let book = args.book(&source, known.given.get("user-data"))?;
    let mut given = known.given;
    given.extend(verdicts(args, &source));
    let doctor = summary(&given);
    if !options.redact {
        output::tell("warning: --no-redact: the bundle holds secrets; hand it to nobody else\n");
    }
    let mut teller = Teller::new(args.progress, global.quiet);
    let order = Order { source, entries, options, book, given };
    let collected = collect(order, &mut |progress| teller.tell(progress));
    teller.end();
    let tool = Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("TENON_COMMIT").unwrap_or_default().to_owned(),
    };
    let cover = Cover { tool, node: known.node, started_s, doctor };
    let manifest = collected.manifest(&cover);
    place.write(&collected, &manifest)?;
    let sent = destination.map_or(Ok(()), |destination| {
        let names = upload::Names { cluster: &known.cluster, started_s };
        upload::send(&destination, place.file(), &manifest, known.instance.as_ref(), &names)
    });
    report(&place, &manifest, global)?;
    sent.map_err(|problem| beside(&problem, "error"))?;
    judge(&manifest)
}

impl Args {
    fn destination(&self) -> Result<Option<upload::Destination>, Problem> {
        let wanted = self.upload.as_ref().or(self.upload_url.as_ref());
        let Some(text) = wanted else { return Ok(None) };
        if self.no_redact == 1 {
            return Err(Problem::new(&pages::UPLOAD_UNREDACTED, "secrets would be sent away"));
        }
        if self.out.as_deref() == Some(Path::new("-")) {
            let what = "--out - and an upload exclude each other";
            return Err(Problem::new(&pages::BAD_UPLOAD, what)
                .fix("give --out a file or directory, or leave the upload out"));
        }
        upload::Destination::parse(text).map(Some)
    }

    fn entries(&self, source: &Source) -> Result<Vec<Entry>, Problem> {
        let mut entries = catalogue::embedded()?;
        if let Some(root) = source.root_handle() {
            entries.extend(user_entries(root, self.allow_commands)?);
        }
        check_groups(&self.only, &entries)?;
        check_groups(&self.skip, &entries)?;
        for pod in &self.pods {
            entries.push(catalogue::pod(pod).ok_or_else(|| {
                Problem::new(&pages::BAD_CHOICE, "--pods takes NAMESPACE/NAME")
                    .fix("write --pods default/web-0")
            })?);
        }
        Ok(entries)
    }

    fn options(&self, place: &Place, since_us: Option<u64>) -> Options {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.map_or(cpus.min(4), usize::from);
        let room = place.directory().map_or(0, disk_room);
        Options {
            only: self.only.clone(),
            skip: self.skip.clone(),
            since_us,
            max_size: self.max_size,
            max_item: self.max_item,
            budget: self.time_budget,
            // Numbers of secrets are given in the order in which they are met.
            jobs: if self.reproducible { 1 } else { jobs },
            redact: self.no_redact == 0,
            deep: self.deep,
            reproducible: self.reproducible,
            spool: place.directory().filter(|_| room > 0).map(Path::to_owned),
            disk_room: room,
        }
    }

    fn since_us(&self, source: &Source, now_s: u64) -> Result<Option<u64>, Problem> {
        let Some(text) = self.since.as_deref() else { return Ok(None) };
        let hours = text.strip_suffix('h').map(|hours| (hours, 3600));
        let days = text.strip_suffix('d').map(|days| (days, 86_400));
        let ago =
            hours.or(days).and_then(|(number, unit)| number.parse::<u64>().ok()?.checked_mul(unit));
        let ago = ago.or_else(|| node_args::duration(text).ok().map(|ago| ago.as_secs()));
        let time = match text {
            "boot" => Some(source.boot_start_us().unwrap_or_default()),
            _ => ago.map(|ago| now_s.saturating_sub(ago) * 1_000_000).or_else(|| unstamp(text)),
        };
        let wrong = || Problem::new(&pages::BAD_CHOICE, "--since is neither an age nor a time");
        time.map(Some).ok_or_else(wrong)
    }

    /// What must not be shown: the values of the node's own secrets, and the user's list.
    fn book(&self, source: &Source, user_data: Option<&Vec<u8>>) -> Result<Book, Problem> {
        let mut book = Book::default();
        for value in identity::secrets(source, user_data) {
            book.know(Class::KnownValue, &value);
        }
        if let Some(path) = &self.redact_also {
            let text = std::fs::read_to_string(path).map_err(|error| {
                let what = format!("reading {}", path.display());
                Problem::new(&codes::host::FILE_READ, what).cause(error)
            })?;
            book.know(Class::User, &text);
        }
        Ok(book)
    }
}

/// Refuses names that no entry has.
pub fn check_groups(names: &[String], entries: &[Entry]) -> Result<(), Problem> {
    let known = |name: &String| {
        catalogue::GROUPS.contains(&name.as_str())
            || entries.iter().any(|entry| *name == format!("{}/{}", entry.group, entry.id))
    };
    match names.iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => {
            let near = tenon_core::nearest::nearest(name, catalogue::GROUPS.iter().copied());
            let mut problem = Problem::new(&pages::BAD_CHOICE, "no group or item has this name");
            if let Some(near) = near {
                problem = problem.fix(format!("did you mean `{near}`?"));
            }
            Err(problem)
        }
    }
}

/// Makes one item of the bundle from the source; None when there is nothing to say.
type Maker = fn(&Source) -> Option<Vec<u8>>;

/// Items that other rooms make, besides those of the doctor.
const VERDICTS: &[(&str, Maker)] = &[("validate.json", validate::verdict)];

fn verdicts(args: &Args, source: &Source) -> BTreeMap<String, Vec<u8>> {
    if args.no_doctor {
        return BTreeMap::new();
    }
    // A doctor that cannot look is no reason to collect nothing.
    let mut made = doctor::for_bundle(source).unwrap_or_default();
    let more = VERDICTS.iter().filter_map(|(name, make)| Some(((*name).to_owned(), make(source)?)));
    made.extend(more);
    made
}

/// The verdict in a few words, for manifest and readme.
fn summary(given: &BTreeMap<String, Vec<u8>>) -> Value {
    let doctor =
        given.get("doctor.json").and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    doctor.map_or(Value::Null, |doctor| json!({"top": doctor["causes"][0]["title"]}))
}

/// Where the bundle goes.
enum Place {
    Standard,
    File(PathBuf),
}

impl Place {
    fn new(args: &Args, global: &Global, instance: &str, now_s: u64) -> Result<Place, Problem> {
        if args.out.as_deref() == Some(Path::new("-")) {
            return Ok(Place::Standard);
        }
        let utc: String = stamp(now_s * 1_000_000)
            .chars()
            .take(19)
            .filter(|c| c.is_ascii_alphanumeric())
            .collect();
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let instance: String = instance.chars().map(safe).collect();
        let instance = if instance.is_empty() { "node" } else { &instance };
        let name = format!("tenon-logs_{instance}_{utc}Z{PACKED_END}");
        let directory = match &args.out {
            Some(out) if out.is_dir() => out.clone(),
            Some(out) => return Ok(Place::File(out.clone())),
            None => default_directory(&global.root)?,
        };
        Ok(Place::File(unused(&directory, &name)))
    }

    fn file(&self) -> &Path {
        match self {
            Place::Standard => Path::new("-"),
            Place::File(path) => path,
        }
    }

    fn directory(&self) -> Option<&Path> {
        match self {
            Place::Standard => None,
            Place::File(path) => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                Some(parent.unwrap_or(Path::new(".")))
            }
        }
    }

    fn write(&self, collected: &Collected, manifest: &Manifest) -> Result<(), Problem> {
        match self {
            Place::File(path) => collected.save(manifest, path).map(|_| ()),
            Place::Standard => {
                let mut out = std::io::stdout().lock();
                let written = collected.write(manifest, &mut out).and_then(|()| out.flush());
                written.map_err(|error| {
                    Problem::new(&pages::NOT_WRITTEN, "writing the bundle to standard output")
                        .cause(error)
                })
            }
        }
    }
}

/// The name in the directory, with a number if a bundle of this second is there already.
fn unused(directory: &Path, name: &str) -> PathBuf {
    let (stem, end) = name.split_at(name.len() - PACKED_END.len());
    let numbered = (2..100).map(|number| directory.join(format!("{stem}-{number}{end}")));
    let mut candidates = std::iter::once(directory.join(name)).chain(numbered);
    candidates.find(|path| !path.exists()).unwrap_or_else(|| directory.join(name))
}

/// `/var/log/tenon`, or memory when that has no room.
fn default_directory(root: &Path) -> Result<PathBuf, Problem> {
    // A dead node's volume is evidence: nothing is written to it unasked.
    if root != Path::new("/") {
        return Ok(PathBuf::from("."));
    }
    let usual = root.join(DEFAULT_DIRECTORY);
    let made = make(&usual);
    if made.is_ok() && disk_room(&usual) > 0 {
        return Ok(usual);
    }
    let spare = Path::new("/").join(SPARE_DIRECTORY);
    if make(&spare).is_ok() && disk_room(&spare) > 0 {
        output::tell(&format!(
            "{} has no room; the bundle goes to {}\n",
            usual.display(),
            spare.display()
        ));
        return Ok(spare);
    }
    // Whoever is not root keeps the bundle where they are.
    if made.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
        return Ok(PathBuf::from("."));
    }
    made.map_err(|error| {
        Problem::new(&pages::NOT_WRITTEN, format!("making {}", usual.display())).cause(error)
    })?;
    Ok(usual)
}

fn make(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Says where the bundle is, on standard output, and what it lacks, on standard error.
fn report(place: &Place, manifest: &Manifest, global: &Global) -> Outcome {
    let totals = &manifest.totals;
    if !global.quiet {
        output::tell(&format!(
            "{} items, {} packed, {} secrets replaced{}\n",
            totals.items,
            super::logs_read::size(totals.compressed_bytes),
            totals.redactions,
            if manifest.partial { "; PARTIAL: the run was stopped" } else { "" }
        ));
    }
    let Place::File(path) = place else { return Ok(()) };
    match global.json() {
        false => output::answer(&format!("{}\n", path.display())),
        true => {
            let missing: Vec<String> = manifest.missing().into_iter().map(reason).collect();
            output::answer_json(&json!({
                "schema": "tenon.logs-collect/1", "path": path, "partial": manifest.partial,
                "totals": totals, "missing": missing, "elapsedMs": manifest.elapsed_ms,
            }))
        }
    }
}

/// The exit code of a run whose bundle is written.
fn judge(manifest: &Manifest) -> Outcome {
    stop::check().map_err(|problem| {
        let problem = problem
            .why("the run was asked to stop; the bundle holds what was collected until then")
            .fix("run it again for a whole bundle");
        beside(&problem, "error")
    })?;
    let missing = manifest.missing();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = missing.iter().map(|item| reason(item)).collect();
    let page = if manifest.is_useless() { &pages::NOTHING_READABLE } else { &pages::ITEMS_MISSING };
    let what = format!("{} required items are not in the bundle", missing.len());
    Err(beside(&Problem::new(page, what).details(names), "warning"))
}

/// Tells a problem beside an answer that has been given, whatever its format.
fn beside(problem: &Problem, severity: &str) -> Failure {
    output::tell(&problem.render(severity));
    Failure::Answer(problem.exit())
}
