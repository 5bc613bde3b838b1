//! Network links: who manages one, and the text of its networkd files.
//!
//! `tenon net udev` asks for each link that appears; nothing here is part of the node's plan.

use std::net::Ipv4Addr;

use super::step::FileBody;

/// Keeps the image's catch-all away from links that appear later: those belong to the CNI.
pub const PRIMARY_DROP_IN: &str = "/run/systemd/network/80-ec2.network.d/10-eks-disable.conf";

/// Jumbo frames, as every VPC carries them.
const MTU: u32 = 9001;
const METRIC_BASE: u32 = 512;
const TABLE_BASE: u32 = 10_000;
const RULE_PRIORITY: u32 = 32_765;

/// Who sets a link up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    Systemd,
    Cni,
}

impl Manager {
    /// The word that is stored for a link.
    pub fn as_str(self) -> &'static str {
        match self {
            Manager::Systemd => "io.systemd.Network",
            Manager::Cni => "cni",
        }
    }

    /// Reads a stored word back.
    pub fn parse(text: &str) -> Option<Self> {
        [Manager::Systemd, Manager::Cni].into_iter().find(|manager| manager.as_str() == text.trim())
    }
}

/// Decides who manages a link: what was stored for it, else systemd before the node runs and
/// the CNI afterwards.
pub fn manager(stored: Option<&str>, node_runs: bool) -> Manager {
    let fresh = if node_runs { Manager::Cni } else { Manager::Systemd };
    stored.and_then(Manager::parse).unwrap_or(fresh)
}

/// What the text of a link's file depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub interface: String,
    pub mac: String,
    /// MAC of the machine's primary interface.
    pub primary_mac: String,
    pub device_number: u32,
    pub network_card: u32,
    /// First IPv4 address of the link, if it has one.
    pub ipv4: Option<Ipv4Addr>,
}

impl Link {
    pub fn is_primary(&self) -> bool {
        self.mac.eq_ignore_ascii_case(&self.primary_mac)
    }

    fn offset(&self) -> u32 {
        self.network_card.saturating_mul(100).saturating_add(self.device_number)
    }
}

/// Kernel interface names: 1 to 15 bytes, nothing that could leave a directory.
pub fn is_interface_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_graphic() && b != b'/' && b != b'%';
    (1..=15).contains(&name.len()) && name.bytes().all(allowed) && name != "." && name != ".."
}

/// Where the link's `.network` file stands.
pub fn network_path(interface: &str) -> String {
    format!("/run/systemd/network/70-eks-{interface}.network")
}

/// Where the link's manager is stored.
pub fn manager_path(instance_id: &str, interface: &str) -> String {
    format!("/etc/eks/nodeadm/udev-net-manager/{instance_id}/{interface}")
}

/// The files of a link that systemd manages.
pub fn link(link: &Link) -> Vec<FileBody> {
    let mut files = vec![FileBody::new(network_path(&link.interface), 0o644, network_text(link))];
    if link.is_primary() {
        files.push(FileBody::new(PRIMARY_DROP_IN, 0o644, "[Match]\nName=none\n"));
    }
    files
}

fn network_text(link: &Link) -> String {
    let metric = link.offset().saturating_add(METRIC_BASE);
    let mut text = format!(
        "[Match]\nPermanentMACAddress={mac}\n\n\
         [Link]\nMTUBytes={MTU}\n\n\
         [Network]\nDHCP=yes\nIPv6DuplicateAddressDetection=0\nLLMNR=no\nDNSDefaultRoute=yes\n\n\
         [DHCPv4]\nUseHostname=no\nUseDNS=yes\nUseNTP=yes\nUseDomains=yes\nUseRoutes=yes\n\
         UseGateway=yes\nRouteMetric={metric}\n\n\
         [DHCPv6]\nUseDNS=yes\nUseNTP=yes\nWithoutRA=solicit\n\n\
         [IPv6AcceptRA]\nRouteMetric={metric}\nUseGateway=yes\n",
        mac = link.mac.to_ascii_lowercase(),
    );
    if !link.is_primary() {
        text.push_str(&routes(link));
    }
    text
}

/// Answers from a secondary link must leave by that link, so it has a table of its own.
fn routes(link: &Link) -> String {
    let table = link.offset().saturating_add(TABLE_BASE);
    let route = |gateway| format!("\n[Route]\nTable={table}\nGateway={gateway}\n");
    let rule = link.ipv4.map(|address| {
        format!("\n[RoutingPolicyRule]\nFrom={address}\nTable={table}\nPriority={RULE_PRIORITY}\n")
    });
    format!("{}{}{}", route("_ipv6ra"), route("_dhcp4"), rule.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secondary() -> Link {
        Link {
            interface: "ens6".into(),
            mac: "0A:00:00:00:00:02".into(),
            primary_mac: "0a:00:00:00:00:01".into(),
            device_number: 2,
            network_card: 1,
            ipv4: Some("10.0.1.5".parse().unwrap()),
        }
    }

    #[test]
    fn links_after_the_start_belong_to_the_cni() {
        let cases = [
            (None, false, Manager::Systemd),
            (None, true, Manager::Cni),
            (Some("io.systemd.Network\n"), true, Manager::Systemd),
            (Some("cni"), false, Manager::Cni),
            (Some("noise"), true, Manager::Cni),
        ];
        for (stored, node_runs, expected) in cases {
            assert_eq!(manager(stored, node_runs), expected, "{stored:?} {node_runs}");
        }
    }

    #[test]
    fn a_secondary_link_has_its_own_table() {
        let files = link(&secondary());
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].path, "/run/systemd/network/70-eks-ens6.network");
        let text = String::from_utf8(files[0].body.clone()).unwrap();
        assert!(text.starts_with("[Match]\nPermanentMACAddress=0a:00:00:00:00:02\n"));
        assert_eq!(text.matches("RouteMetric=614\n").count(), 2);
        assert_eq!(text.matches("Table=10102\n").count(), 3);
        assert!(
            text.ends_with("[RoutingPolicyRule]\nFrom=10.0.1.5\nTable=10102\nPriority=32765\n")
        );
        let bare = Link { ipv4: None, ..secondary() };
        let text = String::from_utf8(link(&bare)[0].body.clone()).unwrap();
        assert!(!text.contains("RoutingPolicyRule") && text.contains("Gateway=_dhcp4\n"));
    }

    #[test]
    fn the_primary_link_disables_the_catch_all() {
        let primary = Link {
            mac: "0a:00:00:00:00:01".into(),
            device_number: 0,
            network_card: 0,
            ..secondary()
        };
        let files = link(&primary);
        assert_eq!(files[1].path, PRIMARY_DROP_IN);
        assert_eq!(files[1].body, b"[Match]\nName=none\n");
        let text = String::from_utf8(files[0].body.clone()).unwrap();
        assert!(text.contains("RouteMetric=512\n") && !text.contains("[Route]"));
    }

    #[test]
    fn interface_names_stay_in_their_directory() {
        for good in ["eth0", "ens5", "eth0.100"] {
            assert!(is_interface_name(good), "{good}");
        }
        for bad in ["", "..", "a/b", "a b", "sixteen-bytes-xx", "a\n"] {
            assert!(!is_interface_name(bad), "{bad}");
        }
    }
}
