//! What only a boot can show of an image: the kernel's settings, the firewall in force, mounts,
//! the sandbox image, and that nothing which the plan names was changed by joining a cluster.

use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::super::machine::{Machine, text};
use super::super::network::Network;

/// Settings of the machine's own network, and what the profile makes of them.
const KERNEL: &[(&str, &str)] = &[
    ("net.ipv4.conf.all.accept_redirects", "0"),
    ("net.ipv4.conf.all.log_martians", "1"),
    ("net.ipv4.conf.all.rp_filter", "2"),
    ("net.ipv4.ip_forward", "1"),
];

/// Settings of the host's kernel that the lab lays over `/proc/sys`; the others cannot be seen.
const LAID_OVER: &[&str] =
    &["vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops"];

/// A port that services use, and one that nobody asked for.
const OPEN: &str = "30080";
const CLOSED: &str = "8080";

pub fn check(machine: &Machine, network: &Network, pause: &str) -> anyhow::Result<usize> {
    for (key, value) in KERNEL {
        let found = machine.must(&["sysctl", "--values", key])?;
        ensure!(found.trim() == *value, "{key} is {}", found.trim());
    }
    let options = machine.must(&["findmnt", "--noheadings", "--output", "OPTIONS", "/dev/shm"])?;
    for option in ["noexec", "nodev", "nosuid"] {
        ensure!(options.contains(option), "/dev/shm is mounted with {options}");
    }
    the_firewall_is_in_force(machine, network)?;
    the_sandbox_is_the_cached_image(machine, pause)?;
    still_as_planned(machine)?;
    Ok(5)
}

/// From outside, a service on a port that the node needs answers, and on another one does not.
fn the_firewall_is_in_force(machine: &Machine, network: &Network) -> anyhow::Result<()> {
    let rules = machine.must(&["nft", "list", "chain", "inet", "tenon", "input"])?;
    ensure!(rules.contains("policy drop"), "the firewall lets everything in: {rules}");
    let address = machine.must(&["hostname", "--all-ip-addresses"])?;
    let address = address.split_whitespace().next().context("the node has no address")?.to_owned();
    for port in [OPEN, CLOSED] {
        let unit = format!("--unit=lab-listener-{port}");
        let listen = format!("0.0.0.0:{port}");
        let serve = ["tenon", "imds", "serve", "--instance-type", "m5.large", "--allow-imdsv1"];
        machine.must(
            &[&["systemd-run", "--quiet", &unit], &serve[..], &["--listen", &listen]].concat(),
        )?;
    }
    let ask = |mut curl: Command, address: &str, port: &str| {
        curl.args(["--silent", "--show-error", "--max-time", "3", "--retry", "3"]);
        curl.args(["--retry-connrefused", "--output", "/dev/null"]);
        curl.arg(format!("http://{address}:{port}/latest/meta-data/")).output()
    };
    let here = machine.run(&[
        "curl",
        "--retry",
        "3",
        "--retry-connrefused",
        "--fail",
        "--silent",
        &format!("http://127.0.0.1:{CLOSED}/latest/meta-data/"),
    ])?;
    ensure!(here.status.success(), "nobody listens on {CLOSED}: {}", text(&here));
    let open = ask(network.in_infra("curl"), &address, OPEN)?;
    ensure!(open.status.success(), "port {OPEN} is closed: {}", text(&open));
    let closed = ask(network.in_infra("curl"), &address, CLOSED)?;
    // 28: no answer in time, as from a host that drops what it is sent.
    ensure!(closed.status.code() == Some(28), "port {CLOSED} is open: {}", text(&closed));
    for port in [OPEN, CLOSED] {
        machine.must(&["systemctl", "stop", &format!("lab-listener-{port}.service")])?;
    }
    Ok(())
}

/// No registry was asked: what runs is what the image carried, imported by its unit and pinned.
fn the_sandbox_is_the_cached_image(machine: &Machine, pause: &str) -> anyhow::Result<()> {
    let unit = format!("tenon-image-{}.service", &pause[..12]);
    let state = machine.property(&unit, "ActiveState")?;
    ensure!(state == "active", "{unit} is {state}");
    let images = machine.must(&["ctr", "--namespace", "k8s.io", "images", "list"])?;
    let rows: Vec<_> = images.lines().skip(1).collect();
    ensure!(!rows.is_empty() && rows.iter().all(|row| row.contains(pause)), "{images}");
    let pinned = rows.iter().filter(|row| row.contains("io.cri-containerd.pinned=pinned"));
    ensure!(pinned.count() >= 1, "nothing is pinned: {images}");
    let containers = machine.must(&["ctr", "--namespace", "k8s.io", "containers", "list"])?;
    // The sandbox and the container of the one pod.
    let running = containers.lines().skip(1).filter(|row| row.contains("pause")).count();
    ensure!(running == 2, "{containers}");
    Ok(())
}

/// Bootstrap and a pod have changed nothing that the image's plan names, and the running machine
/// is what it says, as far as its kernel is its own.
fn still_as_planned(machine: &Machine) -> anyhow::Result<()> {
    let output = machine.run(&["tenon", "image", "verify", "--running", "--output", "json"])?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("no JSON: {}", text(&output)))?;
    let checks = report["checks"].as_array().context("no checks")?;
    let odd: Vec<&Value> = checks
        .iter()
        .filter(|check| check["state"] != "pass" && check["state"] != "manual")
        .filter(|check| !is_of_the_host(check))
        .collect();
    ensure!(odd.is_empty(), "no longer as planned: {odd:#?}");
    let running = checks.iter().filter(|check| check["half"] == "running");
    let held = running.clone().filter(|check| check["state"] == "pass").count();
    println!(
        "  verify in the machine: {} checks; of the kernel {held} of {} hold, the others are the host's",
        checks.len(),
        running.count()
    );
    Ok(())
}

/// What no machine of the lab can change: settings, modules, arguments and /sys of the host.
fn is_of_the_host(check: &Value) -> bool {
    let key = check["key"].as_str().unwrap_or_default();
    let of_host = match check["act"].as_str().unwrap_or_default() {
        "module" | "kernel-argument" => true,
        "sysctl" => !LAID_OVER.contains(&key) && !key.starts_with("net.ipv"),
        "mount" => key.starts_with("/sys/"),
        _ => false,
    };
    check["half"] == "running" && of_host
}
