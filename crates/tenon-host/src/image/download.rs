//! Downloads one file: goes on where an earlier attempt stopped, begins anew where that cannot be,
//! and gives a file its name only when what lies on the disk is the pinned content.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tenon_core::codes::image::{FETCH_REFUSED, FETCH_STOPPED};
use tenon_core::problem::Problem;
use ureq::tls::{RootCerts, TlsConfig};

use super::place::{Pinned, wrong_content};
use super::site::hash;
use crate::apply::directories::unreadable;
use crate::apply::files::write_problem;
use crate::gather::aws::proxy;
use crate::gather::environment::Environment;
use crate::stop;

/// Attempts in a row that brought no byte.
const MOST_BARREN: u32 = 4;
/// For one attempt; the next one goes on where it stopped.
const ATTEMPT: Duration = Duration::from_secs(1800);
const SILENCE: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: u32 = 5;
const CHUNK: usize = 1 << 16;
const TELL_EVERY: Duration = Duration::from_secs(2);

/// How long a download may take, and how much it may bring.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// No answer, or no byte of a body, for so long ends an attempt.
    pub silence: Duration,
    /// All attempts together.
    pub whole: Duration,
    /// Before the second attempt; later ones wait longer.
    pub pause: Duration,
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let (whole, pause) = (Duration::from_secs(4 * 3600), Duration::from_millis(500));
        Limits { silence: SILENCE, whole, pause, bytes: 8 << 30 }
    }
}

/// Where content comes from, and what it must be.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// By its address.
    pub pinned: Pinned<'a>,
    pub headers: &'a [(&'static str, String)],
}

/// What came of one attempt.
enum Verdict {
    /// The body ended. Not all of the file may be of this attempt.
    Done {
        resumed: bool,
    },
    /// Ask again, from where it stopped.
    Again(String),
    Refused(String),
    /// Something here, not there.
    Local(Problem),
}

/// Downloads one file and gives its size.
pub fn download(
    source: Source<'_>,
    to: &Path,
    environment: &Environment,
    limits: Limits,
) -> Result<u64, Problem> {
    let pinned = source.pinned;
    let (url, part) = (pinned.name, to.with_extension("part"));
    let (end, mut barren, mut begun_anew) = (Instant::now() + limits.whole, 0, false);
    // Progress is what goes beyond all earlier attempts: one that begins anew may only repeat them.
    let (mut furthest, mut first) = (size(&part), None);
    loop {
        let cause = match watched(agent(environment, url), source, &part, limits)? {
            Verdict::Done { resumed } => match keep(pinned, &part, to)? {
                Ok(length) => return Ok(length),
                // The beginning may be of another file than the end.
                Err(_) if resumed && !begun_anew => {
                    (begun_anew, furthest) = (true, 0);
                    continue;
                }
                Err(actual) => return Err(wrong_content(pinned, &actual)),
            },
            Verdict::Refused(words) => {
                let what = format!("{url} is refused");
                return Err(Problem::new(&FETCH_REFUSED, what).cause(words));
            }
            Verdict::Local(problem) => return Err(problem),
            Verdict::Again(cause) => cause,
        };
        tracing::debug!(url, cause, "asking again");
        barren = if size(&part) > furthest { 0 } else { barren + 1 };
        furthest = furthest.max(size(&part));
        let late = Instant::now() >= end;
        if barren >= MOST_BARREN || late {
            let limit = late.then(|| format!("not whole after {} s", limits.whole.as_secs_f32()));
            let mut problem = Problem::new(&FETCH_STOPPED, format!("{url} could not be fetched"));
            problem.causes.extend(first.into_iter().chain([cause]).chain(limit));
            problem.causes.dedup();
            return Err(problem);
        }
        first.get_or_insert(cause);
        stop::sleep(limits.pause * 2_u32.pow(barren))?;
    }
}

/// True once nobody waits for the attempt any more: another one may write to the file by now.
type LeftBehind = Arc<Mutex<bool>>;

/// One attempt on a thread of its own, left behind when it stays silent or a stop is asked for.
fn watched(
    agent: ureq::Agent,
    source: Source<'_>,
    part: &Path,
    limits: Limits,
) -> Result<Verdict, Problem> {
    let left_behind = LeftBehind::default();
    let (sender, receiver) = mpsc::channel();
    let mut request = agent.get(source.pinned.name);
    for (name, value) in source.headers {
        request = request.header(*name, value);
    }
    let url = source.pinned.name.to_owned();
    let work =
        Attempt { url, part: part.to_owned(), limits, left_behind: Arc::clone(&left_behind) };
    // Nobody listens any more when the attempt was left behind; that send may fail.
    std::thread::spawn(move || drop(sender.send(work.run(request))));
    let verdict = wait(&receiver, part, limits.silence);
    *left_behind.lock().unwrap_or_else(PoisonError::into_inner) = true;
    verdict
}

