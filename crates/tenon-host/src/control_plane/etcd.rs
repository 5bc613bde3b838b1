//! Step `etcd`: the final static pod with one member, or members elsewhere that are well.

use serde_json::json;
use tenon_core::codes::control_plane as pages;
use tenon_core::codes::host::FILE_READ;
use tenon_core::control_plane::cluster::ExternalEtcd;
use tenon_core::control_plane::{Cluster, Component, Etcd, PKI, Phase};
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;

use super::pods::{Placed, QUESTION, is_well, place, wait_for, write};
use super::{Bootstrap, COMPONENT};
use crate::cluster::{ApiError, Auth, Client, Look, Trust, wait_until};
use crate::root::Root;
use crate::stages::{Check, Step, disk};

pub(super) const STEP: Step<Bootstrap> = Step {
    name: "etcd",
    check: |bootstrap, run| {
        let written = place(bootstrap, run, Phase::Final, &[Component::Etcd])?;
        Ok(match written == Placed::All && etcd_is_alone(bootstrap, run.root).is_ok() {
            true => Check::Satisfied("etcd runs with one member".into()),
            false => Check::Needed,
        })
    },
    apply: |bootstrap, run| {
        write(bootstrap, run, Phase::Final, &[Component::Etcd])?;
        wait_for_etcd(bootstrap, run.root)
    },
    verify: Some(|bootstrap, run| etcd_is_alone(bootstrap, run.root)),
};

fn wait_for_etcd(bootstrap: &Bootstrap, root: &Root) -> Result<(), Problem> {
    match &bootstrap.cluster.etcd {
        Etcd::Local(_) => wait_for(bootstrap, root, Component::Etcd, Phase::Final),
        Etcd::External(etcd) => {
            wait_until("the members of etcd are healthy", bootstrap.patience(COMPONENT), || {
                external_is_well(etcd, root).map(|()| Look::Ready(()))
            })
        }
    }
}

/// Every external member answers over mutual TLS and says that it is healthy.
fn external_is_well(etcd: &ExternalEtcd, root: &Root) -> Result<(), ApiError> {
    for endpoint in &etcd.endpoints {
        let client = etcd_client(root, endpoint, &etcd.ca_file, &etcd.cert_file, &etcd.key_file)?;
        let health = client.get("/health")?;
        if health["health"] != "true" {
            let cause = format!("{endpoint} says that it is not healthy");
            return Err(ApiError::Unreachable { request: "GET /health".into(), cause });
        }
        client.get("/version")?;
    }
    Ok(())
}

fn etcd_client(
    root: &Root,
    url: &str,
    ca: &str,
    certificate: &str,
    key: &str,
) -> Result<Client, Problem> {
    let read = |path: &str| {
        let problem = || Problem::new(&FILE_READ, format!("reading {path}"));
        disk::read(root, path, 1 << 20)?.ok_or_else(|| problem().cause("there is no such file"))
    };
    let key = Secret::new(String::from_utf8_lossy(&read(key)?));
    let auth = Auth::Certificate { chain: read(certificate)?, key };
    Ok(Client::new(url, &Trust::Authority(read(ca)?), &auth)?.within(QUESTION))
}

/// etcd is ready and has one member, this node.
fn etcd_is_alone(bootstrap: &Bootstrap, root: &Root) -> Result<(), Problem> {
    let cluster = &bootstrap.cluster;
    if let Etcd::External(etcd) = &cluster.etcd {
        return Ok(external_is_well(etcd, root)?);
    }
    is_well(bootstrap, root, Component::Etcd, Phase::Final)?;
    let pki = |name: &str| format!("{PKI}/etcd/{name}");
    let url = Cluster::url(cluster.loopback(), 2379);
    let (ca, certificate) = (pki("ca.crt"), pki("healthcheck-client.crt"));
    let client = etcd_client(root, &url, &ca, &certificate, &pki("healthcheck-client.key"))?;
    let answer = client.create("/v3/cluster/member/list", &json!({}))?;
    let members = answer["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    let alone = members.len() == 1 && members[0]["name"] == cluster.node_name.as_str();
    alone.then_some(()).ok_or_else(|| {
        let what = format!("etcd has {} members where this node alone should be", members.len());
        Problem::new(&pages::ETCD_MEMBERS, what)
    })
}
