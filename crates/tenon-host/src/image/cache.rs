//! What `fetch` brought: files under the names of their hashes, archives of container images
//! under their digests, and the package manager's own directories.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tenon_core::codes::host::FILE_WRITE;
use tenon_core::codes::image::NOT_CACHED;
use tenon_core::image::cached;
use tenon_core::image::item::Act;
use tenon_core::problem::Problem;

use super::site::Site;

#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// Opens a cache, making it where it is missing.
    pub fn open(directory: &Path) -> Result<Cache, Problem> {
        let made = ["sha256", "images", "apt/archives/partial", "apt/lists/partial", "rpm"]
            .iter()
            .try_for_each(|name| fs::create_dir_all(directory.join(name)))
            .and_then(|()| directory.canonicalize());
        let what = || format!("making the cache {}", directory.display());
        let directory = made.map_err(|e| Problem::new(&FILE_WRITE, what()).cause(e))?;
        Ok(Cache { directory })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the content of an act lies; None for acts that need none.
    pub fn path(&self, act: &Act) -> Option<PathBuf> {
        match act {
            Act::Download { sha256, .. } => Some(self.directory.join("sha256").join(sha256)),
            Act::CachedImage { digest, .. } => {
                let name = format!("{}.tar", cached::digits(digest)?);
                Some(self.directory.join("images").join(name))
            }
            _ => None,
        }
    }

    pub fn open_entry(&self, act: &Act) -> Result<File, Problem> {
        let path = self.path(act).unwrap_or_default();
        File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(&[self.words(act)]),
            _ => Problem::new(&NOT_CACHED, format!("opening {}", path.display())).cause(error),
        })
    }

    /// An entry, as somebody can look for it.
    fn words(&self, act: &Act) -> String {
        let path = self.path(act).unwrap_or_default();
        match act {
            Act::Download { url, .. } => format!("{} from {url}", path.display()),
            Act::CachedImage { reference, digest, .. } => {
                format!("{} with {reference}@{digest}", path.display())
            }
            _ => String::new(),
        }
    }

    /// Refuses a plan whose gaps this cache cannot close, naming every entry.
    pub fn check(&self, site: &Site<'_>) -> Result<(), Problem> {
        let mut lacking = Vec::new();
        for item in &site.plan.items {
            let Some(path) = self.path(&item.act) else { continue };
            if !path.exists() && !site.gaps(item)?.is_empty() {
                lacking.push(self.words(&item.act));
            }
        }
        if lacking.is_empty() { Ok(()) } else { Err(missing(&lacking)) }
    }

    /// The packages for dnf, by file name.
    pub fn rpms(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.join("rpm")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| name.ends_with(".rpm")).collect();
        names.sort_unstable();
        names
    }
}

fn missing(entries: &[String]) -> Problem {
    let what = match entries {
        [one] => format!("the cache lacks {one}"),
        many => format!("the cache lacks {} entries", many.len()),
    };
    let details = if entries.len() > 1 { entries.to_vec() } else { Vec::new() };
    Problem::new(&NOT_CACHED, what).details(details)
}
