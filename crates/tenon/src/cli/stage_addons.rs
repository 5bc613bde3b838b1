//! `tenon stage addons`: the user's objects in the new cluster.

use tenon_core::codes::host::FILE_READ;
use tenon_core::problem::Problem;
use tenon_core::stages::paths;
use tenon_host::control_plane::addons::{self, Options};
use tenon_host::stages::{Order, disk};

use super::stage::carry_out;
use super::{Global, node_args};
use crate::output::Outcome;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon stage addons
  tenon stage addons --dir /srv/addons --no-wait")]
pub struct Args {
    /// Config of the machine
    #[arg(long, value_name = "PATH", default_value = paths::CONFIG)]
    config: String,
    /// Manifests to apply, in place of the bundle's addons/
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
    /// Take fields over that another manager owns
    #[arg(long)]
    force: bool,
    /// Apply, but do not wait until the objects are ready
    #[arg(long)]
    no_wait: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    // Without a bundle's addons/ there is nothing to do; a directory that was named must be there.
    if let Some(directory) = &args.dir {
        disk::directory(&root, directory).map_err(|error| {
            Problem::new(&FILE_READ, format!("opening {directory}")).cause(error)
        })?;
    }
    let options = Options { directory: args.dir.clone(), force: args.force, no_wait: args.no_wait };
    let order = Order { stage: addons::STAGE, config: args.config.clone(), forced: Vec::new() };
    carry_out(&root, &order, global, |run| addons::run(run, &options).map(drop))
}
