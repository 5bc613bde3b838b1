//! The running node against its files: kernel settings, modules, mounts, the kubelet's own word.

use serde_json::{Value, json};

use super::kubelet::{self, Effective};
use super::snapshot::{Look, Snapshot};
use super::{Family, Finding, State, shown};

/// Kernel settings that a kubelet with `protectKernelDefaults` insists on, and forwarding.
const SYSCTLS: [(&str, &str); 7] = [
    ("kernel.keys.root_maxbytes", "25000000"),
    ("kernel.keys.root_maxkeys", "1000000"),
    ("kernel.panic", "10"),
    ("kernel.panic_on_oops", "1"),
    ("net.ipv4.ip_forward", "1"),
    ("vm.overcommit_memory", "1"),
    ("vm.panic_on_oom", "0"),
];
/// Modules that containers need.
const MODULES: [&str; 1] = ["overlay"];
/// Directories that programs are started from.
const EXECUTED: [&str; 4] = ["/opt/cni/bin", "/usr/bin", "/var/lib/containerd", "/var/lib/kubelet"];
/// Settings that the kubelet's own answer is compared in.
const COMPARED: [&str; 8] = [
    "authentication.anonymous.enabled",
    "authorization.mode",
    "eventRecordQPS",
    "maxPods",
    "podPidsLimit",
    "protectKernelDefaults",
    "readOnlyPort",
    "serverTLSBootstrap",
];

/// What the host found out besides the snapshot.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    /// False for a root or a bundle: nothing runs there.
    pub live: bool,
    /// The kubelet's effective config as it tells it; an error says why it does not.
    pub told: Option<Result<Value, String>>,
    /// The pod limit that the plan of the recorded config has.
    pub max_pods: Option<u32>,
}

/// Judges the running node.
pub fn judge(snapshot: &Snapshot, sight: &Sight) -> Vec<Finding> {
    let mut findings = vec![pod_limit(snapshot, sight)];
    if !sight.live {
        let blank = Finding::new(Family::Runtime, "runtime", "the running node");
        findings.push(blank.not_applicable("nothing runs in a directory or a bundle"));
        return findings;
    }
    findings.extend(SYSCTLS.iter().map(|(name, wanted)| sysctl(snapshot, name, wanted)));
    findings.extend(MODULES.iter().map(|name| module(snapshot, name)));
    findings.extend(mounts(snapshot));
    findings.extend(told(snapshot, sight));
    findings
}

fn pod_limit(snapshot: &Snapshot, sight: &Sight) -> Finding {
    let blank = Finding::new(Family::Runtime, "runtime-max-pods", "the pod limit").at("maxPods");
    let Some(planned) = sight.max_pods else {
        return blank.unknown("the node's config is not known");
    };
    match effective(snapshot).and_then(|kubelet| kubelet.get("maxPods")) {
        Err(why) => blank.unknown(why),
        Ok(setting) => {
            let right = setting.value == planned;
            let finding =
                blank.values(planned.to_string(), shown(&setting.value)).origin(setting.origin);
            match right {
                true => finding,
                false => finding
                    .state(State::Fail)
                    .remedy("`tenon init` writes the limit of the config and what it reserves"),
            }
        }
    }
}

fn effective(snapshot: &Snapshot) -> Result<Effective, String> {
    let (arguments, source) = kubelet::arguments(snapshot)?;
    Ok(Effective::of(snapshot, arguments, source))
}

fn sysctl(snapshot: &Snapshot, name: &str, wanted: &str) -> Finding {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let blank =
        Finding::new(Family::Runtime, format!("runtime-{name}"), "a kernel setting").at(name);
    match snapshot.text(&path) {
        Err(why) => blank.unknown(why),
        Ok(None) => blank.unknown("the kernel does not show it"),
        Ok(Some(text)) if text.trim() == wanted => blank.values(wanted, text.trim()),
        Ok(Some(text)) => blank
            .values(wanted, text.trim())
            .state(State::Fail)
            .remedy(format!("sysctl -w {name}={wanted}, and the same in /etc/sysctl.d")),
    }
}

/// A module that is built in has its directory too.
fn module(snapshot: &Snapshot, name: &str) -> Finding {
    let path = format!("/sys/module/{name}");
    let blank =
        Finding::new(Family::Runtime, format!("runtime-{name}"), "a kernel module").at(name);
    match snapshot.look(&path) {
        Look::There(_) => blank.values("loaded", "loaded"),
        Look::Hidden(why) => blank.unknown(why),
        Look::Absent => {
            blank.values("loaded", "absent").state(State::Fail).remedy(format!("modprobe {name}"))
        }
    }
}

fn mounts(snapshot: &Snapshot) -> Vec<Finding> {
    let table = match snapshot.text("/proc/mounts") {
        Ok(Some(table)) => table,
        Ok(None) => String::new(),
        Err(why) => {
            let blank = Finding::new(Family::Runtime, "runtime-mounts", "mount options");
            return vec![blank.unknown(why)];
        }
    };
    let judge = |directory: &&str| {
        let options = mount_options(&table, directory);
        let id = format!("runtime-exec-{}", directory.trim_start_matches('/').replace('/', "-"));
        let blank = Finding::new(Family::Runtime, id, "programs may be started").at(*directory);
        match options.is_some_and(|options| options.split(',').any(|one| one == "noexec")) {
            false => blank.values("no noexec", "no noexec"),
            true => blank
                .values("no noexec", "noexec")
                .state(State::Fail)
                .remedy(format!("mount {directory} without noexec")),
        }
    };
    EXECUTED.iter().map(judge).collect()
}

