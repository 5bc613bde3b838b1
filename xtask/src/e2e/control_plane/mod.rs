//! A cluster from nothing: an empty machine starts etcd, a temporary control plane and the final
//! one as static pods of a real kubelet; a second machine joins by token and its own certificate;
//! add-ons with a definition of their own are applied.
//!
//! On the way everything goes wrong once: a port is taken, etcd's directory is not empty, and the
//! bootstrap is killed in the middle, several times.

mod checks;
mod disks;
mod lan;

use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::Value;

use self::disks::{MASTER, MASTER_ADDRESS, Release, WORKER, WORKER_ADDRESS};
use self::lan::Lan;
use super::machine::{Disk, Machine, text};
use super::network::Network;
use super::stage::Stage;
use crate::lab::{IMAGES_1_34, IMAGES_1_36, KUBERNETES_1_34, KUBERNETES_1_36};

/// Seconds that one run of the bootstrap may take on a busy host.
const BOOTSTRAP: u64 = 540;
/// The steps in whose middle a run is killed, one run after another.
const KILLS: &[&str] =
    &["etcd", "bootstrap-plane", "objects", "final-plane", "hand-over", "verify"];
const STATE: &str = "/var/lib/tenon/state.json";

const RELEASE_1_34: Release = Release { kubernetes: KUBERNETES_1_34, images: IMAGES_1_34 };
const RELEASE_1_36: Release = Release { kubernetes: KUBERNETES_1_36, images: IMAGES_1_36 };
/// Up to a kubelet; what comes after is run by hand, to be disturbed.
const PREPARED: &[&str] = &["k8s-node-bootstrap.service", "kubelet.service"];
/// Everything that a first master has.
const EVERYTHING: &[&str] = &[
    "tenon-assets.service",
    "k8s-node-bootstrap.service",
    "tenon-runtime-reset.service",
    "kubelet.service",
    "tenon-bootstrap.path",
    "tenon-addons.path",
    "tenon-cleanup.service",
];

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let lan = Lan::new(stage)?;
    let network = lan.plug(stage, "cp", MASTER_ADDRESS)?;
    let disk = disks::master(stage, &RELEASE_1_34, "loopback", PREPARED)?;
    disks::with_deployment(&disk)?;
    let start = Instant::now();
    let master = Machine::boot(&disk, &network)?;
    prepared(&master)?;
    println!("  machine from boot to a kubelet: {:.1} s", start.elapsed().as_secs_f64());
    a_taken_port_blocks(&master)?;
    foreign_data_blocks(&master)?;
    let kills = killed_and_run_again(&master)?;
    checks::keys_for_questions(&master)?;
    let mut cases = 2 + kills + checks::of_the_control_plane(&master)?;
    a_second_run_changes_nothing(&master)?;

    let authority = master.must(&["cat", "/etc/kubernetes/pki/ca.crt"])?;
    let cable = lan.plug(stage, "worker", WORKER_ADDRESS)?;
    let worker_disk = disks::worker(stage, &RELEASE_1_34, &authority)?;
    let start = Instant::now();
    let worker = Machine::boot(&worker_disk, &cable)?;
    checks::wait_until("the worker is Ready", 180, || {
        let node = checks::get(&master, &format!("/api/v1/nodes/{WORKER}"))?;
        Ok(checks::is_true(&node, "Ready").then_some(()))
    })?;
    println!("  worker from boot to Ready: {:.1} s", start.elapsed().as_secs_f64());
    cases += checks::of_the_worker(&master, &worker)?;
    add_ons(&master)?;
    cases += 1 + checks::of_the_add_ons(&master)?;
    drop(worker);
    drop(master);
    the_cluster_comes_back(&disk, &network)?;
    Ok(cases + 2)
}

/// Nobody touches the machine: its units start each other, from the first boot to the add-ons.
pub fn run_units(stage: &Stage) -> anyhow::Result<usize> {
    let network = Lan::new(stage)?.plug(stage, "cp", MASTER_ADDRESS)?;
    let disk = disks::master(stage, &RELEASE_1_36, "direct", EVERYTHING)?;
    let start = Instant::now();
    let master = Machine::boot(&disk, &network)?;
    checks::wait_until("the add-ons are done", 300, || {
        let done = master.run(&["test", "-e", "/var/lib/tenon/done/addons"])?;
        Ok(done.status.success().then_some(()))
    })?;
    println!("  boot to add-ons: {:.1} s", start.elapsed().as_secs_f64());
    for unit in ["k8s-node-bootstrap", "tenon-bootstrap", "tenon-addons"] {
        checks::wait_until(&format!("{unit} is over"), 20, || {
            let state = master.property(&format!("{unit}.service"), "ActiveState")?;
            let runs = master.property(&format!("{unit}.service"), "NRestarts")?;
            ensure!(state == "active" && runs == "0", "{unit} is {state} after {runs} restarts");
            Ok(Some(()))
        })?;
    }
    let failed = master.must(&["systemctl", "--failed", "--plain", "--no-legend"])?;
    ensure!(failed.is_empty(), "failed: {failed}");
    checks::wait_until("every stage is done", 30, || {
        let status = master.run(&["tenon", "stage", "status"])?;
        ensure!(status.status.success(), "{}", text(&status));
        Ok(Some(()))
    })?;
    checks::keys_for_questions(&master)?;
    let cases = checks::of_the_control_plane(&master)?;
    checks::version_is(&master, "v1.36.")?;
    Ok(cases + 2)
}

