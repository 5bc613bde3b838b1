//! `tenon ignition render` and `tenon units render`: the first boot, written at a desk.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::json;
use tenon_core::codes::host::FILE_WRITE;
use tenon_core::problem::Problem;
use tenon_core::stages::ignition::{self, Os, Remote, Request, SPECS};
use tenon_core::stages::units::{self, Unit};
use tenon_core::stages::{Machine, fields::ROLES, load_as};

use super::{Global, node_args};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum IgnitionCommand {
    /// Print the Ignition config of a machine
    Render(Box<IgnitionArgs>),
}

#[derive(Debug, clap::Subcommand)]
pub enum UnitsCommand {
    /// Print the units of a machine, or write them into a directory
    Render(UnitsArgs),
}

/// Whose first boot it is.
#[derive(Debug, clap::Args)]
struct MachineArgs {
    /// Config of the machine: kind MachineConfig
    #[arg(short = 'c', long, value_name = "FILE")]
    config: PathBuf,
    /// first-master or worker [default: the config's]
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Option<String>,
    /// Version of systemd on the machine
    #[arg(long, value_name = "VERSION", default_value_t = 252)]
    #[arg(value_parser = clap::value_parser!(u32).range(252..))]
    systemd: u32,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenon ignition render -c machine.yaml --role worker --os flatcar > w.ign")]
pub struct IgnitionArgs {
    #[command(flatten)]
    machine: MachineArgs,
    /// Version of the Ignition specification, 3.0 to 3.6
    #[arg(long, value_name = "VERSION", default_value = "3.3.0", value_parser = spec)]
    spec: String,
    /// Operating system of the machine
    #[arg(long, value_enum, value_name = "OS", default_value = "generic")]
    os: OsArg,
    /// Where the machine gets the tenon binary [default: it has it]
    #[arg(long, value_name = "URL", requires = "bin_sha512")]
    bin_url: Option<String>,
    /// sha512 of that binary
    #[arg(long, value_name = "HEX", requires = "bin_url")]
    bin_sha512: Option<String>,
    /// RuntimeMappings to put on the machine [default: the built-in ones]
    #[arg(long, value_name = "FILE")]
    mappings: Option<PathBuf>,
    /// ExtensionCatalogue to put on the machine
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenon units render -c machine.yaml --dir ./units")]
pub struct UnitsArgs {
    #[command(flatten)]
    machine: MachineArgs,
    /// Where the binary lies on the machine
    #[arg(long, value_name = "PATH", default_value = "/usr/local/bin/tenon")]
    #[arg(value_parser = binary)]
    binary: String,
    /// Write unit files and drop-ins into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OsArg {
    Flatcar,
    Fcos,
    Generic,
}

/// A word of the config; what this version does not carry out is refused as it is there.
fn role(text: &str) -> Result<String, String> {
    match ROLES.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err("the roles are first-master and worker".into()),
    }
}

fn spec(text: &str) -> Result<String, String> {
    let known =
        SPECS.into_iter().find(|spec| *spec == text || spec.strip_suffix(".0") == Some(text));
    known.map(str::to_owned).ok_or_else(|| format!("the versions are {}", SPECS.join(", ")))
}

/// A path that stands in `ExecStart=` as it is.
fn binary(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-".contains(&b);
    match text.starts_with('/') && text.bytes().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("an absolute path of letters, digits and /._-".into()),
    }
}

impl MachineArgs {
    fn read(&self) -> Result<(Machine, String), Failure> {
        let text = read_text(&self.config)?;
        let source = format!("file://{}", self.config.display());
        load_as(&text, &source, self.role.as_deref())
            .map_err(|findings| Failure::Findings { findings, lenient: false })
    }
}

fn read_text(path: &Path) -> Result<String, Problem> {
    let bytes = node_args::read_file(path)?;
    String::from_utf8(bytes).map_err(|_| {
        Problem::new(
            &tenon_core::codes::decode::BAD_ENCODING,
            format!("{} is not UTF-8", path.display()),
        )
    })
}

pub fn ignition(command: &IgnitionCommand) -> Outcome {
    let IgnitionCommand::Render(args) = command;
    let (machine, text) = args.machine.read()?;
    let mappings = args.mappings.as_deref().map(read_text).transpose()?;
    let catalogue = args.catalogue.as_deref().map(read_text).transpose()?;
    let remote = args.bin_url.as_deref().zip(args.bin_sha512.as_deref());
    let request = Request {
        machine: &machine,
        text: &text,
        spec: &args.spec,
        systemd: args.machine.systemd,
        os: match args.os {
            OsArg::Flatcar => Os::Flatcar,
            OsArg::Fcos => Os::FedoraCoreos,
            OsArg::Generic => Os::Generic,
        },
        binary: remote.map(|(url, sha512)| Remote { url, sha512 }),
        mappings: mappings.as_deref(),
        catalogue: catalogue.as_deref(),
    };
    let (config, warnings) = ignition::render(&request)
        .map_err(|findings| Failure::Findings { findings, lenient: false })?;
    output::tell_findings(&warnings, false);
    output::answer(&config)
}

pub fn units(command: &UnitsCommand, global: &Global) -> Outcome {
    let UnitsCommand::Render(args) = command;
    let (machine, _) = args.machine.read()?;
    let target = units::Target {
        role: machine.role,
        systemd: args.machine.systemd,
        binary: &args.binary,
        assets: units::Assets::of(&machine),
    };
    let units = units::render(&target);
    if let Some(directory) = &args.dir {
        for unit in &units {
            write(directory, unit)?;
        }
    }
    match (global.json(), &args.dir) {
        (true, _) => output::answer_json(&to_json(&units)),
        (false, Some(_)) => output::answer(&enabling(&units)),
        (false, None) => output::answer(&units.iter().map(shown).collect::<String>()),
    }
}

fn write(directory: &Path, unit: &Unit) -> Result<(), Problem> {
    let put = |path: PathBuf, text: &str| {
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| {
            Problem::new(&FILE_WRITE, format!("writing {}", path.display())).cause(error)
        })
    };
    put(directory.join(unit.name), &unit.body)?;
    for (name, text) in &unit.drop_ins {
        put(directory.join(format!("{}.d", unit.name)).join(name), text)?;
    }
    Ok(())
}

fn enabling(units: &[Unit]) -> String {
    let enabled = units.iter().filter(|unit| unit.enabled == Some(true)).map(|unit| unit.name);
    let names: Vec<&str> = enabled.collect();
    format!("{} units written\nsystemctl enable {}\n", units.len(), names.join(" "))
}

/// A unit as `systemctl cat` shows it.
fn shown(unit: &Unit) -> String {
    let mut text = format!("# {}\n{}\n", unit.name, unit.body);
    for (name, body) in &unit.drop_ins {
        text.push_str(&format!("# {}.d/{name}\n{body}\n", unit.name));
    }
    text
}

fn to_json(units: &[Unit]) -> serde_json::Value {
    let drop_ins = |unit: &Unit| {
        let list = unit.drop_ins.iter().map(|(name, text)| json!({"name": name, "contents": text}));
        list.collect::<Vec<_>>()
    };
    let list = units.iter().map(|unit| {
        json!({
            "name": unit.name, "enabled": unit.enabled, "contents": unit.body,
            "dropins": drop_ins(unit),
        })
    });
    json!({"schema": "tenon.units/1", "units": list.collect::<Vec<_>>()})
}
