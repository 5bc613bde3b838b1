//! The running kernel: changed only when asked for, told before, and recorded with what was there.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use tenon_core::codes::host::FILE_WRITE;
use tenon_core::image::effective::{kernel_path, suits};
use tenon_core::image::item::Act;
use tenon_core::image::plan::ImagePlan;
use tenon_core::problem::Problem;

use super::record::{self, Record};
use crate::apply::{Lock, store};
use crate::command;
use crate::root::Root;

const TIME: Duration = Duration::from_secs(90);

/// One change of the running machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// `sysctl kernel.panic`, `module overlay`, `unit nftables.service`
    pub name: String,
    pub before: String,
    pub after: String,
}

impl Effect {
    pub fn to_json(&self) -> Value {
        json!({"name": self.name, "before": self.before, "after": self.after})
    }
}

/// What `--live` would change: settings of the kernel, modules to load, units to start.
pub fn effects(plan: &ImagePlan, kernel: &Root) -> Vec<Effect> {
    let mut effects = Vec::new();
    for one in &plan.resources {
        match (one.kind.name, one.text("state")) {
            ("sysctl", _) => {
                let before = kernel.read_text(&kernel_path(&one.key)).ok().flatten();
                let floor = one.number("floor").or(one.number("ceiling"));
                let after = one.text("value").map(str::to_owned).or(floor.map(|n| n.to_string()));
                if let (Some(before), Some(after)) = (before, after)
                    && !suits(one, &before)
                {
                    effects.push(Effect { name: format!("sysctl {}", one.key), before, after });
                }
            }
            ("module", Some("loaded")) if !is_loaded(kernel, &one.key) => {
                let (before, after) = ("not loaded".to_owned(), "loaded".to_owned());
                effects.push(Effect { name: format!("module {}", one.key), before, after });
            }
            _ => {}
        }
    }
    if kernel.exists("/run/systemd/system") {
        effects.extend(wanted_units(plan).into_iter().filter_map(start));
    }
    effects
}

/// True if a module is part of the running kernel, built in or loaded.
pub fn is_loaded(kernel: &Root, module: &str) -> bool {
    kernel.exists(&format!("/sys/module/{}", module.replace('-', "_")))
}

/// The units that the plan starts at boot: mounts first, since services may lie on them.
pub fn wanted_units(plan: &ImagePlan) -> Vec<String> {
    let name = |act: &Act| match act {
        Act::Link { path, target } if path.contains(".wants/") && target != "/dev/null" => {
            path.rsplit('/').next().map(str::to_owned)
        }
        _ => None,
    };
    let mut units: Vec<String> = plan.items.iter().filter_map(|item| name(&item.act)).collect();
    units.sort_by_key(|unit| !is_mount(unit));
    units
}

fn is_mount(name: &str) -> bool {
    name.ends_with(".mount")
}

fn start(unit: String) -> Option<Effect> {
    let argv = ["systemctl", "is-active", &unit].map(str::to_owned);
    let output = command::run(&argv, TIME, &[]).ok()?;
    let before = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let is_off = before == "inactive" || before == "failed";
    is_off.then(|| Effect { name: format!("unit {unit}"), before, after: "active".into() })
}

/// Tells what it will do, then does it.
pub fn change(effects: &[Effect], kernel: &Root) -> Result<(), Problem> {
    for effect in effects {
        let Effect { name, before, after } = effect;
        tracing::info!("live: {name} from {before} to {after}");
    }
    if effects.iter().any(|effect| effect.name.starts_with("unit ")) {
        command::must(&["systemctl", "daemon-reload"].map(str::to_owned), TIME, &[])?;
    }
    for effect in effects {
        turn(kernel, &effect.name, Some(&effect.after))?;
    }
    Ok(())
}

/// Goes to a value, or for modules and units on; None is off.
fn turn(kernel: &Root, name: &str, value: Option<&str>) -> Result<(), Problem> {
    let run = |words: &[&str]| {
        let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        command::must(&argv, TIME, &[]).map(|_| ())
    };
    let (kind, key) = name.split_once(' ').unwrap_or_default();
    match (kind, value) {
        ("sysctl", Some(value)) => set(kernel, &kernel_path(key), value),
        ("module", Some(_)) => run(&["modprobe", key]),
        ("module", None) => run(&["modprobe", "-r", key]),
        ("unit", Some(_)) => run(&["systemctl", "start", key]),
        ("unit", None) => run(&["systemctl", "stop", key]),
        _ => Ok(()),
    }
}

/// Gives the running machine back what `--live` found, and forgets it. The files stay. What cannot
/// be given back is kept for the next undo, and is the problem that is told.
pub fn restore(root: &Root) -> Result<Vec<Effect>, Problem> {
    let lock = Lock::take(root, Duration::ZERO)?;
    let mut record = Record::load(root)?;
    let (mut effects, mut left, mut failed) = (Vec::new(), BTreeMap::new(), None);
    // The last thing that was changed goes back first: services, mounts, settings, modules.
    let mut list: Vec<_> = std::mem::take(&mut record.before_live).into_iter().rev().collect();
    list.sort_by_key(|(name, _)| (!name.starts_with("unit "), is_mount(name)));
    for (name, before) in list {
        tracing::info!("live: {name} back to {before}");
        let value = name.starts_with("sysctl ").then_some(before.as_str());
        match turn(root, &name, value) {
            Ok(()) => effects.push(Effect { name, before: String::new(), after: before }),
            Err(problem) => {
                failed.get_or_insert(problem);
                left.insert(name, before);
            }
        }
    }
    record.before_live = left;
    if !effects.is_empty() {
        let body = format!("{:#}\n", record.to_json());
        store(root, &lock, record::PATH, record::MODE, body.as_bytes())?;
    }
    failed.map_or(Ok(effects), Err)
}

fn set(kernel: &Root, path: &str, value: &str) -> Result<(), Problem> {
    let written = kernel
        .open_at(path, OFlags::WRONLY, Mode::empty())
        .and_then(|file| Ok(rustix::io::write(&file, value.as_bytes())?));
    written.map(|_| ()).map_err(|error| {
        Problem::new(&FILE_WRITE, format!("setting {path} of the running kernel")).cause(error)
    })
}
