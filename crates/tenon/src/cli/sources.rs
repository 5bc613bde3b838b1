//! `--config-source`: which documents a command reads, and how they become a config.

use std::io;
use std::time::Duration;

use tenon_core::codes;
use tenon_core::config::{self, Loaded, Options};
use tenon_core::problem::{Finding, Problem};
use tenon_host::gather::environment::Environment;
use tenon_host::gather::imds::{self, Imds, Key};
use tenon_host::sources::{self, Inputs};

use super::Global;
use crate::output::Failure;

const NAME_A_FILE: &str =
    "name the config with --config-source FILE; without it the user data of the instance is read";

/// Longest wait for user data. Whoever checks a config sits in front of it, and may be on a
/// machine without a metadata service.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, clap::Args)]
pub struct SourceArgs {
    /// imds://user-data, file://PATH, a path, a directory, or - for standard
    /// input; repeatable, later ones win [default: imds://user-data]
    #[arg(short = 'c', long = "config-source", value_name = "SOURCE")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub config_source: Vec<String>,
}

impl SourceArgs {
    /// Reads and merges the sources. The error holds every finding of every source.
    pub fn load(&self, global: &Global, options: Options<'_>) -> Result<Loaded, Failure> {
        let mut stdin = io::stdin().lock();
        let mut ask = || user_data(global);
        let mut inputs = Inputs { user_data: &mut ask, stdin: &mut stdin };
        let sources = sources::read(&self.config_source, &mut inputs)?;
        match config::load(&sources.list, options) {
            Ok(mut loaded) => {
                loaded.findings = joined(sources.findings, loaded.findings);
                loaded.notes.iter().for_each(|note| tracing::info!("{note}"));
                Ok(loaded)
            }
            Err(findings) => Err(Failure::Findings {
                findings: joined(sources.findings, findings),
                lenient: false,
            }),
        }
    }
}

/// What was odd about reading the sources comes before what is odd inside them.
fn joined(mut first: Vec<Finding>, then: Vec<Finding>) -> Vec<Finding> {
    first.extend(then);
    first
}

/// Asks the metadata service for the user data. `--facts` forbids it.
fn user_data(global: &Global) -> Result<Option<Vec<u8>>, Problem> {
    if global.facts.is_some() {
        let what = "the source imds://user-data does not go with --facts";
        return Err(Problem::new(&codes::usage::BAD_USAGE, what)
            .why("--facts replays a machine without asking the metadata service")
            .fix(NAME_A_FILE));
    }
    let mut options = imds::Options::new(&Environment::of_process())?;
    options.patience.whole = PATIENCE;
    let mut values = Imds::new(options)
        .fetch(&[Key::optional(imds::USER_DATA)])
        .map_err(|problem| problem.fix(NAME_A_FILE))?;
    Ok(values.pop().flatten())
}
