//! The command line: one file per command, and the names under which this binary answers.

mod bootstrap;
mod cloudformation;
mod completions;
mod config;
mod explain;
mod facts;
mod image;
mod imds;
mod init;
mod launch_template;
mod max_pods;
mod names;
mod net;
mod node_args;
mod plan;
mod reference;
mod rehearse;
mod schema;
mod signal;
mod sources;
mod status;
mod undo;
mod usage;
mod userdata;
mod userdata_choices;
mod userdata_convert;
mod userdata_decode;
mod userdata_input;
mod userdata_inspect;
mod userdata_lint;
mod userdata_merge;
mod userdata_read;
mod userdata_source;
mod why;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use self::names::CalledAs;
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
    #[arg(long, global = true, value_name = "text|json", default_value = "text")]
    #[arg(value_parser = Format::text_or_json)]
    pub output: Format,
    /// Tell only warnings and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

impl Global {
    /// True for `--output json`.
    pub fn json(&self) -> bool {
        self.output == Format::Json
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make this machine a node: config, facts, plan, files, daemons
    Init(init::Args),
    /// Show what `init` would change, and why
    Plan(plan::Args),
    /// Make a node from the arguments of the old bootstrap.sh
    Bootstrap(bootstrap::Args),
    /// Run the whole job in a sandbox: no root, no cloud
    Rehearse(rehearse::Args),
    /// Print the gathered facts as JSON, the file that --facts takes
    Facts(facts::Args),
    /// Node images: plan, fetch, apply, verify, seal, manifest
    #[command(subcommand)]
    Image(image::Command),
    /// The instance metadata service, simulated
    #[command(subcommand)]
    Imds(imds::Command),
    /// Network links: set one up when it appears, wait for all of them
    #[command(subcommand)]
    Net(net::Command),
    /// Print a generated page of the reference
    #[command(hide = true)]
    Reference(reference::Args),
    /// Check, print and convert the config of a node
    Config(config::Args),
    Explain(explain::Args),
    /// Say how many pods an instance type may run, and why
    MaxPods(max_pods::Args),
    /// Write and read user data, what an instance is given at launch
    #[command(subcommand)]
    Userdata(userdata::Command),
    /// Print a CloudFormation template for a node group
    ///
    /// Example: tenon cloudformation -f cluster.yaml --group workers
    Cloudformation(Box<cloudformation::Args>),
    /// Print the LaunchTemplateData of a node group
    ///
    /// Example: tenon launch-template -f cluster.yaml --cluster-json c.json
    LaunchTemplate(Box<launch_template::Args>),
    /// Tell the CloudFormation stack how this node's bootstrap ended
    ///
    /// Example: tenon signal --stack my-nodes --exit-code 0
    Signal(signal::Args),
    /// Print the JSON Schema of an answer
    Schema(schema::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Say in which state this node is
    Status(status::Args),
    /// Go back to the files of the previous generation
    Undo(undo::Args),
    /// Write the manual pages into a directory
    Man(completions::ManArgs),
}

impl Command {
    fn run(self, global: &Global) -> Outcome {
        match self {
            Command::Init(args) => init::run(&args, global),
            Command::Plan(args) => plan::run(&args, global),
            Command::Bootstrap(args) => bootstrap::run(&args, global),
            Command::Rehearse(args) => rehearse::run(&args, global),
            Command::Facts(args) => facts::run(&args, global),
            Command::Image(command) => image::run(&command, global),
            Command::Imds(command) => imds::run(&command),
            Command::Net(command) => net::run(&command, global),
            Command::Reference(args) => reference::run(&args),
            Command::Config(args) => config::run(&args, global),
            Command::Explain(args) => explain::run(&args, global),
            Command::MaxPods(args) => max_pods::run(&args, global),
            Command::Userdata(command) => userdata::run(&command, global),
            Command::Cloudformation(args) => cloudformation::run(&args),
            Command::LaunchTemplate(args) => launch_template::run(&args, global),
            Command::Signal(args) => signal::run(&args, global),
            Command::Schema(args) => schema::run(&args),
            Command::Completions(args) => completions::run(&args),
            Command::Status(args) => status::run(&args, global),
            Command::Undo(args) => undo::run(&args, global),
            Command::Man(args) => completions::man(&args, global),
        }
    }
}

/// Parses the arguments, runs the command and gives the exit code.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let (called_as, arguments) = names::translate(arguments);
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error, &arguments, called_as),
    };
    // A rehearsal shows its result; what it went through on the way is for those who ask.
    let quiet = cli.global.quiet || matches!(cli.command, Command::Rehearse(_));
    let volume = match (cli.development, quiet) {
        (true, _) => Volume::Debug,
        (false, true) => Volume::Quiet,
        (false, false) => Volume::Normal,
    };
    logging::start(volume);
    let outcome = cli.command.run(&cli.global);
    let code = output::report(outcome, cli.global.output);
    output::exit(called_as.exit_code(code))
}

/// Prints help or version, which are answers, or says what was wrong with the command line.
fn not_understood(error: &clap::Error, arguments: &[OsString], called_as: CalledAs) -> ExitCode {
    let code = match usage::problem(error) {
        Some(problem) => output::report(Err(problem.into()), usage::format(arguments)),
        None => {
            // A closed pipe is no reason to fail.
            let _ = error.print();
            if error.use_stderr() { 64 } else { 0 }
        }
    };
    output::exit(called_as.exit_code(code))
}

/// The whole command tree, for completions, manual pages and the reference.
pub fn command() -> clap::Command {
    Cli::command()
}
