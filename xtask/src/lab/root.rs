//! The root file system of the lab's machines: Debian's packages by name, nothing of ours.

use std::path::Path;
use std::process::Command;

use super::{install, must, source};
use crate::checkout;

const SCRIPT: &str = "e2e/root.sh";

/// What a node image has, as far as Debian has it.
const PACKAGES: &[&str] = &[
    "systemd",
    "systemd-sysv",
    "dbus",
    "udev",
    "iproute2",
    "iptables",
    "nftables",
    "kmod",
    "procps",
    "ca-certificates",
    "curl",
    "cloud-init",
    "containerd",
    "runc",
    "containernetworking-plugins",
    "conntrack",
    "ebtables",
    "ethtool",
    "socat",
    "util-linux",
    "mount",
    "less",
    "ifupdown",
    "isc-dhcp-client",
    "iputils-ping",
    "python3",
    "jq",
];

/// What a server has besides that is to become a node by an image's plan.
const SERVER: &[&str] = &["linux-image-cloud-amd64", "openssh-server", "sudo", "cron"];

pub(super) fn server_recipe() -> anyhow::Result<String> {
    Ok(format!("{},{}", recipe()?, SERVER.join(",")))
}

pub(super) fn build_server(place: &Path) -> anyhow::Result<()> {
    install("mmdebstrap", "mmdebstrap")?;
    let packages = [PACKAGES, SERVER].concat().join(",");
    must(Command::new(checkout().join(SCRIPT)).arg(place).arg(packages))
}

pub(super) fn recipe() -> anyhow::Result<String> {
    Ok(format!("{}\n{}", source(SCRIPT)?, PACKAGES.join(",")))
}

pub(super) fn build(place: &Path) -> anyhow::Result<()> {
    install("mmdebstrap", "mmdebstrap")?;
    must(Command::new(checkout().join(SCRIPT)).arg(place).arg(PACKAGES.join(",")))
}

/// What makes of it a root whose packages are rpm's; with the programs that make such packages.
const DNF: &[&str] = &["dnf", "dnf-plugins-core", "rpm", "createrepo-c", "gnupg"];

pub(super) fn dnf_recipe() -> anyhow::Result<String> {
    Ok(format!("{},{}", recipe()?, DNF.join(",")))
}

pub(super) fn build_dnf(place: &Path) -> anyhow::Result<()> {
    install("mmdebstrap", "mmdebstrap")?;
    let packages = [PACKAGES, DNF].concat().join(",");
    must(Command::new(checkout().join(SCRIPT)).arg(place).arg(packages))
}
