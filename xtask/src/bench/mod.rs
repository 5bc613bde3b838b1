//! `cargo xtask bench`: what Tenon costs, beside the floor of the machine it was measured on.
//!
//! The rows take turns (A B C, A B C, …), so that a busy moment hits all of them. Times are
//! printed, never asserted; tests assert counts.

pub mod measure;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use tenon_host::rehearsal::SAMPLE;
use tenon_host::simulator::Simulator;
use tenon_host::simulator::faults::{Faults, Rule};
use tenon_host::simulator::machine::{self, MachineProfile};
use tenon_host::simulator::profile::Profile;

use self::measure::Cost;
use crate::{checkout, dist};

const RESULTS: &str = "benches/results.json";
const README: &str = "README.md";
const BEGIN: &str = "<!-- bench: begin -->";
const END: &str = "<!-- bench: end -->";
/// How much later each metadata answer comes in the row that shows the rounds.
const DELAY_MS: u64 = 5;

#[derive(clap::Args)]
pub struct Args {
    /// Rounds; each runs every row once
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// A directory on a disk, for the durable row
    #[arg(long, default_value = "target")]
    disk: PathBuf,
    /// Write the results and the table of the README
    #[arg(long)]
    save: bool,
}

/// One thing that is measured.
struct Row {
    name: &'static str,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    /// Makes the scene of one run.
    before: Box<dyn Fn() -> anyhow::Result<()>>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let tenon = dist::build()?.display().to_string();
    let launcher = std::env::current_exe()?;
    let plain = simulator(0)?;
    let slow = simulator(DELAY_MS)?;
    let memory = tempfile::tempdir_in("/dev/shm").context("a tmpfs at /dev/shm")?;
    let disk = tempfile::tempdir_in(&args.disk)?;
    let rows = rows(&tenon, &plain, &slow, memory.path(), disk.path())?;
    let mut costs: Vec<Vec<Cost>> = rows.iter().map(|_| Vec::new()).collect();
    for round in 1..=args.rounds {
        eprint!("\rround {round} of {}", args.rounds);
        for (row, costs) in rows.iter().zip(&mut costs) {
            (row.before)()?;
            costs.push(measure::once(&launcher, &row.argv, &row.env)?);
        }
    }
    eprintln!();
    let results = summarise(&rows, &costs, args.rounds)?;
    let table = table(&results)?;
    print!("{table}");
    if args.save {
        std::fs::create_dir_all(checkout().join("benches"))?;
        std::fs::write(checkout().join(RESULTS), format!("{results:#}\n"))?;
        save_table(&table)?;
    }
    Ok(())
}

fn simulator(delay_ms: u64) -> anyhow::Result<Simulator> {
    let profile = Profile::new("m6i.large").with_user_data(SAMPLE.as_bytes());
    let faults = match delay_ms {
        0 => Faults::default(),
        delay_ms => Faults::of([Rule { delay_ms, ..Rule::on("*") }]),
    };
    Ok(Simulator::start(&profile, faults)?)
}

fn rows(
    tenon: &str,
    plain: &Simulator,
    slow: &Simulator,
    memory: &Path,
    disk: &Path,
) -> anyhow::Result<Vec<Row>> {
    let settled = memory.join("settled");
    stage(&settled)?;
    let still = || Box::new(|| Ok(())) as Box<dyn Fn() -> anyhow::Result<()>>;
    let simple = |name, words: &[&str]| Row {
        name,
        argv: std::iter::once(tenon).chain(words.iter().copied()).map(str::to_owned).collect(),
        env: Vec::new(),
        before: still(),
    };
    let init = |name, root: PathBuf, simulator: &Simulator, fresh: bool| {
        let argv =
            [tenon, "--quiet", "init", "--skip", "run", "--root", &root.display().to_string()]
                .map(str::to_owned)
                .to_vec();
        let env = vec![("AWS_EC2_METADATA_SERVICE_ENDPOINT".to_owned(), simulator.endpoint())];
        let before: Box<dyn Fn() -> anyhow::Result<()>> = match fresh {
            true => Box::new(move || stage(&root)),
            false => still(),
        };
        Row { name, argv, env, before }
    };
    Ok(vec![
        Row {
            name: "the machine's floor: `true`",
            argv: vec!["true".into()],
            env: vec![],
            before: still(),
        },
        simple("`tenon --version`", &["--version"]),
        init("config phase, tmpfs", memory.join("fresh"), plain, true),
        init("config phase, tmpfs, +5 ms per metadata answer", memory.join("slow"), slow, true),
        init("config phase, ext4, durable", disk.join("fresh"), plain, true),
        // Its first round builds the tree, all others find it as planned.
        init("second run, nothing to do", settled, plain, false),
        simple("`tenon max-pods m5.large`", &["max-pods", "m5.large"]),
        simple("`tenon max-pods '*'` (every type)", &["max-pods", "*"]),
        user_data(tenon, "user data of one group", &memory.join("one"), 1)?,
        user_data(tenon, "user data of 10,000 groups in one file", &memory.join("many"), 10_000)?,
    ])
}

