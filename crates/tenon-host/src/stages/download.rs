//! Fetching a bundle or an image into a file: resumed where it was cut, repeated by class.
//!
//! Transport errors, 408, 429 and 5xx are repeated five times with back-off. A 404 is a wait:
//! the installer may still be uploading. Any other status is final.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tenon_core::codes::stages as pages;
use tenon_core::problem::Problem;
use ureq::tls::{Certificate, RootCerts};

use super::disk;
use crate::gather::aws::transport::trusting_agent;
use crate::gather::environment::Environment;
use crate::gather::imds::pace::Jitter;
use crate::root::Root;
use crate::stop;

const TRIES: u32 = 5;
/// First and largest pause between tries, before jitter.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// For one try; a bundle is at most some 64 MiB.
const BOUND: Duration = Duration::from_secs(600);
/// How much is written between two looks at the stop flag.
const CHUNK: usize = 64 << 10;

/// Where something is fetched from.
pub struct Source<'a> {
    pub environment: &'a Environment,
    /// PEM of CAs that are trusted instead of the public ones; empty: the public ones.
    pub authorities: &'a [Vec<u8>],
    /// Makes the request. It is asked anew for every try, since signatures age.
    pub request: &'a dyn Fn() -> Result<http::Request<()>, Problem>,
    /// Pauses between tries, moved by tests.
    pub pause: (Duration, Duration),
}

impl<'a> Source<'a> {
    pub fn new(
        environment: &'a Environment,
        authorities: &'a [Vec<u8>],
        request: &'a dyn Fn() -> Result<http::Request<()>, Problem>,
    ) -> Self {
        Source { environment, authorities, request, pause: PAUSE }
    }
}

/// What came of a download.
#[derive(Debug, PartialEq, Eq)]
pub enum Fetched {
    Bytes(u64),
    /// The store has no such object (yet).
    Absent,
}

/// What one try came to.
enum Tried {
    Whole(u64),
    Absent,
    /// Worth another try, and why.
    Cut(String),
    Refused(u16),
}

/// Fetches into the file at a node path, at most `cap` bytes.
pub fn fetch(root: &Root, source: &Source<'_>, path: &str, cap: u64) -> Result<Fetched, Problem> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
    disk::make(root, disk::split(path).0, 0o700)?;
    let opened = root.open_at(path, flags, Mode::from_raw_mode(0o600));
    let mut file = File::from(opened.map_err(|error| write_problem(path, error))?);
    let (mut ceiling, mut jitter) = (source.pause.0, Jitter::seeded());
    let (mut causes, mut etag) = (Vec::new(), None);
    for number in 1..=TRIES {
        let cause = match attempt(source, &mut file, &mut etag, cap)? {
            Tried::Whole(count) => {
                file.sync_all().map_err(|error| write_problem(path, error))?;
                return Ok(Fetched::Bytes(count));
            }
            Tried::Absent => return Ok(Fetched::Absent),
            Tried::Refused(status) => {
                let what = format!("the store answered with status {status}");
                return Err(Problem::new(&pages::ASSETS_REFUSED, what));
            }
            Tried::Cut(cause) => cause,
        };
        tracing::warn!(number, cause, "a try to fetch ended early");
        // The first and the last cause are kept.
        causes.truncate(1);
        causes.push(cause);
        if number < TRIES {
            stop::sleep(jitter.below(ceiling))?;
        }
        ceiling = (ceiling * 2).min(source.pause.1);
    }
    let what = format!("{TRIES} tries gave no whole answer");
    let mut problem = Problem::new(&pages::ASSETS_UNREACHABLE, what);
    causes.dedup();
    problem.causes = causes;
    Err(problem)
}

fn write_problem(path: &str, error: io::Error) -> Problem {
    Problem::new(&tenon_core::codes::host::FILE_WRITE, format!("writing {path}")).cause(error)
}

/// One request. What is in the file already is kept if the store can continue it.
fn attempt(
    source: &Source<'_>,
    file: &mut File,
    etag: &mut Option<String>,
    cap: u64,
) -> Result<Tried, Problem> {
    let held = file.metadata().map_or(0, |data| data.len());
    let offset = if etag.is_some() { held } else { 0 };
    let mut request = (source.request)()?;
    if let (Some(tag), 1..) = (&etag, offset) {
        add(&mut request, "range", &format!("bytes={offset}-"));
        add(&mut request, "if-range", tag);
    }
    let url = request.uri().to_string();
    let agent = trusting_agent(source.environment, &url, BOUND, roots(source.authorities));
    let mut response = match agent.run(request) {
        Ok(response) => response,
        Err(error) => return Ok(Tried::Cut(error.to_string())),
    };
    let from = match response.status().as_u16() {
        200 => 0,
        206 if offset > 0 => offset,
        404 => return Ok(Tried::Absent),
        status @ (408 | 429 | 500..=599) => return Ok(Tried::Cut(format!("status {status}"))),
        status => return Ok(Tried::Refused(status)),
    };
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    *etag = header("etag").map(str::to_owned);
    let expected = header("content-length").and_then(|text| text.parse::<u64>().ok());
    if expected.is_some_and(|length| from.saturating_add(length) > cap) {
        return Err(too_large(cap));
    }
    copy(response.body_mut().as_reader(), file, from, expected, cap)
}

/// Appends the body at an offset. A body that ends early is a cut, whatever the transport says.
fn copy(
    mut body: impl Read,
    file: &mut File,
    from: u64,
    expected: Option<u64>,
    cap: u64,
) -> Result<Tried, Problem> {
    let mut count = from;
    let mut buffer = vec![0; CHUNK];
    let wrong = |error: io::Error| write_problem("the download", error);
    file.set_len(from).map_err(wrong)?;
    file.seek(SeekFrom::Start(from)).map_err(wrong)?;
    loop {
        stop::check()?;
        let read = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) => return Ok(Tried::Cut(error.to_string())),
        };
        count += read as u64;
        if count > cap {
            return Err(too_large(cap));
        }
        file.write_all(&buffer[..read]).map_err(wrong)?;
    }
    match expected {
        Some(length) if from + length != count => {
            Ok(Tried::Cut(format!("the body ended after {count} of {} bytes", from + length)))
        }
        _ => Ok(Tried::Whole(count)),
    }
}

fn too_large(cap: u64) -> Problem {
    Problem::new(&pages::BAD_BUNDLE, format!("the object has more than {cap} bytes"))
}

/// Adds a header that no signature covers.
fn add(request: &mut http::Request<()>, name: &'static str, value: &str) {
    if let Ok(value) = http::HeaderValue::from_str(value) {
        request.headers_mut().insert(name, value);
    }
}

/// The CAs of a config, or the public ones.
pub fn roots(authorities: &[Vec<u8>]) -> RootCerts {
    let certificates: Vec<Certificate<'static>> = authorities
        .iter()
        .flat_map(|pem| ureq::tls::parse_pem(pem))
        .filter_map(|item| match item {
            Ok(ureq::tls::PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    match certificates.is_empty() {
        true => RootCerts::WebPki,
        false => RootCerts::Specific(std::sync::Arc::new(certificates)),
    }
}
