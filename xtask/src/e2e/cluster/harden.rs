//! A node that runs is validated and hardened, and goes on with what was set.

use anyhow::{Context, ensure};
use serde_json::Value;

use super::super::machine::{Machine, text};
use super::control_plane::ControlPlane;
use super::shape::Shape;

const FIX: &[&str] = &["tenon", "harden", "--profile", "k8s-1.11", "--fix", "--restart"];

/// Judges a healthy node, mends what the stricter benchmark asks for, and judges again.
pub fn of_hardening(
    plane: &mut ControlPlane,
    machine: &Machine,
    shape: &Shape,
) -> anyhow::Result<usize> {
    as_it_was_meant_to_be(machine)?;
    the_running_node(machine)?;
    let output = machine.run(FIX)?;
    ensure!(output.status.success(), "harden: {}", text(&output));
    let path = format!("/api/v1/nodes/{}/proxy/configz", shape.node());
    plane.wait_until("the kubelet runs with what was set", 60, |plane| {
        let Ok(answer) = plane.get_json(&path) else { return Ok(None) };
        let set = &answer["kubeletconfig"];
        Ok((set["podPidsLimit"] == 4096 && set["seccompDefault"] == true).then_some(()))
    })?;
    let again = machine.run(FIX)?;
    ensure!(text(&again).contains("nothing to mend"), "a second fix: {}", text(&again));
    as_it_was_meant_to_be(machine)?;
    let init = ["-c", "imds://user-data", "-c", "file:///etc/eks/nodeadm.d/", "--output", "json"];
    let report = json(machine, &[&["tenon", "init"], &init[..]].concat())?;
    ensure!(report["result"] == "unchanged", "init after harden: {}", report["changes"]);
    Ok(3)
}

/// Neither drift nor a failed item of the usual benchmark.
fn as_it_was_meant_to_be(machine: &Machine) -> anyhow::Result<()> {
    let report = json(machine, &["tenon", "validate", "--output", "json"])?;
    let told = report["findings"].as_array().context("no findings")?.iter();
    let odd: Vec<&Value> =
        told.filter(|one| one["state"] == "fail" || one["state"] == "unknown").collect();
    ensure!(odd.is_empty(), "{odd:#?}");
    Ok(())
}

/// The kernel is the host's, so that its settings are not asserted; what is the node's own is.
fn the_running_node(machine: &Machine) -> anyhow::Result<()> {
    let output = machine.run(&["tenon", "validate", "--only", "runtime", "--output", "json"])?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("not JSON: {}", text(&output)))?;
    let state = |id: &str| {
        let found = report["findings"].as_array().into_iter().flatten();
        found.clone().find(|one| one["id"] == id).map(|one| one["state"].clone())
    };
    ensure!(state("runtime-max-pods") == Some("pass".into()), "{report:#}");
    ensure!(state("runtime-kubelet") == Some("unknown".into()), "{report:#}");
    Ok(())
}

fn json(machine: &Machine, words: &[&str]) -> anyhow::Result<Value> {
    let output = machine.run(words)?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{} did not answer in JSON: {}", words[1], text(&output)))
}
