//! `cargo xtask e2e`: tests that need root, real programs of the host, or packages.
//!
//! Each layer says what it needs, installs it by name, and either runs, or says in one line why
//! this host cannot. A skip is never a pass; with `--no-skip` it is a failure.

mod boot;
mod cloud_init;
mod cluster;
mod control_plane;
mod image;
mod image_desk;
mod image_dnf;
mod kill;
mod kubeadm;
mod lab;
mod logs;
mod machine;
mod metadata;
mod network;
mod nodeadm;
mod pki;
mod stage;
mod stages;
mod units;
mod userdata;
mod vm;

use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::lab::{self as parts, Part};
use stage::Stage;

pub use lab::Lab;
pub use stage::{InsideArgs as StageArgs, inside as machine_inside};
pub use units::{InsideArgs, inside};

#[derive(clap::Args)]
pub struct Args {
    /// Layers to run; all if none is named
    layers: Vec<String>,
    /// List the layers
    #[arg(long)]
    list: bool,
    /// A layer that this host cannot run is a failure
    #[arg(long)]
    no_skip: bool,
    /// Draw the timeline of the layer `cluster` into the documentation
    #[arg(long)]
    save_timeline: bool,
    /// Test this binary instead of building the static one
    #[arg(long, value_name = "FILE")]
    binary: Option<std::path::PathBuf>,
}

/// One kind of end-to-end test.
struct Layer {
    name: &'static str,
    about: &'static str,
    /// Debian packages, and a program of each that shows it is there.
    packages: &'static [(&'static str, &'static str)],
    /// What the lab must have built.
    parts: &'static [Part],
    /// Why this host cannot run the layer, if it cannot.
    refuse: fn(&Lab) -> Option<String>,
    run: Run,
}

/// How a layer is run; it gives the number of cases that passed.
enum Run {
    /// By this process.
    Here(fn(&Lab) -> anyhow::Result<usize>),
    /// On a stage of its own, with machines.
    OnStage(fn(&Stage) -> anyhow::Result<usize>),
}

/// What a machine needs on the host.
const MACHINE: &[(&str, &str)] =
    &[("systemd-container", "systemd-nspawn"), ("iproute2", "ip"), ("util-linux", "nsenter")];

