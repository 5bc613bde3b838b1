//! The packages that the image's profiles add to a server, fetched once by Tenon itself, so that
//! they are installed without a network.

use std::path::Path;
use std::process::Command;

use super::{SERVER, cache_directory, must, root, source};
use crate::checkout;

pub(super) fn recipe() -> anyhow::Result<String> {
    let mut text = root::server_recipe()?;
    for profile in ["base", "cis", "cis-level2", "apparmor"] {
        let profile = source(&format!("profiles/{profile}.toml"))?;
        let lines: Vec<_> = profile.lines().collect();
        let named = lines.windows(2).filter(|pair| pair[0] == "[[package]]");
        text.extend(named.map(|pair| format!("\n{}", pair[1])));
    }
    Ok(text)
}

/// Downloads are another part; here are packages alone.
const NO_DOWNLOADS: &str = "spec.components={kubelet: {source: none}, crictl: {source: none}, \
                            ecr-credential-provider: {source: none}, pause: {source: none}}";

pub(super) fn build(place: &Path) -> anyhow::Result<()> {
    let root = SERVER.ready(&cache_directory()?)?.join("root");
    let mut fetch = Command::new("cargo");
    fetch.current_dir(checkout()).args(["run", "--quiet", "--package", "tenon", "--"]);
    fetch.args(["image", "fetch", "--profile", "base,cis-level2", "--set", NO_DOWNLOADS]);
    fetch.arg("--root").arg(root);
    must(fetch.arg("--cache").arg(place))
}
