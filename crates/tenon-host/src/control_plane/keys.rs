//! Steps `pki` and `kubeconfig`: what is missing is made, what is there is checked and kept.

use std::time::{SystemTime, UNIX_EPOCH};

use tenon_core::control_plane::{BOOTSTRAP_API_PORT, BOOTSTRAP_SECRETS, Etcd};
use tenon_core::pki::{CERTIFICATES, Identity, KUBECONFIGS, certificate_path};
use tenon_core::problem::Problem;

use super::{Bootstrap, claim};
use crate::cluster::read_kubeconfig;
use crate::pki::{External, Options, Pki, SERVICE_ACCOUNTS};
use crate::stages::{Check, Run, Step};

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
            // Nothing is missing, so this only looks; a crash may have come before the record.
            certificates(bootstrap, run)?;
            claim::record_ca(run)?;
        }
        Ok(satisfied(there, "every certificate is there and fits"))
    },
    apply: |bootstrap, run| {
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

/// The keys of this machine, as its config wants them.
struct Keys<'r> {
    pki: Pki<'r>,
    identity: Identity,
    external: External,
}

impl<'r> Keys<'r> {
    fn of(bootstrap: &Bootstrap, run: &Run<'r>) -> Result<Self, Problem> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (machine, cluster) = (&run.machine, &bootstrap.cluster);
        Ok(Keys {
            pki: Pki::new(run.root, Options::of(machine, now)),
            identity: Identity::of(machine, &cluster.node_name, Some(cluster.advertise_address))?,
            external: External { asked: false, requests: machine.pki.csr_directory.clone() },
        })
    }
}

fn certificates(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    let keys = Keys::of(bootstrap, run)?;
    keys.pki.init(&keys.identity, &[], &keys.external).map(drop)
}

fn kubeconfigs(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    let keys = Keys::of(bootstrap, run)?;
    keys.pki.kubeconfigs(&keys.identity, true, &[], &keys.external).map(drop)
}

/// The credentials of the temporary control plane, which end with it.
pub(super) fn bootstrap_secrets(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    let keys = Keys::of(bootstrap, run)?;
    keys.pki.bootstrap_leaf(&keys.identity)?;
    let mut config = read_kubeconfig(run.root, &format!("/etc/kubernetes/{CONTROLLER_MANAGER}"))?;
    config.server = format!("https://127.0.0.1:{BOOTSTRAP_API_PORT}");
    let path = format!("{BOOTSTRAP_SECRETS}/{CONTROLLER_MANAGER}");
    run.write(&path, 0o600, config.write().as_bytes())
}
