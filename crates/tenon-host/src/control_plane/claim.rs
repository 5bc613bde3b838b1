//! Step `claim`: nobody else has this cluster, and that we begin it is on record before anything
//! is written.
//!
//! The record holds the cluster's id, etcd's token, the digest of the CA and a nonce that the
//! final API must give back. A later run goes on only where all of it still fits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::time::{Duration, Instant};

use tenon_core::codes::control_plane as pages;
use tenon_core::codes::stages::WAITING_INPUTS;
use tenon_core::control_plane::{Etcd, PKI, Phase, pod};
use tenon_core::hex::sha256;
use tenon_core::problem::Problem;
use tenon_core::stages::paths;

use super::Bootstrap;
use crate::cluster::{ApiError, Auth, Client, Trust};
use crate::random;
use crate::root::Root;
use crate::stages::{Check, Run, Step, disk};
use crate::stop;

/// How long a run waits for the stage before this one.
const PREPARED: Duration = Duration::from_secs(60);
/// How long the endpoint may take to say whether somebody is there.
const KNOCK: Duration = Duration::from_secs(5);

pub(super) const STEP: Step<Bootstrap> =
    Step { name: "claim", check, apply, verify: Some(|_, run| still_ours(run)) };

fn check(bootstrap: &mut Bootstrap, run: &mut Run<'_>) -> Result<Check, Problem> {
    if run.output("nonce").is_none() {
        return Ok(Check::Needed);
    }
    still_ours(run)?;
    if let Answer::Stranger(cause) = ask(run.root, &bootstrap.cluster.endpoint_url())? {
        return Err(occupied_endpoint(bootstrap).cause(cause));
    }
    Ok(Check::Satisfied("claimed by an earlier run".into()))
}

fn apply(bootstrap: &mut Bootstrap, run: &mut Run<'_>) -> Result<(), Problem> {
    if bootstrap.waits_for_prepare {
        wait_for_prepare(run.root)?;
    }
    match ask(run.root, &bootstrap.cluster.endpoint_url())? {
        Answer::Nobody => {}
        Answer::Ours => return Err(occupied_endpoint(bootstrap)),
        Answer::Stranger(cause) => return Err(occupied_endpoint(bootstrap).cause(cause)),
    }
    let data = bootstrap.etcd_data();
    if let Some(path) = data.filter(|path| holds_anything(run.root, path)) {
        return Err(Problem::new(&pages::ETCD_DATA_EXISTS, format!("{path} is not empty")));
    }
    for phase in [Phase::Final, Phase::Bootstrap] {
        for manifest in bootstrap.manifests(phase)? {
            ports_are_free(manifest.component, phase)?;
        }
    }
    let (nonce, id) = (random::letters(24)?, run.machine.cluster.id.clone());
    let token = format!("{id}-{}", random::letters(8)?);
    record(run, "clusterId", &id)?;
    record(run, "etcdToken", &token)?;
    if let Etcd::Local(etcd) = &mut bootstrap.cluster.etcd {
        etcd.token = token;
    }
    record_ca(run)?;
    // Last: with it the claim is complete.
    record(run, "nonce", &nonce)
}

fn record(run: &mut Run<'_>, key: &str, value: &str) -> Result<(), Problem> {
    run.set_output(key, value)
}

/// Records the CA of this cluster as soon as it is there, once.
pub(super) fn record_ca(run: &mut Run<'_>) -> Result<(), Problem> {
    match ca_digest(run.root)? {
        Some(digest) if run.output("caDigest").is_none() => record(run, "caDigest", &digest),
        _ => Ok(()),
    }
}

fn ca_digest(root: &Root) -> Result<Option<String>, Problem> {
    let bytes = disk::read(root, &format!("{PKI}/ca.crt"), 1 << 20)?;
    Ok(bytes.map(|bytes| format!("sha256:{}", sha256(&bytes))))
}

