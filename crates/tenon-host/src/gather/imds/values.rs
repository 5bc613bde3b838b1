//! Typed values: nothing from the metadata service is believed because of where it came from.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use tenon_core::codes::facts::{METADATA_PORTAL, METADATA_VALUE};
use tenon_core::problem::Problem;

/// How much of a strange value an error shows.
const SHOWN: usize = 80;

/// A value as it arrived, with the path it came from.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a> {
    pub path: &'a str,
    pub bytes: &'a [u8],
}

impl<'a> Raw<'a> {
    /// The value as trimmed text.
    pub fn text(&self) -> Result<&'a str, Problem> {
        std::str::from_utf8(self.bytes).map(str::trim).map_err(|_| self.refuse("text"))
    }

    /// The value, if a grammar accepts it; `shape` names the grammar in the error.
    pub fn matching(&self, shape: &str, grammar: fn(&str) -> bool) -> Result<&'a str, Problem> {
        let text = self.text()?;
        if grammar(text) { Ok(text) } else { Err(self.refuse(shape)) }
    }

    pub fn mac(&self) -> Result<String, Problem> {
        self.matching("a MAC address", is_mac).map(str::to_ascii_lowercase)
    }

    pub fn ipv4(&self) -> Result<Ipv4Addr, Problem> {
        self.text()?.parse().map_err(|_| self.refuse("an IPv4 address"))
    }

    /// The first word, by the rule that only the first label of the host name counts.
    pub fn host_name(&self) -> Result<String, Problem> {
        self.matching("a host name", is_host_name).map(str::to_owned)
    }

    /// One IPv6 address per line, in the service's order.
    pub fn ipv6_list(&self) -> Result<Vec<Ipv6Addr>, Problem> {
        self.lines("a list of IPv6 addresses", |line| line.parse().ok())
    }

    /// One network per line, in the service's order.
    pub fn networks(&self) -> Result<Vec<IpNet>, Problem> {
        self.lines("a list of networks", |line| line.parse::<IpNet>().ok().map(|net| net.trunc()))
    }

    pub fn domain(&self) -> Result<String, Problem> {
        self.matching("a domain name", is_host_name).map(str::to_owned)
    }

    pub fn number(&self) -> Result<u32, Problem> {
        self.text()?.parse().map_err(|_| self.refuse("a number"))
    }

    /// The first IPv4 address of a list, for the routing rule of a link.
    pub fn first_ipv4(&self) -> Result<Option<Ipv4Addr>, Problem> {
        let list = self.lines("a list of IPv4 addresses", |line| line.parse().ok())?;
        Ok(list.first().copied())
    }

    fn lines<T>(&self, shape: &str, read: fn(&str) -> Option<T>) -> Result<Vec<T>, Problem> {
        let lines = self.text()?.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(read).collect::<Option<_>>().ok_or_else(|| self.refuse(shape))
    }

    /// The error for a value that is not what it must be. Shows its beginning: values of the
    /// metadata tree are no secrets, and the beginning tells who answered.
    pub fn refuse(&self, shape: &str) -> Problem {
        let page = if looks_like_html(self.bytes) { &METADATA_PORTAL } else { &METADATA_VALUE };
        let begin = beginning(self.bytes);
        Problem::new(page, format!("metadata value {} is not {shape}", self.path))
            .cause(format!("it begins with `{begin}`"))
    }
}

/// The first printable characters of a value.
fn beginning(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN * 4)];
    let text = String::from_utf8_lossy(cut);
    text.chars().filter(|c| !c.is_control()).take(SHOWN).collect()
}

/// True for what a captive portal or a proxy's error page looks like.
pub fn looks_like_html(bytes: &[u8]) -> bool {
    let cut = &bytes[..bytes.len().min(512)];
    let text = String::from_utf8_lossy(cut).trim_start().to_ascii_lowercase();
    text.starts_with("<!doctype html") || text.starts_with("<html") || text.starts_with("<head")
}

/// `i-0abc12345678def90`
pub fn is_instance_id(text: &str) -> bool {
    text.strip_prefix("i-").is_some_and(|hex| (8..=17).contains(&hex.len()) && lower_hex(hex))
}

/// `ami-0abc12345678def90`
pub fn is_image_id(text: &str) -> bool {
    text.strip_prefix("ami-").is_some_and(|hex| (8..=17).contains(&hex.len()) && lower_hex(hex))
}

fn lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// `eu-west-1`, `us-gov-east-1`: words of letters, then a number.
pub fn is_region(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let Some((number, words)) = parts.split_last() else { return false };
    let word = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    words.len() >= 2
        && words.iter().all(word)
        && !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
}

