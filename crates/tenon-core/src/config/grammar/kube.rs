//! Texts that Kubernetes reads: labels, quantities, durations, images, expressions.

use std::time::Duration;

use super::system::expect;
use super::{Check, Fault};
use crate::codes::config as pages;
use crate::config::schema::Kind;
use crate::expression;
use crate::nearest::nearest;

/// The feature gates that node.eks.aws has.
pub const GATES: &[&str] = &["InstanceIdNodeName", "FastImagePull"];

/// Labels of the kubernetes.io and k8s.io families that a kubelet may set on its own node.
const KUBELET_LABELS: &[&str] = &[
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Prefixes of those families that a kubelet may set, themselves and below.
const KUBELET_PREFIXES: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];

const LONGEST_HOOK: Duration = Duration::from_secs(15 * 60);

pub fn gate(text: &str) -> Check {
    expect(GATES.contains(&text), || {
        let fault = Fault::tolerated(&pages::UNKNOWN_GATE, "is not a known feature gate");
        match nearest(text, GATES.iter().copied()) {
            Some(name) => fault.fix(format!("did you mean `{name}`?")),
            None => fault,
        }
    })
}

/// True for `[prefix/]name` in the grammar of Kubernetes.
pub fn label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_label_name(name),
        None => is_label_name(text),
    }
}

/// True for a label's value, which may be empty.
pub fn label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}

fn is_label_name(text: &str) -> bool {
    let edge = |c: Option<u8>| c.is_some_and(|b| b.is_ascii_alphanumeric());
    (1..=63).contains(&text.len())
        && edge(text.bytes().next())
        && edge(text.bytes().last())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn is_subdomain(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

pub fn check_label_key(text: &str) -> Check {
    if !label_key(text) {
        return Err(Fault::error(&pages::BAD_LABEL, "is not a label key"));
    }
    expect(kubelet_may_set(text), || {
        Fault::error(&pages::RESTRICTED_LABEL, "is a label that a kubelet may not set")
    })
}

/// Whether the NodeRestriction plugin lets a kubelet set the label on its node.
pub fn kubelet_may_set(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let within = |family: &str| prefix == family || prefix.ends_with(&format!(".{family}"));
    let reserved = within("kubernetes.io") || within("k8s.io");
    !reserved
        || KUBELET_LABELS.contains(&key)
        || KUBELET_PREFIXES.iter().any(|family| within(family))
}

pub fn check_label_value(text: &str) -> Check {
    expect(label_value(text), || Fault::error(&pages::BAD_LABEL, "is not a label value"))
}

pub fn taint_key(text: &str) -> Check {
    expect(label_key(text), || Fault::error(&pages::BAD_TAINT, "is not a taint key"))
}

pub fn reserved_key(text: &str) -> Check {
    let known = ["cpu", "memory", "ephemeral-storage", "pid"];
    expect(known.contains(&text), || {
        Fault::error(&pages::BAD_KEY, "is not cpu, memory, ephemeral-storage or pid")
    })
}

/// A Kubernetes quantity that is not negative.
pub fn quantity(text: &str) -> Check {
    const SUFFIXES: &[&str] =
        &["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "n", "u"];
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let digits = number.bytes().any(|b| b.is_ascii_digit());
    let power = |suffix: &str| {
        let exponent = suffix.strip_prefix(['e', 'E']).unwrap_or_default();
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && exponent.bytes().all(|b| b.is_ascii_digit())
    };
    let fine = digits
        && number.matches('.').count() <= 1
        && text.len() <= 32
        && (SUFFIXES.contains(&suffix) || power(suffix));
    expect(fine, || Fault::error(&pages::BAD_QUANTITY, "is not a quantity"))
}

/// Numbers and ascending ranges, joined by commas.
pub fn cpu_set(text: &str) -> Check {
    let number = |text: &str| {
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| plain)
    };
    let part = |part: &str| match part.split_once('-') {
        Some((low, high)) => number(low).zip(number(high)).is_some_and(|(low, high)| low <= high),
        None => number(part).is_some(),
    };
    expect(text.split(',').all(part), || Fault::error(&pages::BAD_CPU_SET, "is not a CPU set"))
}

/// A Go duration: `90s`, `1m30s`, `500ms`.
pub fn duration(text: &str) -> Option<Duration> {
    const UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let mut rest = text;
    let mut millis: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..end].parse().ok()?;
        let unit = rest[end..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| at + end);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == &rest[end..unit])?;
        millis = millis.checked_add(number.checked_mul(*size)?)?;
        rest = &rest[unit..];
    }
    (millis > 0).then(|| Duration::from_millis(millis))
}

