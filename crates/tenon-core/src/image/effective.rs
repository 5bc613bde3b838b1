//! What holds when many files speak of one thing: the value that the kernel gets at boot, and the
//! value that sshd works with.

use std::collections::{BTreeMap, BTreeSet};

use super::resource::Resource;
use crate::glob::fits;

/// Where settings of the kernel lie, the strongest first: a file hides those of the same name in
/// later directories.
pub const SYSCTL_PLACES: &[&str] = &[
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];
/// Read after all of them.
pub const SYSCTL_LAST: &str = "/etc/sysctl.conf";
pub const SSHD: &str = "/etc/ssh/sshd_config";

/// The value of a kernel setting after all files, and the file that decides: names in order, the
/// last line wins. `files` has every file of the places above, by path.
pub fn sysctl<'t>(files: &'t BTreeMap<String, String>, key: &str) -> Option<(&'t str, &'t str)> {
    let mut by_name: BTreeMap<&str, &String> = BTreeMap::new();
    for place in SYSCTL_PLACES.iter().rev() {
        for path in files.keys() {
            if let Some((directory, name)) = path.rsplit_once('/')
                && directory == *place
            {
                by_name.insert(name, path);
            }
        }
    }
    let last = files.get_key_value(SYSCTL_LAST).map(|(path, _)| path);
    let key = dotted(key);
    let mut winner = None;
    for path in by_name.into_values().chain(last) {
        let lines = files[path].lines().filter_map(|line| line.trim().split_once('='));
        for (name, value) in lines {
            if dotted(name.trim().trim_start_matches('-')) == key {
                winner = Some((value.trim(), path.as_str()));
            }
        }
    }
    winner
}

/// True if a value of the kernel is what a resource asks for: equal, or within its bounds.
pub fn suits(one: &Resource, actual: &str) -> bool {
    let number = actual.trim().parse::<i64>();
    let floor = one.number("floor").is_none_or(|floor| number.as_ref().is_ok_and(|n| *n >= floor));
    let ceiling =
        one.number("ceiling").is_none_or(|most| number.as_ref().is_ok_and(|n| *n <= most));
    let same = |value: &str| {
        let numbers = numbers(value);
        value.split_whitespace().eq(actual.split_whitespace())
            || numbers.is_some() && numbers == self::numbers(actual)
    };
    one.text("value").is_none_or(same) && floor && ceiling
}

/// The numbers of a list such as `2703,9808-9810`: the kernel joins neighbours into ranges.
fn numbers(text: &str) -> Option<BTreeSet<u16>> {
    let mut numbers = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        numbers.extend(first.parse::<u16>().ok()?..=last.parse().ok()?);
    }
    Some(numbers)
}

/// What a resource asks for, in words.
pub fn wanted_words(one: &Resource) -> String {
    let bound = |name: &str, words: &str| one.number(name).map(|bound| format!("{words} {bound}"));
    let value = one.text("value").map(str::to_owned);
    let words = [value, bound("floor", "at least"), bound("ceiling", "at most")];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Where the kernel shows a setting.
pub fn kernel_path(key: &str) -> String {
    format!("/proc/sys/{}", swapped(&dotted(key)))
}

/// A setting of the kernel with dots between its parts: where the first separator is a slash,
/// slashes and dots have changed places.
pub fn dotted(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(at) if key[at..].starts_with('/') => swapped(key),
        _ => key.to_owned(),
    }
}

fn swapped(key: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    key.chars().map(swap).collect()
}

/// The value of a directive for everyone: the first line wins, files are read where they are
/// included, and what stands below `Match` is not for everyone.
pub fn sshd<'t>(
    files: &'t BTreeMap<String, String>,
    directive: &str,
) -> Option<(&'t str, &'t str)> {
    read_sshd(files, SSHD, directive, 0)
}

/// More than any sshd follows.
const DEPTH: usize = 16;

