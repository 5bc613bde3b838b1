//! The command line: one file per command, and the names under which this binary answers.

mod bootstrap;
mod check_args;
#[cfg(feature = "desk")]
mod cloudformation;
#[cfg(feature = "control-plane")]
mod cluster_args;
#[cfg(feature = "desk")]
mod completions;
mod config;
#[cfg(feature = "control-plane")]
mod control_plane;
#[cfg(feature = "control-plane")]
mod csr;
mod doctor;
mod eks_token;
mod explain;
mod facts;
mod harden;
#[cfg(feature = "control-plane")]
mod ignition;
#[cfg(feature = "desk")]
mod image;
#[cfg(feature = "desk")]
mod imds;
mod init;
#[cfg(feature = "desk")]
mod launch_template;
mod logs;
mod logs_collect;
mod logs_progress;
mod logs_read;
mod max_pods;
mod names;
mod net;
mod node_args;
#[cfg(feature = "control-plane")]
mod pki;
#[cfg(feature = "control-plane")]
mod pki_identity;
mod plan;
#[cfg(feature = "desk")]
mod reference;
#[cfg(feature = "desk")]
mod rehearse;
mod schema;
mod signal;
#[cfg(feature = "desk")]
mod simulate;
mod sources;
#[cfg(feature = "control-plane")]
mod stage;
#[cfg(feature = "control-plane")]
mod stage_addons;
#[cfg(feature = "control-plane")]
mod stage_assets;
#[cfg(feature = "control-plane")]
mod stage_bootstrap;
#[cfg(feature = "control-plane")]
mod stage_prepare;
#[cfg(feature = "control-plane")]
mod stage_status;
mod status;
mod timeline;
#[cfg(feature = "control-plane")]
mod token;
mod undo;
mod usage;
#[cfg(feature = "desk")]
mod userdata;
#[cfg(feature = "desk")]
mod userdata_choices;
#[cfg(feature = "desk")]
mod userdata_convert;
#[cfg(feature = "desk")]
mod userdata_decode;
#[cfg(feature = "desk")]
mod userdata_input;
#[cfg(feature = "desk")]
mod userdata_inspect;
#[cfg(feature = "desk")]
mod userdata_lint;
#[cfg(feature = "desk")]
mod userdata_merge;
#[cfg(feature = "desk")]
mod userdata_read;
#[cfg(feature = "desk")]
mod userdata_source;
mod validate;
mod why;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tenon_core::codes::usage::BAD_USAGE;
use tenon_core::problem::Problem;

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
    #[cfg(feature = "desk")]
    Rehearse(rehearse::Args),
    /// Print the gathered facts as JSON, the file that --facts takes
    Facts(facts::Args),
    /// Node images: plan, fetch, apply, verify, seal, manifest
    #[command(subcommand)]
    #[cfg(feature = "desk")]
    Image(image::Command),
    /// The instance metadata service, simulated
    #[command(subcommand)]
    #[cfg(feature = "desk")]
    Imds(imds::Command),
    /// Network links: set one up when it appears, wait for all of them
    #[command(subcommand)]
    Net(net::Command),
    /// Print a generated page of the reference
    #[command(hide = true)]
    #[cfg(feature = "desk")]
    Reference(reference::Args),
    /// Check, print and convert the config of a node
    Config(config::Args),
    Explain(explain::Args),
    /// Say how many pods an instance type may run, and why
    MaxPods(max_pods::Args),
    /// Write and read user data, what an instance is given at launch
    #[command(subcommand)]
    #[cfg(feature = "desk")]
    Userdata(userdata::Command),
    /// Print a CloudFormation template for a node group
    ///
    /// Example: tenon cloudformation -f cluster.yaml --group workers
    #[cfg(feature = "desk")]
    Cloudformation(Box<cloudformation::Args>),
    /// Print the LaunchTemplateData of a node group
    ///
    /// Example: tenon launch-template -f cluster.yaml --cluster-json c.json
    #[cfg(feature = "desk")]
    LaunchTemplate(Box<launch_template::Args>),
    /// Tell the CloudFormation stack how this node's bootstrap ended
    ///
    /// Example: tenon signal --stack my-nodes --exit-code 0
    Signal(signal::Args),
    /// Try out what cannot be tried: a fleet of thousands of nodes
    #[command(subcommand)]
    #[cfg(feature = "desk")]
    Simulate(simulate::Command),
    /// Keys, certificates and kubeconfigs of a control-plane node
    #[command(subcommand)]
    #[cfg(feature = "control-plane")]
    Pki(pki::Command),
    /// Bootstrap tokens that machines join a cluster with
    #[command(subcommand)]
    #[cfg(feature = "control-plane")]
    Token(token::Command),
    /// Requests for certificates
    #[command(subcommand)]
    #[cfg(feature = "control-plane")]
    Csr(csr::Command),
    /// Print a token for an EKS cluster, as its kubeconfig asks for
    EksToken(eks_token::Args),
    /// Start the control plane of a new cluster, or show its files
    #[command(subcommand)]
    #[cfg(feature = "control-plane")]
    ControlPlane(control_plane::Command),
    /// Write the Ignition config of a machine's first boot
    #[command(subcommand)]
    #[cfg(feature = "control-plane")]
    Ignition(ignition::IgnitionCommand),
    /// Write the systemd units of a staged first boot
    #[command(subcommand)]
    #[cfg(feature = "control-plane")]
    Units(ignition::UnitsCommand),
    /// Run, watch and reopen the stages of a first boot
    #[command(subcommand)]
    #[cfg(feature = "control-plane")]
    Stage(stage::Command),
    /// Print the JSON Schema of an answer
    Schema(schema::Args),
    /// Print a completion script for a shell
    #[cfg(feature = "desk")]
    Completions(completions::Args),
    /// Say why this node is not Ready, with evidence and the fix
    #[command(visible_alias = "diagnose")]
    Doctor(doctor::Args),
    /// Collect logs of a node that misbehaves, and read them
    #[command(subcommand)]
    Logs(logs::Command),
    /// Say in which state this node is
    Status(status::Args),
    /// Show where the time of this node's boot went
    Timeline(timeline::Args),
    /// Go back to the files of the previous generation
    Undo(undo::Args),
    /// Say whether a node, or a config file, is what it was meant to be
    Validate(Box<validate::Args>),
    /// Judge a node by a benchmark, and mend what needs no decision
    Harden(Box<harden::Args>),
    /// Write the manual pages into a directory
    #[cfg(feature = "desk")]
    Man(completions::ManArgs),
}

