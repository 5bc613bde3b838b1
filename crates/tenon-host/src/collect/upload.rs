//! Sends a bundle away. Whatever goes wrong, the bundle stays where it is.

use std::path::Path;

use tenon_core::codes::logs as pages;
use tenon_core::collect::journal::stamp;
use tenon_core::collect::manifest::Manifest;
use tenon_core::facts::Instance;
use tenon_core::problem::Problem;

use crate::gather::aws::{Cloud, s3};
use crate::gather::environment::Environment;
use crate::gather::imds::{Imds, Options};

/// Where a bundle is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    S3 { bucket: String, key: String },
    Url(String),
}

impl Destination {
    pub fn parse(text: &str) -> Result<Destination, Problem> {
        let wrong = |what: &str| Err(Problem::new(&pages::BAD_UPLOAD, what));
        if let Some(rest) = text.strip_prefix("s3://") {
            let Some((bucket, key)) = rest.split_once('/') else {
                return wrong("the address has no key");
            };
            let plain = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte)
            };
            let good = (3..=63).contains(&bucket.len()) && bucket.bytes().all(plain);
            if !good || key.is_empty() || key.len() > 1000 || key.chars().any(char::is_control) {
                return wrong("the bucket or key is not one of S3");
            }
            return Ok(Destination::S3 { bucket: bucket.to_owned(), key: key.to_owned() });
        }
        let local = text.starts_with("http://127.0.0.1:") || text.starts_with("http://[::1]:");
        match text.starts_with("https://") || local {
            true => Ok(Destination::Url(text.to_owned())),
            false => wrong("the address is neither s3:// nor https://"),
        }
    }
}

/// What a key may be made of, besides the manifest.
#[derive(Debug)]
pub struct Names<'n> {
    pub cluster: &'n str,
    pub started_s: u64,
}

/// Sends the file.
pub fn send(
    destination: &Destination,
    file: &Path,
    manifest: &Manifest,
    instance: Option<&Instance>,
    names: &Names<'_>,
) -> Result<(), Problem> {
    let environment = Environment::of_process();
    let sent = match destination {
        Destination::Url(url) => s3::put_presigned(&environment, url, file),
        Destination::S3 { bucket, key } => {
            let key = fill_in(key, manifest, names);
            to_bucket(environment, bucket, &key, file, instance)
        }
    };
    sent.map_err(|problem| problem.details([format!("the bundle is still at {}", file.display())]))
}

fn to_bucket(
    environment: Environment,
    bucket: &str,
    key: &str,
    file: &Path,
    instance: Option<&Instance>,
) -> Result<(), Problem> {
    let mut instance = instance.cloned().unwrap_or_default();
    if let Some(region) = environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]) {
        region.clone_into(&mut instance.region);
    }
    if instance.region.is_empty() {
        // The bucket tells its own region in its first answer.
        "us-east-1".clone_into(&mut instance.region);
    }
    let mut imds = Options::new(&environment).ok().map(Imds::new);
    let mut cloud = Cloud::new(&instance, environment, imds.as_mut());
    s3::put(&mut cloud, bucket, key, file).map_err(|problem| match problem.exit() {
        10 => problem,
        // No credentials is a refusal of the upload, not a missing fact of this command.
        _ => Problem::new(&pages::UPLOAD_REFUSED, "the upload could not be signed").cause(problem),
    })
}

/// `{instance}`, `{utc}` and `{cluster}` of a key.
fn fill_in(key: &str, manifest: &Manifest, names: &Names<'_>) -> String {
    let utc = stamp(names.started_s * 1_000_000)
        .chars()
        .take(19)
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>();
    let cluster = if names.cluster.is_empty() { "cluster" } else { names.cluster };
    let instance = match manifest.node.instance_id.as_str() {
        "" => "node",
        id => id,
    };
    key.replace("{instance}", instance).replace("{utc}", &utc).replace("{cluster}", cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_checked() {
        let good = Destination::parse("s3://my-bucket/a/{instance}.tar.gz").unwrap();
        assert_eq!(
            good,
            Destination::S3 { bucket: "my-bucket".into(), key: "a/{instance}.tar.gz".into() }
        );
        for wrong in
            ["s3://b/", "s3://bucket", "s3://UPPER/x", "http://example.com/x", "ftp://x", ""]
        {
            assert_eq!(Destination::parse(wrong).unwrap_err().exit(), 64, "{wrong}");
        }
    }
}
