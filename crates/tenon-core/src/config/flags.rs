//! Kubelet flags: what an entry of `kubelet.flags` says, and which flags are Tenon's own.

use super::grammar::Fault;
use super::kubelet_table;
use super::schema::Kind;
use crate::codes::config as pages;
use crate::nearest::nearest;
use crate::words;

/// Flags that Tenon sets. A repetition wins, because user flags stand last; map-valued flags
/// add up instead and are not listed.
pub const OWNED: &[&str] = &[
    "bootstrap-kubeconfig",
    "cloud-provider",
    "config",
    "config-dir",
    "hostname-override",
    "image-credential-provider-bin-dir",
    "image-credential-provider-config",
    "kubeconfig",
    "node-ip",
    "runtime-cgroups",
];

/// Checks one entry. In `node.eks.aws` an entry may hold several words.
pub fn check(text: &str, kind: Kind) -> Vec<Fault> {
    let Some(words) = arguments(text, kind) else {
        return vec![Fault::error(
            &pages::BAD_FLAG,
            "has a quote or backslash without its partner",
        )];
    };
    let mut faults: Vec<Fault> = words.iter().filter_map(|word| check_word(word)).collect();
    if kind == Kind::Tenon && name(text).is_none() {
        faults.push(Fault::error(&pages::BAD_FLAG, "is not a flag"));
    }
    faults
}

/// The arguments that the kubelet gets for an entry; None if its quotes are not closed.
pub fn arguments(text: &str, kind: Kind) -> Option<Vec<String>> {
    match kind {
        Kind::Tenon => Some(vec![text.to_owned()]),
        Kind::Eks => words::split(text).ok().map(|split| split.words),
    }
}

/// The name of a long flag, without dashes and value.
pub fn name(word: &str) -> Option<&str> {
    let name = word.strip_prefix("--")?.split('=').next()?;
    let fine = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    fine.then_some(name)
}

fn check_word(word: &str) -> Option<Fault> {
    let Some(name) = name(word) else {
        // `-v=2` and the value of the flag before it are words too.
        let broken = word.starts_with("--");
        let fault = Fault::error(&pages::BAD_FLAG, "is not of the form `--name=value`");
        return broken.then_some(fault);
    };
    if kubelet_table::flag(name).is_none() {
        let fault =
            Fault::tolerated(&pages::UNKNOWN_FLAG, "is a flag that the kubelet does not know");
        return Some(match nearest(name, kubelet_table::flag_names()) {
            Some(known) => fault.fix(format!("did you mean `--{known}`?")),
            None => fault,
        });
    }
    OWNED.contains(&name).then(|| {
        let what = format!("repeats `--{name}`, which Tenon sets; yours wins");
        Fault::warning(&pages::OWNED_FLAG, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str, kind: Kind) -> Vec<&'static str> {
        check(text, kind).iter().map(|fault| fault.page.code).collect()
    }

    #[test]
    fn entries() {
        for (text, eks, tenon) in [
            ("--v=2", &[][..], &[][..]),
            ("--node-labels=a=b,c=d", &[], &[]),
            ("--v=2 --max-pods=5", &[], &[]),
            ("--node-ip=1.2.3.4", &["TN03029"], &["TN03029"]),
            ("--max-pod=5", &["TN03028"], &["TN03028"]),
            ("a=b", &[], &["TN03027"]),
            ("--node-labels \"a=b", &["TN03027"], &["TN03027", "TN03027"]),
            ("-v=2", &[], &["TN03027"]),
        ] {
            assert_eq!(codes(text, Kind::Eks), eks, "{text}");
            assert_eq!(codes(text, Kind::Tenon), tenon, "{text}");
        }
        let fix = check("--max-pod=5", Kind::Eks)[0].fix.clone();
        assert_eq!(fix.as_deref(), Some("did you mean `--max-pods`?"));
    }
}
