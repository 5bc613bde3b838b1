//! A server of Debian becomes a node image: applied twice, verified, judged from outside before and
//! after, built a second time and under kills, sealed, booted, and joined to a real control plane,
//! where it runs a pod and people log in.

mod accounts;
mod again;
mod booted;
mod build;
pub(super) mod host;
mod judge;
mod level2;
mod page;
mod sealed;
pub mod vm;

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};

use self::again::Tree;
use self::build::Workshop;
use self::judge::Judged;
use super::cluster;
use super::machine::Machine;
use super::stage::Stage;
use crate::lab::SCAP;

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let workshop = Workshop::open(stage)?;
    let image = workshop.begin("image")?;
    let before = judge::scan(stage, &workshop.server, 1)?;
    let host = host::Snapshot::take(&workshop.server)?;

    let first = image.apply()?;
    ensure!(first["changed"] == true, "{first:#}");
    let second = image.apply()?;
    ensure!(second["changed"] == false, "a second apply: {second:#}");
    let checks = image.verify()?;
    host.must_be_as_it_was(&workshop.server, &image.root)?;
    println!("  applied twice, {checks} checks hold, the host is as it was");

    let after = judge::scan(stage, &image.root, 1)?;
    println!("  OpenSCAP before: {before}\n  OpenSCAP after:  {after}");
    judge::compare(&after, Judged::Directory, 1)?;

    // What does not build on another is tried whatever became of the other.
    let mut tally = Tally { cases: 5, said: Vec::new() };
    tally.take("template", sealed::template(stage, &workshop));
    tally.take("manifest", sealed::described(&workshop, &image.root));
    let tree = Tree::of(&image.root)?;
    tally.take("seal and boot", seal_and_boot(stage, &workshop, &image.root));
    // The three have a cache each and nothing else to share.
    std::thread::scope(|scope| {
        let second = scope.spawn(|| again::second_build(&workshop, &tree));
        let level2 = scope.spawn(|| level2::run(stage, &workshop));
        tally.take("killed build", again::killed_build(&workshop, &tree, &image.root));
        for (name, build) in [("second build", second), ("level 2", level2)] {
            tally.take(name, build.join().unwrap_or_else(|_| bail!("it panicked")));
        }
    });
    ensure!(tally.said.is_empty(), "{}", tally.said.join("\n"));
    Ok(tally.cases)
}

/// Cases that passed, and what is to be said of others.
struct Tally {
    cases: usize,
    said: Vec<String>,
}

impl Tally {
    fn take(&mut self, name: &str, result: anyhow::Result<usize>) {
        match result {
            Ok(cases) => self.cases += cases,
            Err(error) => self.said.push(format!("{name}: {error:#}")),
        }
    }
}

fn seal_and_boot(stage: &Stage, workshop: &Workshop, root: &Path) -> anyhow::Result<usize> {
    let (copy, sealed) = sealed::sealed(workshop, root)?;
    // The scanner lies over the image, so that it can judge the machine from within.
    let root = format!("{}:{}", SCAP.ready(&stage.cache)?.display(), copy.display());
    let booted = cluster::run_on_image(stage, PathBuf::from(root), |machine, network| {
        let mut tally = Tally { cases: 0, said: Vec::new() };
        tally.take("booted", booted::check(machine, network, &workshop.pause));
        tally.take("OpenSCAP", judge_machine(machine));
        tally.take("log-ins", accounts::check(machine));
        ensure!(tally.said.is_empty(), "{}", tally.said.join("\n"));
        Ok(tally.cases)
    })?;
    Ok(sealed + booted)
}

fn judge_machine(machine: &Machine) -> anyhow::Result<usize> {
    let verdict = judge::scan_machine(machine)?;
    println!("  OpenSCAP booted: {verdict}");
    judge::compare(&verdict, Judged::Machine, 1)?;
    Ok(1)
}
