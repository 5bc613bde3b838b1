//! `tenon facts`, `tenon imds serve` and `tenon net` from outside, against the simulator.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tenon_host::simulator::Simulator;
use tenon_host::simulator::faults::{Faults, Rule};
use tenon_host::simulator::machine::{MachineProfile, populate};
use tenon_host::simulator::profile::Profile;

fn machine(profile: &Profile) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let machine = MachineProfile {
        cpus: 2,
        memory_mib: 8192,
        kubelet_version: "v1.34.1-eks-113cf36".into(),
        containerd_version: "2.1.5".into(),
        hostname: profile.hostname.clone(),
        mac: profile.mac.clone(),
        nvidia: false,
    };
    populate(dir.path(), &machine).unwrap();
    dir
}

fn tenon(endpoint: &str, root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    command
        .args(arguments)
        .arg("--root")
        .arg(root)
        .env_clear()
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint)
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn terminate(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

#[test]
fn facts_print_what_the_machine_is_and_read_back() {
    let profile = Profile::new("m5.large").with_ipv6();
    let simulator = Simulator::start(&profile, Faults::default()).unwrap();
    let root = machine(&profile);
    let output = tenon(&simulator.endpoint(), root.path(), &["facts"]).output().unwrap();
    let facts = json(&output);
    assert_eq!(facts["instance"]["id"], profile.id.as_str());
    assert_eq!(facts["instance"]["ipv6"].as_array().unwrap().len(), 2);
    assert_eq!(facts["machine"]["onlineCpus"], 2);
    assert_eq!(facts["machine"]["links"][0]["mac"], profile.mac.as_str());
    assert!(simulator.log().len() <= 8, "{:?}", simulator.log());
    assert_eq!(simulator.count("/token"), 1);

    let file = root.path().join("facts.json");
    std::fs::write(&file, &output.stdout).unwrap();
    let before = simulator.log().len();
    let again =
        tenon(&simulator.endpoint(), root.path(), &["facts"]).arg("--facts").arg(&file).output();
    assert_eq!(json(&again.unwrap()), facts);
    assert_eq!(simulator.log().len(), before, "replayed facts ask nobody");
}

#[test]
fn row_01_a_switched_off_service_ends_with_5() {
    let profile = Profile::new("m5.large");
    let rule = Rule { status: Some(403), ..Rule::on("*/token") };
    let simulator = Simulator::start(&profile, Faults::of([rule])).unwrap();
    let root = machine(&profile);
    let output = tenon(&simulator.endpoint(), root.path(), &["facts"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("error TN05002") && text.contains("--http-endpoint enabled"), "{text}");
}

#[test]
fn row_40_sigterm_ends_a_wait_for_the_service_at_once() {
    let profile = Profile::new("m5.large");
    let rule = Rule { hang: true, ..Rule::on("*") };
    let simulator = Simulator::start(&profile, Faults::of([rule])).unwrap();
    let root = machine(&profile);
    let child = tenon(&simulator.endpoint(), root.path(), &["facts"]).spawn().unwrap();
    let began = Instant::now();
    while simulator.log().is_empty() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(2));
    }
    terminate(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{output:?}");
    assert_eq!(simulator.log().len(), 1, "the first attempt had not ended by itself");
}

#[test]
fn the_service_serves_and_stops_on_sigterm() {
    let root = tempfile::tempdir().unwrap();
    let script = root.path().join("faults.yaml");
    std::fs::write(&script, "rules:\n  - {path: '*/mac', status: 503}\n").unwrap();
    let arguments = ["imds", "serve", "--instance-type", "m5.large", "--listen", "127.0.0.1:0"];
    let mut command = tenon("", root.path(), &arguments);
    let mut child =
        command.args(["--log", "--allow-imdsv1", "--faults"]).arg(&script).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("AWS_EC2_METADATA_SERVICE_ENDPOINT=http://").unwrap();
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let answer = ask("/latest/meta-data/instance-type");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("m5.large"), "{answer}");
    assert!(ask("/latest/meta-data/mac").starts_with("HTTP/1.1 503"));
    terminate(&child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn net_udev_writes_the_files_of_a_link_and_refuses_bad_names() {
    let profile = Profile::new("m5.large");
    let simulator = Simulator::start(&profile, Faults::default()).unwrap();
    let root = machine(&profile);
    let udev = |name: &str| {
        let arguments = ["net", "udev", "--action", "add", "--interface", name];
        tenon(&simulator.endpoint(), root.path(), &arguments).output().unwrap()
    };
    let output = udev("ens5");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(root.path().join("run/systemd/network/70-eks-ens5.network").exists());
    for name in ["", "../x", "a-name-that-is-too-long"] {
        assert_eq!(udev(name).status.code(), Some(64), "{name}");
    }
}