/// `eu-west-1b`, `us-west-2-lax-1a`: the region, then more.
pub fn is_zone(text: &str, region: &str) -> bool {
    let rest = text.strip_prefix(region);
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| is_word_byte(b) || b == b'-'))
}

/// `m5.large`, `u-6tb1.112xlarge`
pub fn is_instance_type(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| is_word_byte(byte) || byte == b'-')
    };
    text.len() <= 40
        && text.split_once('.').is_some_and(|(family, size)| part(family) && part(size))
}

/// Twelve digits.
pub fn is_account(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `x86_64`, `arm64`
pub fn is_architecture(text: &str) -> bool {
    (1..=16).contains(&text.len()) && text.bytes().all(|byte| is_word_byte(byte) || byte == b'_')
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// `0a:1b:2c:3d:4e:5f`, any letter case.
pub fn is_mac(text: &str) -> bool {
    let pair = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split(':').count() == 6 && text.split(':').all(pair)
}

/// Host names separated by single spaces: DHCP options may name several domains.
fn is_host_name(text: &str) -> bool {
    let byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b' ');
    (1..=1024).contains(&text.len()) && text.bytes().all(byte) && !text.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw<'_> {
        Raw { path: "meta-data/x", bytes: text.as_bytes() }
    }

    #[test]
    fn grammars_accept_what_ec2_gives_and_refuse_the_rest() {
        type Grammar = fn(&str) -> bool;
        let rows: [(&str, Grammar, &[&str], &[&str]); 6] = [
            (
                "id",
                is_instance_id,
                &["i-0abc12345678def90", "i-12345678"],
                &["i-1234567", "i-0ABC12345678", "i-", "x-12345678", "i-0abc12345678def901"],
            ),
            (
                "region",
                is_region,
                &["eu-west-1", "us-gov-east-1", "us-isob-east-1", "eusc-de-east-1"],
                &["", "eu", "eu-west", "eu-west-1a", "eu--1", "EU-west-1"],
            ),
            (
                "type",
                is_instance_type,
                &["m5.large", "u-6tb1.112xlarge", "p5.48xlarge", "mac2-m2pro.metal"],
                &["m5", ".large", "m5.", "m5 .large", "<html>.x"],
            ),
            (
                "mac",
                is_mac,
                &["0a:1b:2c:3d:4e:5f", "0A:1B:2C:3D:4E:5F"],
                &["", "0a:1b:2c:3d:4e", "0a:1b:2c:3d:4e:5g", "0a1b2c3d4e5f"],
            ),
            ("account", is_account, &["111122223333"], &["", "11112222333", "11112222333a"]),
            ("architecture", is_architecture, &["x86_64", "arm64"], &["", "X86", "a b"]),
        ];
        for (name, grammar, good, bad) in rows {
            good.iter().for_each(|text| assert!(grammar(text), "{name} {text}"));
            bad.iter().for_each(|text| assert!(!grammar(text), "{name} {text}"));
        }
        assert!(is_zone("eu-west-1b", "eu-west-1") && is_zone("us-west-2-lax-1a", "us-west-2"));
        assert!(!is_zone("eu-west-1", "eu-west-1") && !is_zone("us-east-1a", "eu-west-1"));
    }

    #[test]
    fn lists_are_split_and_space_is_trimmed() {
        let list = raw(" 2a05:d018::1 \n\n2a05:d018::2\n").ipv6_list().unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!(list[0].to_string(), "2a05:d018::1");
        let networks = raw("10.0.0.0/16\n100.64.9.9/16").networks().unwrap();
        assert_eq!(networks[1].to_string(), "100.64.0.0/16");
        assert!(raw("10.0.0.0/16\nnoise").networks().is_err());
        assert_eq!(raw("").ipv6_list().unwrap(), Vec::<Ipv6Addr>::new());
        assert_eq!(raw("10.0.0.9\n10.0.0.10\n").first_ipv4().unwrap(), "10.0.0.9".parse().ok());
    }

    #[test]
    fn an_error_shows_eighty_printable_characters() {
        let problem = raw(&format!("\u{1b}[31m{}", "z".repeat(500))).mac().unwrap_err();
        assert_eq!(problem.page.code, "TN05011");
        assert_eq!(problem.causes[0], format!("it begins with `[31m{}`", "z".repeat(76)));
    }

    #[test]
    fn a_web_page_is_called_one() {
        for page in ["<html><body>Sign in", "\n <!DOCTYPE HTML>", "<HEAD>"] {
            assert_eq!(raw(page).ipv4().unwrap_err().page.code, "TN05012", "{page}");
        }
    }
}
