//! Files of the stages on a machine.

pub const CONFIG: &str = "/etc/tenon/config.yaml";
pub const DEFAULT_ENV: &str = "/etc/tenon/kubelet.default.env";
pub const MAPPINGS: &str = "/etc/tenon/runtime-mappings.yaml";
pub const CATALOGUE: &str = "/etc/tenon/extension-catalogue.yaml";
/// The gate: the kubelet starts when it is there.
pub const KUBELET_ENV: &str = "/etc/kubernetes/kubelet.env";
pub const ISSUE: &str = "/etc/issue.d/90-tenon.issue";
pub const HOME: &str = "/var/lib/tenon";
pub const STATE: &str = "/var/lib/tenon/state.json";
pub const TIMELINE: &str = "/var/lib/tenon/timeline.jsonl";
pub const LOCKS: &str = "/var/lib/tenon/lock";
pub const INCOMING: &str = "/var/lib/tenon/incoming";
pub const READY: &str = "/var/lib/tenon/incoming/ready";
pub const ASSETS: &str = "/var/lib/tenon/assets";
/// The CA of a cluster that was found with a token.
pub const DISCOVERED_CA: &str = "/var/lib/tenon/discovered-ca.crt";
pub const REJECTED: &str = "/var/lib/tenon/rejected";
pub const RUNTIME_RESET: &str = "/var/lib/tenon/pending/runtime-reset";
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
pub const MACHINE_ID: &str = "/etc/machine-id";

/// The marker of a stage, for `ConditionPathExists=`.
pub fn done(stage: &str) -> String {
    format!("{HOME}/done/{stage}")
}

/// The file that starts a stage; the stage removes it.
pub fn trigger(stage: &str) -> String {
    format!("{HOME}/trigger/{stage}")
}
