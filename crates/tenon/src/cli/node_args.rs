//! Arguments that `init`, `plan` and `rehearse` share.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use tenon_core::codes;
use tenon_core::config::AwsApi;
use tenon_core::facts::Facts;
use tenon_core::plan::FAST_IMAGE_PULL;
use tenon_core::plan::diff::Unplanned;
use tenon_core::problem::{Place, Problem};
use tenon_host::gather::environment::Environment;
use tenon_host::job::{Order, Prepared, Refusal};
use tenon_host::root::Root;

use super::Global;
use crate::output::{self, Failure};

/// Facts, user data and fault scripts are far smaller.
const LARGEST_FILE: u64 = 8 << 20;

/// Where the config comes from and how the facts are gathered.
#[derive(Debug, Clone, clap::Args)]
pub struct NodeArgs {
    /// Source of configuration, in order: imds://user-data, file://PATH,
    /// a path, a directory, or - for standard input
    #[arg(short = 'c', long = "config-source", value_name = "SOURCE")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub config_source: Vec<String>,
    /// Read and write the merged config and facts here
    #[arg(long, value_name = "PATH")]
    pub config_cache: Option<String>,
    /// Limit which daemons are configured and started ("" for none)
    #[arg(short = 'd', long = "daemon", value_name = "NAME")]
    pub daemon: Vec<String>,
    /// Longest wait for the metadata service
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = duration)]
    pub imds_timeout: Duration,
    /// When EC2 and EKS may be asked; overrides spec.aws.api
    #[arg(long, value_enum, value_name = "WHEN")]
    pub aws_api: Option<AwsApiArg>,
    /// Write the wider file modes that nodeadm writes
    #[arg(long)]
    pub file_mode_compat: bool,
}

/// A phase that `--skip` leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    Config,
    Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AwsApiArg {
    Never,
    #[value(name = "ifNeeded")]
    IfNeeded,
    Verify,
}

impl Default for NodeArgs {
    /// What a command line without any of these arguments means.
    fn default() -> Self {
        NodeArgs {
            config_source: Vec::new(),
            config_cache: None,
            daemon: Vec::new(),
            imds_timeout: Duration::from_secs(120),
            aws_api: None,
            file_mode_compat: false,
        }
    }
}

impl NodeArgs {
    /// The order that these arguments give.
    pub fn order(&self, global: &Global) -> Result<Order, Problem> {
        let aws_api = self.aws_api.map(|when| match when {
            AwsApiArg::Never => AwsApi::Never,
            AwsApiArg::IfNeeded => AwsApi::IfNeeded,
            AwsApiArg::Verify => AwsApi::Verify,
        });
        let daemons = self.daemon.iter().filter(|name| !name.is_empty()).cloned().collect();
        Ok(Order {
            sources: self.config_source.clone(),
            facts: global.facts.as_deref().map(read_facts).transpose()?,
            cache: self.config_cache.as_deref().map(|path| node_path(path, global)),
            environment: Environment::of_process(),
            imds_timeout: self.imds_timeout,
            aws_api,
            api_attempts: None,
            file_mode_compat: self.file_mode_compat,
            daemons: (!self.daemon.is_empty()).then_some(daemons),
            reset_identity: false,
            mount_bpf: false,
        })
    }
}

impl NodeArgs {
    /// A plan of some daemons only must leave the files of the others alone.
    pub fn unplanned(&self) -> Unplanned {
        match self.daemon.is_empty() {
            true => Unplanned::Remove,
            false => Unplanned::Keep,
        }
    }
}

/// A path that is written on the node: below `--root`, or as the shell means it on this machine.
pub fn node_path(path: &str, global: &Global) -> String {
    match std::path::absolute(path) {
        Ok(absolute) if global.root == Path::new("/") => absolute.display().to_string(),
        _ => path.to_owned(),
    }
}

/// Opens `--root`.
pub fn open_root(global: &Global) -> Result<Root, Problem> {
    Root::open(&global.root).map_err(|error| {
        let what = format!("opening the root {}", global.root.display());
        Problem::new(&codes::host::FILE_READ, what)
            .cause(error)
            .fix("name a directory that exists with --root")
    })
}

/// Reads a file that an argument names; none of them has a reason to be larger than the bound.
pub fn read_file(path: &Path) -> Result<Vec<u8>, Problem> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > LARGEST_FILE {
            true => Err(io::Error::from(io::ErrorKind::FileTooLarge)),
            false => Ok(bytes),
        }
    };
    read().map_err(|error| {
        Problem::new(&codes::host::FILE_READ, format!("reading {}", path.display())).cause(error)
    })
}

/// Reads the facts of a machine from a file.
pub fn read_facts(path: &Path) -> Result<Facts, Problem> {
    let bytes = read_file(path)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let place = Place {
            source: path.display().to_string(),
            line: u32::try_from(error.line()).unwrap_or(u32::MAX),
            column: u32::try_from(error.column()).unwrap_or(u32::MAX),
            ..Place::default()
        };
        Problem::new(&codes::facts::FACTS_FILE, "the facts file does not hold facts")
            .at(place)
            .cause(without_value(&error.to_string()))
    })
}

/// What serde says about a value of a wrong type, without the value: `expected u32 at …`.
fn without_value(message: &str) -> &str {
    match message.rfind("expected ") {
        Some(at) if message.starts_with("invalid ") => &message[at..],
        _ => message,
    }
}

/// Tells what was found but does not stop the run.
pub fn tell_warnings(prepared: &Prepared) {
    for note in &prepared.loaded.notes {
        tracing::info!("{note}");
    }
    for reason in prepared.plan.reasons.get(FAST_IMAGE_PULL).into_iter().flatten() {
        tracing::info!("{FAST_IMAGE_PULL} {}", reason.text);
    }
    output::tell_findings(&prepared.loaded.findings, true);
    output::tell_findings(&prepared.plan.findings, true);
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Problem(problem) => Failure::Problem(problem),
            Refusal::Findings { findings, lenient } => Failure::Findings { findings, lenient },
        }
    }
}

/// Reads `90`, `90s`, `500ms` or `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "a time such as 90s, 500ms or 2m".to_owned())?;
    match unit {
        "" | "s" => Ok(Duration::from_secs(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        _ => Err("a time such as 90s, 500ms or 2m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        node: NodeArgs,
    }

    #[test]
    fn the_default_is_the_empty_command_line() {
        let parsed = Line::try_parse_from(["tenon"]).unwrap().node;
        assert_eq!(format!("{parsed:?}"), format!("{:?}", NodeArgs::default()));
    }

    #[test]
    fn durations() {
        for (text, expected) in [
            ("90", Some(Duration::from_secs(90))),
            ("90s", Some(Duration::from_secs(90))),
            ("500ms", Some(Duration::from_millis(500))),
            ("2m", Some(Duration::from_secs(120))),
            ("2h", None),
            ("", None),
            ("s", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(duration(text).ok(), expected, "{text}");
        }
    }
}
