//! What the layers share: the built binary, a place for caches, packages by name.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The workshop of a run.
pub struct Lab {
    /// The checkout.
    pub repository: PathBuf,
    /// The static binary under test.
    pub tenon: PathBuf,
    /// Caches that outlive a run, outside the checkout.
    pub cache: PathBuf,
}

impl Lab {
    /// Builds the binary and opens the cache.
    pub fn open() -> anyhow::Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("checkout")?;
        Ok(Lab {
            repository: repository.to_owned(),
            tenon: crate::dist::build()?,
            cache: cache_directory()?,
        })
    }

    /// Installs a Debian package unless its program is there already.
    pub fn install(&self, package: &str, program: &str) -> anyhow::Result<()> {
        if on_path(program) {
            return Ok(());
        }
        println!("installing {package}");
        let apt = || {
            let mut command = Command::new("apt-get");
            command.env("DEBIAN_FRONTEND", "noninteractive");
            command.args(["-q", "-y", "-o", "DPkg::Lock::Timeout=120"]);
            command
        };
        run(apt().arg("update"))?;
        run(apt().args(["install", "--no-install-recommends", package]))
    }

    /// A tenon command that talks to nobody it was not told of.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.tenon);
        command.env_remove("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        command
    }
}

/// Runs a command that must succeed; its output is shown only if it does not.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = format!("{command:?}");
    let output = command.output().with_context(|| format!("starting {name}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&text));
    }
    Ok(())
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).exists())
}

fn cache_directory() -> anyhow::Result<PathBuf> {
    let cache = match (std::env::var_os("TENON_LAB"), std::env::var_os("HOME")) {
        (Some(lab), _) => PathBuf::from(lab),
        (None, Some(home)) => PathBuf::from(home).join(".cache/tenon-lab"),
        (None, None) => bail!("neither TENON_LAB nor HOME says where caches may lie"),
    };
    std::fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    Ok(cache)
}