/// The options of the file system that a directory is on: the longest mount point above it.
fn mount_options<'t>(table: &'t str, directory: &str) -> Option<&'t str> {
    let mut best: Option<(&str, &str)> = None;
    for line in table.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(target), Some(options)) = (words.next(), words.nth(1)) else { continue };
        let above = directory == target
            || directory
                .strip_prefix(target.trim_end_matches('/'))
                .is_some_and(|r| r.starts_with('/'));
        if above && best.is_none_or(|(longest, _)| target.len() >= longest.len()) {
            best = Some((target, options));
        }
    }
    best.map(|(_, options)| options)
}

/// What the kubelet itself says, against its files.
fn told(snapshot: &Snapshot, sight: &Sight) -> Vec<Finding> {
    let blank = |field: &str| {
        let what = "the running kubelet against its files";
        Finding::new(Family::Runtime, "runtime-kubelet", what).at(field)
    };
    let told = match &sight.told {
        Some(Ok(told)) => told,
        Some(Err(why)) => return vec![blank("configz").unknown(why.as_str())],
        None => return Vec::new(),
    };
    let kubelet = match effective(snapshot) {
        Ok(kubelet) => kubelet,
        Err(why) => return vec![blank("configz").unknown(why)],
    };
    let judge = |field: &&str| {
        let running = told.pointer(&format!("/{}", field.replace('.', "/"))).cloned();
        let running = running.unwrap_or_default();
        let blank = blank(field);
        match kubelet.get(field) {
            Err(why) => blank.unknown(why),
            Ok(setting) if setting.value == running || is_left_out(&setting.value, &running) => {
                blank.values(shown(&setting.value), shown(&running)).origin(setting.origin)
            }
            Ok(setting) => blank
                .values(shown(&setting.value), shown(&running))
                .origin(setting.origin)
                .state(State::Fail)
                .remedy("systemctl restart kubelet.service: it runs with older settings"),
        }
    };
    COMPARED.iter().map(judge).collect()
}

/// The kubelet's answer leaves out plain fields that are zero or false.
fn is_left_out(written: &Value, running: &Value) -> bool {
    running.is_null() && [json!(0), json!(false), Value::Null].contains(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::snapshot::Seen;

    fn node(files: &[(&str, &str)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let environment = "NODEADM_KUBELET_ARGS=--config=/c\n";
        let fixed = [("/etc/eks/kubelet/environment", environment), ("/c", r#"{"maxPods": 17}"#)];
        for (path, text) in fixed.iter().chain(files) {
            let seen = Seen { body: text.as_bytes().to_vec(), ..Seen::default() };
            snapshot.files.insert((*path).to_owned(), Look::There(seen));
        }
        snapshot
    }

    fn state(findings: &[Finding], id: &str) -> State {
        findings.iter().find(|finding| finding.id == id).unwrap().state
    }

    #[test]
    fn a_kernel_setting_is_compared_and_unseen_is_unknown() {
        let snapshot =
            node(&[("/proc/sys/kernel/panic", "10\n"), ("/proc/sys/vm/panic_on_oom", "1\n")]);
        let findings = judge(&snapshot, &Sight { live: true, ..Sight::default() });
        assert_eq!(state(&findings, "runtime-kernel.panic"), State::Pass);
        assert_eq!(state(&findings, "runtime-vm.panic_on_oom"), State::Fail);
        assert_eq!(state(&findings, "runtime-vm.overcommit_memory"), State::Unknown);
        assert_eq!(state(&findings, "runtime-max-pods"), State::Unknown);
    }

    #[test]
    fn a_mount_is_found_by_the_longest_way() {
        let table = "/dev/a / xfs rw 0 0\n/dev/b /var xfs rw,noexec,nosuid 0 0\n\
                     /dev/c /var/lib/kubelet xfs rw 0 0\n";
        let findings =
            judge(&node(&[("/proc/mounts", table)]), &Sight { live: true, ..Sight::default() });
        assert_eq!(state(&findings, "runtime-exec-var-lib-containerd"), State::Fail);
        assert_eq!(state(&findings, "runtime-exec-var-lib-kubelet"), State::Pass);
        assert_eq!(state(&findings, "runtime-exec-usr-bin"), State::Pass);
    }

    #[test]
    fn the_kubelets_own_word_is_compared_with_its_files() {
        let told = json!({"maxPods": 110});
        let sight = Sight { live: true, told: Some(Ok(told)), max_pods: Some(17) };
        let findings = judge(&node(&[]), &sight);
        let by_field = |field: &str| {
            let own = findings.iter().filter(|finding| finding.id == "runtime-kubelet");
            own.clone().find(|finding| finding.place == field).unwrap().state
        };
        assert_eq!(by_field("maxPods"), State::Fail);
        assert_eq!(by_field("readOnlyPort"), State::Pass);
        assert_eq!(state(&findings, "runtime-max-pods"), State::Pass);
        let refused = Sight { live: true, told: Some(Err("403".into())), max_pods: Some(18) };
        let findings = judge(&node(&[]), &refused);
        assert_eq!(state(&findings, "runtime-kubelet"), State::Unknown);
        assert_eq!(state(&findings, "runtime-max-pods"), State::Fail);
    }
}
