//! `tenon userdata`: what an instance is given at launch.

use clap::Subcommand;

use super::{Global, userdata_read};
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(flatten)]
    Read(userdata_read::Command),
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Read(command) => userdata_read::run(command, global),
    }
}
