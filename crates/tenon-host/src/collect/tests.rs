//! A node's root with everything that can go wrong in it, collected, packed and read back.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use tenon_core::collect::catalogue::{self, Entry};
use tenon_core::collect::manifest::{Manifest, Status};
use tenon_core::redact::{Book, Class};

use super::journal::Match;
use super::*;

const MIB: u64 = 1 << 20;

fn write(root: &Path, path: &str, content: &[u8]) -> PathBuf {
    let path = root.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

fn options() -> Options {
    Options {
        only: Vec::new(),
        skip: Vec::new(),
        since_us: None,
        max_size: 1 << 30,
        max_item: None,
        budget: Duration::from_secs(60),
        jobs: 2,
        redact: true,
        deep: false,
        reproducible: true,
        spool: Some(std::env::temp_dir()),
        disk_room: 1 << 30,
    }
}

fn user(text: &str) -> Vec<Entry> {
    catalogue::user(text, "test", true).unwrap()
}

/// Collects from a source and packs the result beside it.
fn bundle_of(
    source: Source,
    entries: Vec<Entry>,
    options: Options,
) -> (tempfile::TempDir, PathBuf) {
    let mut book = Book::default();
    book.know(Class::KnownValue, "known-canary-value");
    let order = Order { source, entries, options, book, given: BTreeMap::new() };
    let collected = collect(order, &mut |_| {});
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("bundle.tar.gz");
    collected.save(&collected.manifest(&Cover::default()), &path).unwrap();
    (out, path)
}

fn open(path: &Path) -> Bundle {
    Bundle::open(path).unwrap()
}

fn status(manifest: &Manifest, path: &str) -> Status {
    let item = manifest.items.iter().find(|item| item.path == path);
    item.unwrap_or_else(|| panic!("no item {path}")).status
}

fn text(bundle: &Bundle, name: &str) -> String {
    String::from_utf8(bundle.read(name, 64 * MIB).unwrap().unwrap()).unwrap()
}

/// Section 15.2 of the specification, in one root.
#[test]
fn hostile_content_gives_a_whole_bundle_with_the_right_statuses() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let huge = write(root, "/logs/huge.log", b"first line\n");
    let file = std::fs::OpenOptions::new().append(true).open(&huge).unwrap();
    file.set_len(3 << 30).unwrap();
    (&file).write_all(b"\nlast line\n").unwrap();
    write(root, "/logs/long.log", "a line of a log\n".repeat(200_000).as_bytes());
    let pipe = std::process::Command::new("mkfifo").arg(root.join("logs/pipe")).status().unwrap();
    assert!(pipe.success());
    symlink("loop-b", root.join("logs/loop-a")).unwrap();
    symlink("loop-a", root.join("logs/loop-b")).unwrap();
    write(root, "/secret/shadow", b"CANARY-outside");
    symlink("/secret/shadow", root.join("logs/out")).unwrap();
    symlink("..", root.join("logs/up")).unwrap();
    write(root, "/var/log/journal/m/system.journal", b"LPKSHHRH broken");
    write(root, "/logs/odd\nname", b"odd");
    let entries = user(
        "[t]\nhuge = { file = \"/logs/huge.log\", keep = \"tail\", cap = \"1MiB\" }
        both = { file = \"/logs/long.log\", keep = \"both\", cap = \"64KiB\" }
        pipe = { file = \"/logs/pipe\" }\nloop = { file = \"/logs/loop-a\" }
        none = { file = \"/logs/none\" }\ntree = { tree = \"/logs\", cap = \"256KiB\" }
        journal = { journal = \"unit=kubelet.service\" }\nglob = { glob = \"/logs/*.log\", cap = \"1KiB\" }
        uptime = { file = \"/proc/uptime\" }\nprogram = { command = [\"id\"] }",
    );
    let (_out, path) = bundle_of(Source::root(root).unwrap(), entries, options());
    let bundle = open(&path);
    let manifest = &bundle.manifest;
    for (name, expected) in [
        ("user/huge.log", Status::Truncated),
        ("user/both.log", Status::Truncated),
        ("user/pipe.txt", Status::Error),
        ("user/loop.txt", Status::Error),
        ("user/none.txt", Status::Absent),
        ("user/tree", Status::Truncated),
        ("user/journal.log", Status::Error),
        ("user/uptime.txt", Status::NotApplicable),
        ("user/program.txt", Status::NotApplicable),
        ("user/glob/huge.log", Status::Truncated),
        ("user/glob/long.log", Status::Truncated),
    ] {
        assert_eq!(status(manifest, name), expected, "{name}");
    }
    // Holes are measured as what they hold: the tail has its line, and the zeros are gone.
    let tail = text(&bundle, "user/huge.log");
    assert!(tail.ends_with("last line\n") && tail.len() < 10_000, "{}", tail.len());
    let both = text(&bundle, "user/both.log");
    assert!(both.starts_with("a line of") && both.contains("bytes left out"), "{}", both.len());
    let listed: Vec<&str> = manifest.listed.iter().map(|it| it.source.as_str()).collect();
    for path in ["/logs", "/logs/pipe", "/logs/loop-a", "/logs/out", "/logs/up"] {
        assert!(listed.contains(&path), "{path} is listed");
    }
    let out = manifest.listed.iter().find(|it| it.source == "/logs/out").unwrap();
    assert_eq!(out.node.target.as_deref(), Some("/secret/shadow"));
    for name in bundle.names() {
        assert!(!text(&bundle, name).contains("CANARY"), "{name}");
    }
}

#[test]
fn live_programs_that_hang_flood_or_ignore_signals_are_bounded() {
    let entries = user(
        "[t]\nhang = { command = [\"sh\", \"-c\", \"echo begun; trap '' TERM; sleep 60\"], timeout = 1 }
        flood = { command = [\"yes\"], cap = \"64KiB\" }\nfails = { command = [\"sh\", \"-c\", \"echo password=CANARY >&2; exit 3\"] }
        fine = { command = [\"echo\", \"token=CANARY\"] }\nnone = { command = [\"no-such-program\"] }",
    );
    let started = Instant::now();
    let (_out, path) = bundle_of(Source::live().unwrap(), entries, options());
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    let bundle = open(&path);
    for (name, expected) in [
        ("user/hang.txt", Status::Timeout),
        ("user/flood.txt", Status::Truncated),
        ("user/fails.txt", Status::Error),
        ("user/fine.txt", Status::Ok),
        ("user/none.txt", Status::Absent),
    ] {
        assert_eq!(status(&bundle.manifest, name), expected, "{name}");
    }
    assert_eq!(text(&bundle, "user/hang.txt"), "begun\n", "partial content is kept");
    assert_eq!(bundle.size("user/flood.txt"), Some(64 << 10));
    assert_eq!(text(&bundle, "user/fine.txt"), "token=<redacted:key-value:1>\n");
    assert!(!text(&bundle, "manifest.json").contains("CANARY"));
}

#[test]
fn a_short_budget_closes_the_bundle_in_time() {
    let entries = user(
        "[t]\na = { command = [\"sleep\", \"60\"] }\nb = { command = [\"sleep\", \"60\"] }
        c = { command = [\"sleep\", \"60\"] }",
    );
    let options = Options { budget: Duration::from_secs(1), ..options() };
    let started = Instant::now();
    let (_out, path) = bundle_of(Source::live().unwrap(), entries, options);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    let manifest = open(&path).manifest;
    assert_eq!(manifest.count(Status::Timeout), 2);
    assert_eq!(manifest.count(Status::SkippedBudget), 1);
}

#[test]
fn a_small_size_is_kept_and_what_does_not_fit_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        write(dir.path(), name, &vec![b'x'; 2 * MIB as usize]);
    }
    let entries = user("[t]\na = { file = \"/a\" }\nb = { file = \"/b\" }\nc = { file = \"/c\" }");
    let options = Options { max_size: 3 * MIB, jobs: 1, ..options() };
    let (_out, path) = bundle_of(Source::root(dir.path()).unwrap(), entries, options);
    let manifest = open(&path).manifest;
    assert_eq!(status(&manifest, "user/a.txt"), Status::Ok);
    assert_eq!(status(&manifest, "user/b.txt"), Status::Truncated);
    assert_eq!(status(&manifest, "user/c.txt"), Status::SkippedBudget);
    assert!(manifest.totals.bytes < 3 * MIB + (256 << 10));
}

#[test]
fn options_choose_and_the_same_node_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "/etc/os-release", b"ID=amzn\nVERSION_ID=\"2023\"\n");
    write(dir.path(), "/etc/kubernetes/kubelet/config.json", b"{\"apiVersion\":1}");
    let make = || {
        let entries = catalogue::embedded().unwrap();
        let options = Options {
            only: vec!["kubelet".into(), "identity/os-release".into()],
            skip: vec!["kubelet/ca".into()],
            ..options()
        };
        bundle_of(Source::root(dir.path()).unwrap(), entries, Options { jobs: 1, ..options })
    };
    let ((_one, first), (_two, second)) = (make(), make());
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
    assert_eq!(std::fs::metadata(&first).unwrap().permissions().mode() & 0o7777, 0o600);
    let manifest = open(&first).manifest;
    assert_eq!(status(&manifest, "identity/os-release.txt"), Status::Ok);
    assert_eq!(status(&manifest, "kubelet/ca"), Status::SkippedOption);
    assert_eq!(status(&manifest, "network/hosts.txt"), Status::SkippedOption);
    assert_eq!(status(&manifest, "kubelet/config/config.json"), Status::Ok);
}

/// Section 15.6: what a volume says and what its bundle says are the same.
#[test]
fn a_bundle_answers_as_its_root_did() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, "/etc/resolv.conf", b"nameserver 10.0.0.2\n");
    write(root, "/etc/cni/net.d/10-aws.conflist", b"{}");
    write(root, "/etc/systemd/system/kubelet.service", b"[Service]\n");
    std::fs::create_dir_all(root.join("etc/systemd/system/multi-user.target.wants")).unwrap();
    symlink(
        "../kubelet.service",
        root.join("etc/systemd/system/multi-user.target.wants/kubelet.service"),
    )
    .unwrap();
    symlink("/dev/null", root.join("etc/systemd/system/containerd.service")).unwrap();
    let mut journal = Vec::new();
    let packed: &[u8] = include_bytes!("journal/fixtures/compact.journal.gz");
    flate2::read::GzDecoder::new(packed).read_to_end(&mut journal).unwrap();
    write(root, "/var/log/journal/m/system.journal", &journal);
    let (_out, path) =
        bundle_of(Source::root(root).unwrap(), catalogue::embedded().unwrap(), options());
    let sources = [Source::root(root).unwrap(), Source::bundle(&path).unwrap()];
    for source in &sources {
        let kind = source.kind();
        assert_eq!(
            source.read_text("/etc/resolv.conf"),
            Answer::Known("nameserver 10.0.0.2".into()),
            "{kind:?}"
        );
        assert_eq!(
            source.list("/etc/cni/net.d"),
            Answer::Known(vec!["10-aws.conflist".to_owned()])
        );
        assert_eq!(source.read_text("/etc/cni/net.d/none"), Answer::Absent, "{kind:?}");
        assert_eq!(source.read_text("/var/lib/kubelet/config.yaml"), Answer::Absent, "{kind:?}");
        assert!(matches!(source.read_text("/proc/swaps"), Answer::Unknown(_)), "{kind:?}");
        assert_eq!(source.stat("/etc/resolv.conf").known().unwrap().mode, 0o644);
        let kubelet = source.unit("kubelet.service").known().unwrap();
        assert!(kubelet.enabled && !kubelet.masked && kubelet.state.is_none(), "{kind:?}");
        assert!(source.unit("containerd.service").known().unwrap().masked);
        assert_eq!(source.unit("none.service"), Answer::Absent);
        let query =
            Query { of: Match::Unit("kubelet.service".into()), since_us: None, most_bytes: MIB };
        let entries = source.journal(&query).known().unwrap();
        let messages: Vec<_> = entries.iter().map(|entry| entry.message.as_str()).collect();
        assert_eq!(
            messages,
            ["line 1 of the kubelet", "line 3 of the kubelet", "line 4 of the kubelet"]
        );
        assert_eq!(entries[0].time_us, 1_794_784_145_369_683);
    }
    assert!(matches!(sources[1].read_text("/etc/shadow"), Answer::Unknown(_)));
    let collected = sources[1].bundle_handle().unwrap();
    assert!(text(collected, "README.txt").lines().count() == 10);
}

#[test]
fn a_known_value_and_a_secret_cut_by_the_cap_do_not_survive() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "/a.log", b"said known-canary-value here\n");
    let key = format!(
        "-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n",
        "CANARYCANARY\n".repeat(500)
    );
    write(dir.path(), "/b.log", format!("{}{key}after\n", "x\n".repeat(10_000)).as_bytes());
    let entries = user(
        "[t]\na = { file = \"/a.log\" }\nb = { file = \"/b.log\", cap = \"2KiB\", keep = \"tail\" }",
    );
    let (_out, path) = bundle_of(Source::root(dir.path()).unwrap(), entries, options());
    let bundle = open(&path);
    assert_eq!(text(&bundle, "user/a.log"), "said <redacted:known-value:1> here\n");
    assert_eq!(text(&bundle, "user/b.log"), "<redacted:pem-key:1>\nafter\n");
    assert_eq!(bundle.manifest.totals.redactions, 2);
}

#[test]
fn no_disk_means_memory_and_a_read_only_place_is_said() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "/a", b"content");
    let entries = user("[t]\na = { file = \"/a\" }");
    let options = Options { spool: None, disk_room: 0, ..options() };
    let order = Order {
        source: Source::root(dir.path()).unwrap(),
        entries,
        options,
        book: Book::default(),
        given: BTreeMap::new(),
    };
    let collected = collect(order, &mut |_| {});
    let manifest = collected.manifest(&Cover::default());
    let mut bytes = Vec::new();
    collected.write(&manifest, &mut bytes).unwrap();
    assert!(bytes.starts_with(&[0x1f, 0x8b]));
    let problem = collected.save(&manifest, Path::new("/proc/none/bundle.tar.gz")).unwrap_err();
    assert_eq!(problem.exit(), 7);
}

/// Packs members into what may be a bundle.
fn forge(members: &[(&str, &[u8])], headers: &dyn Fn(&mut [u8; tar::BLOCK], usize)) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, (name, content)) in members.iter().enumerate() {
        let mut block = tar::header(name, content.len() as u64, 0).unwrap();
        headers(&mut block, index);
        bytes.extend_from_slice(&block);
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len() + tar::padding(content.len() as u64), 0);
    }
    bytes.resize(bytes.len() + 2 * tar::BLOCK, 0);
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&bytes).unwrap();
    packer.finish().unwrap()
}

