//! Made true once; the second time nothing is written; interrupted anywhere, cured by running
//! again.

use std::sync::atomic::{AtomicUsize, Ordering};

use tenon_core::codes::host::INTERRUPTED;
use tenon_core::image::check::{State, count};

use super::*;
use crate::image::verify::{plan_of, verify};

/// A plan with downloads of both forms.
fn stage() -> Stage {
    let body = archive(&[("bin/a", b"program a"), ("bin/b", b"program b"), ("README", b"no")]);
    let (hash, single) = (sha256(&body), sha256(b"a kubelet"));
    let more = download("/usr/bin/kubelet", &single, "")
        + &download("/opt/cni/bin", &hash, "members = {'bin/a' = 'a', 'bin/b' = '/usr/bin/b'}\n");
    let stage = Stage::with(&more);
    Stage::pin(stage.place.path(), &body);
    Stage::pin(stage.place.path(), b"a kubelet");
    stage
}

#[test]
fn every_item_is_made_true_once() {
    let stage = stage();
    let first = stage.apply().unwrap();
    assert!(first.changed.len() >= 20 && first.plan_hash == stage.plan.hash(), "{first:?}");
    assert_eq!(fs::read(stage.at("usr/bin/b")).unwrap(), b"program b");
    assert_eq!(fs::read(stage.at("opt/cni/bin/a")).unwrap(), b"program a");
    assert!(!stage.at("README").exists() && !stage.at("etc/cron.d/old-job").exists());
    assert_eq!(fs::read_to_string(stage.at("etc/kept")).unwrap(), "theirs\n");
    let grub = fs::read_to_string(stage.at("etc/default/grub.d/90-tenon.cfg")).unwrap();
    assert_eq!(grub, "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX audit=1\"\n");

    let checks = verify(&stage.plan, &stage.root(), None).unwrap();
    let failed: Vec<_> = checks.iter().filter(|check| check.state == State::Fail).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!((count(&checks, State::Manual), count(&checks, State::Unknown)), (1, 0));

    let before = stage.picture();
    let mut second = Report::default();
    let steps = steps(|probe| second = stage.apply_with(probe).unwrap());
    assert_eq!((steps, second.changed), (Vec::new(), Vec::<String>::new()));
    assert_eq!(stage.picture(), before);
}

#[test]
fn the_plan_and_the_record_are_left_in_the_root() {
    let stage = stage();
    stage.apply().unwrap();
    assert_eq!(plan_of(&stage.root()).unwrap().hash(), stage.plan.hash());
    let record = json(&stage.at("usr/lib/tenon/image/record.json"));
    assert_eq!(record["planHash"], stage.plan.hash());
    for name in ["plan.json", "record.json"] {
        let path = stage.at(&format!("usr/lib/tenon/image/{name}"));
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600, "{name}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        stage.apply().unwrap();
        assert_eq!(mode(), 0o600, "{name} of an older apply");
    }
    assert_eq!(
        record["items"]["download /opt/cni/bin"]["files"]["/usr/bin/b"],
        sha256(b"program b")
    );
}

#[test]
fn what_an_apply_of_files_skips_stays_recorded() {
    let stage = stage();
    stage.apply().unwrap();
    let record = || json(&stage.at("usr/lib/tenon/image/record.json"));
    let before = record();
    let options = Options { cache: None, live: false, files_only: true, probe: &|_| Ok(()) };
    assert!(apply::apply(&stage.plan, &stage.root(), options).unwrap().skipped > 0);
    assert_eq!(record(), before);
}

/// Every step of an apply is a place to be stopped at.
#[test]
fn an_interrupted_apply_is_cured_by_running_again() {
    let whole = stage();
    let total = AtomicUsize::new(0);
    let counted = |_: &'static str| {
        total.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    whole.apply_with(&counted).unwrap();
    let wanted = whole.relative();
    let total = total.into_inner();
    assert!(total > 60, "{total}");
    for stop_at in 0..total {
        let stage = stage();
        let passed = AtomicUsize::new(0);
        let stop = |_: &'static str| match passed.fetch_add(1, Ordering::Relaxed) == stop_at {
            true => Err(Problem::new(&INTERRUPTED, "stopped")),
            false => Ok(()),
        };
        stage.apply_with(&stop).unwrap_err();
        let record = stage.at("usr/lib/tenon/image/record.json");
        assert!(!record.exists() || stop_at + 4 > total, "recorded before the end: {stop_at}");
        stage.apply().unwrap();
        assert_eq!(stage.relative(), wanted, "stopped at {stop_at}");
    }
}

