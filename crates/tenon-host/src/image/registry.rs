//! Brings a container image from its registry into the cache, as one OCI archive: the pinned
//! digest, the manifest of this architecture, its config and its layers. Every part is named by
//! its own hash, so it is fetched like any other download.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenon_core::codes::image::{BAD_ARCHIVE, FETCH_REFUSED, FETCH_STOPPED};
use tenon_core::image::cached::digits;
use tenon_core::problem::Problem;

use super::download::{Limits, Source, agent, download};
use super::place::Pinned;
use crate::apply::files::write_problem;
use crate::gather::environment::Environment;

const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json, */*";
/// A manifest names layers; it holds none.
const LARGEST_MANIFEST: u64 = 4 << 20;
const LARGEST_ANSWER: u64 = 1 << 20;

/// Where an image lies.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    base: String,
    name: String,
}

/// Registry and repository of a reference, without tag. A registry on this machine speaks HTTP.
fn place(reference: &str) -> Place {
    let (host, name) = match reference.split_once('/') {
        Some((host, name)) if host.contains(['.', ':']) || host == "localhost" => (host, name),
        _ => ("registry-1.docker.io", reference),
    };
    let name = name.split(':').next().unwrap_or(name);
    let official = host == "registry-1.docker.io" && !name.contains('/');
    let name = if official { format!("library/{name}") } else { name.to_owned() };
    let local = host.starts_with("127.0.0.1") || host.starts_with("localhost");
    let scheme = if local { "http" } else { "https" };
    Place { base: format!("{scheme}://{host}/v2"), name }
}

/// Fetches an image and gives the size of its archive.
pub fn pull(
    reference: &str,
    digest: &str,
    architecture: &str,
    to: &Path,
    environment: &Environment,
) -> Result<u64, Problem> {
    let place = place(reference);
    let mut headers = vec![("accept", ACCEPT.to_owned())];
    headers.extend(token(&place, environment)?.map(|token| ("authorization", token)));
    let parts = to.with_extension("parts");
    fs::create_dir_all(&parts).map_err(|error| told(&parts, error))?;
    let pull = Pull { place, headers, parts: &parts, environment };
    let mut blobs = BTreeMap::new();
    let top = pull.manifest(digest, &mut blobs)?;
    let manifest = match top["manifests"].as_array() {
        Some(list) => pull.manifest(chosen(list, architecture, reference)?, &mut blobs)?,
        None => top.clone(),
    };
    let layers = manifest["layers"].as_array().into_iter().flatten();
    for one in [&manifest["config"]].into_iter().chain(layers) {
        let digest = one["digest"].as_str().unwrap_or_default();
        pull.blob("blobs", digest, &mut blobs)?;
    }
    let kind = match top["manifests"].is_array() {
        true => "application/vnd.oci.image.index.v1+json",
        false => "application/vnd.oci.image.manifest.v1+json",
    };
    let kind = top["mediaType"].as_str().unwrap_or(kind);
    let length = archive(to, digest, kind, &blobs).map_err(|error| told(to, error))?;
    fs::remove_dir_all(&parts).map_err(|error| told(&parts, error))?;
    tracing::info!(reference, bytes = length, "fetched");
    Ok(length)
}

fn told(path: &Path, error: io::Error) -> Problem {
    write_problem("keeping", &path.display().to_string(), error)
}

/// The digest of the manifest for this architecture.
fn chosen<'v>(list: &'v [Value], architecture: &str, reference: &str) -> Result<&'v str, Problem> {
    let name = if architecture == "aarch64" { "arm64" } else { "amd64" };
    let fits =
        |one: &&Value| one["platform"]["architecture"] == name && one["platform"]["os"] == "linux";
    let digest = list.iter().find(fits).and_then(|one| one["digest"].as_str());
    digest.ok_or_else(|| {
        Problem::new(&FETCH_REFUSED, format!("{reference} has no image for linux on {name}"))
    })
}

struct Pull<'a> {
    place: Place,
    headers: Vec<(&'static str, String)>,
    parts: &'a Path,
    environment: &'a Environment,
}

impl Pull<'_> {
    /// Fetches one part of the image, named by its hash.
    fn blob(
        &self,
        kind: &str,
        digest: &str,
        blobs: &mut BTreeMap<String, PathBuf>,
    ) -> Result<PathBuf, Problem> {
        let Some(sha256) = digits(digest) else {
            let what = format!("{} names a part without a sha256", self.place.name);
            return Err(Problem::new(&BAD_ARCHIVE, what));
        };
        let url = format!("{}/{}/{kind}/{digest}", self.place.base, self.place.name);
        let path = self.parts.join(sha256);
        if !path.exists() {
            let pinned = Pinned { sha256, name: &url };
            let source = Source { pinned, headers: &self.headers };
            download(source, &path, self.environment, Limits::default())?;
        }
        blobs.insert(sha256.to_owned(), path.clone());
        Ok(path)
    }

    fn manifest(
        &self,
        digest: &str,
        blobs: &mut BTreeMap<String, PathBuf>,
    ) -> Result<Value, Problem> {
        let path = self.blob("manifests", digest, blobs)?;
        let mut bytes = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(LARGEST_MANIFEST).read_to_end(&mut bytes));
        read.map_err(|error| told(&path, error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let what = format!("the manifest of {} is no JSON", self.place.name);
            Problem::new(&BAD_ARCHIVE, what).cause(error)
        })
    }
}

/// The value of `Authorization`, if the registry asks for one: a token that anybody gets.
fn token(place: &Place, environment: &Environment) -> Result<Option<String>, Problem> {
    let probe = format!("{}/", place.base);
    let failed = |url: &str, error: ureq::Error| {
        Problem::new(&FETCH_STOPPED, format!("asking {url}")).cause(error)
    };
    let answer = agent(environment, &probe).get(&probe).call().map_err(|e| failed(&probe, e))?;
    let challenge = answer.headers().get("www-authenticate");
    let challenge = challenge.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (401, Some(realm)) = (answer.status().as_u16(), quoted(challenge, "realm")) else {
        return Ok(None);
    };
    let service = quoted(challenge, "service").unwrap_or_default();
    let url = format!("{realm}?service={service}&scope=repository:{}:pull", place.name);
    let mut answer = agent(environment, &url).get(&url).call().map_err(|e| failed(realm, e))?;
    let mut text = String::new();
    let read = answer.body_mut().as_reader().take(LARGEST_ANSWER).read_to_string(&mut text);
    let value: Value = read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default();
    let token = value["token"].as_str().or_else(|| value["access_token"].as_str());
    match token {
        Some(token) => Ok(Some(format!("Bearer {token}"))),
        None => {
            let what = format!("{realm} gives no token for {}", place.name);
            Err(Problem::new(&FETCH_REFUSED, what).cause(format!("status {}", answer.status())))
        }
    }
}

/// `name="value"` of a challenge.
fn quoted<'t>(challenge: &'t str, name: &str) -> Option<&'t str> {
    let start = format!("{name}=\"");
    let rest = &challenge[challenge.find(&start)? + start.len()..];
    rest.split('"').next()
}

/// Writes the archive: the same parts give the same bytes.
fn archive(
    to: &Path,
    digest: &str,
    kind: &str,
    blobs: &BTreeMap<String, PathBuf>,
) -> io::Result<u64> {
    let top = blobs.get(digits(digest).unwrap_or_default());
    let size = top.map_or(Ok(0), |path| fs::metadata(path).map(|meta| meta.len()))?;
    let index = json!({
        "schemaVersion": 2,
        "manifests": [{"mediaType": kind, "digest": digest, "size": size}],
    });
    let part = to.with_extension("part");
    let mut tar = tar::Builder::new(File::create(&part)?);
    let header = |size: u64| {
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o644);
        header
    };
    let small = [("oci-layout", json!({"imageLayoutVersion": "1.0.0"})), ("index.json", index)];
    for (name, value) in small {
        let text = value.to_string();
        tar.append_data(&mut header(text.len() as u64), name, text.as_bytes())?;
    }
    for (sha256, path) in blobs {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        tar.append_data(&mut header(size), format!("blobs/sha256/{sha256}"), file)?;
    }
    let file = tar.into_inner()?;
    file.sync_all()?;
    fs::rename(&part, to)?;
    File::open(to.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    file.metadata().map(|meta| meta.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_name_a_registry() {
        for (reference, base, name) in [
            ("registry.k8s.io/pause", "https://registry.k8s.io/v2", "pause"),
            ("registry.k8s.io/pause:3.10", "https://registry.k8s.io/v2", "pause"),
            ("127.0.0.1:5000/a/b", "http://127.0.0.1:5000/v2", "a/b"),
            ("busybox", "https://registry-1.docker.io/v2", "library/busybox"),
            ("amazon/x", "https://registry-1.docker.io/v2", "amazon/x"),
        ] {
            let expected = Place { base: base.into(), name: name.into() };
            assert_eq!(place(reference), expected, "{reference}");
        }
        let challenge = "Bearer realm=\"https://a/t\",service=\"s\"";
        assert_eq!(
            (quoted(challenge, "realm"), quoted(challenge, "service")),
            (Some("https://a/t"), Some("s"))
        );
    }
}
