//! What differs between clusters: the versions of Kubernetes and containerd, the cgroup driver and
//! the family of addresses.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use tenon_host::simulator::profile::Profile;

use super::super::metadata::instance;
use super::super::network::{INFRA, INFRA_IPV6};

pub struct Shape {
    /// `1.34`
    pub minor: &'static str,
    /// Where the programs of that version lie.
    pub kubernetes: PathBuf,
    pub instance: Profile,
    /// Another containerd than the image's.
    pub containerd: Option<Containerd>,
    /// The user asks for cgroups without systemd's help.
    pub cgroupfs: bool,
    /// How many times slower than a container the machine may be.
    pub patience: u64,
}

/// A containerd in a directory of its own.
pub struct Containerd {
    pub place: PathBuf,
    /// `1.7`
    pub minor: &'static str,
}

impl Shape {
    /// A cluster with IPv4 addresses.
    pub fn new(minor: &'static str, kubernetes: PathBuf) -> Self {
        Shape {
            minor,
            kubernetes,
            instance: instance(),
            containerd: None,
            cgroupfs: false,
            patience: 1,
        }
    }

    pub fn with_ipv6(mut self) -> Self {
        self.instance = self.instance.with_ipv6();
        self
    }

    pub fn with_containerd(mut self, minor: &'static str, place: PathBuf) -> Self {
        self.containerd = Some(Containerd { place, minor });
        self
    }

    pub fn with_cgroupfs(mut self) -> Self {
        self.cgroupfs = true;
        self
    }

    /// The machine is emulated.
    pub fn with_patience(mut self, patience: u64) -> Self {
        self.patience = patience;
        self
    }

    pub fn is_ipv6(&self) -> bool {
        !self.instance.ipv6.is_empty()
    }

    fn choose(&self, ipv4: &'static str, ipv6: &'static str) -> &'static str {
        if self.is_ipv6() { ipv6 } else { ipv4 }
    }

    /// Name of the Node object.
    pub fn node(&self) -> &str {
        &self.instance.hostname
    }

    /// The node's own address.
    pub fn address(&self) -> anyhow::Result<IpAddr> {
        let ipv6 = self.instance.ipv6.first().copied().map(IpAddr::from);
        ipv6.or(self.instance.ipv4.map(IpAddr::from)).context("the instance has no address")
    }

    /// Address of the API server.
    pub fn api_server(&self) -> &'static str {
        self.choose(INFRA, INFRA_IPV6)
    }

    /// The same as it stands in a URL.
    pub fn endpoint(&self) -> &'static str {
        self.choose(INFRA, "[2a05:d018:0:1::1]")
    }

    pub fn services(&self) -> &'static str {
        self.choose("10.100.0.0/16", "fd5a:77c0:1b2e::/108")
    }

    /// The tenth address of the service range.
    pub fn name_server(&self) -> &'static str {
        self.choose("10.100.0.10", "fd5a:77c0:1b2e::a")
    }

    pub fn pods(&self) -> &'static str {
        self.choose("10.244.1.0/24", "fd00:10:244:1::/64")
    }

    /// How the addresses of pods begin.
    pub fn pods_begin(&self) -> &'static str {
        self.choose("10.244.1.", "fd00:10:244:1:")
    }

    /// The table of containerd's config that has the settings of containers.
    pub fn runtime_table(&self) -> &'static str {
        match &self.containerd {
            Some(containerd) if containerd.minor.starts_with('2') => "io.containerd.cri.v1.runtime",
            _ => "io.containerd.grpc.v1.cri",
        }
    }

    pub fn everywhere(&self) -> &'static str {
        self.choose("0.0.0.0/0", "::/0")
    }
}
