//! `tenon logs`: collects what a diagnosis needs, and reads what was collected.

use std::path::PathBuf;

use super::{Global, logs_collect, logs_read};
use crate::output::Outcome;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Collect logs and settings of this node into one file
    #[command(
        after_help = "Exit codes: 0 whole, 1 something required is missing, 6 nothing may be read,
7 not written, 10 not uploaded (the bundle stays), 130 stopped (partial).

Examples:
  sudo tenon logs collect
  sudo tenon logs collect --only kubelet,network --since 2h
  tenon logs collect --root /mnt/dead-node --out .
  ssh NODE sudo tenon logs collect --out - > node.tar.gz"
    )]
    Collect(Box<logs_collect::Args>),
    /// Show what would be collected, with caps and sensitivity
    #[command(after_help = "Example:
  tenon logs list --only kubelet,cni")]
    List(ListArgs),
    /// Print one item of a bundle, or all items with their statuses
    #[command(after_help = "Examples:
  tenon logs show node.tar.gz
  tenon logs show node.tar.gz kubelet/journal.log")]
    Show(ShowArgs),
    /// Find a text in every journal and file of a bundle
    #[command(after_help = "Example:
  tenon logs grep node.tar.gz Unauthorized --unit kubelet.service")]
    Grep(GrepArgs),
    /// Compare two nodes: versions, config, kernel settings, units
    #[command(after_help = "Example:
  tenon logs diff good.tar.gz bad.tar.gz")]
    Diff(DiffArgs),
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Groups, or items as GROUP/ID
    #[arg(long, value_name = "G,..", value_delimiter = ',')]
    pub only: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// File of `tenon logs collect`
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Name of an item, or of a path on the node
    #[arg(value_name = "PATH")]
    pub path: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct GrepArgs {
    /// File of `tenon logs collect`
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Text to look for, as it stands; letter case counts
    #[arg(value_name = "PATTERN")]
    pub pattern: String,
    /// Only the journal of this unit
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// Bundle of one node
    #[arg(value_name = "BUNDLE")]
    pub left: PathBuf,
    /// Bundle of the other
    #[arg(value_name = "BUNDLE")]
    pub right: PathBuf,
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Collect(args) => logs_collect::run(args, global),
        Command::List(args) => logs_read::list(args, global),
        Command::Show(args) => logs_read::show(args, global),
        Command::Grep(args) => logs_read::grep(args, global),
        Command::Diff(args) => logs_read::diff(args, global),
    }
}
