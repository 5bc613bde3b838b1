//! Generated scripts and files, executed: environment files read by bash, the self-contained
//! bootstrap in a sandbox root against the simulated metadata service, the sender of signals.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::channel;

use anyhow::{Context, ensure};
use tenon_core::userdata::quote::env;
use tenon_core::userdata::{Group, Mode, Options, render};
use tenon_host::simulator::Simulator;
use tenon_host::simulator::faults::{Faults, Rule};
use tenon_host::simulator::profile::Profile;

use super::super::Lab;
use super::{Verdict, cases};

/// Values that would do harm in a file that is not quoted well.
const HOSTILE: [&str; 12] = [
    "plain",
    "two words",
    "it's",
    "say \"hi\"",
    "$HOME $(id) `id`",
    "back\\slash",
    "trailing\\",
    "50%n",
    "a;b&c|d",
    "</powershell>",
    "#not a comment",
    "grüße \u{2019}",
];

/// bash reads every hostile value back as it was.
pub fn environment_files(work: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict { reader: "bash source", cases: 0, findings: Vec::new() };
    let path = work.join("hostile.env");
    for value in HOSTILE {
        fs::write(
            &path,
            env::line("VALUE", value).map_err(|refused| anyhow::anyhow!("{refused:?}"))?,
        )?;
        let script = ". \"$1\"; printf %s \"$VALUE\"";
        for shell in ["bash", "sh"] {
            let output =
                Command::new(shell).args(["-eu", "-c", script, shell]).arg(&path).output()?;
            verdict.cases += 1;
            if output.stdout != value.as_bytes() {
                verdict.findings.push(format!("{shell} read another value for {value:?}"));
            }
        }
    }
    Ok(verdict)
}

/// Name, change to the group, instance type, faults, and the limit it must find.
type Node = (&'static str, fn(&mut Group), &'static str, Faults, Option<&'static str>);

/// The files of a self-contained node, run as the node would run them.
pub fn self_contained(lab: &Lab, work: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict { reader: "self-contained script", cases: 0, findings: Vec::new() };
    let fixed = |group: &mut Group| group.max_pods = Some(17);
    let ceiling = |group: &mut Group| {
        group.max_pods = Some(20);
        group.max_pods_policy = tenon_core::userdata::group::MaxPodsPolicy::Min;
    };
    let plain: fn(&mut Group) = |_| {};
    let slow = Faults::of([Rule { status: Some(503), times: Some(2), ..Rule::on("*/token") }]);
    let cases: [Node; 5] = [
        ("map", plain, "m5.large", Faults::default(), Some("29")),
        ("fixed", fixed, "m5.large", Faults::default(), Some("17")),
        ("ceiling", ceiling, "m5.large", Faults::default(), Some("20")),
        ("slow", plain, "m5.large", slow, Some("29")),
        ("no-row", plain, "c5.large", Faults::default(), None),
    ];
    for (name, change, instance_type, faults, limit) in cases {
        verdict.cases += 1;
        if let Err(error) =
            one_node(lab, &work.join("node").join(name), change, instance_type, faults, limit)
        {
            verdict.findings.push(format!("{name}: {error:#}"));
        }
    }
    Ok(verdict)
}

fn one_node(
    lab: &Lab,
    root: &Path,
    change: fn(&mut Group),
    instance_type: &str,
    faults: Faults,
    limit: Option<&str>,
) -> anyhow::Result<()> {
    let (cluster, groups) = cases::described(lab)?;
    let mut group = groups[0].clone();
    (group.instance_store, group.proxy, group.max_pods) = (None, None, None);
    change(&mut group);
    let rendered = render(&cluster, &group, Mode::SelfContained, &Options::default())
        .map_err(|findings| anyhow::anyhow!("{findings:?}"))?;
    for file in rendered.document.files() {
        use std::os::unix::fs::PermissionsExt;
        let path = root.join(file.path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        fs::write(&path, &file.content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))?;
    }
    let simulator = Simulator::start(&Profile::new(instance_type), faults)?;
    let unit = fs::read_to_string(root.join("etc/systemd/system/tenon-bootstrap.service"))?;
    let start =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).context("ExecStart")?;
    let output = in_sandbox(root, start, &simulator.endpoint())?;
    let Some(limit) = limit else {
        ensure!(!output.status.success(), "an unknown type is accepted");
        ensure!(!root.join("run/tenon/kubelet.local.env").exists(), "a file was left behind");
        return Ok(());
    };
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = fs::read_to_string(root.join("run/tenon/kubelet.local.env"))?;
    for (key, shape) in [
        ("NODE_IP", "10."),
        ("NODE_NAME", "ip-10-"),
        ("INSTANCE_ID", "i-"),
        ("INSTANCE_TYPE", instance_type),
        ("INSTANCE_LIFECYCLE", "on-demand"),
        ("PROVIDER_ID", "aws:///"),
        ("MAX_PODS", limit),
    ] {
        ensure!(written.contains(&format!("{key}=\"{shape}")), "{key} is not in {written}");
    }
    ensure!(
        simulator.log().iter().all(|request| request.path.starts_with("/latest/")),
        "another call was made"
    );
    Ok(())
}

