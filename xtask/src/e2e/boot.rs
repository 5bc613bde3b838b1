//! A machine whose image starts Tenon: systemd, the system bus, containerd and the metadata
//! service are real, the kubelet is a stand-in that answers as healthy.

use std::process::Output;

use anyhow::{Context, ensure};

use super::logs::a_bundle_agrees_with_the_machine;
use super::machine::{Disk, Machine, text};
use super::metadata::{Answers, Metadata, instance};
use super::network::Network;
use super::stage::Stage;
use crate::checkout;

/// Counts its starts and answers as healthy.
const KUBELET: &str = "#!/bin/sh
[ \"${1-}\" != --version ] || { echo Kubernetes v1.34.1; exit 0; }
echo started >>/var/lib/kubelet.starts
exec /usr/bin/tenon imds serve --instance-type m5.large --listen 127.0.0.1:10248 \\
    --allow-imdsv1 --faults /etc/lab-health.yaml
";
const HEALTHY: &str = "rules:\n  - {path: /healthz, status: 200, body: ok}\n";

/// A metadata service that is late, throttles and stumbles, as at the start of a large fleet.
const TROUBLE: &str = "refuseForMs: 1500
rules:
  - {path: '*/token', method: PUT, times: 2, status: 503}
  - {path: '*/user-data', times: 1, truncate: 10}
  - {path: '*/document', times: 1, delayMs: 700}
";

/// What Tenon manages and a reboot or a repeated run must leave alone.
const FILES: &str = "find /etc/kubernetes /etc/containerd /etc/eks /var/lib/kubelet/kubeconfig \
                     -type f -printf '%p %m %i %T@\\n' | sort";

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let network = Network::lay(stage, &instance())?;
    let config = std::fs::read_to_string(checkout().join("golden/plain/config.yaml"))?;
    let answers = Answers { user_data: &config, faults: Some(TROUBLE), ..Answers::default() };
    let service = Metadata::serve(stage, &network, &answers)?;
    let disk = node_disk(stage, "boot")?;
    let machine = Machine::boot(&disk, &network)?;
    machine.settled()?;
    for case in [the_node_runs, containerd_runs_an_image, a_second_run_changes_nothing] {
        case(&machine)?;
    }
    killed_runs_are_cured(&machine)?;
    let before = machine.must(&["sh", "-c", FILES])?;
    machine.power_off()?;
    drop(service);

    let quiet = Answers { user_data: &config, ..Answers::default() };
    let _service = Metadata::serve(stage, &network, &quiet)?;
    let machine = Machine::boot(&disk, &network)?;
    machine.settled()?;
    the_node_runs(&machine)?;
    let after = machine.must(&["sh", "-c", FILES])?;
    ensure!(before == after, "a reboot changed files:\n{before}\n{after}");
    a_bundle_agrees_with_the_machine(&machine)?;
    machine.power_off()?;
    Ok(7)
}

/// An image whose kubelet is the stand-in, without cloud-init.
pub fn node_disk(stage: &Stage, name: &str) -> anyhow::Result<Disk> {
    let disk = Disk::new(stage, name)?;
    disk.program("usr/bin/kubelet", KUBELET)?;
    disk.write("etc/lab-health.yaml", HEALTHY)?;
    disk.write("etc/cloud/cloud-init.disabled", "")?;
    Ok(disk)
}

pub fn the_node_runs(machine: &Machine) -> anyhow::Result<()> {
    for unit in ["tenon-config", "tenon-run", "containerd", "kubelet"] {
        let state = machine.property(&format!("{unit}.service"), "ActiveState")?;
        ensure!(state == "active", "{unit} is {state}");
    }
    for unit in ["containerd", "kubelet"] {
        let group = machine.property(&format!("{unit}.service"), "ControlGroup")?;
        ensure!(group.starts_with("/runtime.slice/"), "{unit} runs in {group}");
        let restarts = machine.property(&format!("{unit}.service"), "NRestarts")?;
        ensure!(restarts == "0", "{unit} was started again {restarts} times");
    }
    let name = instance().hostname;
    let arguments = machine.must(&["cat", "/etc/eks/kubelet/environment"])?;
    let named = format!("--hostname-override={name} ");
    ensure!(arguments.contains(&named), "{name} is not in {arguments}");
    Ok(())
}

