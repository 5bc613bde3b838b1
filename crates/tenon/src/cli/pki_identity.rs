//! Which node the certificates are for: flags over the machine's config over defaults.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use tenon_core::codes::host::FILE_READ;
use tenon_core::codes::pki::PKI_INPUT;
use tenon_core::pki::{Identity, San};
use tenon_core::problem::{Place, Problem};
use tenon_core::stages::{Machine, Role, load, paths};
use tenon_host::root::Root;

use super::node_args::read_file;
use crate::output::Failure;

const CONFIG_CAP: u64 = 1 << 20;
const SERVICES: &str = "10.96.0.0/12";
const DOMAIN: &str = "cluster.local";

#[derive(Debug, clap::Args)]
pub struct IdentityArgs {
    /// MachineConfig [default: /etc/tenon/config.yaml below --root, if there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the node [default: the host name]
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
    /// Address of this node's API server
    #[arg(long, value_name = "IP")]
    advertise_address: Option<IpAddr>,
    /// Where the cluster is reached [default: the advertise address]
    #[arg(long, value_name = "HOST[:PORT]")]
    endpoint: Option<String>,
    /// Service range; repeatable [default: 10.96.0.0/12]
    #[arg(long, value_name = "CIDR")]
    service_cidr: Vec<IpNet>,
    /// Domain of the cluster [default: cluster.local]
    #[arg(long, value_name = "DOMAIN")]
    cluster_domain: Option<String>,
    /// One more name or address of the API server; repeatable
    #[arg(long = "san", value_name = "NAME", value_parser = san)]
    sans: Vec<San>,
    /// One more name or address of the etcd member; repeatable
    #[arg(long = "etcd-san", value_name = "NAME", value_parser = san)]
    etcd_sans: Vec<San>,
}

fn san(text: &str) -> Result<San, String> {
    San::parse(text).ok_or_else(|| "neither an address nor a host name".to_owned())
}

impl IdentityArgs {
    /// The machine's config, if one is named or in its place.
    pub fn machine(&self, root: &Root) -> Result<Option<Machine>, Failure> {
        let (path, read) = match &self.config {
            // What an argument names is a file of whoever runs the command, not of the node.
            Some(path) => (path.display().to_string(), Some(read_file(path)?)),
            None => {
                let path = paths::CONFIG;
                let read = root.read(path, CONFIG_CAP).map_err(|error| {
                    Problem::new(&FILE_READ, format!("reading {path}")).cause(error)
                })?;
                (path.to_owned(), read)
            }
        };
        let Some(bytes) = read else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        load(&text, &format!("file://{path}"))
            .map(Some)
            .map_err(|findings| Failure::Findings { findings, lenient: false })
    }

    /// The identity; None when no address is known.
    pub fn identity(&self, machine: Option<&Machine>) -> Result<Option<Identity>, Problem> {
        let host_name = host_name();
        let base = match machine {
            Some(machine) if self.advertise_address.is_some() || has_address(machine) => {
                Some(Identity::of(machine, &host_name, self.advertise_address)?)
            }
            _ => None,
        };
        let Some(advertise) = self.advertise_address.or(base.as_ref().map(|it| it.advertise))
        else {
            return Ok(None);
        };
        let mut identity = match base {
            Some(base) => Identity { advertise, ..base },
            None => Identity {
                node_name: host_name,
                advertise,
                endpoint: advertise.to_string(),
                service_cidrs: SERVICES.parse().into_iter().collect(),
                domain: DOMAIN.to_owned(),
                extra_sans: Vec::new(),
                etcd_sans: Vec::new(),
                external_etcd: false,
            },
        };
        self.overlay(&mut identity);
        identity.check()?;
        Ok(Some(identity))
    }

    fn overlay(&self, identity: &mut Identity) {
        let texts = [
            (&self.node_name, &mut identity.node_name),
            (&self.endpoint, &mut identity.endpoint),
            (&self.cluster_domain, &mut identity.domain),
        ];
        for (given, held) in texts {
            if let Some(text) = given {
                held.clone_from(text);
            }
        }
        if !self.service_cidr.is_empty() {
            identity.service_cidrs.clone_from(&self.service_cidr);
        }
        identity.extra_sans.extend(self.sans.iter().cloned());
        identity.etcd_sans.extend(self.etcd_sans.iter().cloned());
    }

    /// The identity of a command that cannot do without.
    pub fn required(&self, machine: Option<&Machine>) -> Result<Identity, Problem> {
        self.identity(machine)?.ok_or_else(|| {
            lacking("no address of this node's API server is known", "--advertise-address")
        })
    }
}

fn has_address(machine: &Machine) -> bool {
    machine.control_plane.advertise_address.or(machine.node.ip).is_some()
}

/// True for a machine that gets the kubeconfigs with the widest rights.
pub fn is_first_master(machine: Option<&Machine>) -> bool {
    machine.is_none_or(|machine| machine.role == Role::FirstMaster)
}

fn lacking(what: &str, flag: &str) -> Problem {
    Problem::new(&PKI_INPUT, what).at(Place::field(flag))
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase()
}