/// Renders every group of a ClusterConfig with this many of them.
fn user_data(
    tenon: &str,
    name: &'static str,
    directory: &Path,
    groups: usize,
) -> anyhow::Result<Row> {
    std::fs::create_dir_all(directory)?;
    let file = directory.join("cluster.yaml");
    let mut text = String::from(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\n\
         metadata: {name: ironman-2022, region: eu-west-1, version: \"1.32\"}\nnodeGroups:\n",
    );
    for number in 0..groups {
        writeln!(text, "- {{name: g{number:05}, labels: {{team: web}}, maxPodsPerNode: 58}}")?;
    }
    std::fs::write(&file, text)?;
    let facts = checkout().join("docs/examples/cluster.json");
    let (file, facts, out) = (file.display(), facts.display(), directory.join("out"));
    let words = format!(
        "{tenon} --quiet userdata render -f {file} --cluster-json {facts} --out-dir {}",
        out.display()
    );
    let argv = words.split(' ').map(str::to_owned).collect();
    Ok(Row { name, argv, env: Vec::new(), before: Box::new(|| Ok(())) })
}

/// A machine that was never bootstrapped.
fn stage(root: &Path) -> anyhow::Result<()> {
    if root.exists() {
        std::fs::remove_dir_all(root)?;
    }
    let profile = Profile::new("m6i.large");
    let machine = MachineProfile {
        cpus: 2,
        memory_mib: 8192,
        kubelet_version: "v1.34.1".into(),
        containerd_version: "2.1.4".into(),
        hostname: profile.hostname,
        mac: profile.mac,
        nvidia: false,
    };
    Ok(machine::populate(root, &machine)?)
}

fn summarise(rows: &[Row], costs: &[Vec<Cost>], rounds: usize) -> anyhow::Result<Value> {
    let mut list = Vec::new();
    for (row, costs) in rows.iter().zip(costs) {
        let mut walls: Vec<_> = costs.iter().map(|cost| cost.wall_us).collect();
        walls.sort_unstable();
        let least = |pick: fn(&Cost) -> u64| costs.iter().map(pick).min().unwrap_or(0);
        list.push(json!({
            "name": row.name,
            "wallMinUs": walls.first(),
            "wallMedianUs": walls.get(walls.len() / 2),
            "wallMaxUs": walls.last(),
            "cpuMinUs": least(|cost| cost.cpu_us),
            "memoryKib": costs.iter().map(|cost| cost.memory_kib).max(),
        }));
    }
    Ok(
        json!({"schema": "tenon.bench/1", "rounds": rounds, "machine": this_machine()?, "rows": list}),
    )
}

fn this_machine() -> anyhow::Result<Value> {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = text("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Ok(json!({
        "cores": std::thread::available_parallelism()?.get(),
        "cpu": model.map(|(_, name)| name),
        "kernel": text("/proc/sys/kernel/osrelease").trim(),
        "load": text("/proc/loadavg").split(' ').next(),
    }))
}

fn table(results: &Value) -> anyhow::Result<String> {
    let mut text = String::from(
        "| what | wall, min | wall, median | CPU, min | peak memory |\n|---|---|---|---|---|\n",
    );
    for row in results["rows"].as_array().context("rows")? {
        let ms = |key: &str| format!("{:.1} ms", row[key].as_f64().unwrap_or(0.0) / 1000.0);
        let mib = row["memoryKib"].as_f64().unwrap_or(0.0) / 1024.0;
        writeln!(
            text,
            "| {} | {} | {} | {} | {mib:.1} MiB |",
            row["name"].as_str().unwrap_or_default(),
            ms("wallMinUs"),
            ms("wallMedianUs"),
            ms("cpuMinUs"),
        )?;
    }
    let machine = &results["machine"];
    writeln!(
        text,
        "\n{} rounds, {} cores, {}, Linux {}, load {}.",
        results["rounds"],
        machine["cores"],
        machine["cpu"].as_str().unwrap_or("unknown CPU"),
        machine["kernel"].as_str().unwrap_or_default(),
        machine["load"].as_str().unwrap_or_default(),
    )?;
    Ok(text)
}

/// Puts the table between its marks in the README.
fn save_table(table: &str) -> anyhow::Result<()> {
    let path = checkout().join(README);
    let readme = std::fs::read_to_string(&path)?;
    let (before, rest) = readme.split_once(BEGIN).context("no mark for the table in the README")?;
    let (_, after) = rest.split_once(END).context("no end mark for the table in the README")?;
    std::fs::write(&path, format!("{before}{BEGIN}\n{table}{END}{after}"))?;
    Ok(())
}
