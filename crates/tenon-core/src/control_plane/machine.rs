//! From a machine's config to the cluster that it starts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::audit::Audit;
use super::cluster::{Cluster, Component, Etcd, ExternalEtcd, LocalEtcd};
use super::encryption::{Encryption, Provider};
use crate::codes::control_plane as pages;
use crate::config::Proxy;
use crate::kube_version::Version;
use crate::problem::{Place, Problem};
use crate::stages::machine::{BootstrapPhase, ControlPlane, Machine};

/// Below this much memory two API servers at once are too many.
const SMALL_MEMORY_MIB: u64 = 2048;

/// What only the machine itself can say.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// The node's name when the config leaves it to the machine.
    pub host_name: String,
    /// The machine's own address, when the config leaves that to it.
    pub address: Option<IpAddr>,
    /// Text of the user's audit policy, when the config names a file.
    pub audit_policy: Option<String>,
    /// Directories with trusted certificates.
    pub ca_directories: Vec<String>,
    /// From the claim.
    pub etcd_token: String,
    /// False when the CA's key is elsewhere.
    pub signs_certificates: bool,
}

/// The cluster that a machine's config describes.
pub fn cluster(machine: &Machine, host: Host) -> Result<Cluster, Problem> {
    let plane = &machine.control_plane;
    let wanted = machine.cluster.kubernetes_version.as_str();
    let version = Version::parse(wanted).ok_or_else(|| unsupported(wanted))?;
    let release = Cluster::release(version)?;
    let address = plane.advertise_address.or(machine.node.ip).or(host.address);
    let advertise_address = address.ok_or_else(|| {
        Problem::new(&pages::NO_ADDRESS, "the control plane has no address to be reached at")
            .at(Place::field("spec.controlPlane.advertiseAddress"))
    })?;
    Ok(Cluster {
        name: machine.cluster.name.clone(),
        version,
        node_name: machine.node_name(&host.host_name).to_owned(),
        advertise_address,
        endpoint: endpoint(&machine.cluster.endpoint),
        service_cidrs: machine.cluster.service_cidrs.clone(),
        pod_cidrs: machine.cluster.pod_cidrs.clone(),
        dns_domain: machine.cluster.dns_domain.clone(),
        image_repository: plane.images.repository.clone(),
        images: pinned_images(plane),
        etcd: etcd(plane, release.etcd, host.etcd_token)?,
        encryption: encryption(plane),
        audit: audit(&plane.audit, host.audit_policy),
        authorization_config: plane.authorization_config.clone(),
        signs_certificates: host.signs_certificates,
        extra_args: extra_args(plane),
        proxy: machine.proxy.as_ref().map(proxy).unwrap_or_default(),
        ca_directories: host.ca_directories,
    })
}

/// True when the final control plane is started at once, without a temporary one.
pub fn is_direct(phase: BootstrapPhase, memory_mib: Option<u64>) -> bool {
    match phase {
        BootstrapPhase::Direct => true,
        BootstrapPhase::Loopback => false,
        BootstrapPhase::Auto => memory_mib.is_some_and(|memory| memory < SMALL_MEMORY_MIB),
    }
}

fn unsupported(version: &str) -> Problem {
    let what = format!("`{version}` is not a version of Kubernetes");
    Problem::new(&pages::UNSUPPORTED_VERSION, what)
        .at(Place::field("spec.cluster.kubernetesVersion"))
}

/// `host:port` of an address; the API's own port when it names none.
fn endpoint(url: &str) -> String {
    let place = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = place.split('/').next().unwrap_or(place);
    let after_host = place.rsplit_once(']').map_or(place, |(_, rest)| rest);
    match after_host.contains(':') {
        true => place.to_owned(),
        false => format!("{place}:{}", super::API_PORT),
    }
}

fn etcd(plane: &ControlPlane, released: &str, token: String) -> Result<Etcd, Problem> {
    if let Some(etcd) = &plane.external_etcd {
        return Ok(Etcd::External(ExternalEtcd {
            endpoints: etcd.endpoints.clone(),
            ca_file: etcd.ca_file.clone(),
            cert_file: etcd.cert_file.clone(),
            key_file: etcd.key_file.clone(),
        }));
    }
    let tag = plane.images.etcd_tag.clone().unwrap_or_else(|| released.to_owned());
    let version = Version::parse(&tag).ok_or_else(|| {
        let what = "the tag of etcd's image does not begin with its version";
        Problem::new(&pages::UNSUPPORTED_VERSION, what)
            .at(Place::field("spec.controlPlane.images.etcdTag"))
            .fix("write a tag such as 3.6.5-0: the flags follow from it")
    })?;
    Ok(Etcd::Local(LocalEtcd { version, tag, data_dir: plane.etcd_data_dir.clone(), token }))
}

