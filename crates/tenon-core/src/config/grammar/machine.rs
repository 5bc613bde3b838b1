//! Texts of a machine's config: tokens, versions, digests, addresses, sources of assets.

use std::net::IpAddr;

use super::net::is_host;
use super::system::{self, expect};
use super::{Check, Fault};
use crate::codes::stages as pages;
use crate::kube_version::Version;

/// Where plain http may go: it never leaves the machine.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

pub fn token(text: &str) -> Check {
    let part = |part: &str, length| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let fine = text.split_once('.').is_some_and(|(id, key)| part(id, 6) && part(key, 16));
    expect(fine, || Fault::error(&pages::BAD_TOKEN, "is not a bootstrap token"))
}

pub fn version(text: &str) -> Check {
    let fine = !text.contains(char::is_whitespace) && Version::parse(text).is_some();
    expect(fine, || Fault::error(&pages::BAD_VERSION, "is not a version"))
}

pub fn digest(text: &str) -> Check {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    let fine = digits.len() == 64 && digits.bytes().all(hex);
    expect(fine, || Fault::error(&pages::BAD_DIGEST, "is not a digest"))
}

pub fn address(text: &str) -> Check {
    expect(text.parse::<IpAddr>().is_ok(), || {
        Fault::error(&pages::BAD_ADDRESS, "is not an IP address")
    })
}

pub fn host_name(text: &str) -> Check {
    let fine = is_host(text) || text.parse::<IpAddr>().is_ok();
    expect(fine, || Fault::error(&pages::BAD_ADDRESS, "is neither a DNS name nor an IP address"))
}

pub fn flag_name(text: &str) -> Check {
    let fine = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    expect(fine, || Fault::error(&pages::BAD_FLAG_NAME, "is not a flag name"))
}

pub fn audit(text: &str) -> Check {
    let fine = matches!(text, "none" | "metadata") || system::path(text).is_ok();
    expect(fine, || Fault::error(&pages::BAD_AUDIT, "is no choice for the audit log"))
}

pub fn asset_source(text: &str) -> Check {
    let graphic = text.bytes().all(|b| b.is_ascii_graphic() && !b"\"'`\\@".contains(&b));
    let fine = match text.split_once(':') {
        None => matches!(text, "none" | "push"),
        Some(("file", path)) => system::path(path.strip_prefix("//").unwrap_or(path)).is_ok(),
        Some(("https", rest)) => rest.strip_prefix("//").is_some_and(has_host),
        Some(("http", rest)) => rest.strip_prefix("//").is_some_and(is_loopback),
        Some(("s3", rest)) => rest.strip_prefix("//").is_some_and(|rest| {
            rest.split_once('/').is_some_and(|(bucket, key)| is_bucket(bucket) && !key.is_empty())
        }),
        Some(_) => false,
    };
    expect(fine && graphic, || Fault::error(&pages::BAD_SOURCE, "is no source of assets"))
}

fn has_host(rest: &str) -> bool {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    is_host(host) || LOOPBACK.contains(&host)
}

fn is_loopback(rest: &str) -> bool {
    LOOPBACK
        .iter()
        .any(|host| rest.strip_prefix(host).is_some_and(|rest| rest.starts_with([':', '/'])))
}

fn is_bucket(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
    (3..=63).contains(&text.len()) && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_its_grammar() {
        type Row = (fn(&str) -> Check, &'static [&'static str], &'static [&'static str]);
        let rows: &[Row] = &[
            (
                token,
                &["abcdef.0123456789abcdef"],
                &["", "abcdef", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcde"],
            ),
            (
                version,
                &["v1.34.2", "1.36.0", "v1.34.1-eks-1"],
                &["1.34", "v1", "latest", "v1.34.2 x"],
            ),
            (address, &["10.0.0.1", "fd00::1"], &["10.0.0.1:6443", "[::1]", "host"]),
            (host_name, &["cp.example", "10.0.0.1", "::1"], &["a b", "-x", "1.2.3"]),
            (flag_name, &["v", "max-requests-inflight"], &["--v", "V", "a=b", ""]),
            (audit, &["none", "metadata", "/etc/audit.yaml"], &["all", "audit.yaml", "/a/../b"]),
            (
                asset_source,
                &[
                    "none",
                    "push",
                    "file:/srv/b",
                    "file:///srv/b",
                    "https://a.example/b.tar",
                    "http://127.0.0.1:8080/b",
                    "s3://bucket/key/b.tar",
                ],
                &[
                    "http://a.example/b",
                    "http://127.0.0.1.evil.example/",
                    "s3://bucket",
                    "ftp://x/y",
                    "file:b",
                    "https://user@a.example/b",
                    "pull",
                ],
            ),
        ];
        for (check, good, bad) in rows {
            for text in *good {
                assert!(check(text).is_ok(), "{text}");
            }
            for text in *bad {
                assert!(check(text).is_err(), "{text}");
            }
        }
        let digest_of = format!("sha256:{}", "0a".repeat(32));
        assert!(digest(&digest_of).is_ok() && digest(&digest_of.to_uppercase()).is_err());
    }
}
