//! The steps that a machine takes on its way to Ready, in order.

use serde::{Deserialize, Serialize};

/// One step. The order is the order of the way: causes at an earlier step explain later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    Platform,
    Image,
    Kernel,
    Disks,
    UserData,
    Units,
    Config,
    Containerd,
    Kubelet,
    Time,
    Route,
    Dns,
    Tcp,
    Tls,
    Ca,
    Authn,
    Identity,
    NodeName,
    NodeObject,
    Cni,
    Ready,
}

/// Name for people, name for programs, and what a failure here means.
const WORDS: [(Step, &str, &str, &str); 21] = [
    (Step::Platform, "platform", "platform", "the platform does not give this node what it needs"),
    (Step::Image, "image", "image", "the image does not let the node's programs work"),
    (Step::Kernel, "kernel", "kernel", "the kernel is not set up for a node"),
    (Step::Disks, "disks", "disks", "the node's disks are not usable"),
    (Step::UserData, "user data", "user-data", "the node was given no usable configuration"),
    (Step::Units, "units", "units", "the bootstrap did not run to its end"),
    (Step::Config, "config", "config", "the configuration is not usable"),
    (Step::Containerd, "containerd", "containerd", "the container runtime does not work"),
    (Step::Kubelet, "kubelet", "kubelet", "the kubelet does not stay up"),
    (Step::Time, "time", "time", "the clock is wrong"),
    (Step::Route, "route", "route", "the node has no usable route"),
    (Step::Dns, "DNS", "dns", "names do not resolve"),
    (Step::Tcp, "TCP", "tcp", "the API server or a needed service cannot be reached"),
    (Step::Tls, "TLS", "tls", "no TLS connection to the API server comes about"),
    (Step::Ca, "CA", "ca", "the presented certificate is not trusted"),
    (Step::Authn, "authn", "authn", "the API server does not accept this node's identity"),
    (Step::Identity, "identity", "identity", "the node is known, but not as a node"),
    (Step::NodeName, "name", "node-name", "the node's name is not the one it may use"),
    (Step::NodeObject, "Node object", "node-object", "the Node object cannot be made"),
    (Step::Cni, "CNI", "cni", "the pod network does not work"),
    (Step::Ready, "Ready", "ready", "the node is registered and does not become Ready"),
];

impl Step {
    /// Every step, in order.
    pub fn all() -> impl Iterator<Item = Step> {
        WORDS.iter().map(|(step, ..)| *step)
    }

    fn row(self) -> &'static (Step, &'static str, &'static str, &'static str) {
        &WORDS[self as usize]
    }

    /// For people.
    pub fn title(self) -> &'static str {
        self.row().1
    }

    /// For programs and `--only`.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// What it means when this step fails.
    pub fn failure(self) -> &'static str {
        self.row().3
    }

    pub fn parse(name: &str) -> Option<Step> {
        Step::all().find(|step| step.name() == name)
    }

    /// Steps on the machine itself. They stand beside the chain that leads over the network.
    pub fn is_local(self) -> bool {
        self <= Step::Kubelet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_steps() {
        for (index, step) in Step::all().enumerate() {
            assert_eq!(step as usize, index);
            assert_eq!(Step::parse(step.name()), Some(step));
        }
    }
}
