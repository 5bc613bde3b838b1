//! What the machine's own files say: versions, processors, memory, devices, kernel switches.
//!
//! Versions come from stamps written when the image was built; running a cold binary of 60 MB
//! to learn its version costs seconds on a lazily loaded volume and is the last resort.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::time::Duration;

use tenon_core::codes::facts as pages;
use tenon_core::facts::{KUBELET_IDENTITY, Link, Machine};
use tenon_core::kube_version::Version;
use tenon_core::problem::Problem;

use super::environment::Environment;
use super::files;
use crate::command;
use crate::root::Root;

const NODES: &str = "/sys/devices/system/node";
const CPUS: &str = "/sys/devices/system/cpu";
const MEMORY: &str = "/sys/devices/system/memory";
const NVIDIA_VENDOR: &str = "0x10de";
const DROP_INS: &str = "/etc/kubernetes/kubelet/config.json.d";
/// The drop-in that Tenon (and nodeadm) writes.
const OWN_DROP_IN: &str = "40-nodeadm.conf";
const PROVIDER: &str = "/etc/eks/image-credential-provider/ecr-credential-provider";
/// How long a program may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// One line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub source: String,
    pub target: String,
    pub kind: String,
}

/// Reads everything but disks, links and memory blocks.
pub fn read(root: &Root, environment: &Environment) -> Result<Machine, Problem> {
    let mounts = mounts(root)?;
    let mounted = |target: &str, kind: &str| {
        mounts.iter().any(|mount| mount.target == target && mount.kind == kind)
    };
    let cgroup_version = match mounted("/sys/fs/cgroup", "cgroup2") {
        true => 2,
        false => u32::from(mounts.iter().any(|mount| mount.kind == "cgroup")),
    };
    Ok(Machine {
        kubelet_version: version(root, "kubelet")?,
        containerd_version: version(root, "containerd")?,
        online_cpus: online_cpus(root, environment)?,
        online_memory_bytes: memory(root)?,
        nvidia_device: nvidia_device(root)?,
        nvidia_runtime: root.exists("/usr/bin/nvidia-container-runtime"),
        neuron_device: root.exists("/dev/neuron0"),
        credential_provider: Some(credential_provider(root, environment)?),
        hostname: files::small(root, "/proc/sys/kernel/hostname")?.unwrap_or("unknown".into()),
        fips_enabled: files::small(root, "/proc/sys/crypto/fips_enabled")?.as_deref() == Some("1"),
        selinux_enabled: mounts.iter().any(|mount| mount.kind == "selinuxfs"),
        cgroup_version,
        swap_enabled: files::whole(root, "/proc/swaps")?.lines().count() > 1,
        pause_archive: root.exists("/etc/eks/pause.tar"),
        bpf_mounted: mounted("/sys/fs/bpf", "bpf"),
        kubelet_drop_ins: drop_ins(root)?,
        ..Machine::default()
    })
}

/// The mount table, as far as the kernel shows it.
pub fn mounts(root: &Root) -> Result<Vec<Mount>, Problem> {
    let table = files::whole(root, "/proc/mounts")?;
    let mount = |line: &str| {
        let mut words = line.split(' ').map(unescape);
        Some(Mount { source: words.next()?, target: words.next()?, kind: words.next()? })
    };
    Ok(table.lines().filter_map(mount).collect())
}

