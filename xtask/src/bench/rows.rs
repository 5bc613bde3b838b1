//! What is measured: every tool on the same work in four scenes, and Tenon's other commands.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;
use tenon_host::rehearsal::SAMPLE;
use tenon_host::simulator::Simulator;
use tenon_host::simulator::faults::{Faults, Rule};
use tenon_host::simulator::machine::{self, MachineProfile};
use tenon_host::simulator::profile::Profile;

use super::nodeadm;
use crate::checkout;

const INSTANCE_TYPE: &str = "m6i.large";
const KUBELET: &str = "v1.34.1";
const ENDPOINT_VARIABLE: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
/// How much later each metadata answer comes in the scenes that show the rounds.
const DELAY_MS: u64 = 5;

/// One thing that is measured.
pub struct Row {
    pub name: String,
    /// For the tools that do the same work: where.
    pub scene: Option<Scene>,
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Makes the scene of one run.
    pub before: Box<dyn Fn() -> anyhow::Result<()>>,
}

/// Where the same work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scene {
    /// `tmpfs`, `ext4`
    pub disk: &'static str,
    pub delay_ms: u64,
}

pub const SCENES: [Scene; 4] = [
    Scene { disk: "tmpfs", delay_ms: 0 },
    Scene { disk: "tmpfs", delay_ms: DELAY_MS },
    Scene { disk: "ext4", delay_ms: 0 },
    Scene { disk: "ext4", delay_ms: DELAY_MS },
];

impl Scene {
    pub fn words(self) -> String {
        match self.delay_ms {
            0 => self.disk.to_owned(),
            delay => format!("{}, +{delay} ms", self.disk),
        }
    }
}

/// A tool that makes the files of a node.
pub struct Peer {
    pub name: &'static str,
    /// Its row in a scene, below a directory of its own; the reason if it is not here.
    row: fn(&Stand, &Path, &str) -> anyhow::Result<Row>,
}

pub const TENON: &str = "Tenon";

pub const PEERS: [Peer; 4] = [
    Peer { name: TENON, row: tenon },
    Peer { name: "nodeadm", row: nodeadm::row_of },
    Peer { name: "small bash script", row: small_script },
    Peer { name: "AL2-like bash", row: large_script },
];

/// What all rows share.
pub struct Stand {
    pub tenon: String,
    memory: tempfile::TempDir,
    disk: tempfile::TempDir,
    services: [(u64, Simulator); 2],
    bus: nodeadm::Bus,
}

impl Stand {
    pub fn new(tenon: &Path, disk: &Path) -> anyhow::Result<Self> {
        must_be_ext4(disk)?;
        Ok(Stand {
            tenon: tenon.display().to_string(),
            memory: tempfile::tempdir_in("/dev/shm")?,
            disk: tempfile::tempdir_in(disk)?,
            services: [(0, simulator(0)?), (DELAY_MS, simulator(DELAY_MS)?)],
            bus: nodeadm::Bus::default(),
        })
    }

    pub fn bus(&self) -> &nodeadm::Bus {
        &self.bus
    }

    /// The metadata service of a scene.
    pub fn service(&self, scene: Scene) -> &Simulator {
        let [plain, slow] = &self.services;
        if scene.delay_ms == slow.0 { &slow.1 } else { &plain.1 }
    }

    fn place(&self, scene: Scene) -> &Path {
        if scene.disk == "tmpfs" { self.memory.path() } else { self.disk.path() }
    }

