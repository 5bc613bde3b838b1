//! What differs between distributions: names of packages, where units lie, how a repository is
//! written.

use serde_json::Value;

use super::item::Act;
use super::key::plain;
use super::resource::Resource;

/// Logical names and the real ones; the first list that has a name decides.
type Names = &'static [(&'static str, &'static [&'static str])];

/// A family of distributions.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    /// The program that installs packages.
    pub manager: Manager,
    /// Where packages put their units.
    pub units: &'static str,
    /// What is planned for when nobody names a release.
    pub release: &'static str,
    /// Where plugins of the CNI lie; `/opt/cni/bin` leads there.
    pub cni: &'static str,
    /// Values of `ID` in os-release.
    pub ids: &'static [&'static str],
    /// Logical names that are not the real ones here; an empty list means that the family has
    /// no such package or has it built in. `{arch}` is the family's word for the architecture.
    names: &'static [Names],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    Apt,
    Dnf,
}

pub static FAMILIES: &[Family] = &[
    Family {
        name: "al2023",
        manager: Manager::Dnf,
        units: "/usr/lib/systemd/system",
        release: "2023",
        cni: "/opt/cni/bin",
        ids: &["amzn"],
        names: &[&[
            ("conntrack", &["conntrack-tools"]),
            ("iptables", &["iptables-nft"]),
            ("nfs-client", &["nfs-utils"]),
            ("cni-plugins", &[]),
            ("auditd", &["audit"]),
            ("pwquality", &["libpwquality"]),
            ("apparmor", &[]),
            ("ssh-server", &["openssh-server"]),
            ("kernel-headers", &["kernel-devel"]),
            ("udev", &["systemd-udev"]),
            ("cron", &["cronie"]),
            ("ssm-agent", &["amazon-ssm-agent"]),
            ("nvidia-driver", &["nvidia-open"]),
            // Names of servers and clients that profiles keep away.
            ("apache2", &["httpd"]),
            ("avahi-daemon", &["avahi"]),
            ("bind9", &["bind"]),
            ("dovecot-core", &["dovecot"]),
            ("inetutils-telnet", &[]),
            ("iptables-persistent", &["iptables-services"]),
            ("isc-dhcp-server", &["dhcp-server"]),
            ("ldap-utils", &["openldap-clients"]),
            // Server and client are one package here, and the client stays.
            ("nfs-kernel-server", &[]),
            ("nis", &["ypbind"]),
            ("rsh-client", &["rsh"]),
            ("rsync", &["rsync-daemon"]),
            ("slapd", &["openldap-servers"]),
            ("snmpd", &["net-snmp"]),
            ("tftpd-hpa", &["tftp-server"]),
            ("tnftp", &[]),
        ]],
    },
    Family {
        name: "debian",
        manager: Manager::Apt,
        units: "/lib/systemd/system",
        release: "bookworm",
        cni: "/usr/lib/cni",
        ids: &["debian"],
        names: &[DEBIAN],
    },
    Family {
        name: "ubuntu",
        manager: Manager::Apt,
        units: "/lib/systemd/system",
        release: "24.04",
        cni: "/usr/lib/cni",
        ids: &["ubuntu"],
        names: &[UBUNTU, DEBIAN],
    },
];

const DEBIAN: Names = &[
    ("kernel", &["linux-image-cloud-{arch}"]),
    ("kernel-headers", &["linux-headers-cloud-{arch}"]),
    ("docker", &["docker.io"]),
    ("nfs-client", &["nfs-common"]),
    ("cni-plugins", &["containernetworking-plugins"]),
    // Without its dictionary the module refuses every password.
    ("pwquality", &["libpam-pwquality", "cracklib-runtime"]),
    ("ssh-server", &["openssh-server"]),
    ("apparmor", &["apparmor", "apparmor-utils"]),
    ("auditd", &["auditd", "audispd-plugins"]),
    ("selinux-policy", &[]),
    ("soci-snapshotter", &[]),
    ("ssm-agent", &[]),
    ("nvidia-driver", &["nvidia-open"]),
];

/// As Debian, but for the kernel.
const UBUNTU: Names =
    &[("kernel", &["linux-image-aws"]), ("kernel-headers", &["linux-headers-aws"])];

/// Finds a family by its name.
pub fn find(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

impl Family {
    /// The real names of a logical package.
    pub fn packages(&self, logical: &str, architecture: &str) -> Vec<String> {
        let arch = match (self.manager, architecture) {
            (Manager::Apt, "x86_64") => "amd64",
            (Manager::Apt, "aarch64") => "arm64",
            (_, other) => other,
        };
        match self.names.iter().flat_map(|names| *names).find(|(name, _)| *name == logical) {
            Some((_, real)) => real.iter().map(|name| name.replace("{arch}", arch)).collect(),
            None => vec![logical.to_owned()],
        }
    }

    /// Where the key of a repository lies in a root.
    pub fn key_path(&self, repository: &str) -> String {
        match self.manager {
            Manager::Dnf => format!("/etc/pki/rpm-gpg/RPM-GPG-KEY-{repository}"),
            Manager::Apt => format!("/usr/share/keyrings/{repository}.asc"),
        }
    }

    /// The file that makes a repository known, and its text; `key` is the path of its key.
    pub fn source(&self, one: &Resource, key: &str) -> (String, String) {
        let (name, url) = (&one.key, one.text("url").unwrap_or_default());
        let enabled = one.fields.get("enabled") != Some(&Value::Bool(false));
        match self.manager {
            Manager::Dnf => (
                format!("/etc/yum.repos.d/{name}.repo"),
                format!(
                    "[{name}]\nname={name}\nbaseurl={url}\nenabled={}\ngpgcheck=1\ngpgkey=file://{key}\n",
                    u8::from(enabled)
                ),
            ),
            Manager::Apt => (
                format!("/etc/apt/sources.list.d/{name}.sources"),
                format!(
                    "Types: deb\nURIs: {url}\nSuites: ./\nEnabled: {}\nSigned-By: {key}\n",
                    if enabled { "yes" } else { "no" }
                ),
            ),
        }
    }

    /// The key of a repository, and the file that makes it known.
    pub(super) fn repository(&self, one: &Resource) -> [Act; 2] {
        let key = self.key_path(&one.key);
        let (path, content) = self.source(one, &key);
        let fingerprint = plain(one.text("fingerprint").unwrap_or_default());
        let armoured = one.text("key").map(str::to_owned);
        let owner = "root:root".to_owned();
        [
            Act::Key { path: key, fingerprint, content: armoured },
            Act::File { path, content, mode: 0o644, owner, if_absent: false },
        ]
    }
}