fn a_manifest() -> Vec<u8> {
    let order = Order {
        source: Source::root(Path::new("/proc/self/fd")).unwrap(),
        entries: Vec::new(),
        options: options(),
        book: Book::default(),
        given: BTreeMap::new(),
    };
    let collected = collect(order, &mut |_| {});
    serde_json::to_vec(&collected.manifest(&Cover::default())).unwrap()
}

fn refused(bytes: &[u8]) -> &'static str {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "/x.tar.gz", bytes);
    let problem = Bundle::open(&path).unwrap_err();
    assert_eq!(problem.exit(), 3);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was written");
    problem.page.slug
}

#[test]
fn hostile_and_damaged_bundles_are_refused() {
    let manifest = a_manifest();
    let fine = |_: &mut [u8; tar::BLOCK], _: usize| {};
    let head = ("manifest.json", manifest.as_slice());
    for path in ["../../etc/cron.d/x", "/etc/passwd", "a/../../b"] {
        assert_eq!(refused(&forge(&[head, (path, b"x")], &fine)), "logs-hostile-bundle", "{path}");
    }
    assert_eq!(refused(&forge(&[head, ("a", b"1"), ("a", b"2")], &fine)), "logs-hostile-bundle");
    let bomb = vec![0; 40 << 20];
    assert_eq!(refused(&forge(&[head, ("a", &bomb)], &fine)), "logs-hostile-bundle");
    let claims = |block: &mut [u8; tar::BLOCK], index: usize| {
        if index == 1 {
            *block = tar::header("a", 1 << 40, 0).unwrap_or(*block);
        }
    };
    assert_eq!(refused(&forge(&[head, ("a", b"x")], &claims)), "logs-hostile-bundle");
    assert_eq!(refused(&forge(&[("a", b"x")], &fine)), "logs-bad-bundle");
    assert_eq!(refused(&forge(&[("manifest.json", b"{}")], &fine)), "logs-bad-bundle");
    let whole = forge(&[head, ("a", b"x")], &fine);
    for cut in [0, 1, 2, 10, whole.len() / 2, whole.len() - 9] {
        assert_eq!(refused(&whole[..cut]), "logs-bad-bundle", "{cut}");
    }
    assert_eq!(refused(b"\x28\xb5\x2f\xfdxxxx"), "logs-bad-bundle");
}