const LAYERS: &[Layer] = &[
    Layer {
        name: "units",
        about: "a real systemd reads back every argument and variable that Tenon wrote",
        packages: &[("systemd", "systemctl")],
        parts: &[],
        refuse: units::refuse,
        run: Run::Here(units::run),
    },
    Layer {
        name: "kill",
        about: "apply is killed at every system call and cured by running again",
        packages: &[("strace", "strace")],
        parts: &[],
        refuse: kill::refuse,
        run: Run::Here(kill::run),
    },
    Layer {
        name: "instructions",
        about: "fixed commands stay within their budget of instructions",
        packages: &[],
        parts: &[parts::VALGRIND],
        refuse: |_| None,
        run: Run::Here(|lab| crate::instructions::check(&lab.tenon)),
    },
    Layer {
        name: "userdata",
        about: "user data before cloud-init, Ignition, CloudFormation, shells and systemd",
        packages: &[("systemd", "systemd-analyze"), ("curl", "curl")],
        parts: &[],
        refuse: userdata::refuse,
        run: Run::Here(userdata::run),
    },
    Layer {
        name: "pki",
        about: "Tenon's certificates, tokens and approvals before openssl, etcd and an API server",
        packages: &[("openssl", "openssl")],
        parts: &[parts::ETCD, parts::KUBERNETES_1_34],
        refuse: pki::refuse,
        run: Run::Here(pki::run),
    },
    Layer {
        name: "stages",
        about: "Ignition to add-ons over simulated boots, with a fault at every step",
        packages: &[("systemd", "systemctl"), ("curl", "curl"), ("python3", "python3")],
        parts: &[],
        refuse: units::refuse,
        run: Run::Here(stages::run),
    },
    Layer {
        name: "boot",
        about: "a machine boots with Tenon as its bootstrap service, under a real systemd and containerd",
        packages: MACHINE,
        parts: &[parts::ROOT, parts::PAUSE],
        refuse: stage::refuse,
        run: Run::OnStage(boot::run),
    },
    Layer {
        name: "cloud-init",
        about: "user data is read by cloud-init and by Tenon, each its own parts",
        packages: MACHINE,
        parts: &[parts::ROOT, parts::PAUSE],
        refuse: stage::refuse,
        run: Run::OnStage(cloud_init::run),
    },
    Layer {
        name: "nodeadm",
        about: "nodeadm and Tenon on the same machine and user data; every difference is listed",
        packages: NODEADM,
        parts: &[
            parts::ROOT,
            parts::PAUSE,
            parts::KUBERNETES_1_34,
            parts::KUBERNETES_1_36,
            parts::NODEADM,
        ],
        refuse: stage::refuse,
        run: Run::OnStage(nodeadm::run),
    },
    Layer {
        name: "cluster",
        about: "a booted machine joins a real control plane, becomes Ready and runs a pod",
        packages: CLUSTER,
        parts: &[parts::ROOT, parts::PAUSE, parts::ETCD, parts::KUBERNETES_1_34],
        refuse: stage::refuse,
        run: Run::OnStage(cluster::run_1_34),
    },
    Layer {
        name: "cluster-ipv6",
        about: "the same with IPv6 addresses, containerd 1.7 and the cgroupfs driver",
        packages: CLUSTER,
        parts: &[
            parts::ROOT,
            parts::PAUSE,
            parts::ETCD,
            parts::CONTAINERD_1_7,
            parts::KUBERNETES_1_34,
        ],
        refuse: stage::refuse,
        run: Run::OnStage(cluster::run_ipv6),
    },
    Layer {
        name: "cluster-1.36",
        about: "the same with a later Kubernetes and containerd 2",
        packages: CLUSTER,
        parts: &[
            parts::ROOT,
            parts::PAUSE,
            parts::ETCD,
            parts::CONTAINERD_2,
            parts::KUBERNETES_1_36,
        ],
        refuse: stage::refuse,
        run: Run::OnStage(cluster::run_1_36),
    },
    Layer {
        name: "kubeadm",
        about: "static pods are those that kubeadm writes, but for a list of reasons",
        packages: &[("util-linux", "unshare")],
        parts: &[parts::KUBERNETES_1_34, parts::KUBERNETES_1_36],
        refuse: kubeadm::refuse,
        run: Run::Here(kubeadm::run),
    },
    Layer {
        name: "control-plane",
        about: "a cluster from nothing: static pods, hand-over, a worker by token, add-ons",
        packages: CLUSTER,
        parts: &[parts::ROOT, parts::PAUSE, parts::KUBERNETES_1_34, parts::IMAGES_1_34],
        refuse: stage::refuse,
        run: Run::OnStage(control_plane::run),
    },
    Layer {
        name: "control-plane-units",
        about: "the same by units alone, with a later Kubernetes and no temporary plane",
        packages: CLUSTER,
        parts: &[parts::ROOT, parts::PAUSE, parts::KUBERNETES_1_36, parts::IMAGES_1_36],
        refuse: stage::refuse,
        run: Run::OnStage(control_plane::run_units),
    },
    Layer {
        name: "image",
        about: "a server becomes a hardened image, is judged by OpenSCAP, boots, joins and is logged in to",
        packages: CLUSTER,
        parts: &[
            parts::SERVER,
            parts::PACKAGES,
            parts::SCAP,
            parts::PACKER,
            parts::COMPONENTS,
            parts::ETCD,
            parts::KUBERNETES_1_34,
        ],
        refuse: stage::refuse,
        run: Run::OnStage(image::run),
    },
    Layer {
        name: "image-dnf",
        about: "a root that plays Amazon Linux, with the real dnf and rpm and packages of the lab",
        packages: &[("util-linux", "nsenter"), ("iproute2", "ip"), ("python3", "python3")],
        parts: &[parts::DNF],
        refuse: stage::refuse,
        run: Run::OnStage(image_dnf::run),
    },
    Layer {
        name: "image-vm",
        about: "the image in a virtual machine: own kernel, cgroup v2; it joins and judges itself",
        packages: VM,
        parts: &[parts::SERVER, parts::PACKAGES, parts::PAUSE, parts::ETCD, parts::KUBERNETES_1_34],
        refuse: stage::refuse,
        run: Run::OnStage(image::vm::run),
    },
    Layer {
        name: "image-desk",
        about: "templates for Packer and bills of materials before readers that are not ours",
        packages: &[("python3-venv", "python3")],
        parts: &[parts::ROOT],
        refuse: userdata::refuse,
        run: Run::Here(image_desk::run),
    },
    Layer {
        name: "doctor",
        about: "a real node is broken in many ways and the doctor names the cause",
        packages: CLUSTER,
        parts: &[
            parts::ROOT,
            parts::PAUSE,
            parts::ETCD,
            parts::KUBERNETES_1_34,
            parts::KUBERNETES_1_36,
        ],
        refuse: stage::refuse,
        run: Run::OnStage(cluster::broken::run),
    },
];

