//! The command line: one file per command, and the names under which this binary answers.

mod completions;
mod config;
mod explain;
mod sources;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::logging::{self, Volume};
use crate::output::{self, Format, Outcome};

/// Turns a bare machine into a Kubernetes node.
#[derive(Debug, Parser)]
#[command(name = "tenon", version, max_term_width = 80, arg_required_else_help = true)]
pub struct Cli {
    /// Tell the whole story (debug log)
    #[arg(short = 'd', long = "development")]
    development: bool,
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options that every command takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// Work on this directory instead of /
    #[arg(long, global = true, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Use the facts in FILE; the metadata service and AWS are not asked
    #[arg(long, global = true, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// How to print the answer
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value = "text")]
    pub output: Format,
    /// Tell only warnings and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check, print and convert the config of a node
    Config(config::Args),
    Explain(explain::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Write the manual pages into a directory
    Man(completions::ManArgs),
}

impl Command {
    fn run(self, global: &Global) -> Outcome {
        match self {
            Command::Config(args) => config::run(&args, global),
            Command::Explain(args) => explain::run(&args, global),
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => completions::man(&args, global),
        }
    }
}

/// Parses the arguments, runs the command and gives the exit code.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let volume = match (cli.development, cli.global.quiet) {
        (true, _) => Volume::Debug,
        (false, true) => Volume::Quiet,
        (false, false) => Volume::Normal,
    };
    logging::start(volume);
    let outcome = cli.command.run(&cli.global);
    output::exit(output::report(outcome, cli.global.output))
}

/// Prints the parser's message. Help and version are answers; the rest is exit 64.
fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is no reason to fail.
    let _ = error.print();
    let code = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
        _ => 64,
    };
    output::exit(code)
}

/// The whole command tree, for completions, manual pages and the reference.
pub fn command() -> clap::Command {
    Cli::command()
}
