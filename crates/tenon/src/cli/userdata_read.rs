//! The commands that read user data back: inspect, decode, convert, merge, lint.

use clap::Subcommand;

use super::userdata_merge;
use super::{Global, userdata_convert, userdata_decode, userdata_inspect, userdata_lint};
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what user data holds and what it makes of a node
    ///
    /// Reads base64, gzip, MIME, cloud-config, scripts, NodeConfig, settings,
    /// PowerShell, Ignition, and templates that embed one of them.
    ///
    /// Example: tenon userdata inspect stack.yaml --parameter ClusterName=prod
    Inspect(Box<userdata_inspect::Args>),
    /// Print or write the innermost parts of user data
    ///
    /// Example: tenon userdata decode blob.txt --out-dir parts
    Decode(Box<userdata_decode::Args>),
    /// Rewrite user data for another family
    ///
    /// Example: tenon userdata convert al2.sh --to AmazonLinux2023
    Convert(Box<userdata_convert::Args>),
    /// Join your own user data with generated user data
    ///
    /// Example: tenon userdata merge generated.toml --custom mine.toml
    /// --family Bottlerocket
    Merge(Box<userdata_merge::Args>),
    /// Find what is wrong with user data for a family
    ///
    /// Example: tenon userdata lint blob.txt --family AmazonLinux2023
    Lint(Box<userdata_lint::Args>),
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Inspect(args) => userdata_inspect::run(args, global),
        Command::Decode(args) => userdata_decode::run(args, global),
        Command::Convert(args) => userdata_convert::run(args, global),
        Command::Merge(args) => userdata_merge::run(args, global),
        Command::Lint(args) => userdata_lint::run(args),
    }
}