/// What the control plane needs besides.
const CLUSTER: &[(&str, &str)] = &[
    ("systemd-container", "systemd-nspawn"),
    ("iproute2", "ip"),
    ("util-linux", "nsenter"),
    ("openssl", "openssl"),
    ("curl", "curl"),
];

/// What a virtual machine needs besides.
const VM: &[(&str, &str)] = &[
    ("iproute2", "ip"),
    ("util-linux", "nsenter"),
    ("openssl", "openssl"),
    ("curl", "curl"),
    ("e2fsprogs", "mke2fs"),
    ("qemu-system-x86", "qemu-system-x86_64"),
];

/// What the peer needs besides.
const NODEADM: &[(&str, &str)] = &[
    ("systemd-container", "systemd-nspawn"),
    ("iproute2", "ip"),
    ("util-linux", "nsenter"),
    ("python3", "python3"),
];

enum Verdict {
    Passed(usize),
    Skipped(String),
    Failed(anyhow::Error),
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.list {
        for layer in LAYERS {
            println!("{:<12} {}", layer.name, layer.about);
        }
        return Ok(());
    }
    let chosen = choose(&args.layers)?;
    let lab = Lab::open(args.binary.as_deref())?;
    let mut rows = Vec::new();
    for layer in chosen {
        println!("== {}: {}", layer.name, layer.about);
        let start = Instant::now();
        let verdict = run_layer(layer, &lab);
        rows.push((layer.name, verdict, start.elapsed()));
    }
    summary(&rows, args.no_skip)?;
    match args.save_timeline {
        true => cluster::save_timeline(&lab.tenon, &lab.cache),
        false => Ok(()),
    }
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Layer>> {
    if names.is_empty() {
        return Ok(LAYERS.iter().collect());
    }
    let find = |name: &String| {
        LAYERS
            .iter()
            .find(|layer| layer.name == name)
            .with_context(|| format!("no layer `{name}`; `cargo xtask e2e --list` names them"))
    };
    names.iter().map(find).collect()
}

fn run_layer(layer: &Layer, lab: &Lab) -> Verdict {
    for (package, program) in layer.packages {
        if let Err(error) = crate::lab::install(package, program) {
            return Verdict::Skipped(format!("{package} is not here: {error:#}"));
        }
    }
    if let Some(reason) = (layer.refuse)(lab) {
        return Verdict::Skipped(reason);
    }
    for part in layer.parts {
        if let Err(error) = part.ready(&lab.cache) {
            return Verdict::Skipped(format!("{} is not here: {error:#}", part.name));
        }
    }
    let result = match layer.run {
        Run::Here(run) => run(lab),
        Run::OnStage(_) => stage::play(lab, layer.name),
    };
    match result {
        Ok(cases) => Verdict::Passed(cases),
        Err(error) => Verdict::Failed(error),
    }
}

/// The inner half of a layer with machines.
fn scenario(name: &str) -> anyhow::Result<fn(&Stage) -> anyhow::Result<usize>> {
    match LAYERS.iter().find(|layer| layer.name == name).map(|layer| &layer.run) {
        Some(Run::OnStage(run)) => Ok(*run),
        _ => bail!("no layer `{name}` with machines"),
    }
}

fn summary(rows: &[(&str, Verdict, Duration)], no_skip: bool) -> anyhow::Result<()> {
    println!("\n{:<12} {:<8} {:>7}  note", "layer", "result", "seconds");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, verdict, time) in rows {
        let (word, note) = match verdict {
            Verdict::Passed(cases) => {
                passed += cases;
                ("passed", format!("{cases} cases"))
            }
            Verdict::Skipped(reason) => {
                skipped += 1;
                ("SKIP", reason.clone())
            }
            Verdict::Failed(error) => {
                failed += 1;
                ("FAILED", format!("{error:#}"))
            }
        };
        println!("{name:<12} {word:<8} {:>7.1}  {note}", time.as_secs_f64());
    }
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    if failed > 0 || (no_skip && skipped > 0) {
        bail!("{failed} layers failed, {skipped} skipped");
    }
    Ok(())
}
