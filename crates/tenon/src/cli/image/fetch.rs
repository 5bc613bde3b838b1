//! `tenon image fetch`: the only step that uses the network.

use std::path::PathBuf;

use serde_json::json;
use tenon_host::image::cache::Cache;
use tenon_host::image::fetch;
use tenon_host::stop;

use super::choice::Choice;
use super::open;
use crate::cli::Global;
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon image fetch --plan plan.json --root /mnt/image --cache /var/cache/tenon
  tenon image fetch --plan plan.json --cache cache --downloads-only

Files are kept under their sha256 and packages in the form of their manager, so
that `apply --offline` needs no network. A fetch that was stopped goes on where
it stopped. Exit 10: refused, or not the content that the plan pins.")]
pub struct Args {
    #[command(flatten)]
    choice: Choice,
    /// Directory that keeps what was fetched
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
    /// Leave packages out: they can only be chosen for a root
    #[arg(long)]
    downloads_only: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    // Without the handlers a signal ends the process: nothing is lost by that here.
    let _ = stop::listen();
    let root = open(&global.root)?;
    let plan = args.choice.plan(&root)?;
    let cache = Cache::open(&args.cache)?;
    let fetched = fetch::fetch(&plan, (!args.downloads_only).then_some(&root), &cache)?;
    if global.json() {
        return output::answer_json(&json!({
            "schema": "tenon.image-fetch/1",
            "changed": !fetched.files.is_empty() || !fetched.packages.is_empty(),
            "files": fetched.files,
            "had": fetched.had,
            "bytes": fetched.bytes,
            "packages": fetched.packages,
        }));
    }
    output::answer(&format!(
        "{} files fetched, {:.1} MB; {} were there; {} packages with what they need\n",
        fetched.files.len(),
        fetched.bytes as f64 / 1e6,
        fetched.had,
        fetched.packages.len()
    ))
}
