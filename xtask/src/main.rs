//! `cargo xtask TASK`: generators, checks and tests of this repository. Never shipped; one file
//! per task.

mod bench;
mod bless;
mod deps;
mod dist;
mod e2e;
mod go;
mod instances;
mod instructions;
mod kubelet_tables;
mod lab;
mod pins;
mod reference;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the Tenon repository", max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Accept what the plans of golden/ come to now
    Bless,
    /// Measure Tenon beside the machine's floor
    Bench(bench::Args),
    /// Check the dependency tree: licences, banned crates, purity of the core, size
    Deps(deps::Args),
    /// Build the static binary and check its size
    Dist(dist::Args),
    /// Run the tests that need root or real programs of the host
    E2e(e2e::Args),
    /// Write the table of instance types
    Instances(instances::Args),
    /// Count the instructions of fixed commands and hold them to their budget
    Instructions(instructions::Args),
    /// Write the tables of KubeletConfiguration fields and kubelet flags
    KubeletTables(kubelet_tables::Args),
    /// Build the real programs that `e2e` runs, and keep them
    Lab(lab::Args),
    /// The inner half of the e2e layer `units`
    #[command(hide = true)]
    UnitsInside(e2e::InsideArgs),
    /// The inner half of the e2e layers that boot machines
    #[command(hide = true)]
    MachineInside(e2e::StageArgs),
    /// Run a program once and print what it cost, as JSON
    Measure(bench::measure::Args),
    /// Check the pins of components, and add some from downloaded files
    Pins(pins::Args),
    /// Write the reference pages: command line, config, error codes
    Reference(reference::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Bless => bless::run(),
        Task::Bench(args) => bench::run(&args),
        Task::Deps(args) => deps::run(&args),
        Task::Dist(args) => dist::run(&args),
        Task::E2e(args) => e2e::run(&args),
        Task::Instances(args) => instances::run(&args),
        Task::Instructions(args) => instructions::run(&args),
        Task::KubeletTables(args) => kubelet_tables::run(&args),
        Task::Lab(args) => lab::run(&args),
        Task::UnitsInside(args) => e2e::inside(&args),
        Task::MachineInside(args) => e2e::machine_inside(&args),
        Task::Measure(args) => bench::measure::run(&args),
        Task::Pins(args) => pins::run(&args),
        Task::Reference(args) => reference::run(&args),
    }
}

/// The root of the checkout, from this crate's own place in it.
fn checkout() -> &'static std::path::Path {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
