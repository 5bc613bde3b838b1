//! `tenon config`: check, dump, schema, convert.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};
use tenon_core::config::{self, Dumped, Kind, Loaded, Options, legacy};
use tenon_core::problem::{Finding, Place, Problem};
use tenon_core::stages::machine;
use tenon_core::{codes, words, yaml};
use tenon_host::job::cache;

use super::sources::SourceArgs;
use super::{Global, node_args};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find every mistake, with its place and the way to mend it
    ///
    /// Example: tenon config check -c node.yaml
    Check(CheckArgs),
    /// Print the merged config as one line of JSON
    ///
    /// Example: tenon config dump -c a.yaml -c b.yaml --origins
    Dump(DumpArgs),
    /// Print the JSON Schema of the config
    ///
    /// Example: tenon config schema --kind tenon.dev
    Schema(SchemaArgs),
    /// Rewrite a config as the other kind, or bootstrap.sh arguments as a config
    ///
    /// Example: tenon config convert -c node.yaml --kind tenon.dev
    Convert(ConvertArgs),
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    #[command(flatten)]
    sources: SourceArgs,
    /// Count what nodeadm accepts and ignores as warnings
    #[arg(long)]
    lenient: bool,
}

#[derive(Debug, clap::Args)]
struct DumpArgs {
    #[command(flatten)]
    sources: SourceArgs,
    /// Use this cache when no source holds a config
    #[arg(long, value_name = "PATH")]
    config_cache: Option<String>,
    /// Write to PATH (mode 0600) instead of standard output
    #[arg(short = 'o', long, value_name = "PATH")]
    config_output: Option<PathBuf>,
    /// node.eks.aws or tenon.dev [default: node.eks.aws if it fits]
    #[arg(long, value_parser = kind, value_name = "KIND")]
    kind: Option<Kind>,
    /// Add where each value was written
    #[arg(long)]
    origins: bool,
}

#[derive(Debug, clap::Args)]
struct SchemaArgs {
    /// node.eks.aws or tenon.dev [default: both in one schema]
    #[arg(long, value_parser = kind, value_name = "KIND")]
    kind: Option<Kind>,
    /// The schema of MachineConfig, the config of a staged first boot
    #[arg(long, conflicts_with = "kind")]
    machine: bool,
}

#[derive(Debug, clap::Args)]
struct ConvertArgs {
    #[command(flatten)]
    sources: SourceArgs,
    /// node.eks.aws or tenon.dev
    #[arg(long, value_parser = kind, value_name = "KIND", default_value = "tenon.dev")]
    kind: Kind,
    /// Convert these arguments of bootstrap.sh instead of a config
    #[arg(long, value_name = "LINE", allow_hyphen_values = true, conflicts_with = "config_source")]
    bootstrap_args: Option<String>,
    /// Leave out what the kind has no field for
    #[arg(long)]
    lossy: bool,
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::from_name(name).ok_or_else(|| "known kinds: node.eks.aws, tenon.dev".into())
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    match &args.command {
        Command::Check(args) => check_sources(&args.sources, args.lenient, global),
        Command::Dump(args) => dump(args, global),
        Command::Schema(args) if args.machine => output::answer_json(&config::machine_schema()),
        Command::Schema(args) => output::answer_json(&config::json_schema(args.kind)),
        Command::Convert(args) => convert(args, global),
    }
}

/// The one source, if it is a file that holds a MachineConfig.
fn machine_config(sources: &SourceArgs) -> Option<(String, String)> {
    let [source] = sources.config_source.as_slice() else { return None };
    let path = source.strip_prefix("file://").unwrap_or(source);
    let bytes = node_args::read_file(Path::new(path)).ok()?;
    let text = String::from_utf8(bytes).ok().filter(|text| machine::is_machine_config(text))?;
    Some((text, format!("file://{path}")))
}

/// Checks the sources: the answer of `config check` and of `validate FILE`.
pub fn check_sources(sources: &SourceArgs, lenient: bool, global: &Global) -> Outcome {
    if let Some((text, source)) = machine_config(sources) {
        machine::load(&text, &source)
            .map_err(|findings| Failure::Findings { findings, lenient: false })?;
        return valid(&[], lenient, global);
    }
    let loaded = sources.load(global, Options::default()).map_err(|failure| match failure {
        Failure::Findings { findings, .. } => Failure::Findings { findings, lenient },
        other => other,
    })?;
    let Loaded { findings, .. } = loaded;
    if findings.iter().any(|finding| finding.stops(lenient)) {
        return Err(Failure::Findings { findings, lenient });
    }
    valid(&findings, lenient, global)
}

