//! `tenon image apply`: makes a plan true on a root.

use std::path::PathBuf;

use tenon_core::codes::host::NO_SPACE;
use tenon_core::problem::Problem;
use tenon_host::image::apply::{self, Options};
use tenon_host::image::cache::Cache;
use tenon_host::image::fetch;
use tenon_host::stop;

use super::choice::Choice;
use super::open;
use crate::cli::Global;
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon image apply --root /mnt/image --plan plan.json --cache cache --offline
  tenon image apply --root / --profile base,cis --cache /var/cache/tenon

Only files below --root change, and programs run in namespaces of their own: the
running kernel is left alone unless --live is given. An apply that was stopped
is cured by running it again. Exit 6: this root cannot be that image; 10: the
cache lacks an entry, or it is not the pinned content.")]
pub struct Args {
    /// Root file system to change; / on a build instance
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// Directory that fetch filled
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Build of tenon that the image gets, for another processor or the node
    /// build [default: this program]
    #[arg(long, value_name = "FILE")]
    tenon: Option<PathBuf>,
    /// Do not fetch what the cache lacks
    #[arg(long)]
    offline: bool,
    /// Leave out packages and commands, which need programs of the root
    #[arg(long, conflicts_with = "live")]
    files_only: bool,
    /// Load settings and modules and start units now, too; only with --root /
    #[arg(long)]
    live: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    // Without the handlers a signal ends the process; running again is the cure.
    let _ = stop::listen();
    let root = open(&args.root)?;
    let plan = args.choice.plan(&root)?;
    let cache = args.cache.as_deref().map(Cache::open).transpose()?;
    if let (false, Some(cache)) = (args.offline, &cache) {
        fetch::fetch(&plan, (!args.files_only).then_some(&root), cache)?;
    }
    let probe = |_: &'static str| stop::check();
    let options = Options {
        cache: cache.as_ref(),
        live: args.live,
        files_only: args.files_only,
        probe: &probe,
    };
    let report = match &args.tenon {
        Some(tenon) => apply::apply_with(&plan, &root, options, tenon),
        None => apply::apply(&plan, &root, options),
    };
    let report = report.map_err(in_the_middle)?;
    if global.json() {
        return output::answer_json(&report.to_json());
    }
    let mut text = String::new();
    for name in &report.changed {
        text.push_str(&format!("  {name}\n"));
    }
    for effect in &report.live {
        text.push_str(&format!("  live {}: {} to {}\n", effect.name, effect.before, effect.after));
    }
    let (changed, unchanged) = (report.changed.len(), report.unchanged);
    let hash = output::short_hash(&report.plan_hash);
    let skipped = match report.skipped {
        0 => String::new(),
        count => format!(", {count} left out"),
    };
    output::answer(&format!(
        "{text}{changed} changed, {unchanged} held already{skipped}; plan {hash}\n"
    ))
}

/// An image is made item by item: unlike a node's config, it may be half done when a disk is full.
fn in_the_middle(problem: Problem) -> Problem {
    match problem.page.code == NO_SPACE.code {
        true => problem
            .why("the file system is full; what was made before stays, and no file is torn")
            .fix("make room and run again: it goes on where it stopped"),
        false => problem,
    }
}
