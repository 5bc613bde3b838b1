//! `tenon image seal`: the last step before a snapshot.

use std::path::PathBuf;

use tenon_core::codes::image::NO_DISTRIBUTION;
use tenon_core::problem::Problem;
use tenon_host::image::seal;
use tenon_host::stop;

use super::open;
use crate::cli::Global;
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon image seal --root /mnt/image
  tenon image seal --root / --output json

Removes machine id, host keys, authorized keys, cloud-init state, logs, caches,
histories, random seed and Tenon's node record. Then looks for private keys,
tokens and credentials; exit 1 if one is left.")]
pub struct Args {
    /// Root file system to seal
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Accept the stub kubelet of a test build
    #[arg(long)]
    test: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    // Without the handlers a signal ends the process; running again is the cure.
    let _ = stop::listen();
    let root = open(&args.root)?;
    // A volume that is not mounted looks sealed.
    if !["/etc/os-release", "/usr/lib/os-release"].iter().any(|path| root.exists(path)) {
        let what = format!("{} holds no system", args.root.display());
        return Err(Problem::new(&NO_DISTRIBUTION, what).into());
    }
    let sealed = seal::seal(&root, args.test)?;
    if global.json() {
        output::answer_json(&sealed.to_json())?;
    } else {
        for (path, what) in &sealed.left {
            output::tell(&format!("left: {path} holds {what}\n"));
        }
        let words = match sealed.left.len() {
            0 => "nothing that must not be in an image is left".to_owned(),
            count => format!("{count} left that must not be in an image"),
        };
        output::answer(&format!("{} removed; {words}\n", sealed.removed.len()))?;
    }
    match sealed.left.is_empty() {
        true => Ok(()),
        false => Err(Failure::Answer(1)),
    }
}
