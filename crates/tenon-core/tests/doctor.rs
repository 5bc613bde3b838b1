//! Every node of `fixtures/doctor`: the right cause first, nothing false, and no cause without
//! its key evidence. `base/root` is a healthy node; a fixture's own `root` lies over it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![expect(clippy::disallowed_methods, reason = "a test of the core may read its fixtures")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenon_core::doctor::{
    CAUSES, Confidence, FILES, FOLDERS, LOGS, Line, Options, Origin, PROGRAMS, Probes, Report,
    Role, Snapshot, Standing, Weight, certificates_only, examine,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/doctor")
}

/// Every file below a directory, by its path on the node.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = format!("/{}", path.strip_prefix(root).unwrap().display());
            files.insert(name, fs::read(path).unwrap());
        }
    }
    files
}

struct Fixture {
    name: String,
    node: Snapshot,
    /// What the node would be with the files of the healthy one.
    base: Snapshot,
    expect: Value,
}

fn read_files(node: &mut Snapshot, files: &BTreeMap<String, Vec<u8>>, emptied: &[String]) {
    let wanted = |path: &str| {
        FILES.iter().any(|want| match want.strip_suffix('*') {
            Some(folder) => path.strip_prefix(folder).is_some_and(|name| !name.contains('/')),
            None => *want == path,
        })
    };
    for (path, bytes) in files {
        let text = || String::from_utf8_lossy(bytes).into_owned();
        if wanted(path) {
            let text = if path.ends_with(".pem") { certificates_only(&text()) } else { text() };
            node.files.insert(path.clone(), text);
        }
        if PROGRAMS.contains(&path.as_str()) {
            node.programs.insert(path.clone(), u16::from_le_bytes([bytes[18], bytes[19]]));
        }
        if let Some((_, identifier)) = LOGS.iter().find(|(log, _)| log == path) {
            node.journal.extend(text().lines().map(|line| Line {
                identifier: (*identifier).into(),
                message: line.into(),
                ..Line::default()
            }));
        }
        for folder in FOLDERS {
            let Some(rest) = path.strip_prefix(&format!("{folder}/")) else { continue };
            let name = rest.split('/').next().unwrap().to_owned();
            let names = node.folders.entry((*folder).into()).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    for path in emptied {
        let folder = path.rsplit_once('/').unwrap().0;
        if FOLDERS.contains(&folder) {
            node.folders.entry(folder.into()).or_default();
        }
    }
}

fn load(path: &Path) -> Fixture {
    let expect: Value =
        serde_json::from_slice(&fs::read(path.join("expect.json")).unwrap()).unwrap();
    let recorded = fs::read(path.join("probes.json")).unwrap_or_else(|_| b"{}".to_vec());
    let mut node: Snapshot = serde_json::from_slice(&recorded).unwrap();
    let journal = fs::read_to_string(path.join("journal.jsonl")).unwrap();
    node.journal = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut base = node.clone();
    let mut files = tree(&folder().join("base/root"));
    read_files(&mut base, &files, &[]);
    files.extend(tree(&path.join("root")));
    let absent = expect["absent"].as_array().into_iter().flatten();
    let absent: Vec<_> = absent.map(|path| path.as_str().unwrap().to_owned()).collect();
    absent.iter().for_each(|path| drop(files.remove(path)));
    read_files(&mut node, &files, &absent);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    Fixture { name, node, base, expect }
}

fn fixtures() -> Vec<Fixture> {
    let mut paths: Vec<_> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.join("expect.json").is_file());
    paths.sort();
    paths.iter().map(|path| load(path)).collect()
}

fn summary(report: &Report) -> String {
    report.text(false)
}

#[test]
fn every_fixture_gets_its_verdict() {
    let mut wrong = Vec::new();
    for fixture in fixtures() {
        let report = examine(&fixture.node, &Options::default());
        let roots: Vec<_> = report
            .roots()
            .map(|finding| serde_json::json!([finding.cause.number, finding.confidence.name()]))
            .collect();
        let numbers: Vec<_> =
            report.findings.iter().map(|finding| u64::from(finding.cause.number)).collect();
        let mut faults = Vec::new();
        if Value::from(roots.clone()) != fixture.expect["roots"] {
            faults.push(format!("roots {roots:?}, expected {}", fixture.expect["roots"]));
        }
        if report.state.name() != fixture.expect["state"] {
            faults.push(format!("state {}", report.state.name()));
        }
        if u64::from(report.exit()) != fixture.expect["exit"].as_u64().unwrap() {
            faults.push(format!("exit {}", report.exit()));
        }
        for number in fixture.expect["not"].as_array().into_iter().flatten() {
            if numbers.contains(&number.as_u64().unwrap()) {
                faults.push(format!("names cause {number}"));
            }
        }
        for step in fixture.expect["cleared"].as_array().into_iter().flatten() {
            let line = report.steps.iter().find(|line| line.step.name() == step).unwrap();
            if line.status != "pass" {
                faults.push(format!("step {step} is {}", line.status));
            }
        }
        if !faults.is_empty() {
            wrong.push(format!("{}: {}\n{}", fixture.name, faults.join("; "), summary(&report)));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_cause_has_a_fixture_that_fires_it_and_one_that_must_not() {
    let all = fixtures();
    for cause in CAUSES {
        let number = Value::from(cause.number);
        let fires = all.iter().any(|fixture| fixture.expect["roots"][0][0] == number);
        let spares = all.iter().any(|fixture| {
            fixture.expect["not"].as_array().is_some_and(|list| list.contains(&number))
        });
        assert!(fires, "no fixture fires cause {number}");
        assert!(spares, "no fixture spares cause {number}");
    }
}

/// Takes away what the first finding rests on: its proofs, or its signals when nothing proves it.
fn without_key_evidence(fixture: &Fixture, report: &Report) -> Snapshot {
    let mut node = fixture.node.clone();
    let top = &report.findings[0];
    let key = top.evidence[0].weight;
    let cause = top.cause;
    for evidence in top.evidence.iter().filter(|evidence| evidence.weight == key) {
        match &evidence.origin {
            Origin::Journal(_) => {
                let speaks = |line: &Line| {
                    let text = line.message.replace("\\\"", "\"");
                    cause.signals.iter().any(|signal| signal.find(&text).is_some())
                };
                node.journal.retain(|line| !speaks(line));
            }
            Origin::Probe(_) | Origin::Metadata => node.probes = Probes::default(),
            Origin::Unit(name) => {
                node.journal.retain(|line| line.unit != *name);
                node.units.remove(name);
            }
            Origin::File(_) => {
                let journal = std::mem::take(&mut node.journal);
                node = fixture.base.clone();
                node.journal = journal;
                node.disks.clear();
            }
        }
    }
    node
}

#[test]
fn without_its_key_evidence_a_cause_is_weaker_or_gone() {
    for fixture in fixtures() {
        let report = examine(&fixture.node, &Options::default());
        let Some(top) = report.findings.first() else { continue };
        let node = without_key_evidence(&fixture, &report);
        let after = examine(&node, &Options::default());
        let same = after.findings.iter().find(|finding| finding.cause.number == top.cause.number);
        let weaker = same.is_none_or(|finding| finding.confidence < top.confidence);
        assert!(weaker, "{}: cause {} stays\n{}", fixture.name, top.cause.number, summary(&after));
    }
}

#[test]
fn a_cause_that_is_not_confirmed_is_never_more_than_possible() {
    for fixture in fixtures() {
        for finding in examine(&fixture.node, &Options::default()).findings {
            let proven = finding.evidence.iter().any(|evidence| evidence.weight == Weight::Proves);
            let confirmed = finding.cause.signals.iter().any(|signal| signal.is_confirmed());
            if !proven && !confirmed {
                assert_eq!(finding.confidence, Confidence::Possible, "{}", fixture.name);
            }
        }
    }
}

#[test]
fn causes_are_whole_and_numbered() {
    for (index, cause) in CAUSES.iter().enumerate() {
        assert_eq!(usize::from(cause.number), index + 1);
        assert!(!cause.slug.is_empty() && !cause.title.is_empty(), "{}", cause.id());
        assert!(!cause.why.is_empty() && !cause.fix.is_empty(), "{}", cause.id());
        assert!(!cause.signals.is_empty() || !cause.checks.is_empty(), "{}", cause.id());
        for signal in cause.signals.iter().chain(cause.support) {
            assert!(signal.standing != Standing::Confirmed(""), "{}: no citation", cause.id());
        }
    }
}

#[test]
fn the_same_node_gives_the_same_answer() {
    for fixture in fixtures() {
        let answer = || examine(&fixture.node, &Options::default()).to_json().to_string();
        assert_eq!(answer(), answer(), "{}", fixture.name);
    }
}

#[test]
fn no_secret_leaves() {
    let canaries = ["AKIAIOSFODNN7EXAMPLE", "hunter2secret", "abcdef.0123456789abcdef"];
    for fixture in fixtures() {
        let mut node = fixture.node.clone();
        for line in &mut node.journal {
            line.message.push_str(
                " AKIAIOSFODNN7EXAMPLE token=abcdef.0123456789abcdef http://u:hunter2secret@p:1",
            );
        }
        let report = examine(&node, &Options::default());
        let shown = format!("{}{}", report.text(true), report.to_json());
        for canary in canaries {
            assert!(!shown.contains(canary), "{}: {canary}\n{shown}", fixture.name);
        }
    }
}

#[test]
fn consequences_are_hidden_until_asked_for() {
    let path = folder().join("09-dns");
    let mut fixture = load(&path);
    let line = fixture.node.journal.last().unwrap().clone();
    let message = "NetworkPluginNotReady: cni plugin not initialized".to_owned();
    fixture.node.journal.push(Line { message, ..line });
    let report = examine(&fixture.node, &Options::default());
    let cni = report.findings.iter().find(|finding| finding.cause.number == 26).unwrap();
    assert_eq!(cni.role, Role::Consequence);
    assert!(!report.text(false).contains("cause 26") && report.text(true).contains("cause 26"));
}

#[test]
fn only_limits_the_search() {
    let fixture = load(&folder().join("01-no-access"));
    for (only, found) in [("dns", false), ("authn", true), ("1", true), ("doctor-01", true)] {
        let options = Options { only: vec![only.into()], ..Options::default() };
        assert_eq!(!examine(&fixture.node, &options).findings.is_empty(), found, "{only}");
    }
}
