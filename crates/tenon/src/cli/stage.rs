//! `tenon stage`: the stages of a first boot.

use super::{Global, stage_addons, stage_bootstrap};
use crate::output::Outcome;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Start the control plane of a new cluster on this machine
    Bootstrap(stage_bootstrap::Args),
    /// Apply the cluster's add-ons and wait for them
    Addons(stage_addons::Args),
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Bootstrap(args) => stage_bootstrap::run(args, global),
        Command::Addons(args) => stage_addons::run(args, global),
    }
}
