//! `tenon image` on a root of files: what it writes, counted, and what it does not.

use std::fs;

use serde_json::Value;

use crate::desk::{Desk, code, json, stderr};
use crate::trace::{self, Trace};

/// Files, links, directories, accounts and edits: everything that needs no program of a root.
const PROFILE: &str = r#"
about = "what needs no programs"
[[group]]
name = "nodes"
reason = "r"
[[directory]]
path = "/etc/kubernetes"
mode = "0755"
reason = "r"
[[file]]
path = "/etc/motd"
mode = "0644"
content = "welcome\n"
reason = "r"
[[link]]
path = "/etc/localtime"
target = "/usr/share/zoneinfo/UTC"
reason = "r"
[[setting]]
file = "/etc/login.defs"
name = "UMASK"
value = "027"
reason = "r"
[[sysctl]]
key = "kernel.panic"
value = "10"
reason = "r"
[[unit]]
name = "x.service"
content = "[Service]\nExecStart=/bin/true\n"
state = "enabled"
wanted-by = ["multi-user.target"]
reason = "r"
"#;

/// A Debian that has files alone.
fn desk() -> Desk {
    let desk = Desk::new();
    for (path, text) in [
        ("etc/os-release", "ID=debian\nVERSION_CODENAME=bookworm\n"),
        ("etc/group", "root:x:0:\n"),
        ("etc/login.defs", "UMASK 022\n"),
        ("var/lib/dpkg/status", ""),
    ] {
        desk.machine_file(path, text);
    }
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let head = [b"\x7fELF\x02\x01".as_slice(), &[0; 12], &[machine, 0]].concat();
    fs::create_dir_all(desk.path("bin")).unwrap();
    fs::write(desk.path("bin/sh"), head).unwrap();
    desk
}

fn arguments(desk: &Desk, command: &str, profile: &str) -> Vec<String> {
    let words = ["image", command, "--root", desk.root(), "--profile", profile];
    words.map(str::to_owned).to_vec()
}

fn apply(desk: &Desk, profile: &str) -> Option<Trace> {
    let arguments = [arguments(desk, "apply", profile), vec!["--output".into(), "json".into()]];
    let arguments = arguments.concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let trace = trace::tenon(desk, &arguments)?;
    assert_eq!(code(&trace.output), 0, "{}", stderr(&trace.output));
    Some(trace)
}

fn items(trace: &Trace) -> Vec<String> {
    let answer = json(&trace.output);
    let items = answer["items"].as_array().unwrap().iter();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn every_file_is_synced_and_renamed_once_and_a_second_run_writes_nothing() {
    let desk = desk();
    let profile = desk.file("mine.toml", PROFILE);
    let Some(first) = apply(&desk, &profile) else { return };
    let changed = items(&first);
    // The directory is made; all others are renamed, and so are the plan and the record.
    let renamed = changed.len() - 1 + 2;
    let renames = first.calls.iter().filter(|call| call.name.starts_with("rename")).count();
    assert_eq!((changed.len(), renames), (8, renamed), "{changed:?}");
    // Links hold no data to sync; directories are synced after each batch.
    let data = first.named("fsync").len();
    assert!(data >= renamed - 2 + changed.len(), "{data} syncs");
    for call in &first.calls {
        assert!(!call.says("O_TRUNC"), "{}", call.line);
        assert!(!matches!(call.name.as_str(), "sync" | "syncfs" | "execve" if call.says("mount")));
    }
    let Some(second) = apply(&desk, &profile) else { return };
    assert_eq!(items(&second), Vec::<String>::new());
    assert_silent(&second);
}

/// Nothing was opened for writing, renamed, synced or started.
fn assert_silent(trace: &Trace) {
    let writes: Vec<_> = trace.calls.iter().filter(|call| call.changes_files()).collect();
    assert!(writes.is_empty(), "{writes:?}");
    let processes = trace.calls.iter().filter(|call| call.begins_process()).count();
    assert_eq!((processes, trace.named("socket").len()), (0, 0));
    for call in trace.named("write") {
        assert!(call.says("write(1<") || call.says("write(2<"), "{}", call.line);
    }
}

#[test]
fn verify_writes_nothing() {
    let desk = desk();
    let profile = desk.file("mine.toml", PROFILE);
    if apply(&desk, &profile).is_none() {
        return;
    }
    let words = ["image", "verify", "--root", desk.root(), "--output", "json"];
    let Some(trace) = trace::tenon(&desk, &words) else { return };
    assert_eq!(code(&trace.output), 0, "{}", stderr(&trace.output));
    assert_silent(&trace);
}

/// Every entry that the cache lacks is named at once, before anything changes.
#[test]
fn offline_every_missing_entry_is_named_at_once() {
    let desk = desk();
    let download = |name: &str, digit: &str| {
        let sum = digit.repeat(64);
        format!(
            "[[download]]\npath = '/usr/bin/{name}'\ncomponent = '{name}'\nversion = '1'\n\
             url = 'https://example.com/{name}'\nsha256 = {{x86_64 = '{sum}', aarch64 = '{sum}'}}\n\
             reason = 'r'\n"
        )
    };
    let text = format!("{PROFILE}{}{}", download("kubelet", "1"), download("crictl", "2"));
    let profile = desk.file("mine.toml", &text);
    let cache = desk.side.path().join("cache");
    let cache = cache.to_str().unwrap();
    for more in [&["--cache", cache, "--offline"][..], &["--offline"]] {
        let arguments = arguments(&desk, "apply", &profile);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = desk.run(&[&arguments, more].concat());
        assert_eq!(code(&output), 10, "{}", stderr(&output));
        let told = stderr(&output);
        assert!(
            told.contains("example.com/kubelet") && told.contains("example.com/crictl"),
            "{told}"
        );
        assert!(told.contains("TN10812"), "{told}");
        assert!(!desk.path("etc/motd").exists());
    }
}
