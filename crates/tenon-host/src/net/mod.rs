//! Network links of the node, before and after it runs: what `nodeadm-internal` does.
//!
//! ```text
//! udev      a link came or went: who manages it, and its networkd files
//! wait      until the links are as the node needs them
//! networkd  the state of links over D-Bus, else from networkd's own files
//! ```

mod networkd;
pub mod udev;
pub mod wait;

use tenon_core::codes::facts::NO_LINK;
use tenon_core::problem::Problem;

use crate::gather::imds::values::{self, Raw};
use crate::gather::imds::{Imds, Key};
use crate::root::Root;

/// Drivers of elastic network interfaces.
const ENI_DRIVERS: [&str; 3] = ["vif", "ena", "ixgbevf"];

/// What the metadata service says about the machine's place in the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub instance_id: String,
    pub primary_mac: String,
}

/// Asks who this instance is. Early in a boot the values may come late; they are waited for.
pub fn identify(imds: &mut Imds) -> Result<Identity, Problem> {
    let keys = [Key::mandatory("meta-data/instance-id"), Key::mandatory("meta-data/mac")];
    let values: Vec<Vec<u8>> =
        imds.fetch(&keys)?.into_iter().map(Option::unwrap_or_default).collect();
    let raw = |index: usize| Raw { path: &keys[index].path, bytes: &values[index] };
    let instance_id = raw(0).matching("an instance id", values::is_instance_id)?.to_owned();
    Ok(Identity { instance_id, primary_mac: raw(1).mac()? })
}

/// The MAC of a link.
fn mac_of(root: &Root, interface: &str) -> Result<String, Problem> {
    let path = format!("/sys/class/net/{interface}/address");
    let text = root.read_text(&path).ok().flatten().unwrap_or_default();
    if values::is_mac(&text) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Problem::new(&NO_LINK, format!("link {interface} has no MAC address ({path})")))
}

/// True if the link is an elastic network interface, told by its driver.
fn is_eni(root: &Root, interface: &str) -> bool {
    let driver = root.link_name(&format!("/sys/class/net/{interface}/device/driver"));
    driver.is_some_and(|name| ENI_DRIVERS.contains(&name.as_str()))
}

#[cfg(test)]
mod tests;
