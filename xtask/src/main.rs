//! `cargo xtask`: generators and checks of this repository. Never shipped; one file per task.

mod instances;
mod kubelet_tables;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write the table of instance types
    Instances(instances::Args),
    /// Write the tables of KubeletConfiguration fields and kubelet flags
    KubeletTables(kubelet_tables::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Instances(args) => instances::run(&args),
        Task::KubeletTables(args) => kubelet_tables::run(&args),
    }
}

/// The root of the checkout, from this crate's own place in it.
fn checkout() -> &'static std::path::Path {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
