//! `tenon userdata merge`: the user's own data and generated data as one.

use std::path::PathBuf;

use serde_json::json;
use tenon_core::codes::inspect::MERGE_PLACE;
use tenon_core::problem::{Finding, Problem};
use tenon_core::userdata::Family;
use tenon_core::userdata::inspect::merge::{Options, Placement, merge};

use super::Global;
use super::userdata::print;
use super::userdata_source::bytes;
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Generated user data; - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Your own user data
    #[arg(long, value_name = "FILE")]
    custom: PathBuf,
    /// Operating system line of the image, such as AmazonLinux2023
    #[arg(long, value_name = "FAMILY")]
    family: String,
    /// Put your parts after the generated ones
    #[arg(long, conflicts_with = "ours")]
    custom_last: bool,
    /// Where the generated parts go: first, last or after:NAME
    #[arg(long, value_name = "PLACE")]
    ours: Option<String>,
    /// The generated file wins where both write one (Ignition)
    #[arg(long)]
    force: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let family = Family::parse(&args.family)?;
    let options = Options { family, ours: args.placement()?, force: args.force };
    let (custom, ours) = (bytes(&args.custom)?, bytes(&args.file)?);
    let merged = merge(&custom, &ours, &options).map_err(|problems| Failure::Findings {
        findings: problems.into_iter().map(Finding::error).collect(),
        lenient: false,
    })?;
    if global.json() {
        let text = String::from_utf8(merged.bytes).ok();
        let answer = json!({"userData": text, "replaced": merged.replaced, "notes": merged.notes});
        return output::answer_json(&answer);
    }
    merged.notes.iter().for_each(|note| output::tell(&format!("note: {note}\n")));
    print(&merged.bytes)
}

impl Args {
    fn placement(&self) -> Result<Placement, Problem> {
        match self.ours.as_deref() {
            None if self.custom_last => Ok(Placement::First),
            None | Some("last") => Ok(Placement::Last),
            Some("first") => Ok(Placement::First),
            Some(other) => match other.strip_prefix("after:") {
                Some(name) => Ok(Placement::After(name.to_owned())),
                None => Err(Problem::new(&MERGE_PLACE, "--ours takes first, last or after:NAME")),
            },
        }
    }
}
