//! `cargo xtask bless`: accepts what the plans of `golden/` come to now.
//!
//! The golden test itself writes the trees, so that there is one way to compute them.

use std::process::Command;

use anyhow::{Context, ensure};

/// Runs the golden test in the mode that writes its expectations.
pub(crate) fn run() -> anyhow::Result<()> {
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--package", "tenon-core"])
        .args(
            ["golden", "image_golden", "control_plane", "stages"]
                .map(|name| ["--test", name])
                .concat(),
        )
        .env("TENON_BLESS", "1")
        .current_dir(super::checkout())
        .status()
        .context("running the golden test")?;
    ensure!(status.success(), "a case of golden/ could not be planned; its reason is above");
    Ok(())
}