pub fn check_duration(text: &str) -> Check {
    match duration(text) {
        None => Err(Fault::error(&pages::BAD_DURATION, "is not a duration")),
        Some(length) if length > LONGEST_HOOK => {
            Err(Fault::error(&pages::BAD_DURATION, "is longer than 15m"))
        }
        Some(_) => Ok(()),
    }
}

/// `[registry/]name[:tag][@digest]`
pub fn image(text: &str) -> Check {
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    let digest = digest.is_none_or(|digest| {
        digest
            .strip_prefix("sha256:")
            .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    });
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-:".contains(&b))
    };
    let fine = text.len() <= 512 && digest && name.split('/').all(part);
    expect(fine, || Fault::error(&pages::BAD_IMAGE, "is not an image reference"))
}

pub fn expression(text: &str, kind: Kind) -> Check {
    expression::parse(text, kind == Kind::Tenon).map(|_| ()).map_err(|error| {
        let what = format!("is not an expression: {}", error.message);
        Fault { offset: Some(error.offset), ..Fault::tolerated(&pages::BAD_EXPRESSION, what) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_61_labels() {
        for (key, expected) in [
            ("team", Ok(())),
            ("corp.example/team", Ok(())),
            ("node.kubernetes.io/role", Ok(())),
            ("x.node.kubernetes.io/role", Ok(())),
            ("kubelet.kubernetes.io/x", Ok(())),
            ("topology.kubernetes.io/zone", Ok(())),
            ("node-role.kubernetes.io/web", Err("TN03032")),
            ("kubernetes.io/role", Err("TN03032")),
            ("k8s.io/x", Err("TN03032")),
            ("eks.amazonaws.com/nodegroup", Ok(())),
            ("a b", Err("TN03031")),
            ("a,b", Err("TN03031")),
            ("$(id)", Err("TN03031")),
            ("Corp/x", Err("TN03031")),
            ("", Err("TN03031")),
            (&*"a".repeat(64), Err("TN03031")),
        ] {
            assert_eq!(check_label_key(key).map_err(|fault| fault.page.code), expected, "{key}");
        }
        for bad in ["a b", "a=b", "a,b", "a\"", "%n%", "a\\", "-a", "a\nb"] {
            assert!(check_label_value(bad).is_err(), "{bad}");
        }
        assert!(check_label_value("").is_ok() && check_label_value("v1.2_3").is_ok());
    }

    #[test]
    fn row_62_a_taint_key_cannot_be_a_flag() {
        assert!(taint_key("--register-node").is_err());
        assert!(taint_key("dedicated").is_ok());
    }

    #[test]
    fn quantities() {
        for (text, fine) in [
            ("100m", true),
            ("1", true),
            ("0.5", true),
            ("200Mi", true),
            ("1e3", true),
            ("1E", true),
            ("-1", false),
            ("1 Gi", false),
            ("Mi", false),
            ("1.2.3", false),
            ("10mb", false),
        ] {
            assert_eq!(quantity(text).is_ok(), fine, "{text}");
        }
    }

    #[test]
    fn cpu_sets() {
        for (text, fine) in [
            ("0", true),
            ("0-1,4", true),
            ("1-0", false),
            ("0-", false),
            ("a", false),
            ("0,,1", false),
        ] {
            assert_eq!(cpu_set(text).is_ok(), fine, "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, seconds) in [("60s", Some(60)), ("1m30s", Some(90)), ("1h", Some(3600))] {
            assert_eq!(duration(text).map(|d| d.as_secs()), seconds, "{text}");
        }
        for bad in ["", "60", "s", "1x", "0s", "-1s"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
        assert!(check_duration("15m").is_ok() && check_duration("15m1s").is_err());
    }

    #[test]
    fn images() {
        for (text, fine) in [
            ("localhost/kubernetes/pause:latest", true),
            ("1.dkr.ecr.eu-west-1.amazonaws.com/eks/pause:3.10", true),
            (&*format!("a/b@sha256:{}", "0".repeat(64)), true),
            ("a b", false),
            ("a//b", false),
            ("a@sha256:12", false),
        ] {
            assert_eq!(image(text).is_ok(), fine, "{text}");
        }
    }
}