    /// The rows of every tool that is here, and why the others are not.
    pub fn peers(&self) -> (Vec<Row>, Vec<(&'static str, String)>) {
        let (mut rows, mut absent) = (Vec::new(), Vec::new());
        for scene in SCENES {
            for peer in &PEERS {
                let directory = self.place(scene).join(format!("{}-{}", peer.name, scene.delay_ms));
                match (peer.row)(self, &directory, &self.service(scene).endpoint()) {
                    Ok(row) => rows.push(Row { scene: Some(scene), ..row }),
                    Err(error) if scene == SCENES[0] => {
                        absent.push((peer.name, format!("{error:#}")));
                    }
                    Err(_) => {}
                }
            }
        }
        (rows, absent)
    }

    /// Tenon's other commands, and the floor of the machine.
    pub fn own(&self) -> anyhow::Result<Vec<Row>> {
        let settled = self.memory.path().join("settled");
        stage(&settled)?;
        let mut again = tenon(self, &settled, &self.services[0].1.endpoint())?;
        "`tenon init`, nothing to do".clone_into(&mut again.name);
        // Its first run builds the tree, all others find it as planned.
        again.before = Box::new(|| Ok(()));
        Ok(vec![
            Row { argv: vec!["true".into()], ..self.simple("the machine's floor: `true`", &[]) },
            self.simple("`tenon --version`", &["--version"]),
            again,
            self.simple("`tenon rehearse`", &["rehearse"]),
            self.simple("`tenon max-pods m5.large`", &["max-pods", "m5.large"]),
            self.simple("`tenon max-pods '*'` (every type)", &["max-pods", "*"]),
            self.user_data("user data of one group", 1)?,
            self.user_data("user data of 10,000 groups in one file", 10_000)?,
        ])
    }

    fn simple(&self, name: &str, words: &[&str]) -> Row {
        let argv = std::iter::once(self.tenon.as_str()).chain(words.iter().copied());
        row(name, argv.map(str::to_owned).collect(), Vec::new(), || Ok(()))
    }

    /// Renders every group of a ClusterConfig with this many of them.
    fn user_data(&self, name: &str, groups: usize) -> anyhow::Result<Row> {
        let directory = self.memory.path().join(format!("groups-{groups}"));
        fs::create_dir_all(&directory)?;
        let file = directory.join("cluster.yaml");
        let mut text = String::from(
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\n\
             metadata: {name: ironman-2022, region: eu-west-1, version: \"1.32\"}\nnodeGroups:\n",
        );
        for number in 0..groups {
            writeln!(text, "- {{name: g{number:05}, labels: {{team: web}}, maxPodsPerNode: 58}}")?;
        }
        fs::write(&file, text)?;
        let facts = checkout().join("docs/examples/cluster.json").display().to_string();
        let (file, out) = (file.display().to_string(), directory.join("out").display().to_string());
        let words = ["--quiet", "userdata", "render", "-f", &file, "--cluster-json", &facts];
        Ok(self.simple(name, &[&words[..], &["--out-dir", &out]].concat()))
    }
}

pub fn row(
    name: &str,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    before: impl Fn() -> anyhow::Result<()> + 'static,
) -> Row {
    Row { name: name.to_owned(), scene: None, argv, env, before: Box::new(before) }
}

/// The variable that moves the metadata service.
pub fn endpoint_variable(endpoint: &str) -> (String, String) {
    (ENDPOINT_VARIABLE.to_owned(), endpoint.to_owned())
}

/// The name of a scene must be true.
fn must_be_ext4(disk: &Path) -> anyhow::Result<()> {
    let output = Command::new("stat").args(["-f", "-c", "%T"]).arg(disk).output()?;
    let kind = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let place = disk.display();
    ensure!(kind == "ext2/ext3", "{place} is on {kind:?}, not ext4; see --disk");
    Ok(())
}

fn simulator(delay_ms: u64) -> anyhow::Result<Simulator> {
    let mut profile = Profile::new(INSTANCE_TYPE).with_user_data(SAMPLE.as_bytes());
    // The small script asks without a token.
    profile.allow_version_1 = true;
    let faults = match delay_ms {
        0 => Faults::default(),
        delay_ms => Faults::of([Rule { delay_ms, ..Rule::on("*") }]),
    };
    Ok(Simulator::start(&profile, faults)?)
}

fn tenon(stand: &Stand, root: &Path, endpoint: &str) -> anyhow::Result<Row> {
    let place = root.display().to_string();
    let words = [&stand.tenon, "--quiet", "init", "--skip", "run", "--root", &place];
    let argv = words.map(str::to_owned).to_vec();
    let root = root.to_owned();
    Ok(row(TENON, argv, vec![endpoint_variable(endpoint)], move || stage(&root)))
}

fn small_script(stand: &Stand, root: &Path, endpoint: &str) -> anyhow::Result<Row> {
    script("small bash script", "eksctl.sh", stand, root, endpoint)
}

fn large_script(stand: &Stand, root: &Path, endpoint: &str) -> anyhow::Result<Row> {
    crate::lab::install("jq", "jq")?;
    script("AL2-like bash", "al2.sh", stand, root, endpoint)
}

fn script(
    name: &str,
    file: &str,
    stand: &Stand,
    root: &Path,
    endpoint: &str,
) -> anyhow::Result<Row> {
    crate::lab::install("curl", "curl")?;
    let file = checkout().join("benches/peers").join(file).display().to_string();
    let mut limits = Command::new(&stand.tenon);
    let limits = limits.args(["max-pods", "*", "--output", "map"]).output()?.stdout;
    let env = [
        ("ROOT", root.display().to_string()),
        ("METADATA", endpoint.to_owned()),
        ("CLUSTER", "rehearsal".to_owned()),
        ("ENDPOINT", "https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com".to_owned()),
        ("CLUSTER_CA", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==".to_owned()),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let root = root.to_owned();
    Ok(row(name, vec!["bash".to_owned(), file], env, move || image(&root, &limits)))
}

/// What the shell flows find in their image.
fn image(root: &Path, limits: &[u8]) -> anyhow::Result<()> {
    clear(root)?;
    let files: [(&str, &[u8]); 6] = [
        ("etc/eksctl/max_pods.map", limits),
        ("etc/eksctl/kubelet.env", b"NODE_LABELS=team=web,stage=rehearsal\nNODE_TAINTS=\n"),
        ("etc/eks/eni-max-pods.txt", limits),
        ("etc/eks/containerd-config.toml", b"version = 2\nsandbox_image = \"SANDBOX_IMAGE\"\n"),
        ("etc/kubernetes/kubelet/kubelet-config.json", b"{\"kind\":\"KubeletConfiguration\"}\n"),
        ("var/lib/kubelet/kubeconfig", b"server: MASTER_ENDPOINT\nCLUSTER_NAME, AWS_REGION\n"),
    ];
    for (path, body) in files {
        put(root, path, body)?;
    }
    Ok(())
}

pub fn clear(root: &Path) -> anyhow::Result<()> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    Ok(())
}

/// A machine that was never bootstrapped.
fn stage(root: &Path) -> anyhow::Result<()> {
    clear(root)?;
    let profile = Profile::new(INSTANCE_TYPE);
    let machine = MachineProfile {
        cpus: 2,
        memory_mib: 8192,
        kubelet_version: KUBELET.into(),
        containerd_version: "2.1.4".into(),
        hostname: profile.hostname,
        mac: profile.mac,
        nvidia: false,
    };
    Ok(machine::populate(root, &machine)?)
}

/// What `kubelet --version` says.
pub fn kubelet_words() -> String {
    format!("Kubernetes {KUBELET}")
}

/// A file of a root, with its directories.
pub fn put(root: &Path, path: &str, body: &[u8]) -> anyhow::Result<PathBuf> {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap_or(root))?;
    fs::write(&path, body)?;
    Ok(path)
}