#[test]
fn a_changed_content_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "/a", b"content");
    let (_out, path) =
        bundle_of(Source::root(dir.path()).unwrap(), user("[t]\na = { file = \"/a\" }"), options());
    let manifest = text(&open(&path), "manifest.json");
    let forged =
        forge(&[("manifest.json", manifest.as_bytes()), ("user/a.txt", b"CONTENT")], &|_, _| {});
    assert_eq!(refused(&forged), "logs-bad-bundle");
    let same =
        forge(&[("manifest.json", manifest.as_bytes()), ("user/a.txt", b"content")], &|_, _| {});
    let whole = write(dir.path(), "/same.tar.gz", &same);
    assert_eq!(text(&open(&whole), "user/a.txt"), "content");
}

#[test]
fn a_server_on_the_loopback_is_asked_and_a_silent_one_is_not_waited_for() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (turn, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).unwrap();
            if buffer[..count].starts_with(b"GET /silent") {
                std::thread::sleep(Duration::from_secs(5));
            } else {
                let body = format!("turn {turn} token=CANARY\n");
                let _ = stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{body}").as_bytes());
            }
        }
    });
    let entries = user(&format!(
        "[t]\na = {{ http = \"http://127.0.0.1:{port}/x\" }}\nb = {{ http = \"http://127.0.0.1:{port}/silent\", timeout = 1 }}\nc = {{ http = \"http://127.0.0.1:9/x\" }}"
    ));
    let options = Options { jobs: 1, ..options() };
    let (_out, path) = bundle_of(Source::live().unwrap(), entries, options);
    let bundle = open(&path);
    assert_eq!(text(&bundle, "user/a.txt"), "turn 0 token=<redacted:key-value:1>\n");
    assert_eq!(status(&bundle.manifest, "user/b.txt"), Status::Timeout);
    assert_eq!(status(&bundle.manifest, "user/c.txt"), Status::Absent);
}
