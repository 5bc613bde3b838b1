//! What the steps work on: the cluster as data, and clients of what is there already.

use std::time::{Duration, Instant};

use tenon_core::codes;
use tenon_core::codes::control_plane as pages;
use tenon_core::control_plane::patch::{self, Patch};
use tenon_core::control_plane::{
    BOOTSTRAP_API_PORT, Cluster, Etcd, Manifest, PKI, Phase, machine, manifests,
};
use tenon_core::problem::Problem;
use tenon_core::stages::machine::{Machine, Role};

use crate::cluster::{Client, read_kubeconfig};
use crate::root::Root;
use crate::stages::{Run, disk};

/// The administrator of the first master, who needs no role of the cluster.
const SUPER_ADMIN: &str = "/etc/kubernetes/super-admin.conf";
/// Where distributions keep further trusted certificates.
const CA_DIRECTORIES: &[&str] = &[
    "/etc/ca-certificates",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
];
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
/// The largest policy or patch that is read.
const FILE_CAP: u64 = 1 << 20;

/// One attempt to start a cluster.
#[derive(Debug)]
pub struct Bootstrap {
    pub cluster: Cluster,
    pub(super) patches: Vec<Patch>,
    /// Without the temporary control plane.
    pub(super) direct: bool,
    /// The stage before this one must be done.
    pub(super) waits_for_prepare: bool,
    /// When the attempt must be over.
    end: Instant,
}

impl Bootstrap {
    /// Reads what the machine says; refuses machines that start no cluster.
    pub fn open(run: &Run<'_>, end: Instant) -> Result<Self, Problem> {
        let machine = &run.machine;
        if machine.role != Role::FirstMaster {
            let what = format!("a machine with the role {} starts no cluster", machine.role.word());
            return Err(Problem::new(&pages::NOT_FIRST_MASTER, what));
        }
        let mut facts = host(run.root, machine)?;
        if let Some(token) = run.output("etcdToken") {
            facts.etcd_token = token.to_owned();
        }
        let prepared = |key: &str| run.state().output("prepare", key);
        facts.address = prepared("nodeIp").and_then(|ip| ip.parse().ok());
        if let Some(name) = prepared("nodeName") {
            facts.host_name = name.to_owned();
        }
        let bootstrap = Bootstrap {
            cluster: machine::cluster(machine, facts)?,
            patches: match &machine.control_plane.patches {
                Some(directory) => read_patches(run.root, directory)?,
                None => Vec::new(),
            },
            direct: machine::is_direct(machine.control_plane.bootstrap_phase, memory_mib(run.root)),
            waits_for_prepare: true,
            end,
        };
        // A patch that does not apply is found here, before anything is written.
        bootstrap.manifests(Phase::Final)?;
        bootstrap.manifests(Phase::Bootstrap)?;
        Ok(bootstrap)
    }

    pub(super) fn manifests(&self, phase: Phase) -> Result<Vec<Manifest>, Problem> {
        manifests(&self.cluster, phase, &self.patches)
    }

    /// The patience of a step, cut to what is left of the attempt.
    pub(super) fn patience(&self, most: Duration) -> Duration {
        most.min(self.end.saturating_duration_since(Instant::now()))
    }

    /// A client of the final API server.
    pub(super) fn api(&self, root: &Root) -> Result<Client, Problem> {
        Client::open(root, SUPER_ADMIN)
    }

    /// A client of the temporary one; the same as the final when there is none.
    pub(super) fn first_api(&self, root: &Root) -> Result<Client, Problem> {
        let mut config = read_kubeconfig(root, SUPER_ADMIN)?;
        if !self.direct {
            config.server = format!("https://127.0.0.1:{BOOTSTRAP_API_PORT}");
        }
        Client::from_kubeconfig(&config, root)
    }

    /// The data directory of etcd, when it is ours to start.
    pub(super) fn etcd_data(&self) -> Option<&str> {
        match &self.cluster.etcd {
            Etcd::Local(etcd) => Some(&etcd.data_dir),
            Etcd::External(_) => None,
        }
    }
}

/// What only this machine can say about itself.
pub(super) fn host(root: &Root, config: &Machine) -> Result<machine::Host, Problem> {
    let audit_policy = match config.control_plane.audit.as_str() {
        "none" | "metadata" => None,
        path => Some(read_text(root, path)?),
    };
    let ca_directories = CA_DIRECTORIES.iter().filter(|path| root.exists(path));
    let has = |name: &str| root.exists(&format!("{PKI}/{name}"));
    Ok(machine::Host {
        host_name: host_name(root),
        address: None,
        audit_policy,
        ca_directories: ca_directories.map(|path| (*path).to_owned()).collect(),
        etcd_token: config.cluster.id.clone(),
        // A certificate without its key was put there by somebody who keeps the key.
        signs_certificates: has("ca.key") || !has("ca.crt"),
    })
}

fn host_name(root: &Root) -> String {
    root.read_text(HOST_NAME).ok().flatten().unwrap_or_default().to_lowercase()
}

fn memory_mib(root: &Root) -> Option<u64> {
    let text = root.read_text("/proc/meminfo").ok().flatten()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib / 1024)
}

/// Reads a file of the user that must be there and be text.
pub(super) fn read_text(root: &Root, path: &str) -> Result<String, Problem> {
    let missing =
        |cause: &str| Problem::new(&codes::host::FILE_READ, format!("reading {path}")).cause(cause);
    let bytes =
        disk::read(root, path, FILE_CAP)?.ok_or_else(|| missing("there is no such file"))?;
    String::from_utf8(bytes).map_err(|_| missing("it is not UTF-8"))
}

/// Reads the patches of a directory, in the order of their names.
pub(super) fn read_patches(root: &Root, directory: &str) -> Result<Vec<Patch>, Problem> {
    let names = root.list(directory).map_err(|error| {
        Problem::new(&codes::host::FILE_READ, format!("reading {directory}")).cause(error)
    })?;
    let mut patches = Vec::new();
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        patches.extend(patch::read(name, &read_text(root, &format!("{directory}/{name}"))?)?);
    }
    Ok(patches)
}