/// Runs a command line in a root of its own that shares only programs and devices with this
/// machine.
fn in_sandbox(root: &Path, command: &str, endpoint: &str) -> anyhow::Result<Output> {
    for directory in ["usr", "dev", "run", "tmp"] {
        fs::create_dir_all(root.join(directory))?;
    }
    for (link, target) in [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")] {
        let _ = std::os::unix::fs::symlink(target, root.join(link));
    }
    let script = "mount --rbind /usr \"$1/usr\" && mount --rbind /dev \"$1/dev\" && set -a && \
        . \"$1/etc/tenon/kubelet.env\" && set +a && exec chroot \"$1\" $2";
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "bash", "-c", script, "bash"])
        .arg(root)
        .arg(command)
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint)
        .env("TENON_IMDS_SECONDS", "20")
        .output()
        .context("starting unshare")
}

/// The sender of signals against a stub that keeps the request.
pub fn signal(lab: &Lab, work: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict { reader: "signal script", cases: 1, findings: Vec::new() };
    if let Err(error) = one_signal(lab, &work.join("signal")) {
        verdict.findings.push(format!("{error:#}"));
    }
    Ok(verdict)
}

fn one_signal(lab: &Lab, root: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(root.join("etc/tenon"))?;
    fs::create_dir_all(root.join("opt/tenon"))?;
    fs::create_dir_all(root.join("run/tenon"))?;
    fs::write(root.join("etc/tenon/kubelet.env"), "")?;
    fs::write(root.join("run/tenon/join-status"), "3\n")?;
    fs::copy(
        lab.repository.join("crates/tenon-core/src/userdata/scripts/signal.sh"),
        root.join("opt/tenon/signal.sh"),
    )?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut bytes = vec![0; 16_384];
            let length = stream.read(&mut bytes).unwrap_or(0);
            let _ = sender.send(String::from_utf8_lossy(&bytes[..length]).into_owned());
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n<SignalResourceResponse/>",
            );
        }
    });
    let simulator = Simulator::start(&Profile::new("m5.large"), Faults::default())?;
    let command = format!(
        "env TENON_CLOUDFORMATION_ENDPOINT=http://{address} bash /opt/tenon/signal.sh my-stack NodeGroup us-west-2 PT15M /run/tenon/join-status"
    );
    let output = in_sandbox(root, &command, &simulator.endpoint())?;
    ensure!(
        output.status.code() == Some(3),
        "ended with {:?}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let request = requests.try_recv().context("no request arrived")?;
    ensure!(
        request.contains("Status=FAILURE") && request.contains("LogicalResourceId=NodeGroup"),
        "{request}"
    );
    ensure!(
        request.contains("AWS4-HMAC-SHA256 Credential=")
            && request.contains("/us-west-2/cloudformation/aws4_request"),
        "{request}"
    );
    let again = in_sandbox(root, &command, &simulator.endpoint())?;
    ensure!(again.status.success() && requests.try_recv().is_err(), "the signal was sent twice");
    Ok(())
}
