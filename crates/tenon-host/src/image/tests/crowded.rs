//! Disks that are full at every point of an apply, and parts of a root that are read-only: old or
//! new, never torn; exit 7; and cured by running again.

use std::process::Command as Program;

use super::*;
use crate::image::fetch;

/// Set for the process that has a mount namespace and a file system of its own.
const PLACE: &str = "TENON_TEST_PLACE";

/// Runs one of these tests again on a tmpfs of its own; the place of it is what it gets.
fn on_own_disk(test: &str, work: impl FnOnce(&Path)) {
    if !is_root() {
        return;
    }
    if let Some(place) = std::env::var_os(PLACE) {
        return work(Path::new(&place));
    }
    let place = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o mode=0755,size=64m tmpfs \"$1\"; exec \"$2\" --exact \"$3\"";
    let output = Program::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-euc", script, "x"])
        .arg(place.path())
        .arg(std::env::current_exe().unwrap())
        .arg(format!("image::tests::crowded::{test}"))
        .env(PLACE, place.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

fn mount(words: &[&str]) {
    let status = Program::new("mount").args(words).status().unwrap();
    assert!(status.success(), "mount {words:?}");
}

/// The size of a tmpfs, in bytes; it may be less than what is in it.
fn resize(place: &Path, bytes: u64) {
    mount(&["-o", &format!("remount,size={bytes}"), place.to_str().unwrap()]);
}

fn used(place: &Path) -> u64 {
    let stat = rustix::fs::statvfs(place).unwrap();
    (stat.f_blocks - stat.f_bfree) * stat.f_frsize
}

/// Each path is as it was or as it should be, and nothing else is there.
fn assert_whole(now: &Picture, old: &Picture, new: &Picture, when: &str) {
    for (path, held) in now {
        let known = old.get(path) == Some(held) || new.get(path) == Some(held);
        // The directory of the lock, and files that several items edit one after another.
        const SHARED: &[&str] = &["run/tenon", "etc/group", "etc/default/grub"];
        let between = SHARED.iter().any(|shared| path.starts_with(shared));
        assert!(known || between, "{when}: {} is {held:?}", path.display());
        assert!(!path.to_string_lossy().ends_with(".tmp"), "{when}: {} is left", path.display());
    }
}

const BODY: &[u8] = &[9; 300_000];

fn stage(place: &Path) -> Stage {
    let stage = Stage::in_place(place, &download("/usr/bin/kubelet", &sha256(BODY), ""));
    Stage::pin(stage.place.path(), BODY);
    stage
}

#[test]
fn a_disk_that_is_full_anywhere_is_cured_by_running_again() {
    on_own_disk("a_disk_that_is_full_anywhere_is_cured_by_running_again", |place| {
        let model = stage(place);
        let (old, before) = (model.relative(), used(place));
        model.apply().unwrap();
        let (new, after) = (model.relative(), used(place));
        drop(model);
        let (mut stopped, mut room) = (0, 0);
        loop {
            let stage = stage(place);
            resize(place, used(place) + room);
            let result = stage.apply();
            let when = format!("with room for {room} bytes");
            resize(place, 64 << 20);
            match result {
                Ok(_) => break,
                Err(problem) => assert_eq!(problem.exit(), 7, "{when}: {problem:?}"),
            }
            assert_whole(&stage.relative(), &old, &new, &when);
            stage.apply().unwrap();
            assert_eq!(stage.relative(), new, "{when}");
            stopped += 1;
            room += 8192;
        }
        assert!(stopped > 10 && room >= after - before, "{stopped} stops, {room} bytes");
    });
}

#[test]
fn a_part_that_is_read_only_is_named_and_cured() {
    on_own_disk("a_part_that_is_read_only_is_named_and_cured", |place| {
        let model = stage(place);
        model.apply().unwrap();
        let new = model.relative();
        for part in ["etc", "etc/pam.d", "etc/ssh", "etc/default", "usr", "usr/lib", "var/lib/dpkg"]
        {
            let stage = stage(place);
            let at = stage.at(part);
            let at = at.to_str().unwrap();
            mount(&["--bind", at, at]);
            mount(&["-o", "remount,bind,ro", at]);
            let problem = stage.apply().unwrap_err();
            assert_eq!(problem.exit(), 7, "{part}: {problem:?}");
            let told = problem.render("error");
            assert!(told.contains(&format!("/{part}")), "{part}: {told}");
            assert!(Program::new("umount").arg(at).status().unwrap().success());
            stage.apply().unwrap();
            assert_eq!(stage.relative(), new, "{part}");
        }
    });
}

#[test]
fn a_cache_without_room_keeps_what_came_and_goes_on_later() {
    on_own_disk("a_cache_without_room_keeps_what_came_and_goes_on_later", |place| {
        let (address, asked) = fetching::serve(BODY.to_vec(), fetching::whole);
        let profile =
            download("/usr/bin/kubelet", &sha256(BODY), "").replace("http://x/c", &address);
        let mut stage = Stage::in_place(place, "");
        stage.plan = plan(&format!("about = 'x'\n{profile}"));
        let cache = stage.cache();
        resize(place, used(place) + 100_000);
        let problem = fetch::fetch(&stage.plan, None, &cache).unwrap_err();
        assert_eq!((problem.exit(), problem.page.slug), (7, "no-space"), "{problem:?}");
        let entry = cache.directory().join("sha256").join(sha256(BODY));
        assert!(!entry.exists());
        resize(place, 64 << 20);
        fetch::fetch(&stage.plan, None, &cache).unwrap();
        assert_eq!(fs::read(entry).unwrap(), BODY);
        let asked = asked.lock().unwrap().clone();
        assert!(asked.len() == 2 && asked[1] > 50_000, "{asked:?}");
    });
}
