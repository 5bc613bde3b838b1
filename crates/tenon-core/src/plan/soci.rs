//! The SOCI snapshotter: pulls and unpacks image layers in parallel, where the machine is large
//! enough for it.

use super::node::Node;
use super::step::FileBody;
use super::{Draft, Owner};
use crate::codes;
use crate::config::Config;
use crate::facts::Machine;
use crate::problem::{Finding, Problem};

pub(crate) const UNIT: &str = "soci-snapshotter.service";
pub(crate) const SOCKET: &str = "/run/soci-snapshotter-grpc/soci-snapshotter-grpc.sock";
pub(crate) const ENDPOINT: &str = "unix:///run/soci-snapshotter-grpc/soci-snapshotter-grpc.sock";
pub(crate) const CONFIG_PATH: &str = "/etc/soci-snapshotter-grpc/config.toml";
pub(crate) const DROP_IN_PATH: &str =
    "/etc/systemd/system/containerd.service.d/10-soci-snapshotter.conf";

/// Under which name the plan's reasons say why the snapshotter stays off.
pub const REASON: &str = "fastImagePull";

/// Below this, unpacking in parallel starves the pods it is meant for.
const LEAST_CPUS: u32 = 4;
const LEAST_MEMORY_BYTES: u64 = 7 << 30;

const CONFIG: &str = r#"debug = false

[content_store]
type = 'containerd'

[cri_keychain]
enable_keychain = true
image_service_path = '/run/containerd/containerd.sock'

[pull_modes.parallel_pull_unpack]
enable = true
concurrent_download_chunk_size = "16mb"
discard_unpacked_layers = true
max_concurrent_downloads = -1
max_concurrent_downloads_per_image = 20
max_concurrent_unpacks = -1
max_concurrent_unpacks_per_image = 12

[pull_modes.parallel_pull_unpack.decompress_streams."gzip"]
path = '/usr/bin/unpigz'
args = ['-d', '-c']
"#;

const DROP_IN: &str = "[Unit]\nRequires=soci-snapshotter.service\nAfter=soci-snapshotter.service\n";

/// On if asked for and the machine carries it.
pub(crate) fn is_on(config: &Config, machine: &Machine) -> bool {
    config.fast_image_pull
        && machine.online_cpus >= LEAST_CPUS
        && machine.online_memory_bytes >= LEAST_MEMORY_BYTES
}

/// Plans the snapshotter's files, or says why it stays off.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    if node.soci {
        let config = FileBody::new(CONFIG_PATH, 0o644, CONFIG);
        draft.file(Owner::Containerd, config, "featureGates.FastImagePull");
        let drop_in = FileBody::new(DROP_IN_PATH, 0o644, DROP_IN);
        draft.file(Owner::Containerd, drop_in, "containerd needs the snapshotter");
        check_archive(node, draft);
    } else if node.config.fast_image_pull {
        draft.reason(REASON, "facts", too_small(&node.facts.machine));
    }
}

fn too_small(machine: &Machine) -> String {
    let mib = machine.online_memory_bytes >> 20;
    let least_mib = LEAST_MEMORY_BYTES >> 20;
    let cpus = machine.online_cpus;
    format!("off: {cpus} CPUs and {mib} MiB of memory, it needs {LEAST_CPUS} and {least_mib}")
}

fn check_archive(node: &Node, draft: &mut Draft) {
    if !node.facts.machine.pause_archive {
        let problem =
            Problem::new(&codes::plan::NO_PAUSE_ARCHIVE, "there is no /etc/eks/pause.tar");
        draft.findings.push(Finding::warning(problem));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_decides() {
        let gib = |tenths: u64| tenths * (1 << 30) / 10;
        let cases = [
            (4, gib(76), true),
            (2, gib(150), false),
            (4, gib(70), true),
            (4, gib(70) - 1, false),
            (8, gib(69), false),
        ];
        for (online_cpus, online_memory_bytes, on) in cases {
            let machine = Machine { online_cpus, online_memory_bytes, ..Machine::default() };
            let mut config = Config { fast_image_pull: true, ..Config::default() };
            assert_eq!(is_on(&config, &machine), on, "{online_cpus} {online_memory_bytes}");
            config.fast_image_pull = false;
            assert!(!is_on(&config, &machine));
        }
    }

    #[test]
    fn the_config_is_toml() {
        assert_eq!(
            CONFIG.parse::<toml::Table>().unwrap()["content_store"]["type"].as_str(),
            Some("containerd")
        );
    }
}
