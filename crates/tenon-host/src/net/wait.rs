//! Waits until the links are as the node needs them: those that systemd manages configured, all
//! other elastic interfaces left alone for the CNI.

use std::time::{Duration, Instant};

use tenon_core::codes::facts::NETWORK_NOT_READY;
use tenon_core::plan::network::{self, Manager};
use tenon_core::problem::Problem;

use super::Identity;
use super::networkd::{Source, States};
use crate::root::Root;

/// One link and what is expected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub name: String,
    /// The state to wait for; None for links that are none of the node's business.
    pub wanted: Option<&'static str>,
    /// networkd's word; empty while it knows nothing.
    pub state: String,
}

impl Link {
    pub fn is_ready(&self) -> bool {
        self.wanted.is_none_or(|wanted| self.state == wanted)
    }
}

/// Waits for every link that matters; gives all links as they are in the end.
pub fn wait(root: &Root, identity: &Identity, timeout: Duration) -> Result<Vec<Link>, Problem> {
    let end = Instant::now() + timeout;
    let source = Source::open(root);
    loop {
        let links = links(root, identity, &source.states());
        let primary = links.iter().any(|link| link.wanted == Some(CONFIGURED));
        if primary && links.iter().all(Link::is_ready) {
            return Ok(links);
        }
        if Instant::now() >= end {
            return Err(not_ready(&links, timeout));
        }
        source.pause(end)?;
    }
}

const CONFIGURED: &str = "configured";
const UNMANAGED: &str = "unmanaged";

/// Every link of the machine with what is expected of it.
fn links(root: &Root, identity: &Identity, states: &States) -> Vec<Link> {
    let names = root.list("/sys/class/net").unwrap_or_default();
    let link = |name: String| {
        let state = states.get(&name).cloned().unwrap_or_default();
        Link { wanted: wanted(root, identity, &name), name, state }
    };
    names.into_iter().map(link).collect()
}

fn wanted(root: &Root, identity: &Identity, name: &str) -> Option<&'static str> {
    let primary = super::mac_of(root, name).is_ok_and(|mac| mac == identity.primary_mac);
    let stored = root.read_text(&network::manager_path(&identity.instance_id, name));
    let stored = stored.ok().flatten().and_then(|text| Manager::parse(&text));
    match stored {
        _ if primary => Some(CONFIGURED),
        Some(Manager::Systemd) => Some(CONFIGURED),
        _ if super::is_eni(root, name) => Some(UNMANAGED),
        _ => None,
    }
}

fn not_ready(links: &[Link], timeout: Duration) -> Problem {
    let what = format!("the network is not ready after {} s", timeout.as_secs());
    let mut problem = Problem::new(&NETWORK_NOT_READY, what);
    for link in links.iter().filter(|link| !link.is_ready()) {
        let state = if link.state.is_empty() { "unknown to networkd" } else { &link.state };
        let wanted = link.wanted.unwrap_or_default();
        problem = problem.cause(format!("{} is {state}, not {wanted}", link.name));
    }
    if problem.causes.is_empty() {
        problem = problem.cause("no link has the MAC address of the primary interface");
    }
    problem
}
