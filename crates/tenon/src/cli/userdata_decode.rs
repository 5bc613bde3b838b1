//! `tenon userdata decode`: the innermost parts, as they are.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tenon_core::codes::{host::FILE_WRITE, inspect::NO_SUCH_PART};
use tenon_core::problem::Problem;
use tenon_core::userdata::inspect::extract::{Piece, pieces};

use super::Global;
use super::userdata::print;
use super::userdata_source::SourceArgs;
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Print this part: its number or its name in --list
    #[arg(long, value_name = "PART", conflicts_with = "out_dir")]
    part: Option<String>,
    /// Write every part below this directory
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// Name the parts instead of printing one
    #[arg(long)]
    list: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let pieces = pieces(&args.source.read()?);
    if let Some(directory) = &args.out_dir {
        return write(directory, &pieces, global);
    }
    if global.json() {
        let list = pieces.iter().map(|piece| {
            json!({"path": piece.path, "kind": piece.kind, "bytes": piece.bytes.len(),
                "content": STANDARD.encode(&piece.bytes)})
        });
        return output::answer_json(&json!({"parts": list.collect::<Vec<_>>()}));
    }
    match (&args.part, &pieces[..], args.list) {
        (_, list, true) => output::answer(&listing(list)),
        (Some(wanted), list, _) => print(&find(wanted, list)?.bytes),
        (None, [one], _) => print(&one.bytes),
        (None, list, _) => {
            let what = format!("there are {} parts and none was chosen", list.len());
            let fix = "choose one with --part, or write all of them with --out-dir";
            let names = list.iter().enumerate().map(|(index, piece)| name(index, piece));
            Err(Problem::new(&NO_SUCH_PART, what).fix(fix).details(names).into())
        }
    }
}

fn name(index: usize, piece: &Piece) -> String {
    format!("{} {} ({}, {} bytes)", index + 1, piece.path, piece.kind, piece.bytes.len())
}

fn listing(pieces: &[Piece]) -> String {
    let lines = pieces.iter().enumerate().map(|(index, piece)| name(index, piece) + "\n");
    lines.collect()
}

fn find<'a>(wanted: &str, pieces: &'a [Piece]) -> Result<&'a Piece, Problem> {
    let number = wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let found = number.and_then(|index| pieces.get(index));
    let found = found.or_else(|| pieces.iter().find(|piece| piece.path == wanted));
    found.ok_or_else(|| Problem::new(&NO_SUCH_PART, "there is no such part"))
}

/// Writes each part to a new file; a file that is there already stays as it is.
fn write(directory: &std::path::Path, pieces: &[Piece], global: &Global) -> Outcome {
    for piece in pieces {
        let path = directory.join(&piece.path);
        let write = || {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
            std::io::Write::write_all(&mut file, &piece.bytes)
        };
        write().map_err(|error| {
            Problem::new(&FILE_WRITE, format!("writing {}", path.display())).cause(error)
        })?;
    }
    let paths: Vec<_> = pieces.iter().map(|piece| piece.path.clone()).collect();
    match global.json() {
        true => output::answer_json(&json!({"written": paths})),
        false => output::answer(&listing(pieces)),
    }
}
