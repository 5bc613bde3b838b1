//! `tenon image manifest`: what is in a root, as a manifest and as a bill of materials.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use tenon_core::codes::usage::BAD_USAGE;
use tenon_core::image::manifest::{self, Build};
use tenon_core::image::sbom;
use tenon_core::problem::Problem;
use tenon_host::image::cache::Cache;
use tenon_host::image::{manifest as look, verify};
use tenon_host::stop;

use super::{choice, findings, open};
use crate::output::{self, Outcome};

const MANIFEST: &str = "/usr/lib/tenon/image/manifest.json";
const RELEASE: &str = "/etc/eks/release";
/// What this program is linked from; `cargo xtask deps` holds it to the lock file.
const CRATES: &str = include_str!("crates.tsv");

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon image manifest --root /mnt/image > manifest.json
  tenon image manifest --root /mnt/image --sbom cyclonedx > sbom.cdx.json
  SOURCE_DATE_EPOCH=1700000000 tenon image manifest --root / --print-only

Writes usr/lib/tenon/image/manifest.json, the bill beside it and etc/eks/release
into the root, and prints what was asked for. With SOURCE_DATE_EPOCH the same
root gives the same bytes. The plan is the one that apply left in the root.
What a root cannot tell is null: give --cache for the origin of packages that
were installed from it, --source-image for the image that the build began with.")]
pub struct Args {
    /// Root file system to look into
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// The plan that the root was made from
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Make a bill of materials, too, and print that
    #[arg(long, value_enum, value_name = "spdx|cyclonedx")]
    sbom: Option<Bill>,
    /// Directory that fetch filled; its lists tell the origin of packages
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The image that the build machine was started from
    #[arg(long, value_name = "NAME")]
    source_image: Option<String>,
    /// Write nothing into the root
    #[arg(long)]
    print_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bill {
    Spdx,
    Cyclonedx,
}

pub fn run(args: &Args) -> Outcome {
    // Without the handlers a signal ends the process; files are written whole or not at all.
    let _ = stop::listen();
    let root = open(&args.root)?;
    let plan = match &args.plan {
        Some(path) => choice::read(path)?,
        None => verify::plan_of(&root).map_err(findings)?,
    };
    let cache = args.cache.as_deref().map(Cache::open).transpose()?;
    let found = look::gather(&plan, &root, cache.as_ref())?;
    let build = Build {
        version: env!("CARGO_PKG_VERSION"),
        // `cargo xtask dist` sets it, from a checkout without changes.
        commit: option_env!("TENON_COMMIT"),
        epoch: epoch()?,
        source_image: args.source_image.as_deref(),
    };
    let manifest = manifest::render(&plan, &found, &build);
    let bill = args.sbom.map(|bill| match bill {
        Bill::Spdx => ("/usr/lib/tenon/image/sbom.spdx.json", sbom::spdx(&manifest, CRATES)),
        Bill::Cyclonedx => {
            ("/usr/lib/tenon/image/sbom.cdx.json", sbom::cyclonedx(&manifest, CRATES))
        }
    });
    if !args.print_only {
        let mut files = vec![
            (MANIFEST, format!("{manifest:#}\n")),
            (RELEASE, manifest::release_words(&manifest)),
        ];
        files.extend(bill.iter().map(|(path, bill)| (*path, format!("{bill:#}\n"))));
        look::leave(&plan, &root, &files)?;
    }
    output::answer_json(bill.as_ref().map_or(&manifest, |(_, bill)| bill))
}

/// The time of the build: the one that is given, or now.
fn epoch() -> Result<i64, Problem> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().map_err(|_| {
            let what = "SOURCE_DATE_EPOCH is no whole number of seconds";
            Problem::new(&BAD_USAGE, what).fix("give seconds since 1970, or unset it")
        }),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
        }
    }
}
