//! `cargo xtask reference`: the pages of `docs/reference`, as the program itself prints them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

const PAGES: [&str; 4] = ["cli", "config", "doctor", "errors"];
const FOLDER: &str = "docs/reference";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when a page is not up to date
    #[arg(long)]
    check: bool,
}

/// Writes every page, or compares it.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = super::checkout().join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("making {FOLDER}"))?;
    let mut stale = Vec::new();
    for page in PAGES {
        let text = printed(page)?;
        let path = folder.join(format!("{page}.md"));
        if args.check {
            stale.extend((!is_same(&path, &text)).then_some(page));
        } else {
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    ensure!(stale.is_empty(), "not up to date: {}; run `cargo xtask reference`", stale.join(", "));
    Ok(())
}

fn is_same(path: &Path, text: &[u8]) -> bool {
    fs::read(path).is_ok_and(|held| held == text)
}

/// A page as the program built from this checkout prints it.
fn printed(page: &str) -> anyhow::Result<Vec<u8>> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "tenon", "--", "reference", page])
        .current_dir(super::checkout())
        .output()
        .with_context(|| format!("printing the page {page}"))?;
    let story = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "printing the page {page}: {story}");
    Ok(output.stdout)
}