impl Command {
    #[cfg(feature = "desk")]
    fn shows_its_result_alone(&self) -> bool {
        matches!(self, Command::Rehearse(_))
    }

    #[cfg(not(feature = "desk"))]
    fn shows_its_result_alone(&self) -> bool {
        false
    }

    /// True where `--facts` has a meaning. The others would work on as if it were not there.
    fn takes_facts(&self) -> bool {
        match self {
            Command::Init(_)
            | Command::Plan(_)
            | Command::Bootstrap(_)
            | Command::Facts(_)
            | Command::Config(_)
            | Command::Explain(_)
            | Command::MaxPods(_)
            | Command::Logs(logs::Command::Collect(_))
            | Command::Validate(_)
            | Command::Harden(_) => true,
            // It says by itself why not.
            #[cfg(feature = "desk")]
            Command::Rehearse(_) => true,
            _ => false,
        }
    }

    fn run(self, global: &Global) -> Outcome {
        if global.facts.is_some() && !self.takes_facts() {
            let what = "`--facts` means nothing to this command";
            let problem = Problem::new(&BAD_USAGE, what).why("it reads no facts of a machine");
            return Err(problem.fix("leave --facts out").into());
        }
        match self {
            Command::Init(args) => init::run(&args, global),
            Command::Plan(args) => plan::run(&args, global),
            Command::Bootstrap(args) => bootstrap::run(&args, global),
            #[cfg(feature = "desk")]
            Command::Rehearse(args) => rehearse::run(&args, global),
            Command::Facts(args) => facts::run(&args, global),
            #[cfg(feature = "desk")]
            Command::Image(command) => image::run(&command, global),
            #[cfg(feature = "desk")]
            Command::Imds(command) => imds::run(&command),
            Command::Net(command) => net::run(&command, global),
            #[cfg(feature = "desk")]
            Command::Reference(args) => reference::run(&args),
            Command::Config(args) => config::run(&args, global),
            Command::Explain(args) => explain::run(&args, global),
            Command::MaxPods(args) => max_pods::run(&args, global),
            #[cfg(feature = "desk")]
            Command::Userdata(command) => userdata::run(&command, global),
            #[cfg(feature = "desk")]
            Command::Cloudformation(args) => cloudformation::run(&args),
            #[cfg(feature = "desk")]
            Command::LaunchTemplate(args) => launch_template::run(&args, global),
            Command::Signal(args) => signal::run(&args, global),
            #[cfg(feature = "desk")]
            Command::Simulate(command) => simulate::run(&command, global),
            #[cfg(feature = "control-plane")]
            Command::Pki(command) => pki::run(&command, global),
            #[cfg(feature = "control-plane")]
            Command::Token(command) => token::run(&command, global),
            #[cfg(feature = "control-plane")]
            Command::Csr(command) => csr::run(&command, global),
            Command::EksToken(args) => eks_token::run(&args),
            #[cfg(feature = "control-plane")]
            Command::ControlPlane(command) => control_plane::run(&command, global),
            #[cfg(feature = "control-plane")]
            Command::Ignition(command) => ignition::ignition(&command),
            #[cfg(feature = "control-plane")]
            Command::Units(command) => ignition::units(&command, global),
            #[cfg(feature = "control-plane")]
            Command::Stage(command) => stage::run(&command, global),
            Command::Schema(args) => schema::run(&args),
            #[cfg(feature = "desk")]
            Command::Completions(args) => completions::run(&args),
            Command::Doctor(args) => doctor::run(&args, global),
            Command::Logs(command) => logs::run(&command, global),
            Command::Status(args) => status::run(&args, global),
            Command::Timeline(args) => timeline::run(&args, global),
            Command::Undo(args) => undo::run(&args, global),
            Command::Validate(args) => validate::run(&args, global),
            Command::Harden(args) => harden::run(&args, global),
            #[cfg(feature = "desk")]
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
    let quiet = cli.global.quiet || cli.command.shows_its_result_alone();
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
