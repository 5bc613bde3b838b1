//! Requests to S3 and to stores that speak like it, signed with Signature Version 4.

use std::time::{Duration, Instant, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use tenon_core::codes;
use tenon_core::codes::facts::NO_CREDENTIALS;
use tenon_core::codes::stages as pages;
use tenon_core::problem::Problem;
use tenon_core::stages::machine::Assets;

use crate::gather::aws::credentials::{Signer, from_role, from_variables};
use crate::gather::environment::Environment;
use crate::gather::imds::{Imds, Options};
use crate::root::Root;

/// How long credentials of a role may take at boot.
const PATIENCE: Duration = Duration::from_secs(60);
/// sha256 of nothing: no request of ours has a body.
const NOTHING: &[u8] = b"";

/// One object of a store, and who asks for it.
#[derive(Debug, Clone)]
pub struct Object {
    url: String,
    region: String,
    signer: Signer,
}

impl Object {
    /// Resolves `s3://BUCKET/KEY`: address, region, credentials.
    pub fn resolve(
        root: &Root,
        assets: &Assets,
        environment: &Environment,
    ) -> Result<Object, Problem> {
        let address = assets.source.strip_prefix("s3://").and_then(|rest| rest.split_once('/'));
        let (bucket, key) = address
            .ok_or_else(|| Problem::new(&pages::BAD_SOURCE, "the source is not s3://BUCKET/KEY"))?;
        let region = assets.region.clone();
        let region = region.or_else(|| {
            environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]).map(str::to_owned)
        });
        let mut imds = None;
        let region = match region {
            Some(region) => region,
            None => ask(&mut imds, environment)?.first_round(false)?.instance.region,
        };
        let signer = match (&assets.credentials_file, from_variables(environment)) {
            (Some(path), _) => from_file(root, path)?,
            (None, Some(signer)) => signer,
            (None, None) => {
                let imds = ask(&mut imds, environment)?;
                from_role(imds, "", Instant::now() + PATIENCE)?
            }
        };
        Ok(Object { url: url(assets, bucket, key, &region), region, signer })
    }

    /// A signed request of a method without a body.
    pub fn request(&self, method: &'static str) -> Result<http::Request<()>, Problem> {
        self.request_at(method, SystemTime::now())
    }

    fn request_at(&self, method: &str, now: SystemTime) -> Result<http::Request<()>, Problem> {
        let bug = |error: &dyn std::error::Error| {
            Problem::new(&codes::usage::BUG, "signing a request").cause(error)
        };
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let identity = self.signer.credentials.clone().into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("s3")
            .time(now)
            .settings(settings)
            .build()
            .map_err(|error| bug(&error))?
            .into();
        let mut request = http::Request::builder()
            .method(method)
            .uri(&self.url)
            .body(())
            .map_err(|error| bug(&error))?;
        let signable = SignableRequest::new(
            method,
            &self.url,
            std::iter::empty(),
            SignableBody::Bytes(NOTHING),
        )
        .map_err(|error| bug(&error))?;
        let (instructions, _) =
            sign(signable, &parameters).map_err(|error| bug(&error))?.into_parts();
        instructions.apply_to_request_http1x(&mut request);
        Ok(request)
    }
}

fn ask<'a>(imds: &'a mut Option<Imds>, environment: &Environment) -> Result<&'a mut Imds, Problem> {
    match imds {
        Some(imds) => Ok(imds),
        None => Ok(imds.insert(Imds::new(Options::new(environment)?))),
    }
}

fn url(assets: &Assets, bucket: &str, key: &str, region: &str) -> String {
    let key = encode(key);
    match (&assets.endpoint, assets.path_style) {
        (Some(endpoint), true) => format!("{}/{bucket}/{key}", endpoint.trim_end_matches('/')),
        (Some(endpoint), false) => {
            let (scheme, host) = endpoint.split_once("://").unwrap_or(("https", endpoint));
            format!("{scheme}://{bucket}.{}/{key}", host.trim_end_matches('/'))
        }
        (None, true) => format!("https://s3.{region}.{}/{bucket}/{key}", domain(region)),
        (None, false) => format!("https://{bucket}.s3.{region}.{}/{key}", domain(region)),
    }
}

fn domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}

/// Escapes a key as S3's canonical form does: everything but unreserved bytes and slashes.
fn encode(key: &str) -> String {
    key.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Credentials of a file with `aws_access_key_id = …` lines.
fn from_file(root: &Root, path: &str) -> Result<Signer, Problem> {
    let text = root.read_text(path).ok().flatten().unwrap_or_default();
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    match (value("aws_access_key_id"), value("aws_secret_access_key")) {
        (Some(id), Some(secret)) => Ok(Signer {
            credentials: Credentials::new(id, secret, value("aws_session_token"), None, "file"),
            identity: format!("the credentials in {path}"),
        }),
        _ => Err(Problem::new(&NO_CREDENTIALS, format!("{path} holds no credentials"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assets() -> Assets {
        Assets {
            source: "s3://examplebucket/test.txt".into(),
            digest: None,
            retire: tenon_core::stages::machine::Retire::Keep,
            endpoint: None,
            region: Some("us-east-1".into()),
            path_style: false,
            credentials_file: None,
        }
    }

    #[test]
    fn addresses_follow_style_endpoint_and_region() {
        let mut assets = assets();
        let at = |assets: &Assets| url(assets, "bucket", "a/b c+d.tar", "us-east-1");
        assert_eq!(at(&assets), "https://bucket.s3.us-east-1.amazonaws.com/a/b%20c%2Bd.tar");
        assets.path_style = true;
        assert_eq!(at(&assets), "https://s3.us-east-1.amazonaws.com/bucket/a/b%20c%2Bd.tar");
        assets.endpoint = Some("https://minio.example:9000/".into());
        assert_eq!(at(&assets), "https://minio.example:9000/bucket/a/b%20c%2Bd.tar");
        assets.path_style = false;
        assert_eq!(at(&assets), "https://bucket.minio.example:9000/a/b%20c%2Bd.tar");
    }

    #[test]
    fn the_signature_covers_host_date_and_the_empty_body() {
        let object = Object {
            url: "https://examplebucket.s3.us-east-1.amazonaws.com/test.txt".into(),
            region: "us-east-1".into(),
            signer: Signer {
                credentials: Credentials::new("AKID", "SECRET", None, None, "test"),
                identity: String::new(),
            },
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        let request = object.request_at("GET", now).unwrap();
        let header = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("x-amz-date"), "20130524T000000Z");
        assert!(header("x-amz-content-sha256").starts_with("e3b0c442"));
        let authorization = header("authorization");
        assert!(authorization.contains("AKID/20130524/us-east-1/s3/aws4_request"));
        assert!(authorization.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date"));
        assert!(!format!("{request:?}").contains("SECRET"));
    }

    #[test]
    fn a_file_without_keys_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(from_file(&root, "/none").unwrap_err().what.contains("/none"));
        std::fs::write(
            dir.path().join("c"),
            "[default]\naws_access_key_id = A\naws_secret_access_key=B\n",
        )
        .unwrap();
        assert_eq!(from_file(&root, "/c").unwrap().credentials.access_key_id(), "A");
    }
}
