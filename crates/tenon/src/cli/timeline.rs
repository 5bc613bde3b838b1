//! `tenon timeline`: where the time of this node's boot went.

use std::path::{Path, PathBuf};

use tenon_core::codes;
use tenon_core::problem::Problem;
use tenon_core::timeline::{self, Boot, compare, what_if};
use tenon_host::stop;
use tenon_host::timeline::live;

use super::{Global, node_args};
use crate::output::{self, Outcome};

const STDOUT: &str = "-";

#[derive(Debug, clap::Args)]
#[command(after_help = "Read from the service manager and the journal; nothing is changed.
Exit 6 where no systemd runs; --from and --compare need none.

What-if:
  no-cloud-init     an image without cloud-init
  cached-images     every image is in the node's image
  no-network-wait   nothing waits for the whole network
  no-initrd         a kernel that needs no initrd
  without=NAME      one span, by its name

Examples:
  tenon timeline
  tenon timeline --html boot.html --what-if no-cloud-init,cached-images
  tenon timeline --output json > node-1.json
  tenon timeline --compare node-1.json node-2.json node-3.json")]
pub struct Args {
    /// Show a saved timeline in place of this node's
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Put saved timelines side by side: medians and outliers
    #[arg(long, value_name = "FILE", num_args = 2..,
          conflicts_with_all = ["from", "what_if", "svg", "html"])]
    compare: Vec<PathBuf>,
    /// Estimate the boot with something left out
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    what_if: Vec<String>,
    /// Draw a picture into FILE, - for standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a page into FILE, - for standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    if !args.compare.is_empty() {
        return side_by_side(&args.compare, global);
    }
    let mut boot = match &args.from {
        Some(path) => read(path)?,
        None => this_node(global)?,
    };
    if !args.what_if.is_empty() {
        boot = what_if::estimate(&boot, &args.what_if).map_err(|unknown| {
            let what = "a name of --what-if means nothing here";
            Problem::new(&codes::usage::BAD_USAGE, what).fix(unknown.0.trim_end())
        })?;
    }
    let mut answered = false;
    if let Some(path) = &args.svg {
        answered |= write(path, &timeline::svg(&boot))?;
    }
    if let Some(path) = &args.html {
        answered |= write(path, &timeline::html(&boot))?;
    }
    match (answered, global.json()) {
        (true, _) => Ok(()),
        (false, true) => output::answer_json(&boot.to_json()),
        (false, false) => output::answer(&timeline::text(&boot)),
    }
}

fn this_node(global: &Global) -> Result<Boot, Problem> {
    stop::listen()
        .map_err(|error| Problem::new(&codes::usage::BUG, "listening for signals").cause(error))?;
    let root = node_args::open_root(global)?;
    Ok(Boot::of(&live::gather(&root, "journalctl")?))
}

fn read(path: &Path) -> Result<Boot, Problem> {
    Boot::read(&node_args::read_file(path)?, &path.display().to_string())
}

fn side_by_side(paths: &[PathBuf], global: &Global) -> Outcome {
    let named = |path: &PathBuf| Ok((path.display().to_string(), read(path)?));
    let boots = paths.iter().map(named).collect::<Result<Vec<_>, Problem>>()?;
    let comparison = compare::compare(&boots);
    match global.json() {
        true => output::answer_json(&comparison.to_json()),
        false => output::answer(&timeline::compare_text(&comparison)),
    }
}

/// Writes a drawing; true if it went to standard output and is the answer.
fn write(path: &Path, drawing: &str) -> Result<bool, output::Failure> {
    if path == Path::new(STDOUT) {
        output::answer(drawing)?;
        return Ok(true);
    }
    std::fs::write(path, drawing).map_err(|error| {
        Problem::new(&codes::host::FILE_WRITE, format!("writing {}", path.display())).cause(error)
    })?;
    Ok(false)
}
