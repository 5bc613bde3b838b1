//! Addresses, hosts and URLs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::system::expect;
use super::{Check, Fault};
use crate::codes::config as pages;

/// The longest prefixes that still hold the tenth address.
const LONGEST_V4: u8 = 28;
const LONGEST_V6: u8 = 124;

/// The service range, masked to its network.
pub fn cidr(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().map(|net| net.trunc())
}

pub fn check_cidr(text: &str) -> Vec<Fault> {
    let Ok(net) = text.parse::<IpNet>() else {
        let what = "is not an IPv4 or IPv6 network in CIDR form";
        return vec![Fault::error(&pages::BAD_CIDR, what)];
    };
    let mut faults = Vec::new();
    let longest = if net.addr().is_ipv4() { LONGEST_V4 } else { LONGEST_V6 };
    if net.prefix_len() > longest {
        let what = format!("has no room for the DNS address: /{longest} at most");
        faults.push(Fault::error(&pages::SMALL_CIDR, what));
    }
    if net.trunc() != net {
        faults.push(Fault::warning(&pages::CIDR_HOST_BITS, "has bits beyond its prefix"));
    }
    faults
}

/// An absolute URL, taken apart.
#[derive(Debug, PartialEq)]
struct Url<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    host: &'a str,
    /// Everything after the authority.
    rest: &'a str,
}

/// Takes a URL apart; None when it is not absolute or a part is out of its grammar.
fn parse(text: &str) -> Option<Url<'_>> {
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    let printable = |b: u8| b.is_ascii_graphic() && !b"\"'`<>\\^{}|".contains(&b);
    let host = host_and_port(place)?;
    (rest.bytes().all(printable)).then_some(Url { scheme, user, host, rest })
}

/// The host of `host`, `host:port` or `[v6]:port`, if both are well formed.
fn host_and_port(text: &str) -> Option<&str> {
    let (host, port) = if text.starts_with('[') {
        let end = text.find(']')?;
        text[1..end].parse::<Ipv6Addr>().ok()?;
        let after = &text[end + 1..];
        (&text[..=end], if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
    } else {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        if !is_host(host) {
            return None;
        }
        (host, port)
    };
    let number = |port: &str| {
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|n| n > 0)
    };
    port.is_none_or(number).then_some(host)
}

/// True for a DNS name or an IPv4 address.
pub(super) fn is_host(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or_default();
    // A name whose last label is a number is read as an address by every resolver.
    if last.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse::<Ipv4Addr>().is_ok();
    }
    is_dns_name(text, false)
}

/// True for a DNS name; `underscore` as in names that are no hosts.
fn is_dns_name(text: &str, underscore: bool) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || (underscore && b == b'_');
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

pub fn check_endpoint(text: &str) -> Vec<Fault> {
    let refuse = |what: &str| vec![Fault::error(&pages::BAD_ENDPOINT, what)];
    if !text.is_ascii() {
        let fault = Fault::error(&pages::BAD_ENDPOINT, "holds a character outside ASCII");
        return vec![fault.fix("write an international host name in its xn-- form")];
    }
    let Some(url) = parse(text) else { return refuse("is not an absolute URL with a host") };
    if url.user.is_some() || url.rest.contains(['?', '#']) {
        return refuse("holds user info, a query or a fragment, which no API server address has");
    }
    match url.scheme {
        "https" => Vec::new(),
        "http" => vec![Fault::doubtful(&pages::ENDPOINT_NOT_HTTPS, "does not begin with https://")],
        _ => refuse("is neither https nor http"),
    }
}

/// The endpoint as it is used: without the slash that consoles add.
pub fn endpoint(text: &str) -> &str {
    text.strip_suffix('/').unwrap_or(text)
}

pub fn proxy(text: &str) -> Check {
    let fine = parse(text).is_some_and(|url| {
        ["http", "https"].contains(&url.scheme) && ["", "/"].contains(&url.rest)
    });
    expect(fine, || Fault::error(&pages::BAD_PROXY, "is not an absolute http or https URL"))
}

pub fn mirror(text: &str) -> Check {
    let Some(url) = parse(text).filter(|url| ["http", "https"].contains(&url.scheme)) else {
        return Err(Fault::error(&pages::BAD_MIRROR, "is not an absolute http or https URL"));
    };
    let plain = url.user.is_none() && !url.rest.contains(['?', '#']);
    expect(plain, || Fault::error(&pages::BAD_MIRROR, "holds credentials, a query or a fragment"))
}

pub fn registry_host(text: &str) -> Check {
    let name = !text.starts_with('[') && host_and_port(text).is_some();
    expect(text == "_default" || name, || {
        Fault::error(&pages::BAD_REGISTRY_HOST, "is not name[:port] or _default")
    })
}

pub fn no_proxy(text: &str) -> Check {
    let suffix = text.strip_prefix('.').unwrap_or(text);
    let fine = text.parse::<IpAddr>().is_ok()
        || text.parse::<IpNet>().is_ok()
        || is_dns_name(suffix, true) && is_host_or_underscored(suffix);
    expect(fine, || {
        let fault = Fault::error(&pages::BAD_NO_PROXY, "is not a host, suffix, IP or CIDR");
        if text.starts_with("*.") {
            fault.fix("write the suffix with a dot and without `*`")
        } else {
            fault
        }
    })
}

