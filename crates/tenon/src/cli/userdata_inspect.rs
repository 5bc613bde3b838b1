//! `tenon userdata inspect`: the tree of what user data holds, and its effective settings.

use tenon_core::userdata::inspect::report;

use super::Global;
use super::userdata_source::SourceArgs;
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Show values that look like secrets
    #[arg(long)]
    show_secrets: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let root = args.source.read()?;
    let report = report(&root);
    match global.json() {
        true => output::answer_json(&report.to_json(args.show_secrets)),
        false => output::answer(&report.to_text(args.show_secrets)),
    }
}