/// The power of both machines failed; the master alone brings its cluster up again, by what the
/// kubelet finds on its disk.
fn the_cluster_comes_back(disk: &Disk, network: &Network) -> anyhow::Result<()> {
    let start = Instant::now();
    let master = Machine::boot(disk, network)?;
    checks::wait_until("the API answers after a power cut", 180, || {
        let node = checks::get(&master, &format!("/api/v1/nodes/{MASTER}"))?;
        Ok(node["metadata"]["uid"].is_string().then_some(()))
    })?;
    println!("  master from boot to an answer: {:.1} s", start.elapsed().as_secs_f64());
    a_second_run_changes_nothing(&master)
}

/// The first stage is done, by its unit, and the kubelet runs.
fn prepared(master: &Machine) -> anyhow::Result<()> {
    checks::wait_until("the kubelet is healthy", 120, || {
        let healthy = master.run(&["curl", "-sf", "http://127.0.0.1:10248/healthz"])?;
        Ok(healthy.status.success().then_some(()))
    })?;
    master.must(&["test", "-e", "/var/lib/tenon/done/prepare"]).map(drop)
}

/// Runs the bootstrap, expects this exit code and these words, and that nothing was written.
fn blocked(master: &Machine, exit: i32, words: &str) -> anyhow::Result<()> {
    master.must(&["tenon", "stage", "reset", "bootstrap", "--yes"])?;
    let output = master.run(&["tenon", "stage", "bootstrap"])?;
    let said = text(&output);
    ensure!(output.status.code() == Some(exit), "exit {:?}, not {exit}: {said}", output.status);
    ensure!(said.contains(words), "{words} is not in {said}");
    let state: Value = serde_json::from_str(&master.must(&["cat", STATE])?)?;
    let stage = &state["stages"]["bootstrap"];
    ensure!(stage["status"] == "blocked", "the stage is {}", stage["status"]);
    ensure!(
        stage["lastError"]["what"].as_str().is_some_and(|what| what.contains(words)),
        "{stage}"
    );
    ensure!(stage["lastError"]["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{stage}");
    master.must(&[
        "sh",
        "-c",
        "! ls /etc/kubernetes/manifests/*.yaml && test ! -e /var/lib/tenon/trigger/bootstrap",
    ])?;
    Ok(())
}

fn a_taken_port_blocks(master: &Machine) -> anyhow::Result<()> {
    let listen = "TCP-LISTEN:10259,fork,reuseaddr";
    master.must(&["systemd-run", "--unit=squatter", "socat", listen, "SYSTEM:true"])?;
    checks::wait_until("somebody takes the port", 10, || {
        let shown = master.must(&["ss", "-ltn"])?;
        Ok(shown.contains(":10259 ").then_some(()))
    })?;
    blocked(master, 6, "port 10259")?;
    master.must(&["systemctl", "stop", "squatter"]).map(drop)
}

fn foreign_data_blocks(master: &Machine) -> anyhow::Result<()> {
    master.must(&["mkdir", "-p", "/var/lib/etcd/member/snap"])?;
    blocked(master, 12, "/var/lib/etcd is not empty")?;
    master.must(&["test", "-d", "/var/lib/etcd/member/snap"])?;
    master.must(&["rm", "-r", "/var/lib/etcd"]).map(drop)
}

/// Kills a run as soon as the state names the step; ends with 137 if it came to that.
const KILL: &str = "tenon stage bootstrap & run=$!
while kill -0 $run 2>/dev/null && ! grep -q '\"step\": \"'$1'\"' /var/lib/tenon/state.json; do
    sleep 0.02
done
sleep 0.1
kill -KILL $run 2>/dev/null
wait $run";

/// The process is killed in the middle of its steps; the last run ends the work.
fn killed_and_run_again(master: &Machine) -> anyhow::Result<usize> {
    for step in KILLS {
        let output = master.run_within(BOOTSTRAP, &["sh", "-c", KILL, "sh", step])?;
        let code = output.status.code();
        ensure!(code == Some(137), "not killed in {step} but {code:?}: {}", text(&output));
        println!("  killed in {step}");
    }
    let start = Instant::now();
    let output = master.run_within(BOOTSTRAP, &["tenon", "stage", "bootstrap"])?;
    ensure!(output.status.success(), "tenon stage bootstrap: {}\n{}", output.status, text(&output));
    println!("  last run of the bootstrap: {:.1} s", start.elapsed().as_secs_f64());
    Ok(KILLS.len())
}

const FILES: &str = "find /etc/kubernetes /var/lib/tenon -type f -not -path '*/lock/*' \
                     -printf '%p %m %i %T@\\n' | sort";

fn a_second_run_changes_nothing(master: &Machine) -> anyhow::Result<()> {
    let before = master.must(&["sh", "-c", FILES])?;
    let answer = master.must(&["tenon", "stage", "bootstrap", "--output", "json"])?;
    let answer: Value = serde_json::from_str(&answer).context("the answer of a second run")?;
    ensure!(answer["changed"] == false, "a second run did something: {answer}");
    let after = master.must(&["sh", "-c", FILES])?;
    ensure!(before == after, "a second run changed files:\n{before}\n{after}");
    Ok(())
}

fn add_ons(master: &Machine) -> anyhow::Result<()> {
    let start = Instant::now();
    let output = master.run_within(300, &["tenon", "stage", "addons"])?;
    ensure!(output.status.success(), "tenon stage addons: {}\n{}", output.status, text(&output));
    println!("  add-ons applied and ready: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
