//! The manifest: what it finds, where it is left, and that links cannot lead it out.

use std::os::unix::fs::symlink;

use tenon_core::image::manifest::{self, Build, Change};

use super::*;
use crate::image::manifest::{gather, leave};

const PLACE: &str = "/usr/lib/tenon/image/manifest.json";

fn manifest_of(stage: &Stage) -> Value {
    let found = gather(&stage.plan, &stage.root(), None).unwrap();
    let build = Build { version: "0.1.0", epoch: 1_700_000_000, ..Build::default() };
    manifest::render(&stage.plan, &found, &build)
}

#[test]
fn a_root_tells_what_is_in_it_and_says_the_same_twice() {
    let stage = Stage::with("");
    stage.apply().unwrap();
    fs::create_dir_all(stage.at("lib/modules/6.1.0-test/updates/dkms")).unwrap();
    fs::write(stage.at("lib/modules/6.1.0-test/updates/dkms/nvidia.ko.xz"), "").unwrap();
    let one = manifest_of(&stage);
    assert_eq!(one["kernel"]["version"], "6.1.0-test");
    assert_eq!(one["modules"][0], serde_json::json!({"name": "nvidia", "version": null}));
    let files = one["files"].as_array().unwrap();
    let motd = files.iter().find(|file| file["path"] == "/etc/motd").unwrap();
    assert_eq!((&motd["mode"], &motd["sha256"]), (&"0640".into(), &sha256(b"welcome\n").into()));
    assert!(one["packages"].as_array().unwrap().iter().any(|package| package["name"] == "runc"));
    leave(&stage.plan, &stage.root(), &[(PLACE, one.to_string())]).unwrap();
    // What was left is not part of what is told.
    assert_eq!(manifest_of(&stage).to_string(), one.to_string());
    assert_eq!(fs::read_to_string(stage.at(&PLACE[1..])).unwrap(), one.to_string());
}

#[test]
fn a_changed_file_is_a_difference() {
    let stage = Stage::with("");
    stage.apply().unwrap();
    let before = manifest_of(&stage);
    fs::write(stage.at("etc/motd"), "other\n").unwrap();
    let changes = manifest::diff(&before, &manifest_of(&stage)).unwrap();
    let told: Vec<_> =
        changes.iter().map(|Change { part, key, .. }| (*part, key.as_str())).collect();
    assert!(told.contains(&("files", "/etc/motd")), "{told:?}");
}

#[test]
fn a_link_does_not_lead_out_of_the_root() {
    let stage = Stage::with("");
    stage.apply().unwrap();
    let outside = stage.place.path().join("outside");
    fs::write(&outside, "mine").unwrap();
    symlink(&outside, stage.at(&PLACE[1..])).unwrap();
    let problem = leave(&stage.plan, &stage.root(), &[(PLACE, "{}".into())]).unwrap_err();
    assert_eq!(problem.exit(), 6);
    assert_eq!(fs::read_to_string(outside).unwrap(), "mine");
}
