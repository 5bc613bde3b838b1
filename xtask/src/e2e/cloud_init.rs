//! User data goes through both of its readers: cloud-init takes its parts from the metadata
//! service, Tenon takes its own, and the user's script sees the config phase done and is heard by
//! the run phase.

use std::fs;
use std::process::Command;

use anyhow::{Context, ensure};

use super::boot::{node_disk, the_node_runs};
use super::machine::{Machine, text};
use super::metadata::{Answers, Metadata, instance};
use super::network::Network;
use super::stage::Stage;
use crate::checkout;

const CLOUD_CONFIG: &str = "#cloud-config
write_files:
  - {path: /etc/lab-cloud-config, content: written}
";

/// Notes what it finds, and leaves a config for the run phase.
const SCRIPT: &str = "#!/bin/sh
test -s /etc/kubernetes/kubelet/config.json && echo config-done >/etc/lab-script
systemctl is-active kubelet.service >>/etc/lab-script
cat >/etc/eks/nodeadm.d/20-script.yaml <<END
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    flags: [--node-labels=from=script]
END
";

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let network = Network::lay(stage, &instance())?;
    let user_data = user_data(stage)?;
    let answers = Answers { user_data: &user_data, without_token: true, ..Answers::default() };
    let _service = Metadata::serve(stage, &network, &answers)?;
    let disk = node_disk(stage, "cloud-init")?;
    disk.remove("etc/cloud/cloud-init.disabled")?;
    let machine = Machine::boot(&disk, &network)?;
    machine.settled()?;
    let cases = [cloud_init_is_done, its_parts_are_done, the_script_is_heard, the_node_runs];
    for case in cases {
        case(&machine)?;
    }
    machine.power_off()?;
    Ok(cases.len())
}

/// A message with a part for each reader, as `tenon userdata render` writes it.
fn user_data(stage: &Stage) -> anyhow::Result<String> {
    let (script, cloud_config) = (stage.place.join("script"), stage.place.join("cloud-config"));
    fs::write(&script, SCRIPT)?;
    fs::write(&cloud_config, CLOUD_CONFIG)?;
    let output = Command::new(&stage.tenon)
        .args(["userdata", "render", "--family", "AmazonLinux2023", "--name", "lab"])
        .arg("--config-source")
        .arg(checkout().join("golden/plain/config.yaml"))
        .arg("--pre")
        .arg(script)
        .arg("--custom")
        .arg(cloud_config)
        .output()
        .context("starting tenon")?;
    ensure!(output.status.success(), "tenon userdata render: {}", text(&output));
    Ok(String::from_utf8(output.stdout)?)
}

fn cloud_init_is_done(machine: &Machine) -> anyhow::Result<()> {
    let status = machine.must(&["cloud-init", "status", "--wait", "--long"])?;
    ensure!(status.contains("status: done"), "cloud-init: {status}");
    ensure!(status.contains("DataSourceEc2"), "another data source: {status}");
    Ok(())
}

fn its_parts_are_done(machine: &Machine) -> anyhow::Result<()> {
    let written = machine.must(&["cat", "/etc/lab-cloud-config"])?;
    ensure!(written == "written", "write_files left {written:?}");
    let id = machine.must(&["cloud-init", "query", "instance_id"])?;
    ensure!(id.trim() == instance().id, "the instance is {id}");
    Ok(())
}

fn the_script_is_heard(machine: &Machine) -> anyhow::Result<()> {
    let seen = machine.must(&["cat", "/etc/lab-script"])?;
    ensure!(seen == "config-done\ninactive\n", "the script saw {seen:?}");
    let arguments = machine.must(&["cat", "/etc/eks/kubelet/environment"])?;
    ensure!(arguments.contains("--node-labels=from=script"), "not heard: {arguments}");
    Ok(())
}
