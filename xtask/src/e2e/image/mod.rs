//! A server of Debian becomes a node image: applied twice, verified, judged from outside before and
//! after, booted, and joined to a real control plane, where it runs a pod.

mod host;
mod judge;
pub mod vm;

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::cluster;
use super::machine::{Machine, text};
use super::stage::Stage;
use crate::lab::{PACKAGES, SERVER, must};

/// Settings of the machine's own network, and what the profile makes of them.
const KERNEL: &[(&str, &str)] = &[
    ("net.ipv4.conf.all.accept_redirects", "0"),
    ("net.ipv4.conf.all.log_martians", "1"),
    ("net.ipv4.conf.all.rp_filter", "2"),
    ("net.ipv4.ip_forward", "1"),
];

/// Files of the lab that stand where the image has its own.
const OF_THE_LAB: &[&str] = &["/etc/systemd/system/multi-user.target.wants/tenon-config.service"];

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let root = stage.place.join("image");
    let server = SERVER.ready(&stage.cache)?.join("root");
    must(Command::new("cp").arg("-a").arg(&server).arg(&root))?;
    let before = judge::scan(stage, &server)?;
    let host = host::Snapshot::take(&server)?;

    let first = apply(stage, &root)?;
    ensure!(first["changed"].as_array().is_some_and(|list| !list.is_empty()), "{first:#}");
    let second = apply(stage, &root)?;
    ensure!(second["changed"].as_array().is_some_and(Vec::is_empty), "a second apply: {second:#}");
    let checks = verify(stage, &root)?;
    host.must_be_as_it_was(&server, &root)?;
    println!("  applied twice, {checks} checks hold, the host is as it was");

    let after = judge::scan(stage, &root)?;
    println!("  OpenSCAP before: {before}\n  OpenSCAP after:  {after}");
    judge::compare(&after)?;
    Ok(5 + cluster::run_on_image(stage, &root, the_booted_image)?)
}

fn apply(stage: &Stage, root: &Path) -> anyhow::Result<Value> {
    let mut command = Command::new(&stage.tenon);
    command.args(["image", "apply", "--offline", "--profile", "base,cis", "--output", "json"]);
    command.arg("--root").arg(root).arg("--cache").arg(PACKAGES.ready(&stage.cache)?);
    json(&command.output().context("starting tenon image apply")?)
}

/// Everything that the plan says holds in the root; gives how much that is.
fn verify(stage: &Stage, root: &Path) -> anyhow::Result<usize> {
    let mut command = Command::new(&stage.tenon);
    command.args(["image", "verify", "--output", "json", "--root"]).arg(root);
    let output = command.output().context("starting tenon image verify")?;
    ensure!(output.status.success(), "verify: {}", text(&output));
    let report = json(&output)?;
    Ok(report["checks"].as_array().context("no checks")?.len())
}

fn json(output: &Output) -> anyhow::Result<Value> {
    serde_json::from_slice(&output.stdout).with_context(|| format!("no JSON: {}", text(output)))
}

/// What only a boot can show: the firewall is in force and the settings are the kernel's.
fn the_booted_image(machine: &Machine) -> anyhow::Result<usize> {
    for (key, value) in KERNEL {
        let found = machine.must(&["sysctl", "--values", key])?;
        ensure!(found.trim() == *value, "{key} is {}", found.trim());
    }
    let rules = machine.must(&["nft", "list", "chain", "inet", "tenon", "input"])?;
    ensure!(rules.contains("policy drop"), "the firewall lets everything in: {rules}");
    let options = machine.must(&["findmnt", "--noheadings", "--output", "OPTIONS", "/dev/shm"])?;
    ensure!(options.contains("noexec"), "/dev/shm is mounted with {options}");
    still_as_planned(machine)?;
    Ok(4)
}

/// Bootstrap and a pod have changed nothing that the image's plan names.
fn still_as_planned(machine: &Machine) -> anyhow::Result<()> {
    let output = machine.run(&["tenon", "image", "verify", "--root", "/", "--output", "json"])?;
    let report = json(&output)?;
    let checks = report["checks"].as_array().context("no checks")?;
    let of_the_lab = |key: &Value| OF_THE_LAB.iter().any(|path| key == path);
    let odd: Vec<&Value> = checks
        .iter()
        .filter(|check| check["state"] == "fail" && !of_the_lab(&check["key"]))
        .collect();
    ensure!(odd.is_empty(), "no longer as planned: {odd:#?}");
    Ok(())
}
