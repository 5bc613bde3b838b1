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

use std::path::PathBuf;

use anyhow::{bail, ensure};

use self::again::Tree;
use self::build::Workshop;
use self::judge::Judged;
use super::cluster;
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

    let mut cases = 5 + sealed::template(stage, &workshop)?;
    cases += sealed::described(&workshop, &image.root)?;
    let tree = Tree::of(&image.root)?;
    let (copy, sealed) = sealed::sealed(&workshop, &image.root)?;
    cases += sealed;

    // The scanner lies over the image, so that it can judge the machine from within.
    let root = format!("{}:{}", SCAP.ready(&stage.cache)?.display(), copy.display());
    cases += cluster::run_on_image(stage, PathBuf::from(root), |machine, network| {
        let booted = booted::check(machine, network, &workshop.pause)?;
        let verdict = judge::scan_machine(machine)?;
        println!("  OpenSCAP booted: {verdict}");
        judge::compare(&verdict, Judged::Machine, 1)?;
        let people = accounts::check(machine)?;
        println!("  log-ins: {people} cases");
        Ok(booted + 1 + people)
    })?;

    // The three have a cache each and nothing else to share.
    let (second, level2, killed) = std::thread::scope(|scope| {
        let second = scope.spawn(|| again::second_build(&workshop, &tree));
        let level2 = scope.spawn(|| level2::run(stage, &workshop));
        let killed = again::killed_build(&workshop, &tree);
        (second.join(), level2.join(), killed)
    });
    let ended = |result: std::thread::Result<anyhow::Result<usize>>| {
        result.unwrap_or_else(|_| bail!("a build panicked"))
    };
    Ok(cases + ended(second)? + ended(level2)? + killed?)
}
