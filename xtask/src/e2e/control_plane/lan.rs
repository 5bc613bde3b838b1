//! A network of several machines: a bridge in a namespace of its own, a cable to each of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::network::Network;
use super::super::stage::Stage;
use crate::lab::must;

/// The bridge's own address, and the network's width.
const HUB: &str = "10.0.0.1/16";

pub struct Lan {
    hub: PathBuf,
}

impl Lan {
    /// Sets the bridge up. It vanishes with the stage's mount namespace.
    pub fn new(stage: &Stage) -> anyhow::Result<Self> {
        let lan = Lan { hub: namespace(stage, "hub")? };
        ip(&lan.hub, &["link", "add", "br0", "type", "bridge"])?;
        ip(&lan.hub, &["address", "add", HUB, "dev", "br0"])?;
        ip(&lan.hub, &["link", "set", "br0", "up"])?;
        Ok(lan)
    }

    /// A machine's end of a new cable, with its address.
    pub fn plug(&self, stage: &Stage, name: &str, address: &str) -> anyhow::Result<Network> {
        let node = namespace(stage, name)?;
        let port = format!("v-{name}");
        ip(&self.hub, &["link", "add", &port, "type", "veth", "peer", "eth0"])?;
        ip(&self.hub, &["link", "set", "eth0", "netns", &node.display().to_string()])?;
        ip(&self.hub, &["link", "set", &port, "master", "br0", "up"])?;
        ip(&node, &["address", "add", &format!("{address}/16"), "dev", "eth0"])?;
        ip(&node, &["link", "set", "eth0", "up"])?;
        ip(&node, &["route", "add", "default", "via", "10.0.0.1"])?;
        Ok(Network { infra: self.hub.clone(), node })
    }
}

fn namespace(stage: &Stage, name: &str) -> anyhow::Result<PathBuf> {
    let file = stage.place.join(format!("{name}.net"));
    File::create(&file)?;
    let net = format!("--net={}", file.display());
    must(Command::new("unshare").arg(net).args(["ip", "link", "set", "lo", "up"]))?;
    Ok(file)
}

fn ip(file: &Path, words: &[&str]) -> anyhow::Result<()> {
    let net = format!("--net={}", file.display());
    must(Command::new("nsenter").arg(net).arg("ip").args(words))
}
