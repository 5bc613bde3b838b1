//! `tenon undo`: back to the files of the previous generation.

use std::io::{self, BufRead, IsTerminal};
use std::time::Duration;

use serde_json::json;
use tenon_core::codes;
use tenon_core::problem::Problem;
use tenon_host::apply::{self, Lock, Options, Undo};
use tenon_host::image::live;
use tenon_host::root::Root;
use tenon_host::stop;

use super::{Global, node_args};
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tenon undo --yes\n\nUndo is a change like any other: undoing twice ends where it began."
)]
pub struct Args {
    /// Give the running kernel back what `image apply --live` found
    #[arg(long)]
    live: bool,
    /// Do not ask on a terminal
    #[arg(short, long)]
    yes: bool,
    /// Wait this long for another run to end
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = node_args::duration)]
    wait_lock: Duration,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let root = node_args::open_root(global)?;
    stop::listen()
        .map_err(|error| Problem::new(&codes::usage::BUG, "listening for signals").cause(error))?;
    if args.live {
        return undo_live(&root, global);
    }
    let lock = Lock::take(&root, args.wait_lock)?;
    let undo = apply::plan_undo(&root)?;
    if !global.json() {
        output::tell(&describe(&undo));
    }
    let asked = !args.yes && io::stdin().is_terminal();
    if asked && !agreed() {
        output::tell("nothing was changed\n");
        return Ok(());
    }
    apply::undo(&root, &lock, &undo, &Options::default())?;
    answer(&undo, global.json())
}

/// Settings, modules and units of the running machine; files stay as they are.
fn undo_live(root: &Root, global: &Global) -> Outcome {
    if !root.is_host() {
        let what = format!("--live with --root {}", root.path().display());
        return Err(Problem::new(&codes::image::LIVE_NEEDS_HOST, what).into());
    }
    let effects = live::restore(root)?;
    if global.json() {
        let list: Vec<_> = effects.iter().map(live::Effect::to_json).collect();
        let result = if effects.is_empty() { "unchanged" } else { "changed" };
        return output::answer_json(&json!({
            "schema": "tenon.undo-live/1", "result": result, "live": list,
        }));
    }
    let line = |effect: &live::Effect| format!("  {} back to {}\n", effect.name, effect.after);
    let text: String = effects.iter().map(line).collect();
    output::answer(&format!("{text}{} restored\n", effects.len()))
}

fn describe(undo: &Undo) -> String {
    let mut text = format!("back to generation {}\n", undo.generation);
    for change in &undo.changes {
        let mark = match change.action {
            "create" => '+',
            "remove" => '-',
            _ => '~',
        };
        text.push_str(&format!("  {mark} {}\n", change.path));
    }
    text
}

fn agreed() -> bool {
    output::tell("go back? [y/N] ");
    let mut line = String::new();
    // Standard input that cannot be read is not a yes.
    let _ = io::stdin().lock().read_line(&mut line);
    matches!(line.trim(), "y" | "Y" | "yes")
}

fn answer(undo: &Undo, json: bool) -> Outcome {
    match json {
        true => {
            let changes: Vec<_> = undo.changes.iter().map(apply::Change::to_json).collect();
            output::answer_json(&json!({
                "schema": "tenon.undo/1",
                "result": if undo.changes.is_empty() { "unchanged" } else { "changed" },
                "generation": undo.generation,
                "changes": changes,
                "restart": undo.units,
            }))
        }
        false => {
            let mut text = format!("{} files restored\n", undo.changes.len());
            if !undo.units.is_empty() {
                let units = undo.units.join(" ");
                text.push_str(&format!("running on the newer files: systemctl restart {units}\n"));
            }
            output::answer(&text)
        }
    }
}
