//! What a control plane is made from. Filled from the machine's config; every value is checked
//! there.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

use super::audit::Audit;
use super::encryption::Encryption;
use crate::codes;
use crate::kube_version::{self, Release, Version};
use crate::problem::{Place, Problem};

/// Where images come from unless the config names a mirror.
pub const REPOSITORY: &str = "registry.k8s.io";

/// The programs of a control plane, in the order in which they are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
}

impl Component {
    pub const ALL: &[Component] =
        &[Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler];

    /// The name of the program, of its image and of its pod.
    pub fn name(self) -> &'static str {
        match self {
            Component::Etcd => "etcd",
            Component::ApiServer => "kube-apiserver",
            Component::ControllerManager => "kube-controller-manager",
            Component::Scheduler => "kube-scheduler",
        }
    }
}

/// The temporary control plane on loopback, or the one that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Bootstrap,
    Final,
}

/// A cluster and the node that starts it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    pub name: String,
    pub version: Version,
    pub node_name: String,
    pub advertise_address: IpAddr,
    /// Where clients reach the API: `host:port`.
    pub endpoint: String,
    /// One, or one of each family.
    pub service_cidrs: Vec<IpNet>,
    /// Empty when nobody hands out pod ranges.
    pub pod_cidrs: Vec<IpNet>,
    pub dns_domain: String,
    pub image_repository: String,
    /// Whole image references by component, tags and digests included.
    pub images: BTreeMap<Component, String>,
    pub etcd: Etcd,
    pub encryption: Encryption,
    pub audit: Audit,
    /// A file for `authorization-config`, in place of `authorization-mode`.
    pub authorization_config: Option<String>,
    /// False with an external CA: nobody here can sign.
    pub signs_certificates: bool,
    /// Flags of the user by component; an empty value removes a flag.
    pub extra_args: BTreeMap<Component, BTreeMap<String, String>>,
    /// Proxy variables for every container.
    pub proxy: BTreeMap<String, String>,
    /// Directories with trusted certificates that this host has besides /etc/ssl/certs.
    pub ca_directories: Vec<String>,
}

/// Where the cluster's data is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Etcd {
    Local(LocalEtcd),
    External(ExternalEtcd),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LocalEtcd {
    /// Decides the flags; also the image's tag when no image is named.
    pub version: Version,
    pub tag: String,
    pub data_dir: String,
    /// Tells this cluster's members from others; recorded in the claim.
    pub token: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExternalEtcd {
    pub endpoints: Vec<String>,
    pub ca_file: String,
    pub cert_file: String,
    pub key_file: String,
}

impl Cluster {
    /// What was released together with this version; only minors that Tenon knows.
    pub fn release(version: Version) -> Result<&'static Release, Problem> {
        kube_version::release(version).ok_or_else(|| {
            let what = format!("Kubernetes {version} is not a version of control planes here");
            Problem::new(&codes::control_plane::UNSUPPORTED_VERSION, what)
                .at(Place::field("spec.controlPlane.kubernetesVersion"))
        })
    }

    /// `v1.34.10`
    pub fn tag(&self) -> String {
        format!("v{}", self.version)
    }

    pub fn image(&self, component: Component) -> String {
        if let Some(image) = self.images.get(&component) {
            return image.clone();
        }
        let tag = match (component, &self.etcd) {
            (Component::Etcd, Etcd::Local(etcd)) => etcd.tag.clone(),
            _ => self.tag(),
        };
        format!("{}/{}:{tag}", self.image_repository, component.name())
    }

    /// The loopback address of the family that this node speaks.
    pub fn loopback(&self) -> IpAddr {
        match self.advertise_address {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        }
    }

    /// `https://HOST:PORT` of an address, in brackets where the family needs them.
    pub fn url(address: IpAddr, port: u16) -> String {
        format!("https://{}", SocketAddr::new(address, port))
    }

    /// Where etcd says how it is, on loopback and without TLS.
    pub fn etcd_metrics_url(&self) -> String {
        format!("http://{}", SocketAddr::new(self.loopback(), 2381))
    }

    /// Where this node's own clients reach the API.
    pub fn local_url(&self) -> String {
        Cluster::url(self.advertise_address, super::API_PORT)
    }

    /// Where every other client reaches it.
    pub fn endpoint_url(&self) -> String {
        format!("https://{}", self.endpoint)
    }
}

/// A list of networks as flags have it.
pub(super) fn networks(cidrs: &[IpNet]) -> String {
    cidrs.iter().map(IpNet::to_string).collect::<Vec<_>>().join(",")
}
