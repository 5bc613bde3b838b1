//! Instructions of fixed commands on fixed inputs, counted by valgrind: what the code costs, on any
//! machine and however busy it is. A budget is kept in the repository; going beyond it fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::{checkout, dist, lab};

const BUDGET: &str = "benches/instructions.json";
/// How much more than its budget a command may take: what another compiler or processor changes.
const TOLERANCE_PERCENT: u64 = 3;
/// Config and facts of the commands.
const INPUTS: &str = "golden/user-toml-2-translated";
const CASES: &[(&str, &str)] = &[
    ("plan", "plan --facts facts.json -c config.yaml --root root --output json"),
    ("config check", "config check -c config.yaml"),
    ("max-pods", "max-pods m5.large --explain"),
];

#[derive(clap::Args)]
pub struct Args {
    /// Make what is counted now the budget
    #[arg(long)]
    save: bool,
}

/// `cargo xtask instructions`
pub fn run(args: &Args) -> anyhow::Result<()> {
    let tenon = dist::build()?;
    if args.save {
        let counts = count(&tenon)?;
        let text = serde_json::to_string_pretty(&counts)?;
        return Ok(fs::write(checkout().join(BUDGET), format!("{text}\n"))?);
    }
    check(&tenon).map(|_| ())
}

/// Counts every command and fails if one goes beyond its budget.
pub fn check(tenon: &Path) -> anyhow::Result<usize> {
    let budget = fs::read(checkout().join(BUDGET)).with_context(|| format!("reading {BUDGET}"))?;
    let budget: BTreeMap<String, u64> = serde_json::from_slice(&budget)?;
    let counts = count(tenon)?;
    ensure!(counts.keys().eq(budget.keys()), "{BUDGET} is of other commands; save it again");
    for (name, count) in &counts {
        let change = (*count as f64 / budget[name] as f64 - 1.0) * 100.0;
        println!("  {name:<14} {count:>12} instructions, {change:+.2} % of its budget");
    }
    let beyond = beyond(&counts, &budget);
    match beyond.is_empty() {
        true => Ok(counts.len()),
        false => bail!("{}; if it is worth it: cargo xtask instructions --save", beyond.join("; ")),
    }
}

/// The commands that take more than they may.
fn beyond(counts: &BTreeMap<String, u64>, budget: &BTreeMap<String, u64>) -> Vec<String> {
    let allowed = |name: &String| budget[name] + budget[name] * TOLERANCE_PERCENT / 100;
    let too_many = counts.iter().filter(|(name, count)| **count > allowed(name));
    let words = |(name, count): (&String, &u64)| {
        format!("{name}: {count} instructions, {} allowed", allowed(name))
    };
    too_many.map(words).collect()
}

/// Runs every command under valgrind. Only relative paths and an empty environment, so that no
/// name of this machine is counted.
fn count(tenon: &Path) -> anyhow::Result<BTreeMap<String, u64>> {
    let desk = tempfile::tempdir()?;
    for name in ["config.yaml", "facts.json"] {
        let copied = fs::copy(checkout().join(INPUTS).join(name), desk.path().join(name));
        copied.with_context(|| format!("copying {name} of {INPUTS}"))?;
    }
    fs::create_dir(desk.path().join("root"))?;
    fs::copy(tenon, desk.path().join("tenon"))?;
    let valgrind = lab::VALGRIND.ready(&lab::cache_directory()?)?;
    let mut counts = BTreeMap::new();
    for (name, words) in CASES {
        counts.insert((*name).to_owned(), instructions(&valgrind, desk.path(), words)?);
    }
    Ok(counts)
}

fn instructions(valgrind: &Path, desk: &Path, words: &str) -> anyhow::Result<u64> {
    let output = Command::new(valgrind.join("usr/bin/valgrind"))
        .current_dir(desk)
        .env_clear()
        .env("VALGRIND_LIB", valgrind.join("usr/libexec/valgrind"))
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "./tenon", "--quiet"])
        .args(words.split(' '))
        .output()
        .context("starting valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // 2 is the answer that there are changes.
    let ended = output.status.code();
    ensure!(matches!(ended, Some(0 | 2)), "tenon {words}: {}\n{said}", output.status);
    let line = said.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) =
        line.with_context(|| format!("no count in the answer of valgrind:\n{said}"))?;
    Ok(count.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_percent_more_pass_and_one_instruction_beyond_does_not() {
        let of = |count: u64| BTreeMap::from([("plan".to_owned(), count)]);
        assert!(beyond(&of(1030), &of(1000)).is_empty());
        assert_eq!(beyond(&of(1031), &of(1000)), ["plan: 1031 instructions, 1030 allowed"]);
    }

    #[test]
    fn the_kept_budget_is_of_these_commands() {
        let budget = fs::read(checkout().join(BUDGET)).unwrap();
        let budget: BTreeMap<String, u64> = serde_json::from_slice(&budget).unwrap();
        let mut names: Vec<_> = CASES.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert!(budget.keys().eq(names), "cargo xtask instructions --save");
    }
}
