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

use self::disks::{IMAGES, MASTER_ADDRESS, WORKER, WORKER_ADDRESS};
use self::lan::Lan;
use super::machine::{Machine, text};
use super::stage::Stage;

/// Seconds that one run of the bootstrap may take on a busy host.
const BOOTSTRAP: u64 = 540;
/// When a run is killed, in seconds after its start: while etcd starts, while the temporary plane
/// does, and about the hand-over.
const KILLS: &[&str] = &["2", "9", "22", "38"];
const STATE: &str = "/var/lib/tenon/state.json";

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let lan = Lan::new(stage)?;
    let network = lan.plug(stage, "cp", MASTER_ADDRESS)?;
    let disk = disks::master(stage)?;
    let master = Machine::boot(&disk, &network)?;
    master.wait_for_boot()?;
    for name in IMAGES {
        master.must(&["ctr", "-n", "k8s.io", "images", "import", &format!("/opt/{name}.tar")])?;
    }
    prepared(&master)?;
    println!("  machine is prepared");
    a_taken_port_blocks(&master)?;
    foreign_data_blocks(&master)?;
    let kills = killed_and_run_again(&master)?;
    checks::keys_for_questions(&master)?;
    let mut cases = 2 + kills + checks::of_the_control_plane(&master)?;
    a_second_run_changes_nothing(&master)?;

    let authority = master.must(&["cat", "/etc/kubernetes/pki/ca.crt"])?;
    let network = lan.plug(stage, "worker", WORKER_ADDRESS)?;
    let worker_disk = disks::worker(stage, &authority)?;
    let start = Instant::now();
    let worker = Machine::boot(&worker_disk, &network)?;
    checks::wait_until("the worker is Ready", 180, || {
        let node = checks::get(&master, &format!("/api/v1/nodes/{WORKER}"))?;
        Ok(checks::is_true(&node, "Ready").then_some(()))
    })?;
    println!("  worker from boot to Ready: {:.1} s", start.elapsed().as_secs_f64());
    cases += checks::of_the_worker(&master, &worker)?;
    add_ons(&master)?;
    cases += 1 + checks::of_the_add_ons(&master)?;
    worker.power_off()?;
    master.power_off()?;
    Ok(cases + 1)
}

/// What `stage prepare` leaves: keys for the kubelet, and the kubelet running.
fn prepared(master: &Machine) -> anyhow::Result<()> {
    let words = ["tenon", "stage", "bootstrap", "--phase", "pki", "--phase", "kubeconfig"];
    master.must(&words)?;
    checks::wait_until("the kubelet is healthy", 90, || {
        let healthy = master.run(&["curl", "-sf", "http://127.0.0.1:10248/healthz"])?;
        Ok(healthy.status.success().then_some(()))
    })
}

/// Runs the bootstrap, expects this exit code and these words, and that nothing was written.
fn blocked(master: &Machine, exit: i32, words: &str) -> anyhow::Result<()> {
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

/// Power of the process is cut at several moments; the last run ends the work.
fn killed_and_run_again(master: &Machine) -> anyhow::Result<usize> {
    for moment in KILLS {
        let output =
            master.run(&["timeout", "-s", "KILL", moment, "tenon", "stage", "bootstrap"])?;
        println!("  killed after {moment} s: {}", last_step(master)?);
        ensure!(output.status.code() != Some(0), "a run of {moment} s was enough");
    }
    let start = Instant::now();
    let output = master.run_within(BOOTSTRAP, &["tenon", "stage", "bootstrap"])?;
    ensure!(output.status.success(), "tenon stage bootstrap: {}\n{}", output.status, text(&output));
    println!("  last run of the bootstrap: {:.1} s", start.elapsed().as_secs_f64());
    Ok(KILLS.len())
}

fn last_step(master: &Machine) -> anyhow::Result<String> {
    let state: Value = serde_json::from_str(&master.must(&["cat", STATE])?)?;
    Ok(state["stages"]["bootstrap"]["step"].as_str().unwrap_or("no step").to_owned())
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
