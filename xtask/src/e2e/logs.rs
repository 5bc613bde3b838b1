//! A bundle of a booted machine, beside what the machine's own programs say.

use anyhow::{Context, ensure};
use serde_json::Value;
use tenon_core::collect::journal;

use super::machine::{Machine, text};

const BUNDLE: &str = "/root/bundle.tar.gz";
/// Units that wrote to the journal of this boot, and one about which only the manager wrote.
const UNITS: [(&str, &str); 2] =
    [("containerd.service", "containerd/journal.log"), ("kubelet.service", "kubelet/journal.log")];

/// Collects, and compares journals and states of units with `journalctl` and `systemctl`.
pub fn a_bundle_agrees_with_the_machine(machine: &Machine) -> anyhow::Result<()> {
    // What is written meanwhile comes after what journalctl has seen.
    let told: Vec<Vec<String>> =
        UNITS.iter().map(|(unit, _)| journalctl(machine, unit)).collect::<Result<_, _>>()?;
    // Nothing is replaced, so that messages can be compared as they are.
    let words = ["tenon", "logs", "collect", "--no-redact", "--out", BUNDLE];
    let output = machine.run(&words)?;
    ensure!(output.status.success(), "{words:?}: {}\n{}", output.status, text(&output));
    ensure!(output.stdout == format!("{BUNDLE}\n").as_bytes(), "{}", text(&output));
    for ((unit, member), told) in UNITS.iter().zip(told) {
        let shown = machine.must(&["tenon", "logs", "show", BUNDLE, member])?;
        let found: Vec<String> = journal::read(&shown)
            .into_iter()
            .map(|entry| entry.message.trim_end().to_owned())
            .collect();
        let begin = found.get(..told.len()).unwrap_or(&found);
        ensure!(begin == told, "{unit}: journalctl has {told:#?}, the bundle {begin:#?}");
    }
    let units: Value = serde_json::from_str(&machine.must(&[
        "tenon",
        "logs",
        "show",
        BUNDLE,
        "system/units.json",
    ])?)?;
    let units = units["units"].as_array().context("a list of units")?;
    for (unit, _) in UNITS {
        let row = units.iter().find(|row| row["name"] == unit).with_context(|| unit.to_owned())?;
        let state = machine.property(unit, "ActiveState")?;
        ensure!(row["active"] == state.as_str(), "{unit} is {state}, the bundle says {row}");
    }
    machine.must(&["rm", BUNDLE]).map(|_| ())
}

fn journalctl(machine: &Machine, unit: &str) -> anyhow::Result<Vec<String>> {
    let lines = machine.must(&["journalctl", "--no-pager", "--output=json", "--unit", unit])?;
    let entries = lines.lines().map(serde_json::from_str::<Value>);
    let messages = entries
        .map(|entry| Ok(entry?["MESSAGE"].as_str().unwrap_or_default().trim_end().to_owned()));
    messages.collect()
}
