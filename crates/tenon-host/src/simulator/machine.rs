//! The files of a pretended machine, for rehearsals and tests: what the kernel and the image
//! would show to `gather`, and nothing else.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// What the machine pretends to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineProfile {
    pub cpus: u32,
    pub memory_mib: u64,
    /// As the image stamps it: `v1.34.1-eks-113cf36`.
    pub kubelet_version: String,
    /// `2.1.5`
    pub containerd_version: String,
    pub hostname: String,
    /// MAC of the only link, as the metadata service has it.
    pub mac: String,
    /// An NVIDIA device and its container runtime.
    pub nvidia: bool,
}

/// Writes the machine's files below `dir`. Existing files are replaced.
pub fn populate(dir: &Path, profile: &MachineProfile) -> io::Result<()> {
    let write = |path: &str, text: &str| {
        let path = dir.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    };
    for (path, text) in texts(profile) {
        write(path, &text)?;
    }
    for cpu in 0..profile.cpus {
        fs::create_dir_all(dir.join(format!("sys/devices/system/node/node0/cpu{cpu}")))?;
    }
    let block_mib = memory_block_mib(profile.memory_mib);
    let size = format!("{:x}\n", block_mib * MIB);
    write("sys/devices/system/memory/block_size_bytes", &size)?;
    for block in 0..profile.memory_mib / block_mib {
        write(&format!("sys/devices/system/memory/memory{block}/online"), "1\n")?;
    }
    let vendors: &[&str] = if profile.nvidia { &["0x1d0f", "0x10de"] } else { &["0x1d0f"] };
    for (slot, vendor) in vendors.iter().enumerate() {
        write(&format!("sys/bus/pci/devices/0000:00:{slot:02x}.0/vendor"), &format!("{vendor}\n"))?;
    }
    executable(dir, "etc/eks/image-credential-provider/ecr-credential-provider")?;
    if profile.nvidia {
        executable(dir, "usr/bin/nvidia-container-runtime")?;
    }
    Ok(())
}

fn texts(profile: &MachineProfile) -> Vec<(&'static str, String)> {
    let kib = profile.memory_mib * 1024;
    let last_cpu = profile.cpus.saturating_sub(1);
    vec![
        ("etc/eks/kubelet-version.txt", format!("Kubernetes {}\n", profile.kubelet_version)),
        (
            "etc/eks/containerd-version.txt",
            format!(
                "containerd github.com/containerd/containerd {} rehearsal\n",
                profile.containerd_version
            ),
        ),
        ("sys/devices/system/cpu/online", format!("0-{last_cpu}\n")),
        ("proc/meminfo", format!("MemTotal: {kib} kB\n")),
        (
            "proc/mounts",
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0\n".into(),
        ),
        ("proc/swaps", "Filename Type Size Used Priority\n".into()),
        ("proc/sys/kernel/hostname", format!("{}\n", profile.hostname)),
        ("proc/sys/crypto/fips_enabled", "0\n".into()),
        ("sys/class/net/ens5/address", format!("{}\n", profile.mac)),
        ("etc/os-release", "ID=amzn\nVERSION_ID=2023\n".into()),
    ]
}

/// The largest block of whole GiB that fits the memory, as kernels choose larger blocks on
/// larger machines; 128 MiB where that leaves a rest.
fn memory_block_mib(memory_mib: u64) -> u64 {
    if memory_mib >= 1024 && memory_mib.is_multiple_of(1024) { 1024 } else { 128 }
}

fn executable(dir: &Path, path: &str) -> io::Result<()> {
    let path = dir.join(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&path, "#!/bin/sh\nexit 1\n")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
}
