//! `tenon pki`: keys, certificates and kubeconfigs of a control-plane node.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use tenon_core::codes;
use tenon_core::codes::pki::PKI_NAME;
use tenon_core::nearest::nearest;
use tenon_core::pki::show;
use tenon_core::problem::{Finding, Problem};
use tenon_host::apply::Lock;
use tenon_host::pki::{
    Action, Algorithm, Done, Due, External, Inspection, Options, Pki, Renewal, check, list, names,
};
use tenon_host::root::Root;
use tenon_host::stop;

use super::Global;
use super::cluster_args::now;
use super::node_args::{node_path, open_root};
use super::pki_identity::{IdentityArgs, is_first_master};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make what is missing; what is there is checked and never overwritten
    Init(InitArgs),
    /// Sign certificates again, under the same names
    Renew(RenewArgs),
    /// List the certificates that are there
    Show(ShowArgs),
    /// Find what is wrong: expiry, chain, names, keys, modes
    Check(CheckArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon pki init --advertise-address 10.0.0.4 --endpoint api.example.com
  tenon pki init --external-ca --csr-dir /root/requests")]
pub struct InitArgs {
    /// Make only this one; repeatable
    #[arg(long, value_name = "NAME", value_parser = known)]
    only: Vec<String>,
    /// The CA's key is kept elsewhere: make no CA
    #[arg(long)]
    external_ca: bool,
    /// Put requests here for what such a CA must sign
    #[arg(long, value_name = "DIR")]
    csr_dir: Option<String>,
    /// Kind of new keys
    #[arg(long, value_enum, value_name = "KIND")]
    algorithm: Option<KeyKind>,
    /// Which kubeconfigs to make [default: by the role in the config]
    #[arg(long, value_enum, value_name = "ROLE")]
    kubeconfigs: Option<Kubeconfigs>,
    #[command(flatten)]
    identity: IdentityArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeyKind {
    #[value(name = "ecdsa-p256")]
    P256,
    #[value(name = "ecdsa-p384")]
    P384,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kubeconfigs {
    FirstMaster,
    Master,
    None,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "CAs are not renewed: see docs/guides/pki.md. Components read a renewed
certificate when they are restarted.

Examples:
  tenon pki renew --within 30d
  tenon pki renew --only apiserver --san lb.example.com")]
#[command(group = clap::ArgGroup::new("which").required(true).args(["all", "only", "within"]))]
pub struct RenewArgs {
    /// Every leaf and kubeconfig
    #[arg(long)]
    all: bool,
    /// This one; repeatable
    #[arg(long, value_name = "NAME", value_parser = known)]
    only: Vec<String>,
    /// Those that end within this time
    #[arg(long, value_name = "DAYS", value_parser = days)]
    within: Option<u32>,
    /// Make a new key too
    #[arg(long)]
    new_key: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: tenon pki show --output json")]
pub struct ShowArgs {}

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code 1 when something was found.

Example: tenon pki check --warn-days 30")]
pub struct CheckArgs {
    /// Find certificates that end within so many days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    warn_days: u32,
    #[command(flatten)]
    identity: IdentityArgs,
}

fn known(name: &str) -> Result<String, String> {
    let list = names();
    match list.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(match nearest(name, list.iter().copied()) {
            Some(near) => format!("no such name; did you mean `{near}`?"),
            None => format!("the names are {}", list.join(", ")),
        }),
    }
}

/// `30d`, `30` or `720h`.
fn days(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('d').unwrap_or(text).parse().ok();
    let hours = || text.strip_suffix('h')?.parse::<u32>().ok().map(|hours| hours.div_ceil(24));
    number.or_else(hours).ok_or_else(|| "a time such as 30d".to_owned())
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Init(args) => init(args, global),
        Command::Renew(args) => renew(args, global),
        Command::Show(_) => show(global),
        Command::Check(args) => run_check(args, global),
    }
}

/// Makes this run the only one, and one that ends cleanly when it is told to.
fn alone(root: &Root) -> Result<Lock, Problem> {
    stop::listen()
        .map_err(|error| Problem::new(&codes::usage::BUG, "listening for signals").cause(error))?;
    Lock::take(root, Duration::ZERO)
}

fn init(args: &InitArgs, global: &Global) -> Outcome {
    let root = open_root(global)?;
    let machine = args.identity.machine(&root)?;
    let machine = machine.as_ref();
    let identity = args.identity.required(machine)?;
    let now = now();
    let mut options = machine.map_or(Options::at(now), |machine| Options::of(machine, now));
    match args.algorithm {
        Some(KeyKind::P256) => options.algorithm = Algorithm::P256,
        Some(KeyKind::P384) => options.algorithm = Algorithm::P384,
        None => {}
    }
    let requests = args.csr_dir.as_deref().map(|path| node_path(path, global));
    let requests = requests.or_else(|| machine.and_then(|it| it.pki.csr_directory.clone()));
    let external = External { asked: args.external_ca, requests };
    let first_master = match args.kubeconfigs {
        Some(Kubeconfigs::FirstMaster) => true,
        Some(_) => false,
        None => is_first_master(machine),
    };
    let _lock = alone(&root)?;
    let pki = Pki::new(&root, options);
    let mut done = pki.init(&identity, &args.only, &external)?;
    if args.kubeconfigs != Some(Kubeconfigs::None) {
        done.extend(pki.kubeconfigs(&identity, first_master, &args.only, &external)?);
    }
    report("tenon.pki.init/1", &done, global)
}

fn renew(args: &RenewArgs, global: &Global) -> Outcome {
    let root = open_root(global)?;
    let machine = args.identity.machine(&root)?;
    let identity = args.identity.identity(machine.as_ref())?;
    let due = match (args.all, args.within) {
        (true, _) => Due::All,
        (false, Some(days)) => Due::Within(days),
        (false, None) => Due::Only(args.only.clone()),
    };
    let now = now();
    let options = machine.as_ref().map_or(Options::at(now), |machine| Options::of(machine, now));
    let _lock = alone(&root)?;
    let renewal = Renewal { due, new_key: args.new_key, identity: identity.as_ref() };
    report("tenon.pki.renew/1", &Pki::new(&root, options).renew(&renewal)?, global)
}

fn report(schema: &str, done: &[Done], global: &Global) -> Outcome {
    let changed = done.iter().any(|done| done.action != Action::Kept);
    if global.json() {
        let files: Vec<_> = done.iter().map(Done::to_json).collect();
        return output::answer_json(&json!({"schema": schema, "changed": changed, "files": files}));
    }
    let line = |done: &Done| format!("{:<9}  {}\n", done.action.word(), done.path);
    match done {
        [] => output::answer("nothing is due\n"),
        done => output::answer(&done.iter().map(line).collect::<String>()),
    }
}

fn show(global: &Global) -> Outcome {
    let found = list(&open_root(global)?)?;
    let now = now();
    if global.json() {
        let rows: Vec<_> = found.iter().map(|shown| shown.to_json(now)).collect();
        return output::answer_json(&json!({"schema": "tenon.pki.show/1", "certificates": rows}));
    }
    match found.is_empty() {
        true => Err(Problem::new(&PKI_NAME, "there is no certificate below /etc/kubernetes")
            .why("this machine is no control-plane node, or its certificates were not made yet")
            .fix("`tenon pki init` makes them; --root looks elsewhere")
            .into()),
        false => output::answer(&show::table(&found, now)),
    }
}

fn run_check(args: &CheckArgs, global: &Global) -> Outcome {
    let root = open_root(global)?;
    let machine = args.identity.machine(&root)?;
    let identity = args.identity.identity(machine.as_ref())?;
    let inspection =
        Inspection { identity: identity.as_ref(), now: now(), warn_days: args.warn_days };
    let findings = check(&root, &inspection)?;
    let bad = findings.iter().filter(|finding| finding.stops(false)).count();
    if global.json() {
        let list: Vec<_> =
            findings.iter().map(|finding: &Finding| finding.to_json(false)).collect();
        let result = if bad == 0 { "ok" } else { "findings" };
        output::answer_json(&json!({
            "schema": "tenon.pki.check/1", "result": result, "findings": list,
        }))?;
    } else {
        output::tell_findings(&findings, false);
        output::answer(&match bad {
            0 => "no fault found\n".to_owned(),
            1 => "1 fault found\n".to_owned(),
            bad => format!("{bad} faults found\n"),
        })?;
    }
    match bad {
        0 => Ok(()),
        _ => Err(Failure::Answer(1)),
    }
}
