//! Directives of a systemd unit: its fragment, then its drop-ins in the order of their names.

use std::collections::BTreeMap;

use super::snapshot::{Look, Snapshot};

/// Where systemd looks for units; earlier directories win.
const DIRECTORIES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The files of a unit, fragment first. Empty when the unit does not exist.
pub fn files(snapshot: &Snapshot, unit: &str) -> Vec<String> {
    let fragments = DIRECTORIES.iter().map(|directory| format!("{directory}/{unit}"));
    let there = |path: &String| matches!(snapshot.look(path), Look::There(_));
    let fragments: Vec<String> = fragments.filter(there).collect();
    // A drop-in of the same name in a directory of higher rank hides the others.
    let mut drop_ins = BTreeMap::new();
    for directory in DIRECTORIES {
        let directory = format!("{directory}/{unit}.d");
        for name in snapshot.list(&directory) {
            if name.ends_with(".conf") {
                drop_ins.entry(name.clone()).or_insert_with(|| format!("{directory}/{name}"));
            }
        }
    }
    fragments.into_iter().take(1).chain(drop_ins.into_values()).collect()
}

/// Where the units of images and of administrators are, which a bundle has.
const USUAL: [&str; 2] = ["/etc/systemd/system", "/usr/lib/systemd/system"];

/// Why the unit's own file is not known, if it is neither there nor certainly absent.
pub fn hidden(snapshot: &Snapshot, unit: &str) -> Option<String> {
    let looks = USUAL.iter().map(|directory| snapshot.look(&format!("{directory}/{unit}")));
    let mut why = None;
    for look in looks {
        match look {
            Look::There(_) => return None,
            Look::Hidden(reason) => why = why.or(Some(reason)),
            Look::Absent => {}
        }
    }
    why
}

/// The values of a directive in a section, in order; an empty one takes back those before it.
pub fn values(snapshot: &Snapshot, files: &[String], section: &str, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    for path in files {
        let Ok(Some(text)) = snapshot.text(path) else { continue };
        for (at, name, value) in directives(&text) {
            match (at == section && name == key, value.is_empty()) {
                (false, _) => {}
                (true, true) => found.clear(),
                (true, false) => found.push(value),
            }
        }
    }
    found
}

/// Section, key and value of every directive; a backslash at the end of a line joins the next.
fn directives(text: &str) -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if let Some((key, value)) = line.split_once('=') {
            found.push((section.clone(), key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::snapshot::Seen;

    fn snapshot(files: &[(&str, &str)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (path, text) in files {
            let seen = Seen { body: text.as_bytes().to_vec(), ..Seen::default() };
            snapshot.files.insert((*path).to_owned(), Look::There(seen));
            let (directory, name) = path.rsplit_once('/').unwrap();
            snapshot.lists.entry(directory.to_owned()).or_default().push(name.to_owned());
        }
        snapshot
    }

    #[test]
    fn drop_ins_follow_the_fragment_by_name_and_rank() {
        let snapshot = snapshot(&[
            ("/usr/lib/systemd/system/a.service", "[Service]\nExecStart=/bin/a \\\n  -x\n"),
            ("/usr/lib/systemd/system/a.service.d/10-b.conf", "[Service]\nUser=lower\n"),
            ("/etc/systemd/system/a.service.d/10-b.conf", "[Service]\nUser=higher\n"),
            ("/etc/systemd/system/a.service.d/05-a.conf", "[Unit]\nUser=other\n# User=x\n"),
            ("/etc/systemd/system/a.service.d/README", "[Service]\nUser=no\n"),
        ]);
        let files = files(&snapshot, "a.service");
        assert_eq!(
            files,
            [
                "/usr/lib/systemd/system/a.service",
                "/etc/systemd/system/a.service.d/05-a.conf",
                "/etc/systemd/system/a.service.d/10-b.conf",
            ]
        );
        assert_eq!(values(&snapshot, &files, "Service", "User"), ["higher"]);
        let start = values(&snapshot, &files, "Service", "ExecStart");
        assert_eq!(start.iter().map(|line| line.split_whitespace().count()).sum::<usize>(), 2);
    }

    #[test]
    fn an_empty_value_takes_back_the_earlier_ones() {
        let snapshot = snapshot(&[
            ("/etc/systemd/system/a.service", "[Service]\nExecStart=/bin/a\n"),
            ("/etc/systemd/system/a.service.d/1.conf", "[Service]\nExecStart=\nExecStart=/bin/b\n"),
        ]);
        let files = files(&snapshot, "a.service");
        assert_eq!(values(&snapshot, &files, "Service", "ExecStart"), ["/bin/b"]);
    }
}