#[test]
fn a_changed_plan_changes_only_what_differs() {
    let mut stage = stage();
    stage.apply().unwrap();
    stage.plan = plan(&PROFILE.replace("welcome", "go away"));
    assert_eq!(stage.apply().unwrap().changed, ["file /etc/motd"]);
}

/// Without a machine of that family: packages and commands left out, files as they will be.
#[test]
fn the_files_of_another_family_are_made_without_its_programs() {
    let mut stage = Stage::new();
    let mut text = stage.plan.to_json();
    text["family"] = "al2023".into();
    text["release"] = "2023.9".into();
    let resources = text["resources"].as_array().unwrap().iter();
    let read = |one| tenon_core::image::resource::Resource::from_json(one, &Default::default());
    stage.plan.resources = resources.map(|one| read(one).unwrap()).collect();
    stage.plan.family = family::find("al2023").unwrap();
    stage.plan.release = "2023.9".into();
    stage.write("etc/os-release", b"ID=\"amzn\"\nVERSION_ID=\"2023\"\n");
    stage.write("boot/loader/entries/a.conf", b"title a\noptions root=UUID=1 quiet\n");
    let run = || {
        let options = Options { cache: None, live: false, files_only: true, probe: &|_| Ok(()) };
        apply::apply(&stage.plan, &stage.root(), options).unwrap()
    };
    let first = run();
    assert!(first.changed.len() > 12 && first.skipped == 2, "{first:?}");
    let entry = fs::read_to_string(stage.at("boot/loader/entries/a.conf")).unwrap();
    assert_eq!(entry, "title a\noptions root=UUID=1 audit=1\n");
    let grub = fs::read_to_string(stage.at("etc/default/grub")).unwrap();
    assert!(grub.contains("GRUB_CMDLINE_LINUX=\"audit=1\"\n") && !grub.contains("quiet"));
    assert_eq!(run().changed, Vec::<String>::new());
}

/// An archive of a container image is placed if it holds the pinned digest, and a unit imports it.
#[test]
fn a_cached_image_is_placed_with_the_unit_that_imports_it() {
    let manifest = b"{\"schemaVersion\": 2}";
    let hex = sha256(manifest);
    let index = format!("{{\"manifests\": [{{\"digest\": \"sha256:{hex}\"}}]}}");
    let blob = format!("blobs/sha256/{hex}");
    let mut stage = Stage::new();
    stage.plan = plan(&format!(
        "about = 'x'\n[[cached-image]]\nname = 'pause'\nreference = 'registry.k8s.io/pause'\n\
         digest = 'sha256:{hex}'\npin = true\nnames = ['localhost/pause']\nreason = 'r'\n"
    ));
    let problem = stage.apply().unwrap_err();
    assert!(
        problem.page.code == "TN10812" && problem.what.contains("registry.k8s.io/pause@sha256:")
    );
    let archived = |body: &[u8]| {
        let files: [(&str, &[u8]); 2] = [("index.json", index.as_bytes()), (&blob, body)];
        let image = stage.place.path().join(format!("cache/images/{hex}.tar"));
        fs::write(image, tar_of(&files)).unwrap();
    };
    archived(b"another manifest");
    assert_eq!(stage.apply().unwrap_err().page.code, "TN10813");
    archived(manifest);
    assert_eq!(stage.apply().unwrap().changed, ["cached-image registry.k8s.io/pause"]);
    let unit = format!("etc/systemd/system/tenon-image-{}.service", &hex[..12]);
    assert!(fs::read_to_string(stage.at(&unit)).unwrap().contains(&format!("{hex}.tar")));
    assert!(stage.at(&format!("var/lib/tenon/images/{hex}.tar")).exists());
    assert_eq!(stage.apply().unwrap().changed, Vec::<String>::new());
    fs::write(stage.at(&format!("var/lib/tenon/images/{hex}.tar")), "torn").unwrap();
    assert_eq!(stage.apply().unwrap().changed.len(), 1);
}
