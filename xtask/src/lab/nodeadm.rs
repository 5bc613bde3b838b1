//! nodeadm, the program that Tenon takes the place of, built as an ordinary Go module at a pinned
//! version and checksums (`e2e/nodeadm`).

use std::path::Path;

use anyhow::Context;

use super::{go_build, source};

const HOME: &str = "e2e/nodeadm";
const MODULE: &str = "github.com/awslabs/amazon-eks-ami/nodeadm";
const LINK_OPTIONS: &str = "-s -w";

pub(super) fn recipe() -> anyhow::Result<String> {
    let pinned = |file: &str| source(&format!("{HOME}/{file}"));
    Ok(format!("{}\n{}\n{LINK_OPTIONS}", pinned("go.mod")?, pinned("go.sum")?))
}

/// Leaves `nodeadm`.
pub(super) fn build(place: &Path) -> anyhow::Result<()> {
    go_build(HOME, LINK_OPTIONS, &[format!("{MODULE}/cmd/nodeadm")], place)
}

/// The pinned version, which names a day and a commit: the project tags no releases of the module.
pub fn version() -> anyhow::Result<String> {
    let text = source(&format!("{HOME}/go.mod"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("require ")?.strip_prefix(MODULE));
    Ok(line.context("go.mod names no version of nodeadm")?.trim().to_owned())
}
