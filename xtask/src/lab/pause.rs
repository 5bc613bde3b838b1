//! The lab's only container image, built from one C file into an OCI archive: same source, same
//! bytes.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{install, must, source};
use crate::checkout;

/// The name under which Tenon's containerd config asks for its sandbox.
pub const NAME: &str = "localhost/kubernetes/pause:latest";
const SOURCE: &str = "e2e/pause.c";

pub(super) fn recipe() -> anyhow::Result<String> {
    Ok(format!("{}\n{}\n{NAME}", source(SOURCE)?, include_str!("pause.rs")))
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
    let archive = work.path().join("layer.tar");
    pack(&layer, &archive)?;

    let image = work.path().join("image");
    fs::create_dir_all(image.join("blobs/sha256"))?;
    let layer = blob(&image, &fs::read(archive)?, "application/vnd.oci.image.layer.v1.tar")?;
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "Cmd": []},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let config = json_blob(&image, &config, "application/vnd.oci.image.config.v1+json")?;
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": [layer],
    });
    let mut manifest = json_blob(&image, &manifest, manifest_type)?;
    manifest["annotations"] = json!({"io.containerd.image.name": NAME});
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    fs::write(image.join("index.json"), index.to_string())?;
    fs::write(image.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
    pack(&image, &place.join("pause.tar"))
}

fn json_blob(image: &Path, value: &Value, media_type: &str) -> anyhow::Result<Value> {
    blob(image, value.to_string().as_bytes(), media_type)
}

/// Stores bytes under their digest and gives the descriptor.
fn blob(image: &Path, bytes: &[u8], media_type: &str) -> anyhow::Result<Value> {
    let digest: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
    fs::write(image.join("blobs/sha256").join(&digest), bytes)?;
    let digest = format!("sha256:{digest}");
    Ok(json!({"mediaType": media_type, "digest": digest, "size": bytes.len()}))
}

/// An archive in which nothing depends on when or by whom it was made.
fn pack(directory: &Path, archive: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    must(tar.arg("-cf").arg(archive).arg("-C").arg(directory).arg("."))
}
