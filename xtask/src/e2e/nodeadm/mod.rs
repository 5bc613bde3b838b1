//! The drop-in proof: the same image boots twice with the same user data, once with nodeadm and once
//! with Tenon under that name; what each left is compared by meaning.
//!
//! Every difference must be on `docs/differences-from-nodeadm.md` with its reason, and everything on
//! that page must be seen.

mod cases;
mod difference;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::json;

use self::cases::{CASES, Case, Kubelet};
use self::difference::{Difference, REFUSED, Tree, compare};
use super::machine::{Disk, Machine, text};
use super::metadata::{Answers, Metadata, instance};
use super::network::{INFRA, Network};
use super::stage::Stage;
use crate::checkout;
use crate::lab::{NODEADM, PAUSE};

const HOME: &str = "e2e/nodeadm";
const AWS_PORT: &str = "8000";
/// Sends containerd to the stand-in for the registry of nodeadm's sandbox image.
const REGISTRY: &str =
    "etc/containerd/certs.d/602401143452.dkr.ecr.us-west-2.amazonaws.com/hosts.toml";
/// What the API server's name stands for, for the case that looks it up.
const HOSTS: &str = "127.0.0.1\tlocalhost\n10.0.0.1\tABCDEF0123456789ABCDEF0123456789.gr7.us-west-2.eks.amazonaws.com\n";

/// Who runs as `nodeadm`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Program {
    Nodeadm,
    Tenon,
}

/// What a program left on a pristine machine.
struct Outcome {
    tree: Tree,
    /// The same machine after Tenon has run there as well, if nodeadm was first.
    followed: Option<Tree>,
}

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let network = Network::lay(stage, &instance().with_ipv6())?;
    let _aws = Aws::serve(stage, &network)?;
    let mut found = BTreeMap::<_, BTreeSet<_>>::new();
    for case in CASES {
        let start = Instant::now();
        let user_data = case.user_data()?;
        let answers = Answers {
            user_data: &user_data,
            instance_type: Some(case.instance_type),
            ipv6: true,
            ..Answers::default()
        };
        let _service = Metadata::serve(stage, &network, &answers)?;
        let theirs = outcome(stage, &network, case, Program::Nodeadm)?;
        let ours = outcome(stage, &network, case, Program::Tenon)?;
        let mut differences = compare(&theirs.tree, &ours.tree);
        if let Some(followed) = &theirs.followed {
            let left = compare(followed, &ours.tree);
            differences.extend(left.into_iter().map(Difference::after_nodeadm));
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("  {:<18} {:>3} differences, {seconds:.1} s", case.name, differences.len());
        for difference in differences {
            found.entry(difference).or_default().insert(case.name);
        }
    }
    page::judge(&found)?;
    Ok(CASES.len())
}

/// Boots the image, runs the program as a node would, and reads what it left.
fn outcome(
    stage: &Stage,
    network: &Network,
    case: &Case,
    program: Program,
) -> anyhow::Result<Outcome> {
    let disk = disk(stage, case, program)?;
    let machine = Machine::boot(&disk, network)?;
    machine.settled()?;
    let outcome =
        run_in(&machine, case, program).with_context(|| format!("{program:?}, {}", case.name))?;
    drop(machine);
    disk.wipe()?;
    Ok(outcome)
}

fn run_in(machine: &Machine, case: &Case, program: Program) -> anyhow::Result<Outcome> {
    let read = |words: &[&str]| -> anyhow::Result<Tree> {
        let told = machine.must(&[&["/usr/lib/lab/read.py"], words].concat())?;
        serde_json::from_str(&told).context("reading what read.py told")
    };
    read(&["note", "/tmp/before"])?;
    let config = init(machine, "nodeadm", "run")?;
    if program == Program::Nodeadm && case.refused_by_nodeadm && !config.status.success() {
        let tree = Tree::from([(REFUSED.into(), json!({"value": config.status.code()}))]);
        return Ok(Outcome { tree, followed: None });
    }
    succeeded(&config)?;
    if case.runs {
        succeeded(&init(machine, "nodeadm", "config")?)?;
    }
    let mut tree = read(&["tell", "/tmp/before"])?;
    if case.runs {
        tree.extend(read(&["runs"])?);
    }
    // Files of the run phase would be missing after a config phase.
    let followed = if program == Program::Nodeadm && !case.runs {
        succeeded(&init(machine, "tenon", "run")?)?;
        Some(read(&["tell", "/tmp/before"])?)
    } else {
        None
    };
    Ok(Outcome { tree, followed })
}

fn succeeded(output: &Output) -> anyhow::Result<()> {
    ensure!(output.status.success(), "{}: {}", output.status, text(output));
    Ok(())
}

/// Runs all but one phase, with the same words for both programs.
fn init(machine: &Machine, program: &str, skip: &str) -> anyhow::Result<Output> {
    let endpoint = |service: &str| format!("AWS_ENDPOINT_URL_{service}=http://{INFRA}:{AWS_PORT}");
    let (ec2, ecr) = (endpoint("EC2"), endpoint("ECR"));
    machine.run(&["env", &ec2, &ecr, program, "init", "--skip", skip])
}

/// The lab's image with one of the programs under the name of both.
fn disk(stage: &Stage, case: &Case, program: Program) -> anyhow::Result<Disk> {
    let disk = Disk::new(stage, &format!("{}-{program:?}", case.name))?;
    for wanted in ["multi-user.target.wants/tenon-config", "graphical.target.wants/tenon-run"] {
        disk.remove(&format!("etc/systemd/system/{wanted}.service"))?;
    }
    let registry = format!("[host.\"http://{INFRA}:{AWS_PORT}\"]\n");
    for (path, text) in [
        ("etc/cloud/cloud-init.disabled", ""),
        ("etc/hosts", HOSTS),
        ("etc/lab-token", "none"),
        (REGISTRY, &registry),
    ] {
        disk.write(path, text)?;
    }
    let reader = fs::read_to_string(checkout().join(HOME).join("read.py"))?;
    disk.program("usr/lib/lab/read.py", &reader)?;
    match case.kubelet {
        Kubelet::Built(part) => {
            disk.install(&part.ready(&stage.cache)?.join("kubelet"), "usr/bin/kubelet")?;
        }
        Kubelet::Says(version) => {
            disk.program("usr/bin/kubelet", &format!("#!/bin/sh\necho Kubernetes {version}\n"))?;
        }
    }
    let program = match program {
        Program::Nodeadm => NODEADM.ready(&stage.cache)?.join("nodeadm"),
        Program::Tenon => stage.tenon.clone(),
    };
    disk.install(&program, "usr/bin/nodeadm")?;
    Ok(disk)
}

/// What nodeadm asks of AWS besides the metadata service.
struct Aws(Child);

impl Aws {
    fn serve(stage: &Stage, network: &Network) -> anyhow::Result<Self> {
        let archive = PAUSE.ready(&stage.cache)?.join("pause.tar");
        let log = fs::File::create(stage.place.join("aws.log"))?;
        let mut child = network
            .in_infra("python3")
            .arg(checkout().join(HOME).join("aws.py"))
            .args([INFRA, AWS_PORT])
            .arg(archive)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("starting the stand-in of AWS")?;
        let mut line = String::new();
        let answer = child.stdout.take().context("the stand-in has no output")?;
        BufReader::new(answer).read_line(&mut line)?;
        ensure!(line.contains("ready"), "the stand-in of AWS did not start: {line}");
        Ok(Aws(child))
    }
}

impl Drop for Aws {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
