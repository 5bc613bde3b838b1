//! The fixtures of the doctor as real trees: read through a root, packed into a bundle, read
//! again. Every way gives the verdict that the fixture expects.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tenon_core::collect::catalogue;
use tenon_core::collect::journal::Entry;
use tenon_core::doctor::{Kind, Line, Options, Report, Snapshot, examine};
use tenon_core::redact::Book;
use tenon_host::collect::{self, Cover, Order, Source, collect};
use tenon_host::doctor::{self, gather, recorded};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/doctor")
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).into_iter().flatten() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

struct Case {
    name: String,
    expect: Value,
    root: tempfile::TempDir,
    journal: Vec<Entry>,
    recorded: Snapshot,
}

impl Case {
    fn load(path: &Path) -> Case {
        let read = |name: &str| fs::read(path.join(name)).ok();
        let expect: Value = serde_json::from_slice(&read("expect.json").unwrap()).unwrap();
        let root = tempfile::tempdir().unwrap();
        copy(&folder().join("base/root"), root.path());
        copy(&path.join("root"), root.path());
        for absent in expect["absent"].as_array().into_iter().flatten() {
            fs::remove_file(root.path().join(&absent.as_str().unwrap()[1..])).unwrap();
        }
        let journal = String::from_utf8(read("journal.jsonl").unwrap()).unwrap();
        Case {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            recorded: serde_json::from_slice(&read("probes.json").unwrap_or(b"{}".to_vec()))
                .unwrap(),
            journal: journal.lines().map(entry).collect(),
            expect,
            root,
        }
    }

    fn source(&self) -> Source {
        Source::root(self.root.path()).unwrap().with_journal(self.journal.clone())
    }

    /// The node through its root, with what only a live look can know laid over.
    fn snapshot(&self) -> Snapshot {
        let mut node = gather(&self.source(), &options()).unwrap();
        node.probes = self.recorded.probes.clone();
        node.disks = self.recorded.disks.clone();
        node.units = self.recorded.units.clone();
        node
    }
}

fn entry(line: &str) -> Entry {
    let Line { time_us, boot, unit, identifier, message } = serde_json::from_str(line).unwrap();
    Entry { time_us, boot, unit, identifier, message, pid: 1, priority: 6 }
}

fn options() -> doctor::Options {
    let budget = Duration::from_secs(1);
    doctor::Options { offline: true, deep: false, budget, since_us: None, spec: None }
}

fn cases() -> Vec<Case> {
    let mut paths: Vec<_> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.join("expect.json").is_file());
    paths.sort();
    paths.iter().map(|path| Case::load(path)).collect()
}

fn roots(report: &Report) -> Value {
    report.roots().map(|root| json!([root.cause.number, root.confidence.name()])).collect()
}

#[test]
fn a_root_gives_the_expected_verdict() {
    let mut wrong = Vec::new();
    for case in cases() {
        let report = examine(&case.snapshot(), &Options::default());
        if roots(&report) != case.expect["roots"] || report.state.name() != case.expect["state"] {
            wrong.push(format!("{}:\n{}", case.name, report.text(false)));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Packs a node as `tenon logs collect` does, without what the doctor does not read.
fn bundle(case: &Case, given: BTreeMap<String, Vec<u8>>, file: &Path) {
    let entries = catalogue::embedded().unwrap();
    let only = ["bootstrap", "kubelet", "containerd", "cni", "kernel", "probes"];
    let options = collect::Options {
        only: only.map(str::to_owned).to_vec(),
        skip: Vec::new(),
        since_us: None,
        max_size: 64 << 20,
        max_item: None,
        budget: Duration::from_secs(60),
        jobs: 1,
        redact: true,
        deep: false,
        reproducible: true,
        spool: None,
        disk_room: 0,
    };
    let book = Book::default();
    let order = Order { source: case.source(), entries, options, book, given };
    let collected = collect(order, &mut |_| {});
    let manifest = collected.manifest(&Cover::default());
    collected.write(&manifest, &mut File::create(file).unwrap()).unwrap();
}

#[test]
fn a_bundle_gives_the_same_verdict_as_the_node() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.tar.zst");
    for case in cases() {
        let node = case.snapshot();
        let here = examine(&node, &Options::default());
        let given = BTreeMap::from([("probes.json".to_owned(), recorded(&node))]);
        bundle(&case, given, &file);
        let there = gather(&Source::bundle(&file).unwrap(), &options()).unwrap();
        assert_eq!(there.kind, Kind::Bundle);
        let there = examine(&there, &Options::default());
        let (there, here) = (there.to_json(), here.to_json());
        for key in ["state", "reached", "causes", "steps", "unknown", "node"] {
            assert_eq!(there[key], here[key], "{}: {key}", case.name);
        }
    }
}

#[test]
fn no_key_and_no_secret_enters_what_is_recorded() {
    let case = Case::load(&folder().join("16-proxy"));
    let path = case.root.path().join("var/lib/kubelet/pki/kubelet-client-current.pem");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let key = "-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0LWtleQ==\n-----END EC PRIVATE KEY-----\n";
    fs::write(path, key).unwrap();
    let node = case.snapshot();
    assert!(!node.files.values().any(|text| text.contains("c2VjcmV0")));
    let text = String::from_utf8(recorded(&node)).unwrap();
    assert!(!text.contains("hunter2secret") && !text.contains("c2VjcmV0"), "{text}");
    let report = examine(&node, &Options::default());
    let shown = format!("{}{}", report.text(true), report.to_json());
    assert!(!shown.contains("hunter2secret"), "{shown}");
}

/// A look at a volume is a bounded number of reads, whatever lies on it.
#[test]
fn a_look_reads_few_files() {
    let node = Case::load(&folder().join("near-healthy-offline")).snapshot();
    assert!((20..100).contains(&node.files.len()), "{} files", node.files.len());
}
