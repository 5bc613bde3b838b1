//! `tenon image`: a root file system becomes a node image. One file per subcommand.

mod apply;
mod choice;
mod fetch;
mod seal;
mod verify;

use std::path::Path;

use tenon_core::codes::host::FILE_READ;
use tenon_core::problem::{Finding, Problem};
use tenon_host::root::Root;

use super::Global;
use crate::output::{Failure, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Download and check everything that a plan needs
    Fetch(fetch::Args),
    /// Make a plan true on a root; running again changes nothing
    Apply(apply::Args),
    /// Check a root, or the running machine, against its plan
    Verify(verify::Args),
    /// Remove what belongs to the build; the last step before a snapshot
    Seal(seal::Args),
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Fetch(args) => fetch::run(args, global),
        Command::Apply(args) => apply::run(args, global),
        Command::Verify(args) => verify::run(args),
        Command::Seal(args) => seal::run(args, global),
    }
}

fn open(path: &Path) -> Result<Root, Problem> {
    Root::open(path).map_err(|error| {
        Problem::new(&FILE_READ, format!("opening {}", path.display())).cause(error)
    })
}

/// All that stands against a plan, told at once.
fn findings(problems: Vec<Problem>) -> Failure {
    let findings = problems.into_iter().map(Finding::error).collect();
    Failure::Findings { findings, lenient: false }
}
