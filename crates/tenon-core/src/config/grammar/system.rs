//! Names, paths and texts that end up in files of the system.

use super::{Check, Fault};
use crate::codes::config as pages;

/// Directories that must not disappear under a mount, themselves or with all below them.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "/",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/srv",
    "/tmp",
    "/var",
    "/var/lib",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log",
    "/var/log/pods",
    "/var/tmp",
];
const SYSTEM_TREES: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib/tenon",
    "/var/run",
];

const LONGEST_PART: usize = 255;
const LONGEST_PATH: usize = 4096;

pub fn cluster_name(text: &str) -> Check {
    let fine = text.len() <= 100
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    expect(fine, || Fault::error(&pages::BAD_CLUSTER_NAME, "is not a cluster name"))
}

pub fn cluster_id(text: &str) -> Check {
    let bad = |c: char| c.is_whitespace() || "'\"`\\".contains(c);
    expect(!text.contains(bad), || {
        Fault::error(&pages::BAD_CLUSTER_ID, "holds a blank, a quote or a backslash")
    })
}

pub fn variable(text: &str) -> Check {
    let fine = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    expect(fine, || Fault::error(&pages::BAD_VARIABLE_NAME, "is not a variable name"))
}

/// A unit name without its suffix: no `/`, no `..`, the characters systemd allows.
pub fn service_name(text: &str) -> Check {
    let fine = !text.is_empty()
        && text.len() <= LONGEST_PART - ".service.d".len()
        && !text.contains("..")
        && !text.starts_with('.')
        && !text.ends_with(".service")
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b));
    expect(fine, || Fault::error(&pages::BAD_SERVICE_NAME, "is not a service name"))
}

pub fn hook_name(text: &str) -> Check {
    let fine = text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    expect(fine, || Fault::error(&pages::BAD_HOOK, "is not a hook name"))
}

/// An absolute, normal path.
pub fn path(text: &str) -> Check {
    let refuse = |what: &str| Err(Fault::error(&pages::BAD_PATH, what));
    let Some(below) = text.strip_prefix('/') else { return refuse("is not an absolute path") };
    if text.len() > LONGEST_PATH || below.split('/').any(|part| part.len() > LONGEST_PART) {
        return refuse("is longer than a path can be");
    }
    if below.split('/').any(|part| part == "." || part == "..") {
        return refuse("climbs with `.` or `..`");
    }
    if text.len() > 1 && below.split('/').any(str::is_empty) {
        return Err(Fault::doubtful(&pages::BAD_PATH, "has an empty part or a slash at its end"));
    }
    Ok(())
}

/// A place where disks may be mounted.
pub fn mount_path(text: &str) -> Check {
    let normal = normal_path(text);
    let inside = |tree: &&str| normal == *tree || normal.starts_with(&format!("{tree}/"));
    let system = SYSTEM_DIRECTORIES.contains(&normal.as_str()) || SYSTEM_TREES.iter().any(inside);
    if text.starts_with('/') && system {
        return Err(Fault::error(&pages::SYSTEM_PATH, "is a system directory"));
    }
    path(text)
}

/// The path without empty parts and without a slash at its end.
pub fn normal_path(text: &str) -> String {
    let parts: Vec<_> = text.split('/').filter(|part| !part.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

/// TOML that parses. The fault carries the offset of the parser's complaint.
pub fn toml(text: &str) -> Check {
    match text.parse::<toml::Table>() {
        Ok(_) => Ok(()),
        Err(error) => {
            let offset = error.span().map_or(0, |span| span.start.min(text.len()));
            let before = text.get(..offset).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let what = format!("is not TOML: line {line} of the text: {}", complaint(&error));
            Err(Fault { offset: Some(offset), ..Fault::error(&pages::BAD_TOML, what) })
        }
    }
}

/// The parser's words without anything it quotes from the text.
fn complaint(error: &toml::de::Error) -> String {
    let words = error.message().lines().next().unwrap_or_default();
    match words.split_once(['`', '"', '\'']) {
        Some((plain, _)) => plain.trim_end_matches([' ', ':', ',']).to_owned(),
        None => words.to_owned(),
    }
}

/// `Ok` if the condition holds, else the fault.
pub fn expect(holds: bool, fault: impl FnOnce() -> Fault) -> Check {
    if holds { Ok(()) } else { Err(fault()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Class;

    #[test]
    fn row_66_cluster_names_hold_no_shell_text() {
        for (name, fine) in [
            ("prod", true),
            ("9_a-b", true),
            (&*"a".repeat(100), true),
            (&*"a".repeat(101), false),
            ("-a", false),
            ("_a", false),
            ("a.b", false),
            ("a b", false),
            ("a;reboot", false),
            ("$(id)", false),
        ] {
            assert_eq!(cluster_name(name).is_ok(), fine, "{name}");
        }
    }

    #[test]
    fn row_102_service_names_cannot_climb() {
        for (name, fine) in [
            ("kubelet", true),
            ("default", true),
            ("my-app@1", true),
            ("../x", false),
            ("a/b", false),
            ("a..b", false),
            (".hidden", false),
            ("", false),
            ("kubelet.service", false),
        ] {
            assert_eq!(service_name(name).is_ok(), fine, "{name}");
        }
    }

    #[test]
    fn row_65_mount_paths() {
        for (path, expected) in [
            ("/mnt/k8s-disks", Ok(())),
            ("/data", Ok(())),
            ("/var/lib/disks", Ok(())),
            ("mnt", Err("TN03021")),
            ("/mnt/../etc", Err("TN03021")),
            ("/etc/disks", Err("TN03022")),
            ("/var/lib/kubelet", Err("TN03022")),
            ("/var/lib/", Err("TN03022")),
            ("//usr//x", Err("TN03022")),
            ("/", Err("TN03022")),
            ("/mnt/a/", Err("TN03021")),
            (&*format!("/{}", "a".repeat(256)), Err("TN03021")),
        ] {
            assert_eq!(mount_path(path).map_err(|fault| fault.page.code), expected, "{path}");
        }
        assert_eq!(path("/mnt/a/").unwrap_err().eks, Class::Warning);
        assert_eq!(normal_path("/mnt//a/"), "/mnt/a");
    }

    #[test]
    fn row_58_toml_faults_have_a_position_and_no_value() {
        let fault = toml("a = 1\nb = SECRET\n").unwrap_err();
        assert_eq!(fault.offset, Some(10));
        assert!(fault.what.contains("line 2") && !fault.what.contains("SECRET"), "{}", fault.what);
        assert!(toml("[a]\nb = 1\n[a]\n").unwrap_err().what.contains("line 3"));
    }

    #[test]
    fn names_of_variables_and_hooks() {
        assert!(variable("HTTP_PROXY").is_ok() && variable("_x1").is_ok());
        assert!(variable("1A").is_err() && variable("A-B").is_err() && variable("").is_err());
        assert!(hook_name("vpn-1").is_ok());
        assert!(
            hook_name("../x").is_err() && hook_name("Vpn").is_err() && hook_name("-a").is_err()
        );
    }
}
