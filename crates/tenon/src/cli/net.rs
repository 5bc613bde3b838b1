//! `tenon net`: what `nodeadm-internal` does.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use tenon_core::codes;
use tenon_core::plan::network;
use tenon_core::problem::Problem;
use tenon_host::apply::Lock;
use tenon_host::gather::environment::Environment;
use tenon_host::gather::imds::{Imds, Options};
use tenon_host::net::{self, udev, wait};
use tenon_host::stop;

use super::{Global, node_args};
use crate::output::{self, Format, Outcome};

/// How long a link may wait for a run of `init` to end; longer than such a run takes.
const LOCK_WAIT: Duration = Duration::from_secs(300);

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Set up a link that udev saw come or go
    Udev(UdevArgs),
    /// Wait until the links are as the node needs them
    #[command(alias = "boot-hook")]
    Wait(WaitArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon net udev --interface ens5 --action add")]
pub struct UdevArgs {
    /// Name of the link
    #[arg(short, long, value_name = "IF", value_parser = interface)]
    interface: String,
    /// What happened to it
    #[arg(short, long, value_enum)]
    action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    Add,
    Remove,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon net wait --timeout 60s")]
pub struct WaitArgs {
    /// Longest wait
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = node_args::duration)]
    timeout: Duration,
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    stop::listen()
        .map_err(|error| Problem::new(&codes::usage::BUG, "listening for signals").cause(error))?;
    match command {
        Command::Udev(args) => link(args, global),
        Command::Wait(args) => ready(args, global),
    }
}

fn link(args: &UdevArgs, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let lock = Lock::take(&root, LOCK_WAIT)?;
    match args.action {
        Action::Add => {
            udev::add(&root, &lock, &mut Imds::new(options()?), &args.interface)?;
        }
        Action::Remove => udev::remove(&root, &lock, &args.interface)?,
    }
    Ok(())
}

fn ready(args: &WaitArgs, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let mut options = options()?;
    options.patience.whole = args.timeout;
    let identity = net::identify(&mut Imds::new(options))?;
    let links = wait::wait(&root, &identity, args.timeout)?;
    if global.output == Format::Json {
        let row = |link: &wait::Link| json!({"name": link.name, "state": link.state, "waitedFor": link.wanted.is_some()});
        let rows: Vec<_> = links.iter().map(row).collect();
        return output::answer_json(&json!({"schema": "tenon.links/1", "links": rows}));
    }
    for link in &links {
        let note = if link.wanted.is_some() { "" } else { " (not waited for)" };
        output::answer(&format!("{} {}{note}\n", link.name, link.state))?;
    }
    Ok(())
}

fn options() -> Result<Options, Problem> {
    Options::new(&Environment::of_process())
}

fn interface(text: &str) -> Result<String, String> {
    match network::is_interface_name(text) {
        true => Ok(text.to_owned()),
        false => Err("the name of a link has 1 to 15 characters and no slash".to_owned()),
    }
}
