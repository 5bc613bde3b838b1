//! Tasks of the repository: `cargo xtask TASK`. Never shipped.

mod deps;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Generators and tasks of the Tenon repository")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check the dependency tree: licences, banned crates, purity of the core, size
    Deps(deps::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Deps(args) => deps::run(&args),
    }
}