fn read_sshd<'t>(
    files: &'t BTreeMap<String, String>,
    path: &str,
    directive: &str,
    depth: usize,
) -> Option<(&'t str, &'t str)> {
    let (path, text) = files.get_key_value(path)?;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let at = line.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(line.len());
        let (name, value) = line.split_at(at);
        let value = value.trim_matches(|c: char| c == '=' || c.is_whitespace() || c == '"');
        if name.eq_ignore_ascii_case("match") {
            return None;
        }
        if name.eq_ignore_ascii_case(directive) {
            return Some((value, path));
        }
        if name.eq_ignore_ascii_case("include") && depth < DEPTH {
            let found = included(files, value)
                .into_iter()
                .find_map(|path| read_sshd(files, path, directive, depth + 1));
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// The files that an `Include` names, in order. Relative patterns are below /etc/ssh.
fn included<'t>(files: &'t BTreeMap<String, String>, patterns: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    for pattern in patterns.split_whitespace() {
        let pattern = match pattern.starts_with('/') {
            true => pattern.to_owned(),
            false => format!("/etc/ssh/{pattern}"),
        };
        found.extend(files.keys().map(String::as_str).filter(|path| fits(path, &pattern)));
    }
    found
}

pub const SUDO: &str = "/etc/sudoers";
const SUDO_PLACE: &str = "/etc/sudoers.d";

/// The value of a default of sudo for everyone: files are read where they are included, the last
/// line wins. A flag is `on` or `off`.
pub fn sudo<'t>(files: &'t BTreeMap<String, String>, name: &str) -> Option<(&'t str, &'t str)> {
    let (path, text) = files.get_key_value(SUDO)?;
    let mut winner = None;
    for line in text.lines().map(str::trim) {
        let included = line.trim_start_matches(['@', '#']).strip_prefix("includedir");
        if included.is_some_and(|place| place.trim() == SUDO_PLACE) {
            // sudo passes over names that editors and package managers leave.
            let parts = files.iter().filter(|(path, _)| {
                let name = path.strip_prefix(SUDO_PLACE).and_then(|rest| rest.strip_prefix('/'));
                name.is_some_and(|name| !name.contains('.') && !name.ends_with('~'))
            });
            let lines = parts.flat_map(|(path, text)| text.lines().map(move |line| (line, path)));
            winner = lines
                .filter_map(|(line, path)| Some((default(line, name)?, path.as_str())))
                .next_back()
                .or(winner);
        } else if let Some(value) = default(line, name) {
            winner = Some((value, path.as_str()));
        }
    }
    winner
}

