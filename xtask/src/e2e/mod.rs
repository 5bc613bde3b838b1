//! `cargo xtask e2e`: tests that need root, real programs of the host, or packages.
//!
//! Each layer says what it needs, installs it by name, and either runs, or says in one line why
//! this host cannot. A skip is never a pass; with `--no-skip` it is a failure.

mod kill;
mod lab;
mod units;
mod userdata;

use std::time::{Duration, Instant};

use anyhow::{Context, bail};

pub use lab::Lab;
pub use units::{InsideArgs, inside};

#[derive(clap::Args)]
pub struct Args {
    /// Layers to run; all if none is named
    layers: Vec<String>,
    /// List the layers
    #[arg(long)]
    list: bool,
    /// A layer that this host cannot run is a failure
    #[arg(long)]
    no_skip: bool,
}

/// One kind of end-to-end test.
struct Layer {
    name: &'static str,
    about: &'static str,
    /// Debian packages, and a program of each that shows it is there.
    packages: &'static [(&'static str, &'static str)],
    /// Why this host cannot run the layer, if it cannot.
    refuse: fn(&Lab) -> Option<String>,
    /// Gives the number of cases that passed.
    run: fn(&Lab) -> anyhow::Result<usize>,
}

const LAYERS: &[Layer] = &[
    Layer {
        name: "units",
        about: "a real systemd reads back every argument and variable that Tenon wrote",
        packages: &[("systemd", "systemctl")],
        refuse: units::refuse,
        run: units::run,
    },
    Layer {
        name: "kill",
        about: "apply is killed at every system call and cured by running again",
        packages: &[("strace", "strace")],
        refuse: kill::refuse,
        run: kill::run,
    },
    Layer {
        name: "userdata",
        about: "user data before cloud-init, Ignition, CloudFormation, shells and systemd",
        packages: &[("systemd", "systemd-analyze"), ("curl", "curl")],
        refuse: userdata::refuse,
        run: userdata::run,
    },
];

enum Verdict {
    Passed(usize),
    Skipped(String),
    Failed(anyhow::Error),
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.list {
        for layer in LAYERS {
            println!("{:<10} {}", layer.name, layer.about);
        }
        return Ok(());
    }
    let chosen = choose(&args.layers)?;
    let lab = Lab::open()?;
    let mut rows = Vec::new();
    for layer in chosen {
        println!("== {}: {}", layer.name, layer.about);
        let start = Instant::now();
        let verdict = run_layer(layer, &lab);
        rows.push((layer.name, verdict, start.elapsed()));
    }
    summary(&rows, args.no_skip)
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Layer>> {
    if names.is_empty() {
        return Ok(LAYERS.iter().collect());
    }
    let find = |name: &String| {
        LAYERS
            .iter()
            .find(|layer| layer.name == name)
            .with_context(|| format!("no layer `{name}`; `cargo xtask e2e --list` names them"))
    };
    names.iter().map(find).collect()
}

fn run_layer(layer: &Layer, lab: &Lab) -> Verdict {
    for (package, program) in layer.packages {
        if let Err(error) = lab.install(package, program) {
            return Verdict::Skipped(format!("{package} is not here: {error:#}"));
        }
    }
    if let Some(reason) = (layer.refuse)(lab) {
        return Verdict::Skipped(reason);
    }
    match (layer.run)(lab) {
        Ok(cases) => Verdict::Passed(cases),
        Err(error) => Verdict::Failed(error),
    }
}

fn summary(rows: &[(&str, Verdict, Duration)], no_skip: bool) -> anyhow::Result<()> {
    println!("\n{:<10} {:<8} {:>7}  note", "layer", "result", "seconds");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, verdict, time) in rows {
        let (word, note) = match verdict {
            Verdict::Passed(cases) => {
                passed += cases;
                ("passed", format!("{cases} cases"))
            }
            Verdict::Skipped(reason) => {
                skipped += 1;
                ("SKIP", reason.clone())
            }
            Verdict::Failed(error) => {
                failed += 1;
                ("FAILED", format!("{error:#}"))
            }
        };
        println!("{name:<10} {word:<8} {:>7.1}  {note}", time.as_secs_f64());
    }
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    if failed > 0 || (no_skip && skipped > 0) {
        bail!("{failed} layers failed, {skipped} skipped");
    }
    Ok(())
}
