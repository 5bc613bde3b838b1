//! The image in a virtual machine, with its own kernel.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::cluster;
use super::super::stage::Stage;
use crate::lab::{KUBERNETES_1_34, PACKAGES, PAUSE, SERVER, must};

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let root = stage.place.join("image");
    build(stage, &root)?;
    cluster::vm::run(stage, &root)
}

pub fn build(stage: &Stage, root: &Path) -> anyhow::Result<()> {
    let server = SERVER.ready(&stage.cache)?.join("root");
    must(Command::new("cp").arg("-a").arg(&server).arg(root))?;
    let cache = stage.place.join("cache");
    must(Command::new("cp").arg("-a").arg(PACKAGES.ready(&stage.cache)?).arg(&cache))?;
    let kubelet = fs::read(KUBERNETES_1_34.ready(&stage.cache)?.join("kubelet"))?;
    let sum: String = Sha256::digest(&kubelet).iter().map(|b| format!("{b:02x}")).collect();
    fs::create_dir_all(cache.join("sha256"))?;
    fs::write(cache.join("sha256").join(&sum), kubelet)?;
    let tar = PAUSE.ready(&stage.cache)?.join("pause.tar");
    let index = Command::new("tar").arg("xOf").arg(&tar).arg("./index.json").output()?;
    let index: Value = serde_json::from_slice(&index.stdout)?;
    let digest = index["manifests"][0]["digest"].as_str().context("digest")?.to_owned();
    fs::create_dir_all(cache.join("images"))?;
    fs::copy(&tar, cache.join("images").join(format!("{}.tar", &digest[7..])))?;
    let config = format!(
        "apiVersion: tenon.dev/v1alpha1\nkind: NodeImage\nmetadata: {{name: lab}}\nspec:\n  family: debian\n  kubernetes: \"1.34.11\"\n  components:\n    kubelet: {{version: \"1.34.11\", sha256: {{x86_64: \"{sum}\"}}}}\n  cachedImages:\n  - {{name: pause, ref: localhost/kubernetes/pause, digest: \"{digest}\", pin: true, names: [\"localhost/kubernetes/pause:latest\"]}}\n"
    );
    let file = stage.place.join("image.yaml");
    fs::write(&file, config)?;
    fs::copy(&stage.tenon, root.join("usr/bin/tenon"))?;
    let mut command = Command::new(&stage.tenon);
    command.args(["image", "apply", "--offline", "--output", "json", "--config"]).arg(&file);
    command.arg("--root").arg(root).arg("--cache").arg(&cache);
    let output = command.output()?;
    ensure!(output.status.success(), "{}", super::text(&output));
    Ok(())
}