/// The claim on record must be about the cluster that the config and the files describe.
fn still_ours(run: &mut Run<'_>) -> Result<(), Problem> {
    let differs = |what: &str| Err(Problem::new(&pages::CLAIM_DIFFERS, what));
    if run.output("clusterId").is_some_and(|id| id != run.machine.cluster.id) {
        return differs("the claim on record is for a cluster with another id");
    }
    match (run.output("caDigest"), ca_digest(run.root)?) {
        (Some(claimed), Some(found)) if claimed != found => {
            differs("the claim on record is for a cluster with another CA")
        }
        _ => Ok(()),
    }
}

/// Waits for the marker of the stage before. A person may well see this: it is not an attempt.
fn wait_for_prepare(root: &Root) -> Result<(), Problem> {
    let end = Instant::now() + PREPARED;
    loop {
        match stage_is_done(root, "prepare") {
            Err(problem) if Instant::now() >= end => return Err(problem),
            Err(_) => stop::sleep(Duration::from_millis(500))?,
            Ok(()) => return Ok(()),
        }
    }
}

/// The marker of an earlier stage is there; until then this one waits.
pub(super) fn stage_is_done(root: &Root, stage: &str) -> Result<(), Problem> {
    if root.exists(&paths::done(stage)) {
        return Ok(());
    }
    Err(Problem::new(&WAITING_INPUTS, format!("the stage {stage} is not done on this machine"))
        .why("this stage begins where that one ends; nothing is written before")
        .fix("nothing if it is still at work; `tenon stage status` says how far it is"))
}

/// Who answers at the cluster's endpoint.
enum Answer {
    Nobody,
    /// A server with a certificate of our own CA.
    Ours,
    Stranger(String),
}

fn ask(root: &Root, url: &str) -> Result<Answer, Problem> {
    let knock = |trust: Trust| -> Result<Result<String, ApiError>, Problem> {
        Ok(Client::new(url, &trust, &Auth::None)?.within(KNOCK).text("/version"))
    };
    let answered = |result: &Result<String, ApiError>| {
        matches!(result, Ok(_) | Err(ApiError::Refused(_) | ApiError::Strange { .. }))
    };
    let anybody = knock(Trust::Anyone)?;
    if let Err(ApiError::Other(problem)) = anybody {
        return Err(problem);
    }
    if !answered(&anybody) {
        return Ok(Answer::Nobody);
    }
    let Some(authority) = disk::read(root, &format!("{PKI}/ca.crt"), 1 << 20)? else {
        return Ok(Answer::Stranger("this machine has no CA to prove it with".into()));
    };
    let proven = knock(Trust::Authority(authority))?;
    Ok(match proven {
        Err(error) if !answered(&Err(error.clone())) => Answer::Stranger(error.summary()),
        _ => Answer::Ours,
    })
}

fn occupied_endpoint(bootstrap: &Bootstrap) -> Problem {
    let what = format!("an API server answers at {}", bootstrap.cluster.endpoint);
    Problem::new(&pages::API_ANSWERS, what)
}

fn holds_anything(root: &Root, directory: &str) -> bool {
    // What cannot be listed is not empty: better to stop than to start over somebody's data.
    root.list(directory).map_or(true, |names| !names.is_empty())
}

/// Nobody may listen where a component is going to.
pub(super) fn ports_are_free(
    component: tenon_core::control_plane::Component,
    phase: Phase,
) -> Result<(), Problem> {
    for port in pod::ports(component, phase) {
        if is_taken(*port) {
            let what = format!("port {port} of {} is in use", pod::name(component, phase));
            return Err(Problem::new(&pages::PORT_OCCUPIED, what));
        }
    }
    Ok(())
}

/// True when somebody listens on this port, whatever the address.
fn is_taken(port: u16) -> bool {
    let every: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    every.into_iter().any(|address| {
        let bound = TcpListener::bind((address, port));
        bound.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
    })
}
