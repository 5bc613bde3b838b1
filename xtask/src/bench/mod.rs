//! `cargo xtask bench`: what Tenon costs, beside the tools that do the same work and the floor of
//! the machine that all of them were measured on.
//!
//! The rows take turns (A B C, A B C, …), so that a busy moment hits all of them. Times are
//! printed, never asserted; tests assert counts.

mod chart;
pub mod measure;
mod nodeadm;
mod report;
mod rows;

use std::path::PathBuf;

use self::measure::{Cost, Counts};
use self::rows::{Row, Stand};
use crate::{checkout, dist};

const RESULTS: &str = "benches/results.json";
const CHART: &str = "docs/bench.svg";

#[derive(clap::Args)]
pub struct Args {
    /// Rounds; each runs every row once
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// A directory on an ext4 disk, for the scenes on disk
    #[arg(long, default_value = "target")]
    disk: PathBuf,
    /// Measure the tools that do the same work, and nothing else
    #[arg(long)]
    peers: bool,
    /// Write the results, the chart and the table of the README
    #[arg(long)]
    save: bool,
}

/// A row with everything that was measured of it.
pub struct Measured {
    pub row: Row,
    /// One for each round.
    pub costs: Vec<Cost>,
    pub counts: Counts,
    /// Requests to the metadata service in one run.
    pub requests: usize,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let stand = Stand::new(&dist::build()?, &args.disk)?;
    let launcher = std::env::current_exe()?;
    let (mut rows, absent) = stand.peers();
    for (peer, reason) in &absent {
        println!("{peer} is absent: {reason}");
    }
    if !args.peers {
        rows.extend(stand.own()?);
    }
    let mut measured = Vec::new();
    for row in rows {
        measured.push(count(&stand, row)?);
    }
    for round in 1..=args.rounds {
        eprint!("\rround {round} of {}", args.rounds);
        for row in &mut measured {
            row.costs.push(measure::once(&launcher, &row.row)?);
        }
    }
    eprintln!();
    let results = report::results(&measured, &absent, args.rounds)?;
    let table = report::table(&results)?;
    print!("{table}");
    if args.save {
        std::fs::write(checkout().join(RESULTS), format!("{results:#}\n"))?;
        std::fs::write(checkout().join(CHART), chart::draw(&results)?)?;
        report::save_table(&table)?;
    }
    Ok(())
}

/// Counts one row; what its two runs asked of the metadata service is alike.
fn count(stand: &Stand, row: Row) -> anyhow::Result<Measured> {
    let asked = || row.scene.map_or(0, |scene| stand.service(scene).log().len());
    let before = asked();
    let counts = measure::count(&row)?;
    let requests = (asked() - before) / 2;
    Ok(Measured { costs: Vec::new(), counts, requests, row })
}
