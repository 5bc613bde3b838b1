//! The timeline of a boot that really happened: `tenon timeline` inside the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::super::machine::Machine;
use super::super::stage::Stage;
use super::shape::Shape;
use crate::checkout;
use crate::lab::must;

/// What must be there, in the order in which it begins. The kernel is the host's, so the axis of a
/// machine in a container begins with userspace.
const MILESTONES: &[&str] = &[
    "service manager",
    "tenon-config.service",
    "tenon-config: metadata",
    "tenon-config: write files",
    "tenon-run.service",
    "tenon-run: start daemons",
    "containerd.service",
    "kubelet.service",
    "kubelet: register",
    "kubelet: become Ready",
];
/// What the critical chain must go through on its way to Ready.
const CHAIN: &[&str] = &[
    "service manager",
    "tenon-run: start daemons",
    "containerd.service",
    "kubelet.service",
    "kubelet: register",
    "kubelet: become Ready",
];

/// Where the timeline of a run is kept, for those who want to look at it.
fn kept(cache: &Path, name: &str) -> PathBuf {
    cache.join(format!("timeline-{name}.json"))
}

/// Asks the machine for its timeline, checks it and keeps it.
pub fn check(stage: &Stage, machine: &Machine, shape: &Shape) -> anyhow::Result<usize> {
    let text = machine.must(&["tenon", "timeline", "--output", "json"])?;
    let family = if shape.is_ipv6() { "-ipv6" } else { "" };
    fs::write(kept(&stage.cache, &format!("{}{family}", shape.minor)), &text)?;
    let boot: Value = serde_json::from_str(&text).context("the timeline is no JSON")?;
    in_order(&boot, MILESTONES)?;
    let chain = boot["criticalChain"].as_array().context("no critical chain")?;
    let names: Vec<_> = chain.iter().filter_map(|link| link["name"].as_str()).collect();
    let mut rest = names.iter();
    for wanted in CHAIN {
        ensure!(rest.any(|name| name == wanted), "{wanted} is not on the chain {names:?}");
    }
    let sum: i64 = chain.iter().map(|link| number(&link["ownUs"]) + number(&link["waitUs"])).sum();
    ensure!(
        sum == number(&boot["goal"]["totalUs"]),
        "the chain does not add up to {}",
        boot["goal"]
    );
    ensure!(boot["goal"]["name"] == "Ready", "the goal is {}", boot["goal"]);
    ensure!(boot["node"] == shape.node(), "the node is {}", boot["node"]);
    let text = machine.must(&["tenon", "timeline"])?;
    ensure!(text.lines().all(|line| line.chars().count() <= 80), "a line is too long:\n{text}");
    ensure!(text.contains("Ready after "), "{text}");
    Ok(1)
}

/// Every name is a span, and none begins before the one in front of it.
fn in_order(boot: &Value, names: &[&str]) -> anyhow::Result<()> {
    let spans = boot["spans"].as_array().context("no spans")?;
    let mut before = ("", i64::MIN);
    for name in names {
        let span = spans.iter().find(|span| span["name"] == *name);
        let span = span.with_context(|| format!("no {name} in the timeline"))?;
        let begin = number(&span["beginUs"]);
        ensure!(begin >= before.1, "{name} begins before {}", before.0);
        before = (name, begin);
    }
    Ok(())
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(i64::MIN)
}

/// Draws the kept timeline of the layer `cluster` into the documentation.
pub fn save(tenon: &Path, cache: &Path) -> anyhow::Result<()> {
    let kept = kept(cache, "1.34");
    let docs = checkout().join("docs");
    fs::copy(&kept, docs.join("timeline.json")).with_context(|| format!("{}", kept.display()))?;
    let mut draw = Command::new(tenon);
    draw.args(["timeline", "--from"]).arg(&kept).arg("--svg").arg(docs.join("timeline.svg"));
    must(&mut draw)?;
    println!("docs/timeline.svg and docs/timeline.json are of this run");
    Ok(())
}
