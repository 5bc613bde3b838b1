//! The image of the lab's pods and sandboxes, built from one C file.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{image, install, must, source};
use crate::checkout;

/// The name under which Tenon's containerd config asks for its sandbox.
pub const NAME: &str = "localhost/kubernetes/pause:latest";
const SOURCE: &str = "e2e/pause.c";

pub(super) fn recipe() -> anyhow::Result<String> {
    let own = [include_str!("pause.rs"), include_str!("image.rs")].concat();
    Ok(format!("{}\n{own}\n{NAME}", source(SOURCE)?))
}

/// Leaves `pause.tar`.
pub(super) fn build(place: &Path) -> anyhow::Result<()> {
    install("gcc", "gcc")?;
    let work = tempfile::tempdir()?;
    let layer = work.path().join("layer");
    fs::create_dir(&layer)?;
    let program = layer.join("pause");
    let mut compiler = Command::new("gcc");
    compiler.args(["-Os", "-static", "-s", "-o"]).arg(program).arg(checkout().join(SOURCE));
    must(&mut compiler)?;
    let config = json!({"Entrypoint": ["/pause"], "Cmd": []});
    image::write(&layer, NAME, &config, &place.join("pause.tar"))
}
