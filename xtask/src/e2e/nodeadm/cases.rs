//! The user data that both programs are given, and the image it meets.

use std::fs;

use anyhow::Context;

use super::HOME;
use crate::checkout;
use crate::lab::{KUBERNETES_1_34, KUBERNETES_1_36, Part};

pub struct Case {
    pub name: &'static str,
    /// Ending of the file in `e2e/nodeadm/cases`.
    ending: &'static str,
    pub instance_type: &'static str,
    pub kubelet: Kubelet,
    /// Also the run phase, with the real daemons.
    pub runs: bool,
    /// There is nothing to compare but that.
    pub refused_by_nodeadm: bool,
}

/// The kubelet of the image.
pub enum Kubelet {
    /// The real one, from the lab.
    Built(&'static Part),
    /// Nothing but its version.
    Says(&'static str),
}

const PLAIN: Case = Case {
    name: "plain",
    ending: "yaml",
    instance_type: "m5.large",
    kubelet: Kubelet::Says("v1.34.1"),
    runs: false,
    refused_by_nodeadm: false,
};

pub const CASES: &[Case] = &[
    Case { kubelet: Kubelet::Built(&KUBERNETES_1_34), runs: true, ..PLAIN },
    Case { name: "kubelet-config", ..PLAIN },
    Case { name: "kubelet-1.29", kubelet: Kubelet::Says("v1.29.15"), ..PLAIN },
    Case { name: "kubelet-1.36", kubelet: Kubelet::Built(&KUBERNETES_1_36), runs: true, ..PLAIN },
    Case { name: "containerd-toml", ..PLAIN },
    Case { name: "max-pods", ..PLAIN },
    Case { name: "new-instance-type", instance_type: "m8g.large", ..PLAIN },
    Case { name: "ipv6", ..PLAIN },
    Case { name: "outpost", ..PLAIN },
    Case { name: "several-parts", ending: "mime", ..PLAIN },
    Case { name: "encoded-part", ending: "mime", refused_by_nodeadm: true, ..PLAIN },
    Case { name: "newer-fields", ..PLAIN },
];

impl Case {
    /// The user data, with a certificate authority that is a certificate.
    pub fn user_data(&self) -> anyhow::Result<String> {
        let file = checkout().join(HOME).join(format!("cases/{}.{}", self.name, self.ending));
        let text = fs::read_to_string(&file).with_context(|| format!("reading {file:?}"))?;
        let golden = fs::read_to_string(checkout().join("golden/plain/config.yaml"))?;
        let authority =
            golden.lines().find_map(|line| line.trim().strip_prefix("certificateAuthority: "));
        Ok(text.replace("{authority}", authority.context("golden/plain has no authority")?))
    }
}
