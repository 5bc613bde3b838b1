//! `tenon image seal`: the last step before a snapshot.

use std::path::PathBuf;

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
    let sealed = seal::seal(&open(&args.root)?, args.test)?;
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
