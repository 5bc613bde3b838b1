//! Fills the cache: the only room here that uses the network. A download goes on where it
//! stopped, is hashed while it streams, and gets its name only when its content is the pinned
//! one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tenon_core::codes::image::{FETCH_REFUSED, FETCH_STOPPED};
use tenon_core::image::item::Act;
use tenon_core::image::packages::Places;
use tenon_core::image::plan::ImagePlan;
use tenon_core::problem::Problem;
use ureq::tls::{RootCerts, TlsConfig};

use super::cache::Cache;
use super::place::{Pinned, wrong_content};
use super::site::{Site, digest_all, hash, hex};
use super::{facts, packages, registry, sources};
use crate::apply::directories::unreadable;
use crate::apply::files::write_problem;
use crate::command;
use crate::gather::aws::proxy;
use crate::gather::environment::Environment;
use crate::root::Root;
use crate::stop;

/// Attempts in a row that brought no byte.
const MOST_BARREN: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);
/// For one attempt; the next one goes on where it stopped.
const ATTEMPT: Duration = Duration::from_secs(1800);
/// No answer, or no byte of a body, for so long ends an attempt.
pub const SILENCE: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: u32 = 5;
const CHUNK: usize = 1 << 16;
const TELL_EVERY: Duration = Duration::from_secs(2);
const PACKAGES_TIME: Duration = Duration::from_secs(3600);

/// What a fetch did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fetched {
    /// Addresses of new files.
    pub files: Vec<String>,
    /// Files that the cache had.
    pub had: usize,
    pub bytes: u64,
    /// Names of packages that were asked for, with all that they need.
    pub packages: Vec<String>,
}

/// Fetches what the plan needs; `root` says which packages are missing, None leaves them out.
pub fn fetch(plan: &ImagePlan, root: Option<&Root>, cache: &Cache) -> Result<Fetched, Problem> {
    let mut fetched = Fetched::default();
    let environment = Environment::of_process();
    for act in plan.downloads() {
        let Some(path) = cache.path(act) else { continue };
        match act {
            _ if path.exists() => fetched.had += 1,
            Act::Download { url, sha256, .. } => {
                let source = Source { pinned: Pinned { sha256, name: url }, headers: &[] };
                fetched.bytes += download(source, &path, &environment, SILENCE)?;
                fetched.files.push(url.clone());
            }
            Act::CachedImage { reference, digest, .. } => {
                let architecture = &plan.architecture;
                fetched.bytes +=
                    registry::pull(reference, digest, architecture, &path, &environment)?;
                fetched.files.push(format!("{reference}@{digest}"));
            }
            _ => {}
        }
    }
    if let Some(root) = root {
        fetched.packages = fetch_packages(plan, root, cache)?;
    }
    Ok(fetched)
}

fn fetch_packages(plan: &ImagePlan, root: &Root, cache: &Cache) -> Result<Vec<String>, Problem> {
    let facts = facts::gather(root)?;
    if let Some(problem) = facts.refuses(plan) {
        return Err(problem.fix("give the root of the image, or --downloads-only"));
    }
    let site = Site::new(root, plan, facts, &|_| stop::check())?;
    let wishes = packages::work(&site).install;
    if wishes.is_empty() {
        return Ok(Vec::new());
    }
    let real = root.path().canonicalize().unwrap_or_else(|_| root.path().to_owned());
    let sources = sources::copy(plan, root, &real, cache)?.display().to_string();
    let (real, directory) = (real.display().to_string(), cache.directory().display().to_string());
    let places = Places {
        root: real.trim_end_matches('/'),
        cache: &directory,
        sources: &sources,
        architecture: &plan.architecture,
    };
    tracing::info!(packages = wishes.len(), "downloading packages and what they need");
    let environment = packages::environment(root, plan.family.manager, cache)?;
    for argv in plan.family.manager.download(places, &wishes) {
        let output = command::run(&argv, PACKAGES_TIME, &environment)?;
        if !output.status.success() {
            let what = format!("`{}` ended with {}", argv.join(" "), output.status);
            return Err(Problem::new(&FETCH_STOPPED, what).details(output.tail));
        }
    }
    Ok(wishes.iter().map(|(name, _)| (*name).to_owned()).collect())
}

/// What came of one attempt.
enum Verdict {
    /// All is there, with this sha256.
    Done(String),
    /// Ask again, from where it stopped.
    Again(String),
    Refused(String),
    /// Something here, not there.
    Local(Problem),
}

/// Where content comes from, and what it must be.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// By its address.
    pub pinned: Pinned<'a>,
    pub headers: &'a [(&'static str, String)],
}