fn wait(
    receiver: &mpsc::Receiver<Verdict>,
    part: &Path,
    silence: Duration,
) -> Result<Verdict, Problem> {
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
            return Ok(Verdict::Again(format!("no byte for {} s", silence.as_secs_f32())));
        }
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Gives a whole download its name, if what lies on the disk is what was pinned; else its sha256,
/// and nothing is kept.
fn keep(pinned: Pinned<'_>, part: &Path, to: &Path) -> Result<Result<u64, String>, Problem> {
    let told = |error: io::Error| write_problem("keeping", &to.display().to_string(), error);
    let actual = File::open(part).and_then(|file| hash(file.into())).map_err(told)?;
    if actual != pinned.sha256 {
        fs::remove_file(part).map_err(told)?;
        return Ok(Err(actual));
    }
    let length = size(part);
    File::open(part).and_then(|file| file.sync_all()).map_err(told)?;
    fs::rename(part, to).map_err(told)?;
    let parent = to.parent().unwrap_or(Path::new("."));
    File::open(parent).and_then(|directory| directory.sync_all()).map_err(told)?;
    tracing::info!(url = pinned.name, bytes = length, "fetched");
    Ok(Ok(length))
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

struct Attempt {
    url: String,
    part: std::path::PathBuf,
    limits: Limits,
    left_behind: LeftBehind,
}

impl Attempt {
    fn run(&self, mut request: ureq::RequestBuilder<ureq::typestate::WithoutBody>) -> Verdict {
        let have = size(&self.part);
        if have > 0 {
            request = request.header("range", format!("bytes={have}-"));
        }
        let mut response = match request.call() {
            Ok(response) => response,
            Err(error @ (ureq::Error::TooManyRedirects | ureq::Error::BadUri(_))) => {
                return Verdict::Refused(error.to_string());
            }
            Err(error) => return Verdict::Again(error.to_string()),
        };
        let header =
            |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let length: Option<u64> = header("content-length").and_then(|text| text.parse().ok());
        let from = match (response.status().as_u16(), header("content-range").and_then(start)) {
            (200, _) => 0,
            (206, None) => have,
            (206, Some(from)) if from <= have => from,
            // The part is as long as the file or longer: only the hash can tell.
            (416, _) if have > 0 => return Verdict::Done { resumed: true },
            (status @ (206 | 408 | 429 | 500..=599), _) => {
                return Verdict::Again(format!("status {status}"));
            }
            (status, _) => return Verdict::Refused(format!("status {status}")),
        };
        let body = response.body_mut().as_reader();
        let local = |error| {
            let path = self.part.display().to_string();
            Verdict::Local(match fs::metadata(&self.part) {
                Ok(_) => write_problem("writing", &path, error),
                Err(_) => unreadable(&path, error),
            })
        };
        self.take(body, from, length).unwrap_or_else(local)
    }

    /// Writes a body behind what is there. An error is one of the disk.
    fn take(&self, mut body: impl Read, from: u64, length: Option<u64>) -> io::Result<Verdict> {
        let mut file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&self.part)?;
        let (started, mut told) = (Instant::now(), Instant::now());
        let mut chunk = vec![0; CHUNK];
        let mut count = 0_u64;
        self.unless_left(|| {
            file.set_len(from)?;
            file.seek(SeekFrom::Start(from)).map(|_| ())
        })?;
        loop {
            let more = match body.read(&mut chunk) {
                Ok(0) => break,
                Ok(more) => more,
                Err(error) => return Ok(Verdict::Again(error.to_string())),
            };
            self.unless_left(|| file.write_all(&chunk[..more]))?;
            count += more as u64;
            if from + count > self.limits.bytes {
                self.unless_left(|| fs::remove_file(&self.part))?;
                let words = format!("more than {} bytes came", self.limits.bytes);
                return Ok(Verdict::Refused(words));
            }
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                let whole = length.map(|length| from + length);
                let done = from + count;
                tracing::info!("{}", progress(&self.url, done, whole, count, started.elapsed()));
            }
        }
        Ok(match length {
            Some(length) if count < length => {
                Verdict::Again(format!("{count} of {length} bytes came"))
            }
            _ => Verdict::Done { resumed: from > 0 },
        })
    }

    /// Does something to the file while this attempt is the one that may.
    fn unless_left(&self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let left = self.left_behind.lock().unwrap_or_else(PoisonError::into_inner);
        if *left { Err(io::Error::other("left behind")) } else { work() }
    }
}

/// The first byte of `bytes 100-199/200`.
fn start(range: &str) -> Option<u64> {
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
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
        let sha256 = tenon_core::hex::sha256(b"halfrest");
        let source = Source { pinned: Pinned { sha256: &sha256, name: &url }, headers: &[] };
        let limits = Limits { silence: Duration::from_millis(300), ..Limits::default() };
        assert_eq!(download(source, &to, &Environment::default(), limits).unwrap(), 8);
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
