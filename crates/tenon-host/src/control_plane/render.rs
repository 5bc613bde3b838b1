//! The files of a control plane, written into a directory for people to read.

use tenon_core::codes::decode::BAD_ENCODING;
use tenon_core::control_plane::{PKI, Phase, files, machine, manifests, objects};
use tenon_core::problem::Problem;
use tenon_core::stages::Machine;
use tenon_core::yaml;

use super::open::{host, read_patches};
use crate::apply;
use crate::root::Root;
use crate::stages::disk;

/// Writes every file at its node path below `out`, the temporary static pods below `bootstrap/`,
/// and the objects of the API into `objects.yaml`. Gives the paths. The encryption config is left
/// out: its key is made on the node.
pub fn render(
    root: &Root,
    out: &Root,
    config: &Machine,
    patches: Option<(&Root, &str)>,
) -> Result<Vec<String>, Problem> {
    let cluster = machine::cluster(config, host(root, config)?)?;
    let patches = match (patches, &config.control_plane.patches) {
        (Some((root, directory)), _) => read_patches(root, directory)?,
        (None, Some(directory)) => read_patches(root, directory)?,
        (None, None) => Vec::new(),
    };
    let mut written = Vec::new();
    let mut put = |path: String, mode: u32, body: &str| {
        apply::put(out, &path, mode, body.as_bytes())?;
        written.push(path);
        Ok::<(), Problem>(())
    };
    for file in files(&cluster, &patches, None)? {
        put(file.path, file.mode, &file.body)?;
    }
    for manifest in manifests(&cluster, Phase::Bootstrap, &patches)? {
        let file = manifest.file();
        put(format!("/bootstrap{}", file.path), file.mode, &file.body)?;
    }
    let ca = authority(root, config)?;
    let documents = objects::objects(&cluster, &ca, None);
    let text: String =
        documents.iter().map(|object| format!("---\n{}", yaml::emit(object))).collect();
    put("/objects.yaml".into(), 0o644, &text)?;
    Ok(written)
}

/// The CA that clients will be told: the config's, or the one that lies on the machine.
fn authority(root: &Root, config: &Machine) -> Result<String, Problem> {
    let bytes = match config.cluster.certificate_authority.as_slice() {
        [] => disk::read(root, &format!("{PKI}/ca.crt"), 1 << 20)?.unwrap_or_default(),
        pem => pem.to_vec(),
    };
    String::from_utf8(bytes).map_err(|_| Problem::new(&BAD_ENCODING, "the CA is not UTF-8"))
}