/// Downloads one file and gives its size. `silence` without a byte ends an attempt.
pub fn download(
    source: Source<'_>,
    to: &Path,
    environment: &Environment,
    silence: Duration,
) -> Result<u64, Problem> {
    let pinned = source.pinned;
    let (url, part) = (pinned.name, to.with_extension("part"));
    let (mut barren, mut first) = (0, None);
    let actual = loop {
        let before = size(&part);
        let cause = match watched(agent(environment, url), source, &part, silence)? {
            Verdict::Done(sha256) => break sha256,
            Verdict::Refused(words) => {
                let what = format!("{url} is refused");
                return Err(Problem::new(&FETCH_REFUSED, what).cause(words));
            }
            Verdict::Local(problem) => return Err(problem),
            Verdict::Again(cause) => cause,
        };
        tracing::debug!(url, cause, "asking again");
        barren = if size(&part) > before { 0 } else { barren + 1 };
        if barren >= MOST_BARREN {
            let mut problem = Problem::new(&FETCH_STOPPED, format!("{url} could not be fetched"));
            problem.causes.extend(first);
            problem.causes.push(cause);
            problem.causes.dedup();
            return Err(problem);
        }
        first.get_or_insert(cause);
        stop::sleep(PAUSE * 2_u32.pow(barren))?;
    };
    keep(pinned, &actual, &part, to)
}

