//! `/sys/fs/bpf` for images that do not mount it themselves, as `bootstrap.sh` did.

use super::mounts::{self, Mount};
use super::node::Node;
use super::{Draft, Options};

const BECAUSE: &str = "--mount-bpf-fs";

/// Plans the mount, if it is asked for and either missing or ours from an earlier run.
pub(crate) fn plan(node: &Node, options: &Options, draft: &mut Draft) {
    let mount = Mount {
        what: "bpffs".into(),
        at: "/sys/fs/bpf".into(),
        kind: "bpf",
        options: "rw,nosuid,nodev,noexec,relatime,mode=700",
        description: "BPF file system of the node",
    };
    let ours = node.facts.last_run_here().is_some_and(|run| run.files.contains_key(&mount.path()));
    if options.mount_bpf && (ours || !node.facts.machine.bpf_mounted) {
        mounts::add_unit_files(&[&mount], BECAUSE, draft);
        mounts::start(&mount, BECAUSE, draft);
        mounts::enable(&[&mount], draft);
    }
}
