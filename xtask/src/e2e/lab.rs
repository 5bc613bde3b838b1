//! What the layers share: the built binary and a place for caches.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

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
            cache: crate::lab::cache_directory()?,
        })
    }

    /// A tenon command that talks to nobody it was not told of.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.tenon);
        command.env_remove("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        command
    }
}
