//! `tenon`: arguments in, one call into the library, output and exit code out.

mod cli;
mod logging;
mod output;

use std::process::ExitCode;

fn main() -> ExitCode {
    output::catch_panics();
    cli::main(std::env::args_os().collect())
}
