//! `s3:PutObject`: one file to a bucket, with the node's role.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use tenon_core::codes::logs::UPLOAD_REFUSED;
use tenon_core::problem::Problem;

use super::Cloud;
use super::credentials::Signer;
use super::ec2::encode;
use super::endpoint::{self, Service};
use super::transport::{agent, words};
use crate::gather::environment::Environment;
use crate::stop;

/// For everything: credentials, tries and pauses.
const BOUND: Duration = Duration::from_secs(60);
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// How much of an answer is read for its words.
const ANSWER: u64 = 8 << 10;

/// What a server said to a PUT.
struct Said {
    status: u16,
    /// Where the bucket lives, when that is elsewhere.
    region: Option<String>,
    words: String,
}

/// Sends a file as `s3://bucket/key`.
pub fn put(cloud: &mut Cloud<'_>, bucket: &str, key: &str, file: &Path) -> Result<(), Problem> {
    let end = Instant::now() + BOUND;
    let digest = digest(file)?;
    let signer = cloud.signer(end)?;
    let mut region = cloud.region().to_owned();
    let environment = cloud.environment().clone();
    let mut moved = false;
    repeat(end, || {
        let url = object_url(&region, bucket, key, &environment)?;
        let headers = headers(&url, &region, &signer, &digest)?;
        let said = send(&environment, &url, &headers, file, end)?;
        // The bucket is asked where it lives once, by its own answer.
        if let (Some(home), false, 300..=400) = (&said.region, moved, said.status) {
            region.clone_from(home);
            moved = true;
            return Ok(None);
        }
        Ok(Some(said))
    })
}

/// Sends a file to an address that carries its own permission.
pub fn put_presigned(environment: &Environment, url: &str, file: &Path) -> Result<(), Problem> {
    let end = Instant::now() + BOUND;
    repeat(end, || send(environment, url, &[], file, end).map(Some))
}

/// Tries until the server takes it, refuses it, or time or tries are spent.
fn repeat(
    end: Instant,
    mut attempt: impl FnMut() -> Result<Option<Said>, Problem>,
) -> Result<(), Problem> {
    let mut causes: Vec<String> = Vec::new();
    let mut tries = 0;
    while tries < TRIES && Instant::now() < end {
        match attempt()? {
            None => continue,
            Some(said) => match said.status {
                200..=299 => return Ok(()),
                0 | 429 | 500..=599 => causes.push(said.words),
                status => {
                    let what = format!("the upload was refused with status {status}");
                    return Err(Problem::new(&UPLOAD_REFUSED, what).cause(said.words));
                }
            },
        }
        tries += 1;
        stop::sleep(PAUSE * tries)?;
    }
    causes.dedup();
    let mut problem =
        Problem::new(&UPLOAD_REFUSED, format!("the upload did not succeed in {tries} tries"));
    problem.causes = causes;
    Err(problem)
}

/// Path style for addresses that the user gave and for names that no certificate covers.
fn object_url(
    region: &str,
    bucket: &str,
    key: &str,
    environment: &Environment,
) -> Result<String, Problem> {
    let base = endpoint::url(Service::S3, region, environment)?;
    let key: Vec<String> = key.split('/').map(encode).collect();
    let key = key.join("/");
    let usual = format!("https://s3.{region}.");
    Ok(match base.strip_prefix(&usual) {
        Some(domain) if !bucket.contains('.') => {
            format!("https://{bucket}.s3.{region}.{domain}/{key}")
        }
        _ => format!("{base}/{bucket}/{key}"),
    })
}

fn digest(file: &Path) -> Result<[u8; 32], Problem> {
    let unread = |error: std::io::Error| {
        let what = format!("reading {}", file.display());
        Problem::new(&tenon_core::codes::host::FILE_READ, what).cause(error)
    };
    let mut hash = Sha256::new();
    let mut reader = File::open(file).map_err(unread)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match std::io::Read::read(&mut reader, &mut buffer).map_err(unread)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// The signed headers of a PUT.
fn headers(
    url: &str,
    region: &str,
    signer: &Signer,
    digest: &[u8; 32],
) -> Result<Vec<(String, String)>, Problem> {
    let bug = |error: &dyn std::error::Error| {
        Problem::new(&tenon_core::codes::usage::BUG, "signing an upload").cause(error)
    };
    let hex = tenon_core::hex::hex(digest);
    let own = [
        ("x-amz-server-side-encryption", "AES256".to_owned()),
        ("x-amz-checksum-sha256", STANDARD.encode(digest)),
    ];
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let identity = signer.credentials.clone().into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(Service::S3.name())
        .time(SystemTime::now())
        .settings(settings)
        .build()
        .map_err(|error| bug(&error))?
        .into();
    let signed = own.iter().map(|(name, value)| (*name, value.as_str()));
    let request = SignableRequest::new("PUT", url, signed, SignableBody::Precomputed(hex))
        .map_err(|error| bug(&error))?;
    let (instructions, _) = sign(request, &parameters).map_err(|error| bug(&error))?.into_parts();
    let added = instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(own.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).chain(added).collect())
}

/// One PUT. What goes wrong on the way is a status of 0.
fn send(
    environment: &Environment,
    url: &str,
    headers: &[(String, String)],
    file: &Path,
    end: Instant,
) -> Result<Said, Problem> {
    let body = File::open(file).map_err(|error| {
        let what = format!("reading {}", file.display());
        Problem::new(&tenon_core::codes::host::FILE_READ, what).cause(error)
    })?;
    let left = end.saturating_duration_since(Instant::now());
    let agent = agent(environment, url, left);
    let mut request = agent.put(url).header("content-type", "application/gzip");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    Ok(match request.send(body) {
        Ok(mut response) => {
            let region = response.headers().get("x-amz-bucket-region");
            let region = region.and_then(|value| value.to_str().ok()).map(str::to_owned);
            let mut text = String::new();
            let reader = response.body_mut().as_reader();
            // The words are a help; an answer that breaks off has fewer of them.
            let _ =
                std::io::Read::read_to_string(&mut std::io::Read::take(reader, ANSWER), &mut text);
            Said { status: response.status().as_u16(), region, words: words(&text) }
        }
        // An address may carry a signature: errors of the client name no address.
        Err(error) => Said { status: 0, region: None, words: error.to_string() },
    })
}
