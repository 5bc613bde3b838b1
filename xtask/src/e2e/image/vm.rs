//! The image in a virtual machine, with its own kernel.

use super::super::cluster;
use super::super::stage::Stage;
use super::build::Workshop;

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let workshop = Workshop::open(stage)?;
    let image = workshop.begin("image")?;
    image.apply()?;
    cluster::vm::run(stage, &image.root)
}