/// One attempt on a thread of its own, left behind when it stays silent or a stop is asked for.
fn watched(
    agent: ureq::Agent,
    source: Source<'_>,
    part: &Path,
    silence: Duration,
) -> Result<Verdict, Problem> {
    let left_behind = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let mut request = agent.get(source.pinned.name);
    for (name, value) in source.headers {
        request = request.header(*name, value);
    }
    let work = (source.pinned.name.to_owned(), part.to_owned(), Arc::clone(&left_behind));
    // Nobody listens any more when the attempt was left behind; that send may fail.
    std::thread::spawn(move || drop(sender.send(attempt(request, &work.0, &work.1, &work.2))));
    let (mut grown, mut at) = (size(part), Instant::now());
    loop {
        match receiver.recv_timeout(stop::SLICE) {
            Ok(verdict) => return Ok(verdict),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Ok(Verdict::Again("the attempt ended without an answer".into()));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => stop::check()?,
        }
        let now = size(part);
        if now != grown {
            (grown, at) = (now, Instant::now());
        } else if at.elapsed() >= silence {
            left_behind.store(true, Ordering::Relaxed);
            return Ok(Verdict::Again(format!("no byte for {} s", silence.as_secs_f32())));
        }
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Gives a whole download its name, if it is what was pinned.
fn keep(pinned: Pinned<'_>, actual: &str, part: &Path, to: &Path) -> Result<u64, Problem> {
    let told = |error: io::Error| write_problem("keeping", &to.display().to_string(), error);
    let length = size(part);
    if actual != pinned.sha256 {
        fs::remove_file(part).map_err(told)?;
        return Err(wrong_content(pinned, actual));
    }
    File::open(part).and_then(|file| file.sync_all()).map_err(told)?;
    fs::rename(part, to).map_err(told)?;
    let parent = to.parent().map_or_else(PathBuf::new, Path::to_owned);
    File::open(parent).and_then(|directory| directory.sync_all()).map_err(told)?;
    tracing::info!(url = pinned.name, bytes = length, "fetched");
    Ok(length)
}

pub fn agent(environment: &Environment, url: &str) -> ureq::Agent {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(provider)
        .root_certs(RootCerts::WebPki)
        .build();
    ureq::Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy(environment, url))
        .http_status_as_error(false)
        .max_redirects(MOST_REDIRECTS)
        .timeout_global(Some(ATTEMPT))
        .timeout_connect(Some(SILENCE))
        .timeout_recv_response(Some(SILENCE))
        .build()
        .new_agent()
}

fn attempt(
    mut request: ureq::RequestBuilder<ureq::typestate::WithoutBody>,
    url: &str,
    part: &Path,
    left_behind: &AtomicBool,
) -> Verdict {
    let have = size(part);
    if have > 0 {
        request = request.header("range", format!("bytes={have}-"));
    }
    let mut response = match request.call() {
        Ok(response) => response,
        Err(error) => return Verdict::Again(error.to_string()),
    };
    let status = response.status().as_u16();
    let length = response.headers().get("content-length");
    let length: Option<u64> = length.and_then(|value| value.to_str().ok()?.parse().ok());
    let from = match status {
        200 => 0,
        206 => have,
        // The part is as long as the file or longer: only the hash can tell.
        416 if have > 0 => {
            return match File::open(part).and_then(|file| hash(file.into())) {
                Ok(sha256) => Verdict::Done(sha256),
                Err(error) => Verdict::Local(unreadable(&part.display().to_string(), error)),
            };
        }
        429 | 500..=599 => return Verdict::Again(format!("status {status}")),
        _ => return Verdict::Refused(format!("status {status}")),
    };
    let body = response.body_mut().as_reader();
    match take(body, url, part, (from, length), left_behind) {
        Ok(verdict) => verdict,
        Err(error) => Verdict::Local(write_problem("writing", &part.display().to_string(), error)),
    }
}

/// Writes a body behind what is there. An error is one of the disk.
fn take(
    mut body: impl Read,
    url: &str,
    part: &Path,
    (from, length): (u64, Option<u64>),
    left_behind: &AtomicBool,
) -> io::Result<Verdict> {
    let mut file =
        OpenOptions::new().create(true).truncate(false).read(true).write(true).open(part)?;
    file.set_len(from)?;
    let mut digest = Sha256::new();
    // Reads what is there, and stands at its end.
    digest_all(&file, &mut digest)?;
    let (started, mut told) = (Instant::now(), Instant::now());
    let mut chunk = vec![0; CHUNK];
    let mut count = 0_u64;
    loop {
        match body.read(&mut chunk) {
            Ok(0) => break,
            // Another attempt writes to the file by now.
            Ok(_) if left_behind.load(Ordering::Relaxed) => {
                return Ok(Verdict::Again("left behind".into()));
            }
            Ok(more) => {
                file.write_all(&chunk[..more])?;
                digest.update(&chunk[..more]);
                count += more as u64;
            }
            Err(error) => return Ok(Verdict::Again(error.to_string())),
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let whole = length.map(|length| from + length);
            tracing::info!("{}", progress(url, from + count, whole, count, started.elapsed()));
        }
    }
    Ok(match length {
        Some(length) if count < length => Verdict::Again(format!("{count} of {length} bytes came")),
        _ => Verdict::Done(hex(digest)),
    })
}

/// How far a download is, how fast it goes and how long it takes yet.
fn progress(url: &str, done: u64, whole: Option<u64>, new: u64, time: Duration) -> String {
    let name = url.rsplit('/').next().unwrap_or(url);
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let rate = new as f64 / time.as_secs_f64().max(0.001);
    let rest = whole.map(|whole| {
        let left = whole.saturating_sub(done) as f64 / rate.max(1.0);
        format!(" of {} MB, {:.1} MB/s, {left:.0} s left", megabytes(whole), rate / 1e6)
    });
    let rest = rest.unwrap_or_else(|| format!(" MB, {:.1} MB/s", rate / 1e6));
    format!("{name}: {}{rest}", megabytes(done))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends half of it and then nothing more, without closing.
    #[test]
    fn a_silent_server_is_asked_again() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for (stream, number) in listener.incoming().zip(0..) {
                let mut stream = stream.unwrap();
                let mut head = [0; 1024];
                let count = stream.read(&mut head).unwrap();
                let resumed = head[..count].windows(14).any(|words| words == b"range: bytes=4");
                let text = match (number, resumed) {
                    (0, _) => "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf",
                    (_, true) => "HTTP/1.1 206 Rest\r\ncontent-length: 4\r\n\r\nrest",
                    (_, false) => "HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n",
                };
                stream.write_all(text.as_bytes()).unwrap();
                kept.push(stream);
            }
        });
        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("file");
        let sha256 = tenon_core::plan::digest::sha256(b"halfrest");
        let source = Source { pinned: Pinned { sha256: &sha256, name: &url }, headers: &[] };
        let silence = Duration::from_millis(300);
        assert_eq!(download(source, &to, &Environment::default(), silence).unwrap(), 8);
        assert_eq!(fs::read(to).unwrap(), b"halfrest");
    }

    #[test]
    fn progress_tells_bytes_rate_and_rest() {
        let time = Duration::from_secs(4);
        let told = progress("http://x/kubelet", 20_000_000, Some(60_000_000), 16_000_000, time);
        assert_eq!(told, "kubelet: 20.0 of 60.0 MB, 4.0 MB/s, 10 s left");
        let told = progress("http://x/kubelet", 20_000_000, None, 16_000_000, time);
        assert_eq!(told, "kubelet: 20.0 MB, 4.0 MB/s");
    }
}
