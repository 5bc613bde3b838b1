//! `tenon completions` and `tenon man`: both made from the same definition as `--help`.

use std::path::PathBuf;

use tenon_core::codes;
use tenon_core::problem::Problem;

use super::Global;
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon completions bash > /usr/share/bash-completion/completions/tenon
  tenon completions fish > ~/.config/fish/completions/tenon.fish")]
pub struct Args {
    /// bash, zsh, fish or powershell
    shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenon man /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Directory that receives one page per command
    directory: PathBuf,
}

pub fn run(args: &Args) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "tenon", &mut script);
    output::answer(&String::from_utf8_lossy(&script))
}

pub fn man(args: &ManArgs, _global: &Global) -> Outcome {
    let write = || {
        std::fs::create_dir_all(&args.directory)?;
        clap_mangen::generate_to(super::command(), &args.directory)
    };
    write().map_err(|error| {
        let what = format!("writing manual pages to {}", args.directory.display());
        Problem::new(&codes::host::FILE_WRITE, what).cause(error).into()
    })
}
