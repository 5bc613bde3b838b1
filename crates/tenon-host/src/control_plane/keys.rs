//! Steps `pki` and `kubeconfig`: what is missing is made, what is there is checked and kept.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenon_core::control_plane::{BOOTSTRAP_API_PORT, BOOTSTRAP_SECRETS, Cluster, Etcd, machine};
use tenon_core::pki::{CERTIFICATES, Identity, KUBECONFIGS, San, certificate_path};
use tenon_core::problem::Problem;
use tenon_core::stages::Machine;

use super::{Bootstrap, claim};
use crate::apply::{self, Lock};
use crate::cluster::read_kubeconfig;
use crate::pki::{Algorithm, External, Options, Pki, SERVICE_ACCOUNTS};
use crate::root::Root;
use crate::stages::{Check, Run, Step, disk};

/// How long another run may hold the machine's lock.
const LOCK_WAIT: Duration = Duration::from_secs(60);
const SERVICE_ACCOUNT_KEY: &str = "/etc/kubernetes/pki/sa.key";
const CONTROLLER_MANAGER: &str = "controller-manager.conf";

pub(super) const PKI: Step<Bootstrap> = Step {
    name: "pki",
    check: |bootstrap, run| {
        let external = matches!(bootstrap.cluster.etcd, Etcd::External(_));
        let wanted = CERTIFICATES.iter().filter(|row| !(external && row.is_etcd()));
        let paths = wanted.map(|row| certificate_path(row.name));
        let accounts = format!("/etc/kubernetes/pki/{SERVICE_ACCOUNTS}.pub");
        let there = paths.chain([accounts]).all(|path| run.root.exists(&path));
        if there {
            // Nothing is missing, so this only looks.
            certificates(bootstrap, run)?;
        }
        Ok(satisfied(there, "every certificate is there and fits"))
    },
    apply: |bootstrap, run| {
        take_service_account_key(run)?;
        certificates(bootstrap, run)?;
        claim::record_ca(run)
    },
    verify: None,
};

pub(super) const KUBECONFIG: Step<Bootstrap> = Step {
    name: "kubeconfig",
    check: |bootstrap, run| {
        let path = |name: &str| format!("/etc/kubernetes/{name}");
        let there = KUBECONFIGS.iter().all(|entry| run.root.exists(&path(entry.row.name)));
        if there {
            kubeconfigs(bootstrap, run)?;
        }
        Ok(satisfied(there, "every kubeconfig is there and fits"))
    },
    apply: |bootstrap, run| kubeconfigs(bootstrap, run),
    verify: None,
};

fn satisfied(there: bool, words: &str) -> Check {
    match there {
        true => Check::Satisfied(words.into()),
        false => Check::Needed,
    }
}

fn certificates(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    let lock = Lock::take(run.root, LOCK_WAIT)?;
    let pki = Pki::new(run.root, &lock, options(&run.machine));
    let identity = identity(&bootstrap.cluster, &run.machine);
    pki.init(&identity, &[], &external(&run.machine)).map(drop)
}

fn kubeconfigs(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    let lock = Lock::take(run.root, LOCK_WAIT)?;
    let pki = Pki::new(run.root, &lock, options(&run.machine));
    let identity = identity(&bootstrap.cluster, &run.machine);
    pki.kubeconfigs(&identity, true, &[], &external(&run.machine)).map(drop)
}

/// The credentials of the temporary control plane, which end with it.
pub(super) fn bootstrap_secrets(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    let lock = Lock::take(run.root, LOCK_WAIT)?;
    let pki = Pki::new(run.root, &lock, options(&run.machine));
    pki.bootstrap_leaf(&identity(&bootstrap.cluster, &run.machine))?;
    let mut config = read_kubeconfig(run.root, &format!("/etc/kubernetes/{CONTROLLER_MANAGER}"))?;
    config.server = format!("https://127.0.0.1:{BOOTSTRAP_API_PORT}");
    let path = format!("{BOOTSTRAP_SECRETS}/{CONTROLLER_MANAGER}");
    apply::store_below(run.root, &lock, 0o700, &path, 0o600, config.write().as_bytes()).map(drop)
}

/// Puts the user's own key where the service accounts' key belongs, unless one is there.
fn take_service_account_key(run: &Run<'_>) -> Result<(), Problem> {
    let Some(path) = &run.machine.pki.service_account_key else { return Ok(()) };
    if run.root.exists(SERVICE_ACCOUNT_KEY) {
        return Ok(());
    }
    let text = super::open::read_text(run.root, path)?;
    disk::make(run.root, tenon_core::control_plane::PKI, 0o755)?;
    run.write(SERVICE_ACCOUNT_KEY, 0o600, text.as_bytes())
}

/// How the config wants certificates.
fn options(machine: &Machine) -> Options {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let algorithm = match machine.pki.algorithm.as_str() {
        "ecdsa-p384" => Algorithm::P384,
        _ => Algorithm::P256,
    };
    let pki = &machine.pki;
    Options { algorithm, ca_days: pki.ca_days, leaf_days: pki.leaf_days, now }
}

fn external(machine: &Machine) -> External {
    External { asked: false, requests: machine.pki.csr_directory.clone() }
}

/// What certificates say about this node.
fn identity(cluster: &Cluster, machine: &Machine) -> Identity {
    let sans = |texts: &[String]| texts.iter().filter_map(|text| San::parse(text)).collect();
    Identity {
        node_name: cluster.node_name.clone(),
        advertise: cluster.advertise_address,
        endpoint: cluster.endpoint.clone(),
        service_cidrs: cluster.service_cidrs.clone(),
        domain: cluster.dns_domain.clone(),
        extra_sans: sans(&machine.control_plane.extra_sans),
        etcd_sans: sans(&machine.control_plane.etcd_extra_sans),
        external_etcd: matches!(cluster.etcd, Etcd::External(_)),
    }
}

/// Makes the CA and the kubelet's own kubeconfig, which the kubelet of a first master needs before
/// it starts. `address` is the node's, when the config leaves it to the machine.
pub fn for_the_kubelet(
    root: &Root,
    config: &Machine,
    node_name: &str,
    address: IpAddr,
) -> Result<(), Problem> {
    let mut facts = super::open::host(root, config)?;
    facts.host_name = node_name.to_owned();
    facts.address = Some(address);
    let identity = identity(&machine::cluster(config, facts)?, config);
    let lock = Lock::take(root, LOCK_WAIT)?;
    let pki = Pki::new(root, &lock, options(config));
    pki.init(&identity, &["ca".to_owned()], &external(config))?;
    pki.kubeconfigs(&identity, true, &["kubelet.conf".to_owned()], &external(config)).map(drop)
}
