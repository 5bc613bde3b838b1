//! The packages that the image's profiles add to a server, fetched once by Tenon itself, so that
//! they are installed without a network.

use std::path::Path;
use std::process::Command;

use anyhow::anyhow;
use tenon_core::image::act::Act;
use tenon_core::image::config::{self, Text};
use tenon_core::image::plan;

use super::{SERVER, cache_directory, must, root};
use crate::checkout;

pub(super) fn recipe() -> anyhow::Result<String> {
    let settings = ["spec.family=debian", "spec.profiles=[base, cis-level2]", NO_DOWNLOADS];
    let settings = settings.map(|text| Text { name: "--set".into(), text: text.into() });
    let plan = config::read(&[], &settings)
        .and_then(|config| config.wanted(None, Vec::new()))
        .and_then(|wanted| plan::resolve(&wanted))
        .map_err(|problems| anyhow!("the plan of the image: {problems:?}"))?;
    let names = plan.items.iter().filter_map(|item| match &item.act {
        Act::Package { name, .. } => Some(format!("\n{name}")),
        _ => None,
    });
    Ok(root::server_recipe()? + &names.collect::<String>())
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