/// False for texts that look like a broken address.
fn is_host_or_underscored(text: &str) -> bool {
    !text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// `address[:port][%interface][#name]`, as resolved.conf(5) has it.
pub fn nameserver(text: &str) -> Check {
    let (rest, name) = split_at(text, '#');
    let (place, interface) = split_at(rest, '%');
    let interface = interface.is_none_or(|name| {
        (1..=15).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() && b != b'/')
    });
    let fine = is_address(place) && interface && name.is_none_or(|name| is_dns_name(name, false));
    expect(fine, || Fault::error(&pages::BAD_NAMESERVER, "is not an IP address"))
}

/// An IP address, or with a port: `1.2.3.4:53`, `[::1]:53`.
fn is_address(text: &str) -> bool {
    let bare = text.parse::<IpAddr>().is_ok();
    let with_port = text.parse::<std::net::SocketAddr>().is_ok_and(|address| address.port() > 0);
    bare || with_port
}

fn split_at(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

pub fn domain(text: &str) -> Check {
    let name = text.strip_prefix('~').unwrap_or(text);
    let fine = text == "~." || is_dns_name(name.strip_suffix('.').unwrap_or(name), true);
    expect(fine, || Fault::error(&pages::BAD_DOMAIN, "is not a DNS name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Class;

    fn codes(faults: &[Fault]) -> Vec<&str> {
        faults.iter().map(|fault| fault.page.code).collect()
    }

    #[test]
    fn row_70_service_ranges() {
        for (text, expected) in [
            ("10.100.0.0/16", &[][..]),
            ("172.20.128.0/17", &[]),
            ("10.100.5.128/25", &[]),
            ("10.100.5.128/28", &[]),
            ("10.100.5.128/29", &["TN03017"]),
            ("10.100.7.9/16", &["TN03018"]),
            ("fd5a:77c0:1b2e::/108", &[]),
            ("fd5a::/124", &[]),
            ("fd5a::/125", &["TN03017"]),
            ("10.100.0.0", &["TN03016"]),
            ("10.100.0.0/33", &["TN03016"]),
            ("10.100.0.0/16,fd00::/108", &["TN03016"]),
        ] {
            assert_eq!(codes(&check_cidr(text)), expected, "{text}");
        }
        assert_eq!(cidr("10.100.7.9/16").unwrap().to_string(), "10.100.0.0/16");
    }

    #[test]
    fn row_69_endpoints() {
        for (text, expected) in [
            ("https://abc.gr7.eu-west-1.eks.amazonaws.com", &[][..]),
            ("https://abc.gr7.eu-west-1.eks.amazonaws.com/", &[]),
            ("https://10.0.0.1:6443", &[]),
            ("https://[fd00::1]:6443", &[]),
            ("http://a.example", &["TN03012"]),
            ("ftp://a.example", &["TN03011"]),
            ("a.example", &["TN03011"]),
            ("https://", &["TN03011"]),
            ("https://a b", &["TN03011"]),
            ("https://a.example:0", &["TN03011"]),
            ("https://a.example:+443", &["TN03011"]),
            ("https://user:pw@a.example", &["TN03011"]),
            ("https://a.example/?x=$(id)", &["TN03011"]),
            ("https://a$(id).example", &["TN03011"]),
            ("https://300.1.1.1", &["TN03011"]),
            ("https://bücher.example", &["TN03011"]),
        ] {
            assert_eq!(codes(&check_endpoint(text)), expected, "{text}");
        }
        let http = &check_endpoint("http://a.example")[0];
        assert_eq!((http.eks, http.tenon), (Class::Warning, Class::Error));
        assert_eq!(endpoint("https://a/"), "https://a");
    }

    #[test]
    fn nameservers_and_domains() {
        for (text, fine) in [
            ("10.0.0.2", true),
            ("fd00:ec2::253", true),
            ("10.0.0.2:5353%eth0#dns.corp", true),
            ("[fd00::1]:53", true),
            ("10.0.0", false),
            ("dns.corp", false),
            ("10.0.0.2 10.0.0.3", false),
            ("10.0.0.2%a/b", false),
        ] {
            assert_eq!(nameserver(text).is_ok(), fine, "{text}");
        }
        for (text, fine) in
            [("corp.example", true), ("~corp", true), ("~.", true), ("a b", false), ("a..b", false)]
        {
            assert_eq!(domain(text).is_ok(), fine, "{text}");
        }
    }

    #[test]
    fn registries_mirrors_and_proxies() {
        for (text, fine) in [
            ("docker.io", true),
            ("registry.corp:5000", true),
            ("_default", true),
            ("../etc", false),
            ("https://docker.io", false),
            ("docker.io/library", false),
        ] {
            assert_eq!(registry_host(text).is_ok(), fine, "{text}");
        }
        assert!(mirror("https://mirror.corp/v2/hub").is_ok());
        assert!(mirror("https://u:p@mirror.corp").is_err() && mirror("mirror.corp").is_err());
        assert!(proxy("http://user:pw@p:3128").is_ok());
        assert!(proxy("p:3128").is_err() && proxy("http://p:3128/path").is_err());
        for (text, fine) in [
            (".corp", true),
            ("corp.example", true),
            ("10.0.0.0/8", true),
            ("::1", true),
            ("*.corp", false),
            ("10.0.0", false),
            ("a,b", false),
        ] {
            assert_eq!(no_proxy(text).is_ok(), fine, "{text}");
        }
    }
}
