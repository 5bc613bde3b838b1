//! Tenon's own program, on its way into a root: which build it is, and whether the root runs it.

use std::fs::File;
use std::path::{Path, PathBuf};

use tenon_core::codes::host::FILE_READ;
use tenon_core::codes::image::TENON_ARCHITECTURE;
use tenon_core::image::root_facts::architecture;
use tenon_core::problem::Problem;

use super::gap::{Gap, Mend};
use super::record::Entry;
use super::site::hash;
use crate::root::read_up_to;

/// The program that runs now, even if its file was replaced since.
pub const RUNNING: &str = "/proc/self/exe";

/// A build of Tenon that the image's processor can run.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    sha256: String,
}

impl Program {
    /// Opens a build and refuses one for another processor.
    pub fn open(path: &Path, wanted: &str) -> Result<Program, Problem> {
        let told = |error| told(path, error);
        let open = || File::open(path).map_err(told);
        let head = read_up_to(open()?, 64).map_err(told)?;
        let name = match path == Path::new(RUNNING) {
            true => "the running tenon".to_owned(),
            false => path.display().to_string(),
        };
        match architecture(&head) {
            Some(found) if found == wanted => {}
            found => {
                let found = found.map_or("is no program".into(), |found| format!("is for {found}"));
                let what = format!("{name} {found}, the image is for {wanted}");
                return Err(Problem::new(&TENON_ARCHITECTURE, what));
            }
        }
        let sha256 = hash(open()?.into()).map_err(told)?;
        Ok(Program { path: path.to_owned(), sha256 })
    }

    /// Its bytes.
    pub fn content(&self) -> Result<File, Problem> {
        File::open(&self.path).map_err(|error| told(&self.path, error))
    }

    /// The gap between what an apply once placed and this build.
    pub fn newer_than(&self, path: &str, held: &Entry) -> Option<Gap> {
        let recorded = held.files.get(path)?;
        (*recorded != self.sha256).then(|| Gap {
            expected: format!("sha256 {}", self.sha256),
            actual: format!("sha256 {recorded}"),
            mend: Mend::Own,
        })
    }
}

fn told(path: &Path, error: std::io::Error) -> Problem {
    Problem::new(&FILE_READ, format!("reading {}", path.display())).cause(error)
}
