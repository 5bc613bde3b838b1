//! `cargo xtask dist`: the one static binary, held to its size.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use sha2::{Digest, Sha256};

use crate::checkout;

/// The build for node images must not grow past this.
const LARGEST_NODE: u64 = 8 << 20;
/// The build that does everything must not grow past this.
const LARGEST: u64 = 13 << 20;
/// Static; and its relocations packed, which saves a twentieth of the file at no cost at start.
const FLAGS: &str = "-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs";
const MUSL: &str = "x86_64-unknown-linux-musl";
const GNU: &str = "x86_64-unknown-linux-gnu";

#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: &Args) -> anyhow::Result<()> {
    weigh("everything", &build()?, LARGEST)?;
    weigh("for node images", &build_for_nodes()?, LARGEST_NODE)
}

/// Prints a binary's digest and size, and holds it to its limit.
fn weigh(what: &str, binary: &Path, largest: u64) -> anyhow::Result<()> {
    let bytes = std::fs::read(binary)?;
    let digest: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    println!("{digest}  {}", binary.display());
    println!("{what}: {} bytes of {largest}", bytes.len());
    ensure!(bytes.len() as u64 <= largest, "{what}: larger than {largest} bytes");
    Ok(())
}

/// Builds the static binary and says where it is.
pub fn build() -> anyhow::Result<PathBuf> {
    build_with("dist", &[])
}

/// Builds what a node needs, and nothing else.
pub fn build_for_nodes() -> anyhow::Result<PathBuf> {
    build_with("dist-node", &["--no-default-features"])
}

fn build_with(place: &str, features: &[&str]) -> anyhow::Result<PathBuf> {
    let target = if has_musl()? { MUSL } else { GNU };
    if target == GNU {
        println!(
            "the musl target is not installed: static glibc, which resolves names by `files` alone on other systems"
        );
    }
    let directory = target_directory().join("dist");
    let mut command = Command::new(env!("CARGO"));
    // A manifest says which commit Tenon is of; a build with changes is of none.
    match commit() {
        Some(commit) => command.env("TENON_COMMIT", commit),
        None => command.env_remove("TENON_COMMIT"),
    };
    let status = command
        .current_dir(checkout())
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_TARGET_DIR", &directory)
        .args(["build", "--profile", "dist", "--locked", "--package", "tenon", "--target", target])
        .args(features)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "the build ended with {status}");
    let built = directory.join(target).join("dist/tenon");
    must_be_static(&built)?;
    // Both builds come out under one name; each is kept under its own.
    let binary = target_directory().join(place).join("tenon");
    std::fs::create_dir_all(target_directory().join(place))?;
    std::fs::copy(&built, &binary).context("keeping the binary")?;
    Ok(binary)
}

/// The commit of a checkout that has no changes.
fn commit() -> Option<String> {
    let git = |words: &[&str]| {
        let output = Command::new("git").current_dir(checkout()).args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    git(&["rev-parse", "HEAD"]).filter(|_| changes.is_empty())
}

/// A static program names no interpreter: the kernel starts it alone.
fn must_be_static(binary: &Path) -> anyhow::Result<()> {
    let output = Command::new("ldd").arg(binary).output().context("starting ldd")?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let is_static = text.contains("statically linked") || text.contains("not a dynamic");
    ensure!(is_static, "{} is not static: {text}", binary.display());
    Ok(())
}

fn has_musl() -> anyhow::Result<bool> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    Ok(sysroot.join("lib/rustlib").join(MUSL).exists())
}

fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| checkout().join("target"), PathBuf::from)
}
