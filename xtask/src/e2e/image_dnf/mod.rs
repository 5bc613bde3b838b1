//! The path of dnf, with the real program: a root of Debian that calls itself Amazon Linux 2023 and
//! holds dnf and rpm, and a repository of tiny packages with the names that the profiles ask for. What
//! is proven is how Tenon calls dnf, reads rpm's database and bears their failures; the packages'
//! content is ours, not Amazon's.

mod builder;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use self::builder::{Builder, CACHE, IMAGE, REPOSITORY, overlay};
use super::image::host::Snapshot;
use super::machine::text;
use super::stage::Stage;
use crate::lab::{DNF, must};

/// The key of the packages.
const SIGNER: &str = "lab <lab@example.com>";

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let lab = DNF.ready(&stage.cache)?.join("root");
    let builder = Builder::start(stage, &lab)?;
    let host = Snapshot::take(&lab)?;
    let names = builder.repository()?;
    let plan = builder.plan("plan.json", "lab")?;

    let cases = [
        ("without a cache entry", offline_without_packages as fn(&Builder, &str, &[String]) -> _),
        ("fetched by the builder's dnf", fetched),
        ("applied twice, verified", applied_twice),
        ("locked", locked),
        ("a new version over the lock", upgraded),
        ("not removed under others", not_removed),
        ("killed in a script", killed),
        ("a forged package", forged),
        ("on the machine itself", on_itself),
    ];
    for (what, case) in cases {
        case(&builder, &plan, &names).with_context(|| what.to_owned())?;
        println!("  {what}");
    }
    host.must_be_as_it_was(&lab, &builder.image())?;
    Ok(cases.len() + 1)
}

fn offline_without_packages(builder: &Builder, plan: &str, _: &[String]) -> anyhow::Result<()> {
    builder.refused(plan, "/empty", "TN10817")?;
    ensure!(builder.installed("runc")?.contains("not installed"), "runc came from nowhere");
    Ok(())
}

/// The machine that builds has a dnf of its own; the root it fetches for stays as it is.
fn fetched(builder: &Builder, plan: &str, names: &[String]) -> anyhow::Result<()> {
    let before = builder.picture()?;
    builder.fetch(plan)?;
    let after = builder.picture()?;
    ensure!(before == after, "fetch changed the root:\n{}", difference(&before, &after));
    let files = builder.must(&["find", CACHE, "-name", "*.rpm"])?;
    for name in names.iter().map(String::as_str).chain(["lab-shell"]) {
        ensure!(
            name == "lab-shell" || files.contains(&format!("/{name}-2.1.4")),
            "no {name} in {files}"
        );
    }
    ensure!(!files.contains("lab-tool"), "more came than was asked for: {files}");
    Ok(())
}

fn difference(before: &str, after: &str) -> String {
    after.lines().filter(|line| !before.contains(line)).collect::<Vec<_>>().join("\n")
}

fn applied_twice(builder: &Builder, plan: &str, names: &[String]) -> anyhow::Result<()> {
    let changed = builder.apply(plan)?;
    ensure!(changed.contains(&"packages".to_owned()), "{changed:?}");
    for name in names {
        ensure!(builder.installed(name)? == "2.1.4", "{name} is {}", builder.installed(name)?);
    }
    let said = builder.read("var/log/lab-scripts");
    ensure!(said.contains("end containerd 2.1.4"), "scripts did not run: {said}");
    ensure!(!said.contains("reached"), "a script got out: {said}");
    ensure!(builder.installed("httpd")?.contains("not installed"), "httpd is there");
    let before = builder.picture()?;
    let again = builder.apply(plan)?;
    let after = builder.picture()?;
    ensure!(
        again.is_empty() && before == after,
        "a second apply: {again:?} {}",
        difference(&before, &after)
    );
    let root = builder.image().display().to_string();
    let output = builder.tenon_output(&["verify", "--root", &root, "--output", "json"])?;
    ensure!(output.status.success(), "verify: {}", text(&output));
    Ok(())
}

/// dnf's own plugin reads the lock, and holds the package against a newer version.
fn locked(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    let locks = builder.read("etc/dnf/plugins/versionlock.list");
    ensure!(locks.contains("containerd-0:2.1.4-1.amzn2023.*"), "{locks}");
    builder.rpms(REPOSITORY, SIGNER, "2.2.0", &["containerd".to_owned()])?;
    let dnf = |more: &[&str]| {
        let words = ["dnf", "--refresh", "--assumeno", "upgrade", "containerd"];
        let output = builder.run_in(&builder.image(), &[&words[..], more].concat())?;
        anyhow::Ok(text(&output))
    };
    let held = dnf(&[])?;
    ensure!(held.contains("Nothing to do"), "the lock holds nothing: {held}");
    let free = dnf(&["--disableplugin=versionlock"])?;
    ensure!(free.contains("2.2.0"), "there is nothing to hold against: {free}");
    Ok(())
}