/// The config that Tenon wrote is accepted, and what it names works.
fn containerd_runs_an_image(machine: &Machine) -> anyhow::Result<()> {
    let plugins = machine.must(&["ctr", "plugins", "ls"])?;
    let cri = plugins.lines().find(|line| line.contains(" cri ")).context("no CRI plugin")?;
    ensure!(cri.trim_end().ends_with("ok"), "the CRI plugin: {cri}");
    let shown = machine.must(&["containerd", "config", "dump"])?;
    for line in ["sandbox_image = \"localhost/kubernetes/pause:latest\"", "SystemdCgroup = true"] {
        ensure!(shown.contains(line), "containerd does not run with {line}");
    }
    let image = crate::lab::PAUSE_IMAGE;
    let said =
        machine.must(&["ctr", "-n", "k8s.io", "run", "--rm", image, "test", "/pause", "hello"])?;
    ensure!(said.contains("hello from the pod"), "the container said {said:?}");
    Ok(())
}

fn a_second_run_changes_nothing(machine: &Machine) -> anyhow::Result<()> {
    let before = (machine.must(&["sh", "-c", FILES])?, starts(machine)?);
    must_find_nothing_to_do(machine)?;
    let after = (machine.must(&["sh", "-c", FILES])?, starts(machine)?);
    ensure!(before == after, "the second run changed something: {before:?} {after:?}");
    Ok(())
}

/// Power of one process is cut at several moments of a run that has work to do; the run after it
/// ends with the same files as a run that nobody disturbed.
fn killed_runs_are_cured(machine: &Machine) -> anyhow::Result<()> {
    let label = |value: &str| {
        let config = format!(
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: [\"--node-labels=try={value}\"]\n"
        );
        let script = format!("printf '%s' '{config}' >/etc/eks/nodeadm.d/10-label.yaml");
        machine.must(&["sh", "-c", &script]).map(drop)
    };
    for (number, moment) in [2, 5, 10, 20, 40, 80, 160].into_iter().enumerate() {
        label(&format!("killed-{number}"))?;
        // So many restarts in so few seconds are the test's doing.
        machine.must(&["systemctl", "reset-failed", "kubelet.service"])?;
        let moment = format!("0.{moment:03}");
        machine.run(&[&["timeout", "-s", "KILL", &moment], INIT].concat())?;
        succeeded(&init(machine)?)?;
        let arguments = machine.must(&["cat", "/etc/eks/kubelet/environment"])?;
        ensure!(arguments.contains(&format!("try=killed-{number}")), "not cured: {arguments}");
        let stray = machine.must(&["find", "/etc", "/var/lib", "-name", "*.tenon-*"])?;
        ensure!(stray.is_empty(), "killed after {moment} s, left {stray}");
        must_find_nothing_to_do(machine)?;
    }
    Ok(())
}

const INIT: &[&str] =
    &["tenon", "init", "-c", "imds://user-data", "-c", "file:///etc/eks/nodeadm.d/"];

fn init(machine: &Machine) -> anyhow::Result<Output> {
    machine.run(INIT)
}

fn succeeded(output: &Output) -> anyhow::Result<()> {
    ensure!(output.status.success(), "tenon init: {}\n{}", output.status, text(output));
    Ok(())
}

fn must_find_nothing_to_do(machine: &Machine) -> anyhow::Result<()> {
    let output = machine.run(&[INIT, &["--output", "json"]].concat())?;
    succeeded(&output)?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    ensure!(report["result"] == "unchanged", "a run with nothing to do: {report:#}");
    Ok(())
}

fn starts(machine: &Machine) -> anyhow::Result<String> {
    let kubelet = machine.must(&["cat", "/var/lib/kubelet.starts"])?;
    let containerd = machine.property("containerd.service", "ExecMainStartTimestampMonotonic")?;
    Ok(format!("{} {containerd}", kubelet.lines().count()))
}
