//! Roots that want to lead out of themselves, disks that are full or read-only, caches and
//! archives that are not what the plan pins.

use std::os::unix::fs::symlink;

use super::*;
use crate::image::verify::verify;

fn code(stage: &Stage) -> (u8, String) {
    let problem = stage.apply().unwrap_err();
    (problem.exit(), problem.page.code.to_owned())
}

/// Directories of the root that are links to the outside: nothing there changes.
#[test]
fn links_do_not_lead_out_of_the_root() {
    let stage = Stage::new();
    let outside = stage.place.path().join("outside");
    fs::create_dir_all(outside.join("default/grub.d")).unwrap();
    fs::write(outside.join("victim"), "as it was").unwrap();
    let before = picture(&outside);
    symlink(&outside, stage.at("etc/sysctl.d")).unwrap();
    symlink("../../../outside/victim", stage.at("etc/motd")).unwrap();
    let (exit, _) = code(&stage);
    assert!(exit == 6 || exit == 7);
    fs::remove_file(stage.at("etc/sysctl.d")).unwrap();
    assert_eq!(code(&stage), (6, "TN06815".into()));
    assert_eq!(picture(&outside), before);
    fs::remove_file(stage.at("etc/motd")).unwrap();
    // An absolute link is read as the root reads it.
    fs::create_dir(stage.at("elsewhere")).unwrap();
    symlink("/elsewhere", stage.at("etc/modules-load.d")).unwrap();
    stage.apply().unwrap();
    assert!(stage.at("elsewhere/tenon.conf").exists());
    assert_eq!(picture(&outside), before);
}

/// Every path that an apply writes, and every directory above it, as a link that leads out: as this
/// machine would read it, and as the root would.
#[test]
fn no_link_at_any_level_leads_out_of_the_root() {
    let model = Stage::new();
    let before = model.relative();
    model.apply().unwrap();
    let written = model.relative().into_iter().filter(|(path, now)| before.get(path) != Some(now));
    let mut paths: std::collections::BTreeSet<PathBuf> = Default::default();
    for (path, _) in written {
        let above = path.ancestors().filter(|part| !part.as_os_str().is_empty());
        paths.extend(above.map(Path::to_owned));
    }
    assert!(paths.contains(Path::new("etc/passwd")) && paths.contains(Path::new("etc")));
    assert!(paths.contains(Path::new("etc/systemd/system/multi-user.target.wants")));
    assert!(paths.len() > 50, "{}", paths.len());
    let mut refused = 0;
    for path in &paths {
        for target in ["../../../../../../../outside", "absolute", "self"] {
            let stage = Stage::new();
            let outside = stage.place.path().join("outside");
            fs::create_dir(&outside).unwrap();
            fs::write(outside.join("victim"), "as it was").unwrap();
            let was = picture(&outside);
            let at = stage.path().join(path);
            // What the directory held is seen through the link, as on a machine that was moved.
            let moved = stage.place.path().join("outside/moved");
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let held = at.exists() && target != "self";
            if held {
                fs::rename(&at, &moved).unwrap();
            }
            let was = if held { picture(&outside) } else { was };
            let to = match target {
                "absolute" if held => moved.clone(),
                "absolute" => outside.join("victim"),
                "self" => at.clone(),
                other => PathBuf::from(other),
            };
            if at.exists() {
                fs::remove_dir_all(&at).or_else(|_| fs::remove_file(&at)).unwrap();
            }
            symlink(&to, &at).unwrap();
            match stage.apply() {
                Ok(_) => {}
                Err(problem) => {
                    refused += 1;
                    assert!(matches!(problem.exit(), 6 | 7), "{path:?} {target}: {problem:?}");
                }
            }
            assert_eq!(picture(&outside), was, "{path:?} as a link to {target}");
        }
    }
    assert!(refused > 60, "{refused} of {}", paths.len() * 3);
}

#[test]
fn a_device_a_fifo_or_a_directory_is_not_written_over() {
    let stage = Stage::new();
    fs::create_dir(stage.at("etc/motd")).unwrap();
    assert_eq!(code(&stage), (6, "TN06815".into()));
    fs::remove_dir(stage.at("etc/motd")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, stage.at("etc/motd"), fifo, mode, 0).unwrap();
    let problem = stage.apply().unwrap_err();
    assert!(problem.what.contains("file /etc/motd") && problem.what.contains("a fifo"));
}

#[test]
fn a_root_of_another_kind_is_refused() {
    let stage = Stage::new();
    let before = stage.picture();
    stage.write("etc/os-release", b"ID=ubuntu\nVERSION_ID=\"24.04\"\n");
    assert_eq!(code(&stage), (6, "TN06812".into()));
    stage.write("etc/os-release", b"ID=debian\nVERSION_CODENAME=trixie\n");
    assert_eq!(code(&stage), (6, "TN06812".into()));
    stage.write("etc/os-release", b"ID=debian\nVERSION_CODENAME=bookworm\n");
    let other = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
    stage.write("bin/sh", &[b"\x7fELF\x02\x01".as_slice(), &[0; 12], &[other, 0]].concat());
    assert_eq!(code(&stage), (6, "TN06813".into()));
    fs::remove_file(stage.at("bin/sh")).unwrap();
    assert_eq!(code(&stage), (6, "TN06814".into()));
    assert_eq!(stage.picture().len(), before.len() - 1, "nothing was written");
}

