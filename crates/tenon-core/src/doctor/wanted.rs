//! What the doctor reads of a node. Data, so that every source reads the same things.

/// Files whose text is read whole. Absent ones are simply absent.
pub const FILES: &[&str] = &[
    "/etc/eks/kubelet/environment",
    "/etc/eks/proxy.env",
    "/etc/eks/kubelet-version.txt",
    "/etc/eks/containerd-version.txt",
    "/etc/kubernetes/kubelet/config.json",
    "/etc/kubernetes/kubelet/config.json.d/*",
    "/etc/kubernetes/pki/ca.crt",
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/kubelet/kubeconfig",
    "/var/lib/kubelet/bootstrap-kubeconfig",
    "/var/lib/kubelet/config.yaml",
    "/var/lib/kubelet/kubeadm-flags.env",
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "/run/eks/nodeadm/config.json",
    "/etc/containerd/config.toml",
    "/etc/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/kubelet.service",
    "/etc/systemd/system/kubelet.service.d/*",
    "/etc/systemd/system/containerd.service.d/*",
    "/etc/systemd/system.conf.d/environment.conf",
    "/etc/sysctl.d/*",
    "/usr/lib/sysctl.d/*",
    "/etc/hostname",
    "/etc/resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/etc/ufw/ufw.conf",
    "/etc/sysconfig/nftables.conf",
    "/etc/nftables.conf",
    "/var/lib/cloud/instance/user-data.txt",
    "/run/cloud-init/status.json",
    "/run/systemd/netif/links/*",
    "/proc/mdstat",
    "/proc/mounts",
    "/proc/net/route",
    "/proc/net/ipv6_route",
    "/proc/swaps",
    "/proc/uptime",
    "/proc/sys/crypto/fips_enabled",
    "/proc/sys/kernel/keys/root_maxbytes",
    "/proc/sys/kernel/keys/root_maxkeys",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/panic_on_oops",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/panic_on_oom",
    "/sys/fs/selinux/enforce",
];

/// Directories whose names are listed.
pub const FOLDERS: &[&str] = &[
    "/etc/cni/net.d",
    "/etc/eks",
    "/etc/systemd/system/multi-user.target.wants",
    "/usr/share/selinux/packages",
    "/sys/fs/cgroup",
];

/// Logs that are files: the end of each, and the name that its lines go by.
pub const LOGS: &[(&str, &str)] = &[
    ("/var/log/aws-routed-eni/ipamd.log", "ipamd"),
    ("/var/log/cloud-init-output.log", "cloud-init"),
];

/// Programs whose architecture is read from their first bytes.
pub const PROGRAMS: &[&str] = &[
    "/usr/bin/kubelet",
    "/usr/bin/containerd",
    "/usr/sbin/runc",
    "/usr/bin/tenon",
    "/usr/lib/systemd/systemd",
];

/// Units whose state is asked of a live service manager.
pub const UNITS: &[&str] = &[
    "chronyd.service",
    "cloud-final.service",
    "containerd.service",
    "firewalld.service",
    "kubelet.service",
    "nftables.service",
    "nodeadm-boot-hook.service",
    "nodeadm-config.service",
    "nodeadm-run.service",
    "systemd-networkd.service",
    "systemd-resolved.service",
    "tenon-config.service",
    "tenon-run.service",
    "ufw.service",
];

/// The certificates of a PEM file, without the keys that may stand beside them.
pub fn certificates_only(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(BEGIN) {
        let Some(end) = rest[start..].find(END) else { break };
        kept.push_str(&rest[start..start + end + END.len()]);
        kept.push('\n');
        rest = &rest[start + end + END.len()..];
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_behind() {
        let certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
        let key = "-----BEGIN EC PRIVATE KEY-----\nBB==\n-----END EC PRIVATE KEY-----\n";
        assert_eq!(
            certificates_only(&format!("{certificate}{key}{certificate}")),
            certificate.repeat(2)
        );
        assert_eq!(certificates_only(key), "");
    }
}
