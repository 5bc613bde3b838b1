//! `tenon control-plane`: its files for people to read, or started on a prepared node.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tenon_core::codes;
use tenon_core::problem::Problem;
use tenon_core::stages::paths;
use tenon_host::control_plane::{self, STAGE};
use tenon_host::root::Root;
use tenon_host::stages::Order;

use super::stage::{carry_out, machine};
use super::{Global, node_args};
use crate::output::{self, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Write static pods, policies and objects into a directory
    Render(RenderArgs),
    /// Start the control plane on a prepared node, without units
    Start(StartArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon control-plane render --config machine.yaml --out out
  tenon control-plane render --out out --kubernetes-version v1.35.2")]
pub struct RenderArgs {
    /// Config of the machine
    #[arg(long, value_name = "PATH", default_value = paths::CONFIG)]
    config: PathBuf,
    /// Directory to write into
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Another version than the config's
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
    /// Patches: files named COMPONENT[n]+TYPE.yaml
    #[arg(long, value_name = "DIR")]
    patches: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenon control-plane start

`tenon stage bootstrap` does the same and more; this runs its steps from the
claim to the final look, without waiting for units.")]
pub struct StartArgs {
    /// Config of the machine
    #[arg(long, value_name = "PATH", default_value = paths::CONFIG)]
    config: String,
    /// Longest time of one attempt
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = node_args::duration)]
    timeout: Duration,
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Render(args) => render(args, global),
        Command::Start(args) => {
            let root = node_args::open_root(global)?;
            let order = Order { stage: STAGE, config: args.config.clone(), forced: Vec::new() };
            carry_out(&root, &order, global, |run| control_plane::start(run, args.timeout))
        }
    }
}

fn render(args: &RenderArgs, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let (directory, name) = split(&args.config);
    // A config on a desk lies anywhere; only the machine's own is below the root.
    let (mut machine, _) = match args.config == Path::new(paths::CONFIG) {
        true => machine(&root, paths::CONFIG)?,
        false => machine(&open(directory)?, &name)?,
    };
    if let Some(version) = &args.kubernetes_version {
        machine.cluster.kubernetes_version = version.clone();
    }
    std::fs::create_dir_all(&args.out).map_err(|error| {
        let what = format!("making {}", args.out.display());
        Problem::new(&codes::host::FILE_WRITE, what).cause(error)
    })?;
    let patches = args.patches.as_deref().map(open).transpose()?;
    let patches = patches.as_ref().map(|directory| (directory, ""));
    let written = control_plane::render(&root, &open(&args.out)?, &machine, patches)?;
    if global.json() {
        let schema = "tenon.control-plane-files/1";
        return output::answer_json(&json!({"schema": schema, "files": written}));
    }
    output::answer(&written.iter().map(|path| format!("{path}\n")).collect::<String>())
}

fn split(path: &Path) -> (&Path, String) {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (directory.unwrap_or(Path::new(".")), name)
}

fn open(path: &Path) -> Result<Root, Problem> {
    Root::open(path).map_err(|error| {
        Problem::new(&codes::host::FILE_READ, format!("opening {}", path.display())).cause(error)
    })
}
