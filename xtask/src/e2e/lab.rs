//! What the layers share: the built binary and a place for caches.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

/// The workshop of a run.
pub struct Lab {
    /// The checkout.
    pub repository: PathBuf,
    /// The static binary under test.
    pub tenon: PathBuf,
    /// Caches that outlive a run, outside the checkout.
    pub cache: PathBuf,
    /// Held as long as the run: layers share directories of the cache.
    _lock: File,
}

impl Lab {
    /// Builds the binary, unless one is given, and opens the cache.
    pub fn open(binary: Option<&Path>) -> anyhow::Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("checkout")?;
        let tenon = match binary {
            Some(path) => path.canonicalize().with_context(|| path.display().to_string())?,
            None => crate::dist::build()?,
        };
        let cache = crate::lab::cache_directory()?;
        let lock = File::create(cache.join("lock"))?;
        if lock.try_lock().is_err() {
            println!("waiting for another run");
            lock.lock().context("waiting for another run")?;
        }
        Ok(Lab { repository: repository.to_owned(), tenon, cache, _lock: lock })
    }

    /// A tenon command that talks to nobody it was not told of.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.tenon);
        command.env_remove("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        command
    }
}

/// Starts a daemon of the lab in its place; what it says goes into `NAME.log` there.
pub fn spawn_logged(mut command: Command, place: &Path, name: &str) -> anyhow::Result<Child> {
    let log = File::create(place.join(format!("{name}.log")))?;
    let command = command.current_dir(place).stdin(Stdio::null());
    let child = command.stdout(log.try_clone()?).stderr(log).spawn();
    child.with_context(|| format!("starting {name}"))
}
