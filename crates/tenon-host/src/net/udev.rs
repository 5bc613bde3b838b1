//! A link came or went.

use std::io;

use rustix::fs::{AtFlags, Mode, OFlags};
use tenon_core::codes;
use tenon_core::plan::network::{self, Link, Manager};
use tenon_core::problem::Problem;

use super::Identity;
use crate::apply::{self, Lock};
use crate::gather::imds::values::Raw;
use crate::gather::imds::{Imds, Key};
use crate::root::{Root, absent};

/// Exists as soon as the node's run phase has begun.
const NODE_RUNS: &str = "/run/nodeadm/init";

/// Decides who manages a new link, remembers it, and writes its files if it is systemd.
pub fn add(root: &Root, lock: &Lock, imds: &mut Imds, interface: &str) -> Result<Manager, Problem> {
    let mac = super::mac_of(root, interface)?;
    let identity = super::identify(imds)?;
    let path = network::manager_path(&identity.instance_id, interface);
    let stored = root.read_text(&path).map_err(|error| {
        Problem::new(&codes::host::FILE_READ, format!("reading {path}")).cause(error)
    })?;
    let manager = network::manager(stored.as_deref(), root.exists(NODE_RUNS));
    if stored.is_none() {
        apply::store(root, lock, &path, 0o644, manager.as_str().as_bytes())?;
    }
    tracing::info!(interface, manager = manager.as_str(), "link");
    if manager == Manager::Systemd {
        let link = describe(imds, interface, mac, identity)?;
        for file in network::link(&link) {
            if apply::store(root, lock, &file.path, file.mode, &file.body)? {
                tracing::info!(path = file.path, "written");
            }
        }
    }
    Ok(manager)
}

/// Deletes the files of a link that is gone.
pub fn remove(root: &Root, _lock: &Lock, interface: &str) -> Result<(), Problem> {
    let path = network::network_path(interface);
    let (directory, name) = path.rsplit_once('/').unwrap_or(("/", &path));
    let unlink = || -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = root.open_at(directory, flags, Mode::empty())?;
        Ok(rustix::fs::unlinkat(&directory, name, AtFlags::empty())?)
    };
    match unlink() {
        Ok(()) => {
            tracing::info!(path, "removed");
            Ok(())
        }
        Err(error) if absent(&error) => Ok(()),
        Err(error) => {
            Err(Problem::new(&codes::host::FILE_WRITE, format!("removing {path}")).cause(error))
        }
    }
}

/// Asks where the link is plugged in. No `network-card` is card 0; no addresses is no IPv4.
fn describe(
    imds: &mut Imds,
    interface: &str,
    mac: String,
    identity: Identity,
) -> Result<Link, Problem> {
    let path = |leaf: &str| format!("meta-data/network/interfaces/macs/{mac}/{leaf}");
    let mut keys = vec![Key::mandatory(path("device-number")), Key::optional(path("network-card"))];
    if mac != identity.primary_mac {
        keys.push(Key::optional(path("local-ipv4s")));
    }
    let values = imds.fetch(&keys)?;
    let raw = |index: usize| {
        let bytes = values.get(index)?.as_ref()?;
        Some(Raw { path: &keys[index].path, bytes })
    };
    Ok(Link {
        interface: interface.to_owned(),
        primary_mac: identity.primary_mac,
        device_number: raw(0).map_or(Ok(0), |raw| raw.number())?,
        network_card: raw(1).map_or(Ok(0), |raw| raw.number())?,
        ipv4: raw(2).map_or(Ok(None), |raw| raw.first_ipv4())?,
        mac,
    })
}
