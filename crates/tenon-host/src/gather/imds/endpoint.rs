//! Where the metadata service is asked: a fixed pair of link-local addresses, or one address
//! from the environment. Never a name, so nothing here resolves anything.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tenon_core::codes::facts::{METADATA_DISABLED, METADATA_ENDPOINT};
use tenon_core::problem::Problem;

use crate::gather::environment::Environment;

/// `AWS_EC2_METADATA_SERVICE_ENDPOINT`
const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
/// `AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE`
const MODE: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE";

/// What every AWS client takes as the word not to ask.
const DISABLED: &str = "AWS_EC2_METADATA_DISABLED";

/// The link-local address of the metadata service in each family.
pub const IPV4: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
pub const IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// One address under which the service may answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub address: SocketAddr,
    /// Path in front of `/latest`, for services behind a prefix; most often empty.
    pub prefix: String,
}

impl Endpoint {
    pub fn at(address: SocketAddr) -> Self {
        Endpoint { address, prefix: String::new() }
    }

    /// Value of the `Host` header, and the name in messages.
    pub fn host(&self) -> String {
        match (self.address.ip(), self.address.port()) {
            (IpAddr::V4(ip), 80) => ip.to_string(),
            (IpAddr::V6(ip), 80) => format!("[{ip}]"),
            _ => self.address.to_string(),
        }
    }
}

/// The addresses to try, most wanted first.
pub fn candidates(environment: &Environment) -> Result<Vec<Endpoint>, Problem> {
    if is_disabled(environment) {
        let what = "the metadata service must not be asked";
        return Err(Problem::new(&METADATA_DISABLED, what)
            .why(format!("{DISABLED} is set to true"))
            .fix("unset the variable, or give what is asked for: --facts FILE, --region NAME"));
    }
    if let Some(url) = environment.get(ENDPOINT) {
        return Ok(vec![parse(url).ok_or_else(|| refuse(ENDPOINT))?]);
    }
    let v4 = Endpoint::at(SocketAddr::new(IPV4.into(), 80));
    let v6 = Endpoint::at(SocketAddr::new(IPV6.into(), 80));
    match environment.get(MODE).map(str::to_ascii_lowercase).as_deref() {
        None => Ok(vec![v4, v6]),
        Some("ipv4") => Ok(vec![v4]),
        Some("ipv6") => Ok(vec![v6]),
        Some(_) => Err(refuse(MODE)),
    }
}

/// True when the environment forbids to ask.
pub fn is_disabled(environment: &Environment) -> bool {
    environment.get(DISABLED).is_some_and(|word| word.eq_ignore_ascii_case("true"))
}

fn parse(url: &str) -> Option<Endpoint> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let prefix = path.trim_end_matches('/').to_owned();
    let plain = prefix.bytes().all(|byte| byte.is_ascii_graphic());
    let address = match authority {
        "localhost" => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 80)),
        _ => with_port(authority).or_else(|| without_port(authority)),
    }?;
    plain.then_some(Endpoint { address, prefix })
}

fn with_port(authority: &str) -> Option<SocketAddr> {
    let (host, port) = authority.rsplit_once(':')?;
    if host == "localhost" {
        return Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port.parse().ok()?));
    }
    authority.parse().ok()
}

fn without_port(authority: &str) -> Option<SocketAddr> {
    let bare = authority.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip: IpAddr = bare.unwrap_or(authority).parse().ok()?;
    Some(SocketAddr::new(ip, 80))
}

fn refuse(variable: &str) -> Problem {
    Problem::new(&METADATA_ENDPOINT, format!("{variable} is not an address of a metadata service"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(pairs: [(&str, &str); 2]) -> Vec<String> {
        let found = candidates(&Environment::from(pairs)).unwrap();
        found.iter().map(|endpoint| format!("{}{}", endpoint.host(), endpoint.prefix)).collect()
    }

    #[test]
    fn variables_move_the_endpoint() {
        let rows: [(&str, &str, &[&str]); 7] = [
            ("", "", &["169.254.169.254", "[fd00:ec2::254]"]),
            ("", "IPv4", &["169.254.169.254"]),
            ("", "ipv6", &["[fd00:ec2::254]"]),
            ("http://127.0.0.1:1338/", "ipv6", &["127.0.0.1:1338"]),
            ("http://[fd00:ec2::254]", "", &["[fd00:ec2::254]"]),
            ("http://[::1]:81/base/", "", &["[::1]:81/base"]),
            ("http://localhost:8080", "", &["127.0.0.1:8080"]),
        ];
        for (endpoint, mode, expected) in rows {
            assert_eq!(hosts([(ENDPOINT, endpoint), (MODE, mode)]), expected, "{endpoint} {mode}");
        }
    }

    #[test]
    fn row_27_names_are_never_resolved_and_refused_without_echo() {
        for url in ["https://169.254.169.254", "http://metadata.internal", "canary", "http://"] {
            let problem = candidates(&Environment::from([(ENDPOINT, url)])).unwrap_err();
            assert_eq!((problem.page.code, problem.exit()), ("TN05010", 5));
            assert!(!problem.render("error").contains("canary"));
        }
        assert!(candidates(&Environment::from([(MODE, "both")])).is_err());
    }
}
