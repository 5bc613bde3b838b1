//! The whole way: a machine boots, Tenon reads its user data from the metadata service, containerd
//! and the kubelet start, the node joins a real control plane, becomes Ready and runs a pod.
//!
//! Only the credential is a stand-in: `aws eks get-token` prints a token that the API server knows.

pub mod broken;
mod checks;
mod control_plane;
mod harden;
mod pki;
mod shape;
mod timeline;
pub mod vm;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use self::control_plane::{ControlPlane, TOKEN};
use self::shape::Shape;
pub use self::timeline::save as save_timeline;
use super::machine::{Disk, Machine, text};
use super::metadata::{Answers, Metadata};
use super::network::Network;
use super::stage::Stage;
use crate::lab::{CONTAINERD_1_7, CONTAINERD_2, KUBERNETES_1_34, KUBERNETES_1_36};

/// The node's user data. Some of it is owed to the host that the lab runs on, which has cgroup v1,
/// and may neither raise hard limits nor lower the score of a process that memory pressure kills
/// first.
const USER_DATA: &str = "apiVersion: tenon.dev/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: lab
    apiServerEndpoint: https://{endpoint}:6443
    certificateAuthority: {authority}
    cidr: {services}
  instance:
    # Nobody listens there: what is of the cluster or of the network must go past it.
    proxy: {http: \"http://{endpoint}:3128\", https: \"http://{endpoint}:3128\", noProxy: [\".corp\", \"2a05:d018::/56\"]}
  node:
    labels: {team: web, zone.corp/rack: \"12\"}
    taints:
      - {key: dedicated, value: lab, effect: NoSchedule}
  kubelet:
    config:
      imageGCHighThresholdPercent: 91
      imageGCLowThresholdPercent: 89
      failCgroupV1: false
      cgroupDriver: {driver}
      # The disk is the host's, however full that is.
      evictionHard: {nodefs.available: 1%, nodefs.inodesFree: 1%}
  containerd:
    config: |
      [plugins.\"{table}\"]
      restrict_oom_score_adj = true
      [plugins.\"{table}\".containerd.runtimes.runc.options]
      SystemdCgroup = {systemd}
    baseRuntimeSpec:
      process:
        rlimits:
          - {type: RLIMIT_NOFILE, soft: 4096, hard: 8192}
";

/// Plays the scenario with Kubernetes 1.34.
pub fn run_1_34(stage: &Stage) -> anyhow::Result<usize> {
    run(stage, &Shape::new("1.34", KUBERNETES_1_34.ready(&stage.cache)?))
}

/// Plays the scenario with Kubernetes 1.36 and containerd 2.
pub fn run_1_36(stage: &Stage) -> anyhow::Result<usize> {
    let shape = Shape::new("1.36", KUBERNETES_1_36.ready(&stage.cache)?);
    run(stage, &shape.with_containerd("2.1", CONTAINERD_2.ready(&stage.cache)?))
}

/// Plays the scenario in a cluster whose services, nodes and pods have IPv6 addresses, with
/// containerd 1.7, and with the other cgroup driver.
pub fn run_ipv6(stage: &Stage) -> anyhow::Result<usize> {
    let shape = Shape::new("1.34", KUBERNETES_1_34.ready(&stage.cache)?).with_ipv6();
    let shape = shape.with_containerd("1.7", CONTAINERD_1_7.ready(&stage.cache)?);
    run(stage, &shape.with_cgroupfs())
}

fn run(stage: &Stage, shape: &Shape) -> anyhow::Result<usize> {
    let network = Network::lay(stage, &shape.instance)?;
    let mut plane = ControlPlane::start(stage, &network, shape)?;
    println!("  control plane is ready");
    let user_data = user_data(&plane, shape)?;
    let ipv6 = shape.is_ipv6();
    let answers = Answers { user_data: &user_data, ipv6, ..Answers::default() };
    let _service = Metadata::serve(stage, &network, &answers)?;

    let disk = node_disk(stage, shape)?;
    let start = Instant::now();
    let machine = Machine::boot(&disk, &network)?;
    checks::becomes_ready(&mut plane, shape)?;
    println!("  boot to Ready: {:.1} s", start.elapsed().as_secs_f64());
    machine.settled()?;
    let mut cases = timeline::check(stage, &machine, shape)?;
    cases += checks::of_the_node(&mut plane, &machine, shape)?;
    cases += checks::of_a_pod(&mut plane, shape)?;
    cases += checks::of_the_log(&machine)?;
    let before = checks::of_a_reboot_before(&machine, &plane, shape)?;
    machine.power_off()?;

    let machine = Machine::boot(&disk, &network)?;
    machine.settled()?;
    checks::of_a_reboot_after(&mut plane, &machine, shape, &before)?;
    a_bad_flag_is_explained(&machine)?;
    cases += harden::of_hardening(&mut plane, &machine, shape)?;
    machine.power_off()?;
    Ok(cases + 2)
}

/// An image that Tenon built joins: the node becomes Ready, runs a pod, and is what the image's
/// plan says. `root` may be several directories, the upper ones first. Gives what the caller asks
/// the machine, too.
pub fn run_on_image(
    stage: &Stage,
    root: PathBuf,
    check: impl FnOnce(&Machine, &Network) -> anyhow::Result<usize>,
) -> anyhow::Result<usize> {
    let shape = Shape::new("1.34", KUBERNETES_1_34.ready(&stage.cache)?);
    let network = Network::lay(stage, &shape.instance)?;
    let mut plane = ControlPlane::start(stage, &network, &shape)?;
    let user_data = user_data(&plane, &shape)?;
    let answers = Answers { user_data: &user_data, ..Answers::default() };
    let _service = Metadata::serve(stage, &network, &answers)?;
    let disk = Disk::of_image(stage, "node", root)?;
    dress(&disk, &shape)?;
    for unit in OF_THE_HOST {
        let path = format!("etc/systemd/system/{unit}.d/90-lab.conf");
        disk.write(&path, "[Unit]\nConditionVirtualization=!container\n")?;
    }
    disk.write("etc/systemd/system/ssh.service.d/90-lab.conf", HOST_KEYS)?;
    disk.write("etc/default/chrony", CLOCK)?;
    let start = Instant::now();
    let machine = Machine::boot(&disk, &network)?;
    checks::becomes_ready(&mut plane, &shape)?;
    println!("  the image: boot to Ready in {:.1} s", start.elapsed().as_secs_f64());
    machine.settled()?;
    let mut cases = checks::of_the_node(&mut plane, &machine, &shape)?;
    cases += checks::of_a_pod(&mut plane, &shape)?;
    cases += checks::of_the_log(&machine)?;
    cases += check(&machine, &network)?;
    machine.power_off()?;
    Ok(cases)
}

/// Modules are the host's, and no machine here may load one.
const OF_THE_HOST: &[&str] = &["systemd-modules-load.service", "run-rpc_pipefs.mount"];

/// The clock is the host's, too: chrony looks at it and leaves it alone.
const CLOCK: &str = "DAEMON_OPTS=\"-F 1 -x\"\n";

/// A sealed image has no keys of a host; cloud-init makes them, which does not run here.
const HOST_KEYS: &str = "[Service]
ExecStartPre=
ExecStartPre=/usr/bin/ssh-keygen -A
ExecStartPre=/usr/sbin/sshd -t
";

/// The image with the real kubelet, the node's token and a network for its pods.
fn node_disk(stage: &Stage, shape: &Shape) -> anyhow::Result<Disk> {
    let disk = Disk::new(stage, "node")?;
    dress(&disk, shape)?;
    disk.install(&shape.kubernetes.join("kubelet"), "usr/bin/kubelet")?;
    if let Some(containerd) = &shape.containerd {
        for program in ["containerd", "containerd-shim-runc-v2", "ctr"] {
            let path = format!("usr/bin/{program}");
            disk.install(&containerd.place.join(&path), &path)?;
        }
    }
    Ok(disk)
}

/// The node's token and a network for its pods, without cloud-init.
fn dress(disk: &Disk, shape: &Shape) -> anyhow::Result<()> {
    disk.write("etc/cloud/cloud-init.disabled", "")?;
    disk.write("etc/lab-token", TOKEN)?;
    disk.write("etc/cni/net.d/10-lab.conflist", &pod_network(shape).to_string())
}

/// Config of a bridge for the node's pods.
fn pod_network(shape: &Shape) -> Value {
    let (pods, all) = (shape.pods(), shape.everywhere());
    let address = json!({
        "type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": all}],
    });
    json!({
        "cniVersion": "0.4.0",
        "name": "lab",
        "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": address}],
    })
}