/// A plan that asks for another version changes it, and holds the new one.
fn upgraded(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    let newer = "[[package]]\nname = 'containerd'\nversion = '2.2'\nlock = true\nreason = 'r'\n";
    let plan = builder.plan("newer.json", newer)?;
    builder.fetch(&plan)?;
    let changed = builder.apply(&plan)?;
    ensure!(builder.installed("containerd")? == "2.2.0", "{changed:?}");
    let locks = builder.read("etc/dnf/plugins/versionlock.list");
    ensure!(
        locks.contains("containerd-0:2.2.0") && !locks.contains("containerd-0:2.1.4"),
        "{locks}"
    );
    let older = builder.plan("plan.json", "lab")?;
    builder.fetch(&older)?;
    builder.apply(&older)?;
    ensure!(
        builder.installed("containerd")? == "2.1.4",
        "no way back: {}",
        builder.installed("containerd")?
    );
    Ok(())
}

/// What others stand on is not removed, and nothing with it.
fn not_removed(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    ensure!(builder.installed("avahi")?.contains("not installed"), "avahi is there");
    let rpms =
        ["avahi", "avahi-tools"].map(|name| format!("/srv/lab/{name}-2.1.4-1.amzn2023.noarch.rpm"));
    let mut words = vec!["rpm", "--root", IMAGE, "--dbpath", "/var/lib/rpm", "--noscripts", "-i"];
    words.extend(rpms.iter().map(String::as_str));
    builder.must(&words)?;
    let told = builder.refused("/plan.json", CACHE, "TN06859")?;
    ensure!(told.contains("avahi-tools"), "{told}");
    ensure!(builder.installed("avahi")? == "2.1.4", "it was removed under others");
    builder.must(&["rpm", "--root", IMAGE, "--dbpath", "/var/lib/rpm", "-e", "avahi-tools"])?;
    builder.apply("/plan.json")?;
    ensure!(builder.installed("avahi")?.contains("not installed"), "avahi is still there");
    Ok(())
}

/// rpm does not remember whose script did not run; the next apply knows.
fn killed(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    let plan = builder.plan("more.json", "[[package]]\nname = 'lab-tool'\nreason = 'r'\n")?;
    builder.fetch(&plan)?;
    let slow = builder.image().join("etc/lab-slow-lab-tool");
    fs::write(&slow, "")?;
    let mut child = Command::new(&builder.stage.tenon)
        .arg("image")
        .args(builder.apply_words(&plan, CACHE))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let end = Instant::now() + Duration::from_secs(60);
    while !builder.read("var/log/lab-scripts").contains("begin lab-tool") {
        if Instant::now() > end || child.try_wait()?.is_some() {
            bail!("the script did not begin");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    fs::remove_file(&slow)?;
    ensure!(
        !builder.read("var/log/lab-scripts").contains("end lab-tool"),
        "it was not killed in time"
    );
    let changed = builder.apply(&plan)?;
    ensure!(builder.read("var/log/lab-scripts").contains("end lab-tool"), "not cured: {changed:?}");
    ensure!(builder.apply(&plan)?.is_empty(), "a third apply has work left");
    Ok(())
}

/// A package that another key signed is not installed, whatever its name.
fn forged(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    builder.rpms(
        "/srv/forged",
        "forger <forger@example.com>",
        "9.0",
        &["lab-forged".to_owned()],
    )?;
    let more = "[[package]]\nname = 'lab-forged'\nreason = 'r'\n";
    builder.must(&["cp", "/srv/forged/lab-forged-9.0-1.amzn2023.noarch.rpm", "/srv/lab"])?;
    builder.must(&["createrepo_c", "--quiet", "/srv/lab"])?;
    let plan = builder.plan("forged.json", more)?;
    builder.fetch(&plan)?;
    builder.refused(&plan, CACHE, "TN10858")?;
    ensure!(builder.installed("lab-forged")?.contains("not installed"), "it is installed");
    Ok(())
}

/// As on an instance of Packer: the root is the machine's own, dnf and Tenon run in it.
fn on_itself(builder: &Builder, _: &str, names: &[String]) -> anyhow::Result<()> {
    let lab = DNF.ready(&builder.stage.cache)?.join("root");
    let root = overlay(builder.stage, &lab, "self", &builder.stage.place.join("self"))?;
    builder.dress(&root)?;
    fs::copy(&builder.stage.tenon, root.join("usr/bin/tenon"))?;
    fs::copy(builder.root.join("plan.json"), root.join("plan.json"))?;
    must(Command::new("mount").args(["-t", "proc", "proc"]).arg(root.join("proc")))?;
    for (command, more) in [("fetch", &[][..]), ("apply", &["--offline"]), ("verify", &[])] {
        let mut words = vec!["tenon", "image", command, "--root", "/"];
        if command != "verify" {
            words.extend(["--plan", "/plan.json", "--cache", "/var/cache/tenon"]);
        }
        words.extend(more);
        let output = builder.run_in(&root, &words)?;
        ensure!(output.status.success(), "{command} of itself: {}", text(&output));
    }
    for name in names {
        ensure!(root.join("usr/share/lab").join(name).exists(), "no {name}");
    }
    let said = fs::read_to_string(root.join("var/log/lab-scripts"))?;
    ensure!(!said.contains("reached"), "a script got out: {said}");
    must(Command::new("umount").arg(root.join("proc")).arg(&root))
}
