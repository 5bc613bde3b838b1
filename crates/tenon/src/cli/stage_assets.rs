//! `tenon stage assets`: the bundle on the machine, and its making at a desk.

use std::path::{Path, PathBuf};

use serde_json::json;
use tenon_core::codes::usage::BAD_USAGE;
use tenon_core::config::Kind;
use tenon_core::config::grammar::Grammar;
use tenon_core::problem::Problem;
use tenon_core::stages::paths;
use tenon_host::gather::environment::Environment;
use tenon_host::root::Root;
use tenon_host::stages::assets::{self, Assets};
use tenon_host::stages::{Order, build, unpack};

use super::{Global, node_args, stage};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon stage assets
  tenon stage assets --build ./assets --cluster prod --archive b.tar.gz
  tenon stage assets --import ./b.tar.gz")]
pub struct Args {
    /// Config of the machine
    #[arg(long, value_name = "PATH", default_value = paths::CONFIG)]
    config: String,
    /// Take the bundle from here instead of spec.assets.source
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Digest that the bundle must have, instead of spec.assets.digest
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,
    /// Copy a bundle into the drop zone and announce it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["source", "cleanup", "build"])]
    import: Option<PathBuf>,
    /// Remove keys, tokens and manifests from the assets; retire the remote object
    #[arg(long, conflicts_with_all = ["source", "build"])]
    cleanup: bool,
    /// Say which steps would run, and write nothing
    #[arg(long, conflicts_with_all = ["import", "build"])]
    dry_run: bool,
    /// Write bundle.json for this directory and print the digest
    #[arg(long, value_name = "DIR")]
    build: Option<PathBuf>,
    /// Cluster id in the built bundle
    #[arg(long, value_name = "ID", default_value = "", requires = "build")]
    cluster: String,
    /// Also pack the built bundle into this tar.gz
    #[arg(long, value_name = "FILE", requires = "build")]
    archive: Option<PathBuf>,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    if let Some(directory) = &args.build {
        return build(directory, args, global);
    }
    let root = node_args::open_root(global)?;
    if let Some(path) = &args.import {
        return import(&root, path, global);
    }
    let mut work = Assets { environment: Environment::of_process(), pause: None };
    let mut order = Order { stage: "assets", config: args.config.clone(), forced: Vec::new() };
    if args.cleanup {
        order.stage = "cleanup";
    }
    if args.dry_run {
        return stage::preview(&root, &order, &assets::step_names(args.cleanup), global);
    }
    if args.cleanup {
        return stage::carry_out(&root, &order, global, |run| assets::clean_up(run, &mut work));
    }
    let checks =
        [("source", &args.source, Grammar::AssetSource), ("digest", &args.digest, Grammar::Sha256)];
    for (name, value, grammar) in checks {
        if let Some(text) = value {
            refuse_bad(name, text, grammar)?;
            order.forced.push(format!("{name}={text}"));
        }
    }
    stage::carry_out(&root, &order, global, |mut run| {
        run.machine.assets.source = args.source.clone().unwrap_or(run.machine.assets.source);
        run.machine.assets.digest = args.digest.clone().or(run.machine.assets.digest);
        assets::run(run, &mut work)
    })
}

fn refuse_bad(name: &str, text: &str, grammar: Grammar) -> Result<(), Failure> {
    match grammar.check(text, Kind::Tenon).into_iter().next() {
        None => Ok(()),
        Some(fault) => {
            let what = format!("--{name} {}", fault.what);
            Err(Problem::new(&BAD_USAGE, what).fix(fault.page.fix).into())
        }
    }
}

fn build(directory: &Path, args: &Args, global: &Global) -> Outcome {
    let (index, digest) = build::build(directory, &args.cluster)?;
    if let Some(archive) = &args.archive {
        build::pack(directory, &index, archive)?;
    }
    match global.json() {
        true => output::answer_json(&json!({
            "schema": "tenon.bundle/1", "digest": digest, "files": index.files.len(),
        })),
        false => output::answer(&format!("{digest}\n")),
    }
}

fn import(root: &Root, path: &Path, global: &Global) -> Outcome {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let desk = Root::open(Path::new("/")).map_err(|error| {
        Problem::new(&tenon_core::codes::host::FILE_READ, "opening /").cause(error)
    })?;
    let name = absolute.display().to_string();
    if let Err(error) = std::fs::metadata(&absolute) {
        let what = format!("reading {name}");
        return Err(Problem::new(&tenon_core::codes::host::FILE_READ, what).cause(error).into());
    }
    let source = match absolute.is_dir() {
        true => unpack::Source::Directory(name),
        false => unpack::Source::Tar(name),
    };
    let digest = assets::import(root, &desk, &source)?;
    match global.json() {
        true => output::answer_json(&json!({"schema": "tenon.bundle/1", "digest": digest})),
        false => output::answer(&format!("sent {digest}\n")),
    }
}
