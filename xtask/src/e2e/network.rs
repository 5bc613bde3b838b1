//! Two network namespaces and a cable between them; nothing of it is on the host.
//!
//! ```text
//! infra  veth0 10.0.0.1/16, 169.254.169.254 on lo      metadata service, control plane
//! node   eth0, address and MAC of the pretended instance, default route to infra
//! ```

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenon_host::simulator::profile::Profile;

use super::stage::Stage;
use crate::lab::must;

/// Address of `infra` as the node sees it.
pub const INFRA: &str = "10.0.0.1";
/// The same for instances with IPv6.
pub const INFRA_IPV6: &str = "2a05:d018:0:1::1";
pub const METADATA: &str = "169.254.169.254";
/// The cable to a virtual machine, in place of the one to `node`.
pub const TAP: &str = "tap0";

pub struct Network {
    pub infra: PathBuf,
    pub node: PathBuf,
}

impl Network {
    /// Lays the cable. The files vanish with the stage's mount namespace.
    pub fn lay(stage: &Stage, instance: &Profile) -> anyhow::Result<Self> {
        let network =
            Network { infra: stage.place.join("infra.net"), node: stage.place.join("node.net") };
        for file in [&network.infra, &network.node] {
            File::create(file)?;
            let net = format!("--net={}", file.display());
            must(Command::new("unshare").arg(net).args(["ip", "link", "set", "lo", "up"]))?;
        }
        let node = network.node.display().to_string();
        let address = instance.ipv4.map_or_else(String::new, |ip| format!("{ip}/16"));
        network.ip(&network.infra, &["link", "add", "veth0", "type", "veth", "peer", "eth0"])?;
        network.ip(&network.infra, &["link", "set", "eth0", "netns", &node])?;
        network.ip(&network.infra, &["address", "add", &format!("{INFRA}/16"), "dev", "veth0"])?;
        network.ip(&network.infra, &["address", "add", &format!("{METADATA}/32"), "dev", "lo"])?;
        network.ip(&network.infra, &["link", "set", "veth0", "up"])?;
        network.ip(&network.node, &["link", "set", "eth0", "address", &instance.mac])?;
        network.ip(&network.node, &["address", "add", &address, "dev", "eth0"])?;
        network.ip(&network.node, &["link", "set", "eth0", "up"])?;
        network.ip(&network.node, &["route", "add", "default", "via", INFRA])?;
        if !instance.ipv6.is_empty() {
            network.lay_ipv6(instance)?;
        }
        Ok(network)
    }

    /// `infra` alone, with a cable for a virtual machine, which sets its own address.
    pub fn lay_tap(stage: &Stage) -> anyhow::Result<Self> {
        let infra = stage.place.join("infra.net");
        File::create(&infra)?;
        let net = format!("--net={}", infra.display());
        must(Command::new("unshare").arg(net).args(["ip", "link", "set", "lo", "up"]))?;
        let network = Network { infra, node: PathBuf::new() };
        network.ip(&network.infra, &["tuntap", "add", TAP, "mode", "tap"])?;
        network.ip(&network.infra, &["address", "add", &format!("{INFRA}/16"), "dev", TAP])?;
        network.ip(&network.infra, &["address", "add", &format!("{METADATA}/32"), "dev", "lo"])?;
        network.ip(&network.infra, &["link", "set", TAP, "up"])?;
        Ok(network)
    }

    /// Without the wait for a neighbour that has the same address.
    fn lay_ipv6(&self, instance: &Profile) -> anyhow::Result<()> {
        let add = |file: &Path, address: &str, link: &str| {
            let address = format!("{address}/64");
            self.ip(file, &["-6", "address", "add", &address, "dev", link, "nodad"])
        };
        add(&self.infra, INFRA_IPV6, "veth0")?;
        for address in &instance.ipv6 {
            add(&self.node, &address.to_string(), "eth0")?;
        }
        self.ip(&self.node, &["-6", "route", "add", "default", "via", INFRA_IPV6])
    }

    fn ip(&self, file: &Path, words: &[&str]) -> anyhow::Result<()> {
        let net = format!("--net={}", file.display());
        must(Command::new("nsenter").arg(net).arg("ip").args(words))
    }

    /// A command that runs in `infra`.
    pub fn in_infra(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.infra.display())).arg(program);
        command
    }
}
