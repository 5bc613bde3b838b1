//! `tenon image`: a root file system becomes a node image. One file per subcommand.

mod apply;
mod choice;
mod diff;
mod fetch;
mod manifest;
mod packer;
mod plan;
mod profiles;
mod seal;
mod verify;
mod wanted;

use std::path::Path;

use tenon_core::codes::host::FILE_READ;
use tenon_core::problem::{Finding, Problem};
use tenon_host::root::Root;

use super::Global;
use crate::output::{Failure, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Describe an image, or show what a root lacks of it
    Plan(Box<plan::Args>),
    /// Download and check everything that a plan needs
    Fetch(fetch::Args),
    /// Make a plan true on a root; running again changes nothing
    Apply(apply::Args),
    /// Check a root, or the running machine, against its plan
    Verify(verify::Args),
    /// Remove what belongs to the build; the last step before a snapshot
    Seal(seal::Args),
    /// Tell what is in a root: manifest and bill of materials
    Manifest(manifest::Args),
    /// Write a Packer template that builds the image
    Packer(Box<packer::Args>),
    /// List the profiles, or show one
    Profiles(profiles::Args),
    /// Compare two manifests
    Diff(diff::Args),
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Plan(args) => plan::run(args, global),
        Command::Fetch(args) => fetch::run(args, global),
        Command::Apply(args) => apply::run(args, global),
        Command::Verify(args) => verify::run(args),
        Command::Seal(args) => seal::run(args, global),
        Command::Manifest(args) => manifest::run(args),
        Command::Packer(args) => packer::run(args),
        Command::Profiles(args) => profiles::run(args, global),
        Command::Diff(args) => diff::run(args, global),
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