/// What a line of sudoers gives to a name: `Defaults use_pty, logfile="/var/log/sudo.log"`.
fn default<'t>(line: &'t str, name: &str) -> Option<&'t str> {
    let rest = line.trim().strip_prefix("Defaults")?;
    let settings = rest.starts_with(char::is_whitespace).then_some(rest)?.split(',');
    let value = |setting: &'t str| {
        let setting = setting.trim();
        if setting.strip_prefix('!').is_some_and(|flag| flag.trim() == name) {
            return Some("off");
        }
        let rest = setting.strip_prefix(name)?.trim_start();
        match rest.strip_prefix('=') {
            Some(value) => Some(value.trim().trim_matches('"')),
            None => rest.is_empty().then_some("on"),
        }
    };
    settings.filter_map(value).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_the_kernel_has_one_name_and_one_path() {
        for (written, name, path) in [
            ("kernel.panic", "kernel.panic", "kernel/panic"),
            ("net/ipv4/ip_forward", "net.ipv4.ip_forward", "net/ipv4/ip_forward"),
            ("net/ipv4/conf/eth0.1/x", "net.ipv4.conf.eth0/1.x", "net/ipv4/conf/eth0.1/x"),
            ("net.ipv4.conf.eth0/1.x", "net.ipv4.conf.eth0/1.x", "net/ipv4/conf/eth0.1/x"),
        ] {
            assert_eq!(dotted(written), name);
            assert_eq!(kernel_path(written), format!("/proc/sys/{path}"));
        }
    }

    #[test]
    fn lists_of_ports_are_compared_as_the_kernel_writes_them() {
        let one = |value: &str| {
            let table =
                serde_json::json!({"key": "net.ipv4.ip_local_reserved_ports", "value": value});
            let table = table.as_object().unwrap().clone();
            Resource::read("sysctl", &table, "base", &Default::default()).unwrap().0
        };
        for (value, actual, same) in [
            ("2703,9808,9809,10249,10250", "2703,9808-9809,10249-10250", true),
            ("9809,9808", "9808-9809\n", true),
            ("9808,9809", "9808-9810", false),
            ("9808,9809", "9808", false),
            ("9808,9809", "", false),
            ("32768 60999", "32768\t60999", true),
            ("-1", "1", false),
        ] {
            assert_eq!(suits(&one(value), actual), same, "{value} {actual}");
        }
    }

    #[test]
    fn the_last_default_of_sudo_wins_where_it_is_included() {
        let files = |list: &[(&str, &str)]| -> BTreeMap<String, String> {
            list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
        };
        let main = "Defaults !use_pty, logfile = \"/a\"\nDefaults:bob use_pty\n@includedir /etc/sudoers.d\n";
        for (part, name, found) in [
            (("/etc/sudoers.d/90", "Defaults use_pty"), "use_pty", Some("on")),
            (("/etc/sudoers.d/90.rpmsave", "Defaults use_pty"), "use_pty", Some("off")),
            (("/etc/sudoers.d/90", "Defaults logfile=/b"), "logfile", Some("/b")),
            (("/etc/sudoers.d/90", "#Defaults x"), "logfile", Some("/a")),
            (("/etc/sudoers.d/90", "Defaults use_ptys"), "requiretty", None),
        ] {
            let files = files(&[(SUDO, main), part]);
            assert_eq!(sudo(&files, name).map(|(value, _)| value), found, "{part:?}");
        }
        let alone = files(&[(SUDO, "root ALL\n"), ("/etc/sudoers.d/90", "Defaults use_pty")]);
        assert_eq!(sudo(&alone, "use_pty"), None, "nobody includes it");
    }

    fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn the_last_file_wins_and_hidden_ones_do_not_count() {
        let files = files(&[
            ("/etc/sysctl.d/90-tenon.conf", "kernel.panic = 10\nnet.a = 1\n"),
            ("/usr/lib/sysctl.d/99-late.conf", "kernel/panic=0\n"),
            ("/usr/lib/sysctl.d/95-x.conf", "net.a=7\n"),
            ("/etc/sysctl.d/95-x.conf", "# net.a=5\n"),
        ]);
        assert_eq!(sysctl(&files, "kernel.panic"), Some(("0", "/usr/lib/sysctl.d/99-late.conf")));
        assert_eq!(sysctl(&files, "net.a"), Some(("1", "/etc/sysctl.d/90-tenon.conf")));
        assert_eq!(sysctl(&files, "none"), None);
    }

    #[test]
    fn the_first_directive_wins_and_includes_are_read_in_place() {
        let files = files(&[
            (
                SSHD,
                "Include /etc/ssh/sshd_config.d/*.conf\nPermitRootLogin yes\nMatch User x\nX11Forwarding yes\n",
            ),
            ("/etc/ssh/sshd_config.d/00-tenon.conf", "permitrootlogin no\n"),
            ("/etc/ssh/sshd_config.d/sub/a.conf", "LogLevel QUIET\n"),
        ]);
        let own = "/etc/ssh/sshd_config.d/00-tenon.conf";
        assert_eq!(sshd(&files, "PermitRootLogin"), Some(("no", own)));
        assert_eq!(sshd(&files, "X11Forwarding"), None);
        assert_eq!(sshd(&files, "LogLevel"), None);
    }
}