/// Undoes the kernel's escapes of blanks in mount tables: `\040` is a space.
fn unescape(word: &str) -> String {
    let rows = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    rows.iter().fold(word.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The version of a program: from its stamp, else from the program itself.
fn version(root: &Root, program: &str) -> Result<String, Problem> {
    let stamp = format!("/etc/eks/{program}-version.txt");
    let text = match files::small(root, &stamp)? {
        Some(text) => text,
        None => ask_version(root, program, &stamp)?,
    };
    let found = Version::find(&text).map(|(_, word)| word.to_owned());
    found.ok_or_else(|| unknown(program, &stamp).cause("no version of the form 1.2.3 is in it"))
}

/// Runs a program of this very machine to learn its version.
fn ask_version(root: &Root, program: &str, stamp: &str) -> Result<String, Problem> {
    if !root.is_host() {
        return Err(unknown(program, stamp)
            .cause("the stamp is absent, and programs under --root are not run"));
    }
    tracing::warn!(
        program,
        stamp,
        "no version stamp; running the program, which is slow on a cold volume"
    );
    let argv = [program.to_owned(), "--version".to_owned()];
    let output = command::must(&argv, VERSION_TIMEOUT, &[]).map_err(|problem| {
        unknown(program, stamp).cause(&problem).details(problem.details.clone())
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn unknown(program: &str, stamp: &str) -> Problem {
    Problem::new(&pages::VERSION_UNKNOWN, format!("the version of {program} is unknown ({stamp})"))
}

/// Processors below the NUMA nodes that are online; without nodes, those of the machine.
pub fn online_cpus(root: &Root, environment: &Environment) -> Result<u32, Problem> {
    let nodes = environment.get("NODE_DIR").unwrap_or(NODES);
    let cpus = environment.get("CPU_DIR").unwrap_or(CPUS);
    let mut found = BTreeSet::new();
    for node in files::numbered(root, nodes, "node")? {
        let names = files::numbered(root, &format!("{nodes}/{node}"), "cpu")?;
        found.extend(names.iter().filter_map(|name| files::number(name, "cpu")));
    }
    if found.is_empty() {
        let names = files::numbered(root, cpus, "cpu")?;
        found.extend(names.iter().filter_map(|name| files::number(name, "cpu")));
    }
    if let Some(list) = files::small(root, &format!("{cpus}/online"))? {
        found.retain(|cpu| in_list(&list, *cpu));
    }
    if found.is_empty() && root.is_host() {
        return Ok(
            std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
        );
    }
    match u32::try_from(found.len()) {
        Ok(count @ 1..) => Ok(count),
        _ => {
            Err(Problem::new(&pages::NO_PROCESSORS, format!("no processor is online under {cpus}")))
        }
    }
}

/// True if a kernel list such as `0-3,8` holds a number.
fn in_list(list: &str, number: u32) -> bool {
    list.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        matches!((first.trim().parse::<u32>(), last.trim().parse::<u32>()),
            (Ok(first), Ok(last)) if (first..=last).contains(&number))
    })
}

/// What the kernel manages; without its table, the online blocks.
pub fn memory(root: &Root) -> Result<u64, Problem> {
    managed_memory(root)?.map_or_else(|| online_memory(root), Ok)
}

/// Online memory blocks times their size; without blocks, what the kernel manages. A machine of
/// 16 GiB has 128 blocks, each a file of its own.
pub fn online_memory(root: &Root) -> Result<u64, Problem> {
    let size = files::small(root, &format!("{MEMORY}/block_size_bytes"))?;
    let size = size.and_then(|hex| u64::from_str_radix(hex.trim_start_matches("0x"), 16).ok());
    let mut online = 0;
    if size.is_some() {
        for block in files::numbered(root, MEMORY, "memory")? {
            let state = files::small(root, &format!("{MEMORY}/{block}/online"))?;
            online += u64::from(state.as_deref() == Some("1"));
        }
    }
    let by_blocks = size.unwrap_or_default().saturating_mul(online);
    let bytes = if by_blocks > 0 { Some(by_blocks) } else { managed_memory(root)? };
    bytes.ok_or_else(|| {
        Problem::new(&pages::NO_MEMORY, format!("no memory is online under {MEMORY}"))
    })
}

/// `MemTotal`: the memory that the kernel has for everyone, in one file.
fn managed_memory(root: &Root) -> Result<Option<u64>, Problem> {
    let table = files::small(root, "/proc/meminfo")?.unwrap_or_default();
    let line = table.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.filter(|kib| *kib > 0).map(|kib| kib.saturating_mul(1024)))
}

/// Which parts of a kubelet's identity are there.
pub fn kubelet_identity(root: &Root) -> Vec<String> {
    KUBELET_IDENTITY.iter().filter(|path| root.exists(path)).map(ToString::to_string).collect()
}

fn nvidia_device(root: &Root) -> Result<bool, Problem> {
    const DEVICES: &str = "/sys/bus/pci/devices";
    for device in files::names(root, DEVICES)? {
        let vendor = files::small(root, &format!("{DEVICES}/{device}/vendor"))?;
        if vendor.as_deref() == Some(NVIDIA_VENDOR) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn credential_provider(root: &Root, environment: &Environment) -> Result<String, Problem> {
    let path = environment.get("ECR_CREDENTIAL_PROVIDER_BIN_PATH").unwrap_or(PROVIDER);
    if root.exists(path) {
        return Ok(path.to_owned());
    }
    Err(Problem::new(
        &pages::NO_CREDENTIAL_PROVIDER,
        format!("no image credential provider at {path}"),
    ))
}

pub fn drop_ins(root: &Root) -> Result<Vec<String>, Problem> {
    let mut names = files::names(root, DROP_INS)?;
    names.retain(|name| name != OWN_DROP_IN);
    Ok(names)
}

/// Every link with its MAC, sorted by name.
pub fn links(root: &Root) -> Result<Vec<Link>, Problem> {
    let mut links = Vec::new();
    for name in files::names(root, "/sys/class/net")? {
        if let Some(mac) = files::small(root, &format!("/sys/class/net/{name}/address"))? {
            links.push(Link { name, mac: mac.to_ascii_lowercase() });
        }
    }
    Ok(links)
}

/// The global IPv6 addresses of the link with this MAC, as the kernel lists them.
pub fn global_ipv6(root: &Root, mac: &str) -> Result<Vec<Ipv6Addr>, Problem> {
    let links = links(root)?;
    let Some(link) = links.iter().find(|link| link.mac == mac) else { return Ok(Vec::new()) };
    let table = files::whole(root, "/proc/net/if_inet6")?;
    let address = |line: &str| {
        // Address, index, prefix length, scope, flags, name; scope 0 is global.
        let words: Vec<_> = line.split_whitespace().collect();
        let global = words.get(3) == Some(&"00") && words.get(5) == Some(&link.name.as_str());
        let bits = u128::from_str_radix(words.first()?, 16).ok()?;
        global.then(|| Ipv6Addr::from_bits(bits))
    };
    Ok(table.lines().filter_map(address).collect())
}

#[cfg(test)]
mod tests {
    use tenon_core::config::Config;
    use tenon_core::facts::Instance;

    use super::super::{Wants, facts};
    use super::*;
    use crate::simulator::machine::{MachineProfile, populate};

    fn profile() -> MachineProfile {
        MachineProfile {
            cpus: 4,
            memory_mib: 16 * 1024,
            kubelet_version: "v1.34.1-eks-113cf36".into(),
            containerd_version: "2.1.5".into(),
            hostname: "ip-10-0-0-1.eu-west-1.compute.internal".into(),
            mac: "0a:00:00:00:00:01".into(),
            nvidia: false,
        }
    }

    struct Bench {
        dir: tempfile::TempDir,
        root: Root,
    }

    impl Bench {
        fn new(profile: &MachineProfile) -> Self {
            let dir = tempfile::tempdir().unwrap();
            populate(dir.path(), profile).unwrap();
            let root = Root::open(dir.path()).unwrap();
            Bench { dir, root }
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn remove(&self, path: &str) {
            std::fs::remove_file(self.dir.path().join(path)).unwrap();
        }

        fn read(&self) -> Result<Machine, Problem> {
            read(&self.root, &Environment::default())
        }
    }

    #[test]
    fn a_populated_root_reads_back_as_its_profile() {
        let machine = Bench::new(&profile()).read().unwrap();
        assert_eq!(machine.kubelet_version, "v1.34.1-eks-113cf36");
        assert_eq!(machine.containerd_version, "2.1.5");
        assert_eq!((machine.online_cpus, machine.online_memory_bytes), (4, 16 << 30));
        assert_eq!(machine.hostname, "ip-10-0-0-1.eu-west-1.compute.internal");
        assert_eq!((machine.cgroup_version, machine.bpf_mounted), (2, true));
        assert!(!machine.swap_enabled && !machine.nvidia_device && !machine.selinux_enabled);
        let gpu = Bench::new(&MachineProfile { nvidia: true, ..profile() }).read().unwrap();
        assert!(gpu.nvidia_device && gpu.nvidia_runtime);
    }

    #[test]
    fn a_missing_or_strange_stamp_is_named() {
        let bench = Bench::new(&profile());
        bench.write("etc/eks/kubelet-version.txt", "latest");
        let problem = bench.read().unwrap_err();
        assert_eq!((problem.page.code, problem.exit()), ("TN05020", 5));
        bench.remove("etc/eks/kubelet-version.txt");
        let problem = bench.read().unwrap_err();
        assert!(problem.what.contains("/etc/eks/kubelet-version.txt"), "{}", problem.what);
    }

    #[test]
    fn offline_processors_and_memory_do_not_count() {
        let bench = Bench::new(&profile());
        bench.write("sys/devices/system/cpu/online", "0-1,3\n");
        bench.write("sys/devices/system/memory/memory3/online", "0\n");
        assert_eq!(bench.read().unwrap().online_cpus, 3);
        assert_eq!(online_memory(&bench.root).unwrap(), 15 << 30);
        bench.remove("sys/devices/system/cpu/online");
        assert_eq!(bench.read().unwrap().online_cpus, 4, "no list: all are online");
    }

    #[test]
    fn without_nodes_and_blocks_the_other_sources_count() {
        let bench = Bench::new(&profile());
        std::fs::remove_dir_all(bench.dir.path().join("sys/devices/system/node")).unwrap();
        std::fs::remove_dir_all(bench.dir.path().join("sys/devices/system/memory")).unwrap();
        for cpu in ["cpu0", "cpu1", "cpufreq"] {
            bench.write(&format!("sys/devices/system/cpu/{cpu}/x"), "");
        }
        bench.write("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n");
        assert_eq!(online_memory(&bench.root).unwrap(), 2048 * 1024);
        let machine = bench.read().unwrap();
        assert_eq!((machine.online_cpus, machine.online_memory_bytes), (2, 2048 * 1024));
        bench.remove("proc/meminfo");
        assert_eq!(bench.read().unwrap_err().page.code, "TN05023");
    }

    #[test]
    fn memory_is_counted_by_blocks_only_where_the_size_decides() {
        let bench = Bench::new(&profile());
        bench.write("proc/meminfo", "MemTotal: 15728640 kB\n");
        let soci = Config { fast_image_pull: true, ..Config::default() };
        for (config, gib) in [(Config::default(), 15), (soci, 16)] {
            let wants = Wants::of(&config);
            let facts = facts(&bench.root, Instance::default(), wants, &Environment::default());
            assert_eq!(facts.unwrap().machine.online_memory_bytes, gib << 30);
        }
        bench.remove("proc/meminfo");
        assert_eq!(bench.read().unwrap().online_memory_bytes, 16 << 30, "blocks stand in");
    }

    #[test]
    fn what_a_kubelet_left_is_named() {
        let bench = Bench::new(&profile());
        assert_eq!(kubelet_identity(&bench.root), Vec::<String>::new());
        bench.write("var/lib/kubelet/pki/kubelet.crt", "");
        assert_eq!(kubelet_identity(&bench.root), ["/var/lib/kubelet/pki"]);
    }

    #[test]
    fn variables_move_the_processor_directories() {
        let bench = Bench::new(&profile());
        bench.write("nodes/node0/cpu0/x", "");
        bench.write("nodes/node1/cpu7/x", "");
        bench.write("cpus/online", "0-7");
        let environment = Environment::from([("NODE_DIR", "/nodes"), ("CPU_DIR", "/cpus")]);
        assert_eq!(read(&bench.root, &environment).unwrap().online_cpus, 2);
    }

    #[test]
    fn a_missing_credential_provider_is_an_error() {
        let bench = Bench::new(&profile());
        let moved = Environment::from([("ECR_CREDENTIAL_PROVIDER_BIN_PATH", "/opt/provider")]);
        assert_eq!(read(&bench.root, &moved).unwrap_err().page.code, "TN05021");
        bench.write("opt/provider", "");
        let machine = read(&bench.root, &moved).unwrap();
        assert_eq!(machine.credential_provider.as_deref(), Some("/opt/provider"));
    }

    #[test]
    fn kernel_switches_and_foreign_drop_ins_are_seen() {
        let bench = Bench::new(&profile());
        bench.write("proc/swaps", "Filename\n/dev/vda2 partition 1 0 -2\n");
        bench.write("proc/sys/crypto/fips_enabled", "1\n");
        bench.write("proc/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw 0 0\nselinuxfs /sys/fs/selinux selinuxfs rw 0 0\n");
        bench.write("etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf", "{}");
        bench.write("etc/kubernetes/kubelet/config.json.d/50-site.conf", "{}");
        let machine = bench.read().unwrap();
        assert!(machine.swap_enabled && machine.fips_enabled && machine.selinux_enabled);
        assert_eq!((machine.cgroup_version, machine.bpf_mounted), (1, false));
        assert_eq!(machine.kubelet_drop_ins, ["50-site.conf"]);
    }

    #[test]
    fn the_links_own_addresses_stand_in_for_absent_ones() {
        let bench = Bench::new(&profile());
        bench.write(
            "proc/net/if_inet6",
            "fe800000000000000000000000000001 02 40 20 80     ens5\n\
             2a05d018000000010000000000000007 02 80 00 80     ens5\n\
             2a05d018000000010000000000000008 03 80 00 80     ens6\n",
        );
        let found = global_ipv6(&bench.root, "0a:00:00:00:00:01").unwrap();
        assert_eq!(found, ["2a05:d018:0:1::7".parse::<Ipv6Addr>().unwrap()]);
        assert_eq!(global_ipv6(&bench.root, "0a:00:00:00:00:99").unwrap(), Vec::<Ipv6Addr>::new());
    }

    #[test]
    fn mount_tables_are_unescaped() {
        let bench = Bench::new(&profile());
        bench.write("proc/mounts", "/dev/x /mnt/a\\040b xfs rw 0 0\n");
        assert_eq!(mounts(&bench.root).unwrap()[0].target, "/mnt/a b");
    }
}