fn user_data(plane: &ControlPlane, shape: &Shape) -> anyhow::Result<String> {
    let authority = fs::read(plane.pki.path("ca.crt"))?;
    Ok(USER_DATA
        .replace("{endpoint}", shape.endpoint())
        .replace("{services}", shape.services())
        .replace("{table}", shape.runtime_table())
        .replace("{driver}", if shape.cgroupfs { "cgroupfs" } else { "systemd" })
        .replace("{systemd}", if shape.cgroupfs { "false" } else { "true" })
        .replace("{authority}", &base64(&authority)))
}

/// The standard alphabet with padding.
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for at in 0..4 {
            let letter = ALPHABET[(word >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// A flag that this kubelet does not know: Tenon waits, sees it fail, and shows its own words.
fn a_bad_flag_is_explained(machine: &Machine) -> anyhow::Result<()> {
    let config = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: [--no-such-flag=1]\n";
    let script = format!("printf '%s' '{config}' >/etc/eks/nodeadm.d/90-bad.yaml");
    machine.must(&["sh", "-c", &script])?;
    let init = ["tenon", "init", "-c", "imds://user-data", "-c", "file:///etc/eks/nodeadm.d/"];
    let output = machine.run(&init)?;
    let said = text(&output);
    ensure!(output.status.code() == Some(8), "exit {:?}: {said}", output.status.code());
    let line = said.lines().find(|line| line.contains("unknown flag: --no-such-flag"));
    line.with_context(|| format!("the kubelet's own words are missing: {said}"))?;
    ensure!(said.contains("kubelet.service"), "the unit is not named: {said}");
    machine.must(&["rm", "/etc/eks/nodeadm.d/90-bad.yaml"])?;
    let cured = machine.run(&init)?;
    ensure!(cured.status.success(), "not cured: {}", text(&cured));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn the_vectors_of_rfc_4648() {
        let vectors =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, encoded) in vectors {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
