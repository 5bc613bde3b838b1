//! Facts in: what the metadata service says about the instance, and what the machine's own
//! files say. Reads only.
//!
//! ```text
//! environment  the process's variables, read once
//! imds         the instance metadata service
//! machine      versions, processors, memory, devices, kernel switches
//! disks        instance store disks and md arrays
//! tables       instance tables that an image carries
//! resolve      addresses of the API server's name, Outposts only
//! aws          opt-in calls to EC2 and EKS
//! ```
//!
//! A run asks in this order: [`imds::Imds::first_round`] (user data holds the config),
//! [`Wants::of`] the config, [`imds::Imds::second_round`], then [`facts`].

pub mod aws;
pub(crate) mod background;
pub mod disks;
pub mod environment;
mod files;
pub mod imds;
pub mod machine;
pub mod resolve;
pub(crate) mod signature;
pub mod tables;

use tenon_core::config::Config;
use tenon_core::facts::{Facts, Instance, SCHEMA};
use tenon_core::problem::Problem;

use self::environment::Environment;
use self::imds::Needs;
use crate::root::Root;

/// What is worth reading for a config. Everything else costs system calls for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    pub metadata: Needs,
    pub disks: bool,
    pub links: bool,
    /// The exact size of online memory, at three system calls per block of it.
    pub memory_blocks: bool,
}

impl Wants {
    /// Everything, as `tenon facts` prints it.
    pub fn everything() -> Self {
        let metadata = Needs { ipv6: true, vpc_cidrs: true, services_domain: false };
        Wants { metadata, disks: true, links: true, memory_blocks: true }
    }

    /// What the plan for this config looks at.
    pub fn of(config: &Config) -> Self {
        let ipv6 = config.cluster.cidr.is_some_and(|cidr| cidr.addr().is_ipv6());
        let proxy = config.instance.proxy.is_some();
        let metadata = Needs { ipv6, vpc_cidrs: proxy, services_domain: false };
        Wants {
            metadata,
            disks: config.instance.local_storage.strategy.is_some(),
            links: false,
            memory_blocks: config.fast_image_pull,
        }
    }
}

/// Joins what the metadata service said with what the machine's files say. The caller adds what
/// other rooms know: the described cluster, pinned addresses, the record of the last run.
pub fn facts(
    root: &Root,
    mut instance: Instance,
    wants: Wants,
    environment: &Environment,
) -> Result<Facts, Problem> {
    let mut machine = machine::read(root, environment)?;
    if wants.memory_blocks {
        machine.online_memory_bytes = machine::online_memory(root)?;
    }
    if wants.links {
        machine.links = machine::links(root)?;
    }
    if wants.disks {
        let mounts = machine::mounts(root)?;
        machine.instance_store = disks::instance_store(root, &mounts)?;
        machine.arrays = disks::arrays(root, &mounts)?;
    }
    if wants.metadata.ipv6 && instance.ipv6.is_empty() {
        instance.ipv6 = machine::global_ipv6(root, &instance.mac)?;
    }
    Ok(Facts {
        schema: SCHEMA,
        instance,
        machine,
        cluster: None,
        endpoint_addresses: Vec::new(),
        last_run: None,
    })
}
