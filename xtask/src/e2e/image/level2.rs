//! The same server as an image of CIS level 2: applied twice, verified and judged as a directory.

use anyhow::ensure;

use super::super::stage::Stage;
use super::build::Workshop;
use super::judge::{self, Judged};

const LEVEL: usize = 2;

pub fn run(stage: &Stage, workshop: &Workshop) -> anyhow::Result<usize> {
    let image = workshop.begin("level2")?;
    let first = image.apply_level(LEVEL)?;
    ensure!(first["changed"] == true, "{first:#}");
    let second = image.apply_level(LEVEL)?;
    ensure!(second["changed"] == false, "a second apply of level 2: {second:#}");
    let checks = image.verify()?;
    let before = judge::scan(stage, &workshop.server, LEVEL)?;
    let after = judge::scan(stage, &image.root, LEVEL)?;
    println!("  level 2: {checks} checks hold\n  before: {before}\n  after:  {after}");
    judge::compare(&after, Judged::Directory, LEVEL)?;
    Ok(3)
}