#[test]
fn a_missing_cache_entry_is_named_before_anything_changes() {
    let stage = Stage::with(&download("/usr/bin/kubelet", &"0".repeat(64), ""));
    let before = stage.picture();
    let problem = stage.apply().unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (10, "TN10812"));
    assert!(problem.what.contains(&"0".repeat(64)) && problem.what.contains("http://x/c"));
    let run = fs::symlink_metadata(stage.at("run/tenon")).is_ok();
    assert_eq!(stage.picture().len(), before.len() + usize::from(run));
}

#[test]
fn content_other_than_pinned_is_not_placed() {
    let hash = "1".repeat(64);
    let single = Stage::with(&download("/usr/bin/kubelet", &hash, ""));
    let packed = Stage::with(&download("/opt", &hash, "members = {a = 'a'}\n"));
    for stage in [single, packed] {
        let place = stage.place.path().join("cache/sha256");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(&hash), "something else").unwrap();
        assert_eq!(code(&stage), (10, "TN10813".into()));
        assert!(!stage.at("usr/bin/kubelet").exists() && !stage.at("opt/a").exists());
        let strays = stage.picture().into_keys().filter(|p| p.to_string_lossy().ends_with(".tmp"));
        assert_eq!(strays.count(), 0);
    }
}

#[test]
fn archives_are_taken_apart_with_care() {
    let link = {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "a", "/etc/passwd").unwrap();
        tar.into_inner().unwrap()
    };
    let bomb = archive(&[("zeros", &vec![0; 40 << 20]), ("a", b"x")]);
    let cut = archive(&[("a", &[7; 4096])])[..64].to_vec();
    let cases: [(&str, Vec<u8>); 4] = [
        ("a is no plain file", link),
        ("the archive has no a", archive(&[("b", b"x"), ("../a", b"x")])),
        ("", bomb),
        ("", cut),
    ];
    for (words, body) in cases {
        let stage = Stage::with(&download("/opt", &sha256(&body), "members = {a = 'a'}\n"));
        Stage::pin(stage.place.path(), &body);
        let problem = stage.apply().unwrap_err();
        assert!(matches!(problem.exit(), 7 | 10), "{}", problem.what);
        assert!(problem.what.contains(words), "{}", problem.what);
        assert!(!stage.at("opt/a").exists());
    }
}

/// A tmpfs of this size on the root of the stage, in this thread's own mount namespace.
fn with_tmpfs(stage: &Stage, options: &str, work: &str) -> std::process::Output {
    std::process::Command::new("unshare")
        .args(["--mount", "sh", "-euc", "mount -t tmpfs -o \"$2\" tmpfs \"$1\"; eval \"$3\"", "x"])
        .args([stage.at("usr").to_str().unwrap(), options, work])
        .output()
        .unwrap()
}

/// The binary of these tests runs itself where the root is full or read-only.
#[test]
fn a_full_or_read_only_disk_ends_with_7_and_leaves_no_stray() {
    if !is_root() {
        return;
    }
    if let Some(root) = std::env::var_os("TENON_TEST_ROOT") {
        let body = vec![9; 3 << 20];
        let root = Root::open(Path::new(&root)).unwrap();
        let more = download("/usr/bin/kubelet", &sha256(&body), "");
        let plan = plan(&format!("{PROFILE}{more}"));
        let cache = tempfile::tempdir().unwrap();
        Stage::pin(cache.path(), &body);
        let cache = Cache::open(&cache.path().join("cache")).unwrap();
        let options =
            Options { cache: Some(&cache), live: false, files_only: false, probe: &|_| Ok(()) };
        let problem = apply::apply(&plan, &root, options).unwrap_err();
        assert_eq!(problem.exit(), 7, "{problem:?}");
        let names = root.list("/usr/bin").unwrap_or_default();
        assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let name = "a_full_or_read_only_disk_ends_with_7_and_leaves_no_stray";
    for options in ["mode=0755,size=1m", "mode=0755,ro", "mode=0755,nr_inodes=2"] {
        let stage = Stage::new();
        let work = format!(
            "TENON_TEST_ROOT='{}' '{}' --exact 'image::tests::hostile::{name}'",
            stage.path().display(),
            own.display()
        );
        let output = with_tmpfs(&stage, options, &work);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && told.contains("1 passed"), "{options}: {told}");
    }
}

#[test]
fn a_file_that_cannot_be_looked_at_is_unknown_and_not_fine() {
    let stage = Stage::new();
    stage.apply().unwrap();
    fs::write(stage.at("etc/login.defs"), [0xff, 0xfe]).unwrap();
    let checks = verify(&stage.plan, &stage.root(), None).unwrap();
    let check = checks.iter().find(|check| check.act == "setting").unwrap();
    assert_eq!(check.state, tenon_core::image::check::State::Unknown);
}
