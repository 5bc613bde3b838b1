//! `tenon`: arguments in, one call into the library, output and exit code out.

// The small build leaves parts of shared types unused.
#![cfg_attr(not(feature = "desk"), allow(dead_code))]

mod cli;
mod logging;
mod output;

use std::process::ExitCode;

fn main() -> ExitCode {
    output::catch_panics();
    cli::main(std::env::args_os().collect())
}
