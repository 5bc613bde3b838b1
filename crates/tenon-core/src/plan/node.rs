//! What the whole plan agrees on: versions, cluster, name, addresses, pod limit.
//!
//! Resolved once, so that no two files of a node can disagree about it.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;

use super::pods::Pods;
use super::{Draft, addresses, kubelet_args, node_name, pods, soci};
use crate::codes;
use crate::config::{Config, Outpost};
use crate::facts::{DescribedCluster, Facts};
use crate::kube_version::{CONTAINERD_TESTED, Gate, KUBELET_TESTED, Version};
use crate::problem::{Finding, Place, Problem};

/// A config and facts with everything decided that more than one file needs.
pub(crate) struct Node<'a> {
    pub config: &'a Config,
    pub facts: &'a Facts,
    pub kubelet_version: Version,
    pub containerd_version: Version,
    pub cluster: Cluster,
    pub name: String,
    pub ip: IpAddr,
    pub dns: IpAddr,
    pub pods: Pods,
    /// The user's flags, one argument each, as the kubelet will see them.
    pub arguments: Vec<String>,
    /// Images are pulled through the SOCI snapshotter.
    pub soci: bool,
}

/// Where the API server is and how it is trusted.
pub(crate) struct Cluster {
    /// Set when the cluster is a local one on Outposts.
    pub outpost: Option<Outpost>,
    /// Of a local cluster on Outposts; empty otherwise.
    pub id: String,
    pub endpoint: String,
    pub certificate_authority: Vec<u8>,
    pub cidr: IpNet,
}

impl<'a> Node<'a> {
    /// Decides the shared values. None when one is missing; the draft then holds the error.
    pub(crate) fn resolve(config: &'a Config, facts: &'a Facts, draft: &mut Draft) -> Option<Self> {
        let arguments = kubelet_args::seen(&config.kubelet.flags);
        let kubelet = version("kubelet", &facts.machine.kubelet_version, &KUBELET_TESTED, draft);
        let containerd =
            version("containerd", &facts.machine.containerd_version, &CONTAINERD_TESTED, draft);
        let cluster = Cluster::resolve(config, facts.cluster.as_ref(), draft);
        let name = name(config, facts, draft);
        let pods = pods::resolve(config, facts, &arguments, draft);
        let cluster = cluster?;
        let dns = draft.keep(addresses::cluster_dns(cluster.cidr));
        let ip = draft.keep(addresses::node_ip(cluster.cidr, &facts.instance));
        let node = Node {
            config,
            facts,
            kubelet_version: kubelet?,
            containerd_version: containerd?,
            cluster,
            name: name?,
            ip: ip?,
            dns: dns?,
            pods: pods?,
            arguments,
            soci: soci::is_on(config, &facts.machine),
        };
        node.explain(draft);
        Some(node)
    }

    fn explain(&self, draft: &mut Draft) {
        let cidr = self.cluster.cidr;
        draft.reason("clusterDNS", "default", "tenth address of the service range");
        draft.reason("clusterDNS", "config", format!("{cidr} -> {}", self.dns));
        let family = if cidr.network().is_ipv4() { "IPv4" } else { "IPv6" };
        draft.reason("nodeIp", "config", format!("service range {cidr} is {family}"));
        let which = if family == "IPv4" { "local IPv4" } else { "first IPv6 of the primary link" };
        draft.reason("nodeIp", "facts", format!("{which} -> {}", self.ip));
    }
}

impl Draft {
    /// The value, or its problem as an error finding.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.findings.push(Finding::error(problem))).ok()
    }
}

fn version(name: &str, text: &str, tested: &Gate, draft: &mut Draft) -> Option<Version> {
    let Some(version) = Version::parse(text) else {
        let what = format!("the version of {name} has no `N.N.N` in it");
        draft.findings.push(Finding::error(Problem::new(&codes::plan::UNREADABLE_VERSION, what)));
        return None;
    };
    if !tested.is_open(version) {
        let what = format!("{name} {version} is outside the tested versions");
        draft.findings.push(Finding::warning(Problem::new(&codes::plan::UNTESTED_VERSION, what)));
    }
    Some(version)
}

fn name(config: &Config, facts: &Facts, draft: &mut Draft) -> Option<String> {
    let named = draft.keep(node_name::resolve(config.node.name, facts))?;
    draft.findings.extend(named.findings);
    draft.reasons.insert("nodeName".into(), named.reasons);
    Some(named.name)
}

impl Cluster {
    /// The config wins; what it leaves out comes from the described cluster.
    fn resolve(
        config: &Config,
        described: Option<&DescribedCluster>,
        draft: &mut Draft,
    ) -> Option<Self> {
        let wanted = &config.cluster;
        let endpoint = Some(wanted.api_server_endpoint.clone())
            .filter(|text| !text.is_empty())
            .or_else(|| described.map(|cluster| cluster.endpoint.clone()));
        let authority = Some(wanted.certificate_authority.clone())
            .filter(|bytes| !bytes.is_empty())
            .or_else(|| described.and_then(|cluster| decoded_authority(cluster, draft)));
        let cidr = wanted.cidr.or_else(|| described.map(|cluster| cluster.cidr));
        let id = Some(wanted.id.clone())
            .filter(|text| !text.is_empty())
            .or_else(|| described.and_then(|cluster| cluster.outpost_id.clone()));
        let outpost = wanted.on_outpost(described).cloned();
        let id = match outpost {
            Some(_) => required(id, "id", draft),
            None => Some(String::new()),
        };
        let endpoint = required(endpoint, "apiServerEndpoint", draft);
        let certificate_authority = required(authority, "certificateAuthority", draft);
        let cidr = required(cidr, "cidr", draft);
        Some(Cluster {
            outpost,
            id: id?,
            endpoint: endpoint?,
            certificate_authority: certificate_authority?,
            cidr: cidr?,
        })
    }
}

fn decoded_authority(cluster: &DescribedCluster, draft: &mut Draft) -> Option<Vec<u8>> {
    let decoded = STANDARD.decode(cluster.certificate_authority.trim());
    draft.keep(decoded.map_err(|cause| {
        Problem::new(&codes::plan::BAD_DESCRIBED_CA, "the described cluster's CA is not base64")
            .cause(cause)
    }))
}

fn required<T>(value: Option<T>, field: &str, draft: &mut Draft) -> Option<T> {
    if value.is_none() {
        let problem = Problem::new(&codes::plan::CLUSTER_INCOMPLETE, format!("no cluster {field}"))
            .at(Place::field(format!("spec.cluster.{field}")));
        draft.findings.push(Finding::error(problem));
    }
    value
}
