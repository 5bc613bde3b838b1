//! Container images from a directory, as OCI archives: same files, same bytes.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::must;

/// Packs a directory as the one layer of an image. `config` is what a container of it starts with.
pub(super) fn write(
    layer: &Path,
    name: &str,
    config: &Value,
    archive: &Path,
) -> anyhow::Result<()> {
    let work = tempfile::tempdir()?;
    let packed = work.path().join("layer.tar");
    pack(layer, &packed)?;
    let image = work.path().join("image");
    fs::create_dir_all(image.join("blobs/sha256"))?;
    let layer = blob(&image, &fs::read(packed)?, "application/vnd.oci.image.layer.v1.tar")?;
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let config = json_blob(&image, &config, "application/vnd.oci.image.config.v1+json")?;
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": [layer],
    });
    let mut manifest = json_blob(&image, &manifest, manifest_type)?;
    manifest["annotations"] = json!({"io.containerd.image.name": name});
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    fs::write(image.join("index.json"), index.to_string())?;
    fs::write(image.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
    pack(&image, archive)
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