fn valid(findings: &[Finding], lenient: bool, global: &Global) -> Outcome {
    match global.json() {
        false => {
            output::tell_findings(findings, lenient);
            output::answer(&match findings.len() {
                0 => "config is valid\n".to_owned(),
                1 => "config is valid, with 1 warning\n".to_owned(),
                count => format!("config is valid, with {count} warnings\n"),
            })
        }
        true => {
            let list: Vec<_> = findings.iter().map(|one| one.to_json(lenient)).collect();
            let schema = "tenon.configCheck/1";
            output::answer_json(&json!({"schema": schema, "result": "valid", "findings": list}))
        }
    }
}

fn dump(args: &DumpArgs, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    let path = args.config_cache.as_deref().map(|path| node_args::node_path(path, global));
    let cached = path.and_then(|path| cache::read(&root, &path));
    let loaded = args.sources.load(global, Options { cached: cached.as_ref(), partial: true })?;
    output::tell_findings(&loaded.findings, true);
    let dumped = match args.kind {
        Some(kind) => config::dump(&loaded.config, kind),
        None => config::dump_best(&loaded.config),
    };
    refuse_loss(&dumped)?;
    let answer = match args.origins {
        true => json!({
            "schema": "tenon.origins/1",
            "config": dumped.document,
            "origins": origins(&loaded),
        }),
        false => dumped.document,
    };
    match &args.config_output {
        Some(path) => write_private(path, &format!("{answer}\n")),
        None => output::answer(&format!("{answer}\n")),
    }
}

fn origins(loaded: &Loaded) -> Value {
    let place = |(path, place): (String, Place)| {
        let place = Place { path: String::new(), ..place };
        (path, json!(place.to_string()))
    };
    Value::Object(loaded.origins().into_iter().map(place).collect())
}

/// An error for each setting that the document could not carry.
fn refuse_loss(dumped: &Dumped) -> Outcome {
    if dumped.lost.is_empty() {
        return Ok(());
    }
    let finding = |path: &String| {
        let what = format!("`{path}` has no place in {}", dumped.kind.group());
        Finding::error(Problem::new(&codes::config::NOT_CARRIED, what).at(Place::field(path)))
    };
    let findings = dumped.lost.iter().map(finding).collect();
    Err(Failure::Findings { findings, lenient: false })
}

fn convert(args: &ConvertArgs, global: &Global) -> Outcome {
    if let Some(line) = &args.bootstrap_args {
        return convert_arguments(line, global);
    }
    let loaded = args.sources.load(global, Options { cached: None, partial: true })?;
    output::tell_findings(&loaded.findings, true);
    let dumped = config::dump(&loaded.config, args.kind);
    match refuse_loss(&dumped) {
        Err(Failure::Findings { findings, .. }) if args.lossy => {
            findings.iter().for_each(|one| output::tell(&one.problem.render("warning")));
        }
        other => other?,
    }
    print(&dumped.document, global)
}

/// Converts a `bootstrap.sh` line as far as the line alone decides; the rest is named.
fn convert_arguments(line: &str, global: &Global) -> Outcome {
    let split = words::split(line).map_err(|_| {
        let what = "the line has a quote without its partner";
        Problem::new(&codes::usage::BAD_USAGE, what).fix("close the quote")
    })?;
    let converted = legacy::convert(&split.words)
        .map_err(|findings| Failure::Findings { findings, lenient: false })?;
    output::tell_findings(&converted.findings, true);
    print(&converted.document, global)
}

fn print(document: &Value, global: &Global) -> Outcome {
    match global.json() {
        false => output::answer(&yaml::emit(document)),
        true => output::answer_json(document),
    }
}

/// Writes a file that only its owner can read: a config may hold secrets.
fn write_private(path: &Path, text: &str) -> Outcome {
    let write = || {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        file.set_permissions(private)?;
        file.write_all(text.as_bytes())
    };
    write().map_err(|error| {
        let what = format!("writing {}", path.display());
        Problem::new(&codes::host::FILE_WRITE, what).cause(error).into()
    })
}
