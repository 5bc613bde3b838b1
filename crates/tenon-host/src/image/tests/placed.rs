//! What is placed once and recorded: Tenon itself, renewed with its build and refused for another
//! processor, and files that a node makes its own.

use std::path::PathBuf;

use tenon_core::image::check::State;

use super::*;
use crate::image::verify::verify;

const TENON: &str = "about = 't'\n[[tenon]]\npath = '/usr/bin/tenon'\nreason = 'r'\n";

/// The head of a program for a processor, with a tail that tells builds apart.
fn build(stage: &Stage, machine: u8, tail: &str) -> PathBuf {
    let mut body = b"\x7fELF\x02\x01".to_vec();
    body.resize(64, 0);
    body[18] = machine;
    body.extend(tail.as_bytes());
    let path = stage.place.path().join(format!("tenon-{tail}"));
    fs::write(&path, body).unwrap();
    path
}

const fn machines() -> (u8, u8) {
    if cfg!(target_arch = "aarch64") { (183, 62) } else { (62, 183) }
}

fn apply_build(stage: &Stage, path: &Path) -> Result<Report, Problem> {
    let options = Options { cache: None, live: false, files_only: true, probe: &|_| Ok(()) };
    apply::apply_with(&stage.plan, &stage.root(), options, path)
}

#[test]
fn the_given_build_is_copied_once_and_renewed_when_it_changes() {
    let mut stage = Stage::new();
    stage.plan = plan(TENON);
    let (own, _) = machines();
    let first = build(&stage, own, "first");
    assert_eq!(apply_build(&stage, &first).unwrap().changed, ["tenon /usr/bin/tenon"]);
    let placed = stage.at("usr/bin/tenon");
    assert_eq!(fs::read(&placed).unwrap(), fs::read(&first).unwrap());
    assert_eq!(fs::metadata(&placed).unwrap().permissions().mode() & 0o7777, 0o755);
    let record = json(&stage.at("usr/lib/tenon/image/record.json"));
    let recorded = &record["items"]["tenon /usr/bin/tenon"]["files"]["/usr/bin/tenon"];
    assert_eq!(recorded, &sha256(&fs::read(&first).unwrap()));
    assert!(apply_build(&stage, &first).unwrap().changed.is_empty());

    let second = build(&stage, own, "second");
    assert_eq!(apply_build(&stage, &second).unwrap().changed.len(), 1);
    assert_eq!(fs::read(&placed).unwrap(), fs::read(&second).unwrap());

    fs::write(&placed, b"changed").unwrap();
    let checks = verify(&stage.plan, &stage.root(), None).unwrap();
    let failed: Vec<_> = checks.iter().filter(|check| check.state == State::Fail).collect();
    assert_eq!(failed.len(), 1, "{checks:#?}");
    assert_eq!(failed[0].key, "/usr/bin/tenon");
}

#[test]
fn a_build_for_another_processor_is_refused_before_anything_changes() {
    let mut stage = Stage::new();
    stage.plan = plan(TENON);
    let before = stage.picture();
    let (_, foreign) = machines();
    let problem = apply_build(&stage, &build(&stage, foreign, "foreign")).unwrap_err();
    assert_eq!(problem.page.code, "TN06854");
    assert!(problem.what.contains(", the image is for "), "{}", problem.what);
    let text = stage.place.path().join("text");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    let problem = apply_build(&stage, &text).unwrap_err();
    assert!(problem.what.contains("is no program"), "{}", problem.what);
    assert_eq!(stage.picture(), before);
}

#[test]
fn a_seed_is_sown_once() {
    const SEED: &str = "about = 's'\n[[file]]\npath = '/etc/kept'\nmode = '0644'\nseed = true\n\
        content = 'ours'\nreason = 'r'\n";
    let mut stage = Stage::new();
    stage.plan = plan(SEED);
    assert_eq!(stage.apply().unwrap().changed, ["seed /etc/kept"]);
    assert_eq!(fs::read_to_string(stage.at("etc/kept")).unwrap(), "ours");
    stage.write("etc/kept", b"the node's\n");
    assert!(stage.apply().unwrap().changed.is_empty());
    let checks = verify(&stage.plan, &stage.root(), None).unwrap();
    assert!(checks.iter().all(|check| check.state == State::Pass), "{checks:#?}");
    fs::remove_file(stage.at("etc/kept")).unwrap();
    assert_eq!(stage.apply().unwrap().changed.len(), 1);
}

#[test]
fn a_stamp_has_the_version_of_the_installed_package() {
    const STAMP: &str = "about = 's'\n[[stamp]]\npath = '/etc/eks/runc-version.txt'\n\
        package = 'runc'\nreason = 'r'\n";
    let mut stage = Stage::new();
    stage.plan = plan(STAMP);
    stage.apply().unwrap();
    let stamp = stage.at("etc/eks/runc-version.txt");
    assert_eq!(fs::read_to_string(&stamp).unwrap(), "runc 1.1.5\n");
    assert!(stage.apply().unwrap().changed.is_empty());
    fs::write(&stamp, "runc 1.1.4\n").unwrap();
    let checks = verify(&stage.plan, &stage.root(), None).unwrap();
    assert_eq!(checks[0].state, State::Fail, "{checks:#?}");

    stage.plan = plan(&STAMP.replace("'runc'", "'containerd'"));
    let problem = stage.apply().unwrap_err();
    assert!(problem.what.contains("containerd is not installed"), "{}", problem.what);
}

#[test]
fn packages_of_a_set_are_installed_in_one_version() {
    const SET: &str = "about = 's'\n[[package]]\nname = 'runc'\nset = 'one'\nreason = 'r'\n\
        [[package]]\nname = 'dash'\nset = 'one'\nreason = 'r'\n";
    let mut stage = Stage::new();
    stage.plan = plan(SET);
    let failed = || {
        let checks = verify(&stage.plan, &stage.root(), None).unwrap();
        checks.into_iter().find(|check| check.act == "package-set" && check.state == State::Fail)
    };
    assert_eq!(failed().unwrap().actual, "dash 0.5, runc 1.1.5");
    let status = "var/lib/dpkg/status";
    let text = fs::read_to_string(stage.at(status)).unwrap();
    stage.write(status, text.replace("Version: 0.5", "Version: 2:1.1.5-7").as_bytes());
    assert_eq!(failed(), None);
}