fn encryption(plane: &ControlPlane) -> Encryption {
    let wanted = &plane.encryption;
    let provider = match wanted.provider.as_str() {
        "none" => Provider::None,
        "aescbc" => Provider::AesCbc,
        "kms-v2" => Provider::KmsV2 { endpoint: wanted.kms_endpoint.clone().unwrap_or_default() },
        _ => Provider::Secretbox,
    };
    Encryption { provider, resources: wanted.resources.clone() }
}

fn audit(choice: &str, policy: Option<String>) -> Audit {
    match (choice, policy) {
        ("none", _) => Audit::None,
        (_, Some(text)) => Audit::Policy(text),
        (_, None) => Audit::Metadata,
    }
}

/// Images by digest, for the components whose digest the config pins.
fn pinned_images(plane: &ControlPlane) -> BTreeMap<Component, String> {
    let find = |name: &String| Component::ALL.iter().find(|component| component.name() == name);
    let pinned = |(name, digest): (&String, &String)| {
        let image = format!("{}/{name}@{digest}", plane.images.repository);
        find(name).map(|component| (*component, image))
    };
    plane.images.digests.iter().filter_map(pinned).collect()
}

fn extra_args(plane: &ControlPlane) -> BTreeMap<Component, BTreeMap<String, String>> {
    let args = &plane.extra_args;
    let rows = [&args.etcd, &args.api_server, &args.controller_manager, &args.scheduler];
    let rows = Component::ALL.iter().copied().zip(rows);
    rows.filter(|(_, flags)| !flags.is_empty()).map(|(it, flags)| (it, flags.clone())).collect()
}

fn proxy(proxy: &Proxy) -> BTreeMap<String, String> {
    let secret = |name: &str, value: &Option<crate::secret::Secret>| {
        value.as_ref().map(|value| (name.to_owned(), value.expose().to_owned()))
    };
    let none =
        (!proxy.no_proxy.is_empty()).then(|| ("NO_PROXY".to_owned(), proxy.no_proxy.join(",")));
    [secret("HTTP_PROXY", &proxy.http), secret("HTTPS_PROXY", &proxy.https), none]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_port() {
        for (url, expected) in [
            ("https://api.example", "api.example:6443"),
            ("https://api.example:443", "api.example:443"),
            ("https://[fd00::1]", "[fd00::1]:6443"),
            ("https://[fd00::1]:8443", "[fd00::1]:8443"),
            ("https://10.0.0.1:6443/", "10.0.0.1:6443"),
        ] {
            assert_eq!(endpoint(url), expected);
        }
    }

    #[test]
    fn a_small_machine_starts_directly() {
        for (phase, memory, direct) in [
            (BootstrapPhase::Auto, Some(2047), true),
            (BootstrapPhase::Auto, Some(2048), false),
            (BootstrapPhase::Auto, None, false),
            (BootstrapPhase::Loopback, Some(1), false),
            (BootstrapPhase::Direct, None, true),
        ] {
            assert_eq!(is_direct(phase, memory), direct, "{phase:?} {memory:?}");
        }
    }

    #[test]
    fn what_the_config_says_reaches_the_cluster() {
        let text = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: first-master
  cluster: {name: lab, endpoint: \"https://10.0.0.4:6443\", kubernetesVersion: v1.34.10, podCidrs: [10.244.0.0/16]}
  node: {ip: 10.0.0.4}
  proxy: {https: \"http://proxy:1\", noProxy: [.corp]}
  controlPlane:
    audit: none
    encryption: {provider: aescbc, resources: [secrets, configmaps]}
    images: {repository: localhost/lab, etcdTag: 3.5.16-0, digests: {kube-scheduler: \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"}}
    extraArgs: {apiServer: {v: \"3\"}}
";
        let machine = crate::stages::load(text, "test").unwrap();
        let host = Host {
            host_name: "cp-1".into(),
            address: None,
            audit_policy: None,
            ca_directories: Vec::new(),
            etcd_token: "t".into(),
            signs_certificates: true,
        };
        let cluster = cluster(&machine, host).unwrap();
        assert_eq!(cluster.node_name, "cp-1");
        assert_eq!(cluster.version, Version::new(1, 34, 10));
        assert_eq!(cluster.image(Component::Etcd), "localhost/lab/etcd:3.5.16-0");
        assert_eq!(cluster.image(Component::ApiServer), "localhost/lab/kube-apiserver:v1.34.10");
        assert!(
            cluster.image(Component::Scheduler).starts_with("localhost/lab/kube-scheduler@sha256:")
        );
        assert_eq!(cluster.encryption.provider, Provider::AesCbc);
        assert_eq!(cluster.audit, Audit::None);
        assert_eq!(cluster.extra_args[&Component::ApiServer]["v"], "3");
        assert_eq!(cluster.proxy["NO_PROXY"], ".corp");
        let Etcd::Local(etcd) = &cluster.etcd else { panic!("etcd is not here") };
        assert_eq!(etcd.version, Version::new(3, 5, 16));
    }
}
