//! `cargo xtask instances`: the table of instance types inside the binary.
//!
//! One parser for three sources, so that the same data gives the same bytes whoever delivers it.
//! The result is checked in and reviewed by its diff; nothing is ever removed by itself.

mod judge;
mod overlay;
mod report;
mod row;
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tenon_core::max_pods::Table;

const TABLE: &str = "crates/tenon-core/src/max_pods/instances.tsv";
const OVERLAY: &str = "xtask/data/instances.overlay.tsv";

/// The text stays reviewable and the binary small.
const SIZE_WARNING: usize = 96 * 1024;
const SIZE_LIMIT: usize = 128 * 1024;

#[derive(clap::Args)]
pub struct Args {
    /// Where the descriptions come from
    #[arg(long, value_enum)]
    source: SourceKind,
    /// Saved output of DescribeInstanceTypes, plain or gzipped (source file)
    #[arg(required_if_eq("source", "file"))]
    file: Option<PathBuf>,
    /// Regions to ask, merged (source aws)
    #[arg(long, value_delimiter = ',', default_value = "us-east-1,us-west-2,eu-central-1")]
    regions: Vec<String>,
    /// Every region that the account can use (source aws)
    #[arg(long)]
    all_regions: bool,
    /// What the head of the table says about a file, such as `moto 5.2.5`
    #[arg(long)]
    label: Option<String>,
    /// A running moto server; without it the task starts one
    #[arg(long)]
    endpoint: Option<String>,
    /// The version of moto to install and start
    #[arg(long, default_value = "5.2.5")]
    moto_version: String,
    #[arg(long, default_value = OVERLAY)]
    overlay: PathBuf,
    /// Date for the head of the table; without it the present date stays
    #[arg(long)]
    date: Option<String>,
    /// Compare with the table that is checked in instead of writing it
    #[arg(long)]
    check: bool,
    /// Write what changes to this file
    #[arg(long)]
    report: Option<PathBuf>,
    /// Compare with the CNI project's public list (needs go and the network)
    #[arg(long)]
    judge: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum SourceKind {
    /// Signed calls with the AWS_* variables of the environment
    Aws,
    /// The same calls against a moto server
    Moto,
    /// Saved output of any client
    File,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let path = crate::checkout().join(TABLE);
    let present = fs::read_to_string(&path).with_context(|| format!("reading {TABLE}"))?;
    let before = Table::parse(&present).map_err(|error| anyhow::anyhow!("{TABLE}: {error:?}"))?;
    let (label, described) = describe(args)?;
    let mut rows = rows(&described)?;
    let overlay_path = crate::checkout().join(&args.overlay);
    let overlay_text = fs::read_to_string(&overlay_path).context("reading the overlay")?;
    overlay::apply(&overlay_text, &mut rows)?;
    refuse_vanished(before, &rows)?;
    let date = args.date.as_deref().unwrap_or(before.head().date);
    let text = compose(&label, date, &rows)?;
    let after = Table::parse(&text).map_err(|error| anyhow::anyhow!("new table: {error:?}"))?;
    if let Some(file) = &args.report {
        fs::write(file, report::markdown(before, after)).context("writing the report")?;
    }
    if args.judge {
        eprint!("{}", judge::compare(after)?);
    }
    match args.check {
        true if text != present => {
            bail!("{TABLE} differs; run without --check and review the diff")
        }
        true => Ok(()),
        false => fs::write(&path, text).with_context(|| format!("writing {TABLE}")),
    }
}

/// What the head says about the source, and the descriptions.
fn describe(args: &Args) -> anyhow::Result<(String, Vec<Value>)> {
    match (args.source, &args.file) {
        (SourceKind::File, Some(file)) => {
            Ok((args.label.clone().unwrap_or("file".into()), source::file(file)?))
        }
        (SourceKind::File, None) => bail!("--source file needs a file"),
        (SourceKind::Aws, _) => {
            let regions = match args.all_regions {
                true => source::all_regions()?,
                false => args.regions.clone(),
            };
            let mut described = Vec::new();
            for region in &regions {
                described.extend(source::aws(region)?);
            }
            Ok((format!("aws {}", regions.join(",")), described))
        }
        (SourceKind::Moto, _) => {
            let label = format!("moto {}", args.moto_version);
            if let Some(endpoint) = &args.endpoint {
                return Ok((label, source::moto(endpoint)?));
            }
            let server = source::MotoServer::start(&args.moto_version)?;
            Ok((label, source::moto(&server.endpoint)?))
        }
    }
}

/// Lines by name. The same type described twice (two regions) must be described alike.
fn rows(described: &[Value]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    for entry in described {
        let (name, line) = row::line(entry)?;
        match rows.get(&name) {
            Some(other) if *other != line => {
                bail!("two descriptions of {name} disagree:\n{other}\n{line}")
            }
            _ => rows.insert(name, line),
        };
    }
    Ok(rows)
}

/// A removal is never automatic: a type that vanished from the API moves to the overlay.
fn refuse_vanished(before: Table<'_>, rows: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let vanished: Vec<&str> =
        before.rows().map(|row| row.name).filter(|name| !rows.contains_key(*name)).collect();
    if !vanished.is_empty() {
        bail!("no longer listed: {}; move their rows to the overlay", vanished.join(" "));
    }
    Ok(())
}

fn compose(label: &str, date: &str, rows: &BTreeMap<String, String>) -> anyhow::Result<String> {
    if !is_date(date) {
        bail!("give the date of the table as --date YYYY-MM-DD");
    }
    let body: String = rows.values().map(|line| format!("{line}\n")).collect();
    let hash: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(
        "# tenon-instances 1\n# source {label}\n# date {date}\n# types {}\n# rows-sha256 {hash}\n{body}",
        rows.len()
    );
    if text.len() > SIZE_LIMIT {
        bail!("the table has {} bytes, and the budget is {SIZE_LIMIT}", text.len());
    }
    if text.len() > SIZE_WARNING {
        eprintln!("warning: the table has {} bytes; the budget is {SIZE_LIMIT}", text.len());
    }
    Ok(text)
}

/// `2026-11-15`
fn is_date(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00"
}

#[cfg(test)]
mod tests;
