//! What the running machine says: values of the kernel, modules, mounts, arguments and units.

use std::time::Duration;

use tenon_core::image::check::{Check, Half, State};
use tenon_core::image::edit::Argument;
use tenon_core::image::effective::{kernel_path, suits, wanted_words};
use tenon_core::image::plan::ImagePlan;
use tenon_core::image::resource::Resource;

use super::live::is_loaded;
use crate::command;
use crate::root::Root;

const TIME: Duration = Duration::from_secs(10);

/// Options of a mount that the kernel never sees, or that are what it does anyway.
const OF_PROGRAM: &[&str] = &[
    "defaults",
    "rw",
    "auto",
    "noauto",
    "nofail",
    "_netdev",
    "user",
    "nouser",
    "exec",
    "suid",
    "dev",
    "async",
    "strictatime",
];

/// What was looked at, and what it was expected to be.
struct Look {
    expected: String,
    /// None: it could not be found out.
    actual: Option<String>,
    holds: bool,
    remedy: &'static str,
}

/// Checks every resource that a running machine can contradict.
pub fn checks(plan: &ImagePlan, kernel: &Root) -> Vec<Check> {
    let look = |one: &Resource| -> Option<Look> {
        match one.kind.name {
            "sysctl" => Some(sysctl(one, kernel)),
            "module" => Some(module(one, kernel)),
            "mount" => Some(mount(one, kernel)),
            "kernel-argument" => Some(argument(one, kernel)),
            "unit" | "mask" => unit(one, kernel),
            _ => None,
        }
    };
    let check = |one: &Resource| {
        let Look { expected, actual, holds, remedy } = look(one)?;
        let state = match (holds, &actual) {
            (_, None) => State::Unknown,
            (true, _) => State::Pass,
            (false, _) => State::Fail,
        };
        Some(Check {
            act: one.kind.name.to_owned(),
            key: one.key.clone(),
            half: Half::Running,
            state,
            expected,
            actual: actual.unwrap_or_else(|| "not found out".to_owned()),
            from: vec![one.name()],
            rules: Vec::new(),
            remedy: if state == State::Pass { String::new() } else { remedy.to_owned() },
        })
    };
    plan.resources.iter().filter_map(check).collect()
}

fn sysctl(one: &Resource, kernel: &Root) -> Look {
    let actual = kernel.read_text(&kernel_path(&one.key)).ok().flatten();
    let holds = actual.as_deref().is_some_and(|actual| suits(one, actual));
    let remedy = "boot the image, or load the files: `sysctl --system`";
    Look { expected: wanted_words(one), actual, holds, remedy }
}

fn module(one: &Resource, kernel: &Root) -> Look {
    let wanted = one.text("state") == Some("loaded");
    let loaded = is_loaded(kernel, &one.key);
    let words = |loaded: bool| if loaded { "loaded" } else { "not loaded" }.to_owned();
    let (expected, actual) = (words(wanted), Some(words(loaded)));
    let remedy = "boot the image, or load or unload the module with `modprobe`";
    Look { expected, actual, holds: wanted == loaded, remedy }
}

fn mount(one: &Resource, kernel: &Root) -> Look {
    let table = kernel.read_text("/proc/self/mountinfo").ok().flatten();
    let wanted = one.texts("options");
    // `36 35 98:0 / /mnt rw,noatime - ext4 /dev/sda rw`; the last mount on a path is on top.
    let line = table.as_deref().and_then(|table| {
        table.lines().rfind(|line| line.split(' ').nth(4) == Some(one.key.as_str()))
    });
    let options: Vec<&str> = line
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let of_mount = words.get(5).copied().unwrap_or_default();
            let of_system = words.last().copied().unwrap_or_default();
            of_mount.split(',').chain(of_system.split(',')).collect()
        })
        .unwrap_or_default();
    // Values are rounded, rewritten or not shown by the kernel, and some words are the mounting
    // program's own: the half of the files has them.
    let has = |option: &&&str| {
        let of_program = OF_PROGRAM.contains(*option) || option.starts_with("x-");
        of_program || option.contains('=') || options.contains(*option)
    };
    let lacking: Vec<&str> = wanted.iter().filter(|option| !has(option)).copied().collect();
    let actual = match (table.is_some(), line) {
        (false, _) => None,
        (true, None) => Some("not mounted".to_owned()),
        (true, Some(_)) if lacking.is_empty() => Some("mounted".to_owned()),
        (true, Some(_)) => Some(format!("mounted without {}", lacking.join(","))),
    };
    let expected = format!("mounted with {}", wanted.join(","));
    let holds = line.is_some() && lacking.is_empty();
    Look { expected, actual, holds, remedy: "boot the image, or restart the mount unit" }
}

fn argument(one: &Resource, kernel: &Root) -> Look {
    let actual = kernel.read_text("/proc/cmdline").ok().flatten();
    let present = one.fields.get("present") != Some(&serde_json::Value::Bool(false));
    let argument = Argument { name: &one.key, value: one.text("value"), present };
    let holds = actual.as_deref().is_some_and(|words| argument.holds(words));
    let expected = if present { argument.word() } else { format!("no {}", one.key) };
    let remedy = "update the boot loader's own files and boot again";
    Look { expected, actual, holds, remedy }
}

/// Enabled units must not have failed; disabled and masked ones must not run.
fn unit(one: &Resource, kernel: &Root) -> Option<Look> {
    let wanted = match (one.kind.name, one.text("state")) {
        ("unit", Some("enabled")) => true,
        ("mask", _) | (_, Some("disabled")) => false,
        _ => return None,
    };
    let ask = || {
        let argv = ["systemctl", "is-active", &one.key].map(str::to_owned);
        let output = command::run(&argv, TIME, &[]).ok()?;
        // Without an answer of the manager there is no state.
        let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (!state.is_empty()).then_some(state)
    };
    let actual = kernel.exists("/run/systemd/system").then(ask).flatten();
    let holds = actual.as_deref().is_some_and(|state| is_right(state, wanted));
    let expected = if wanted { "not failed" } else { "not active" }.to_owned();
    Some(Look { expected, actual, holds, remedy: "see `systemctl status` of the unit" })
}

/// One that runs once and is done is inactive, which is no failure.
fn is_right(state: &str, wanted: bool) -> bool {
    match wanted {
        true => state != "failed",
        false => !["active", "activating", "reloading"].contains(&state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_failed_is_not_right() {
        for (state, enabled, disabled) in [
            ("active", true, false),
            ("inactive", true, true),
            ("failed", false, true),
            ("activating", true, false),
        ] {
            assert_eq!((is_right(state, true), is_right(state, false)), (enabled, disabled));
        }
    }
}
