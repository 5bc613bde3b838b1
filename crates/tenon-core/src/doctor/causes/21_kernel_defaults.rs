//! Kernel settings are not those that the kubelet insists on.

use super::*;

/// What `protectKernelDefaults` compares, with the value it wants.
const WANTED: &[(&str, &str)] = &[
    ("vm.overcommit_memory", "1"),
    ("vm.panic_on_oom", "0"),
    ("kernel.panic", "10"),
    ("kernel.panic_on_oops", "1"),
    ("kernel.keys.root_maxkeys", "1000000"),
    ("kernel.keys.root_maxbytes", "25000000"),
];

pub(super) static CAUSE: Cause = Cause {
    number: 21,
    slug: "kernel-defaults",
    title: "kernel settings differ from what protectKernelDefaults demands",
    step: Step::Kubelet,
    signals: &[Signal::confirmed(
        Log::Kubelet,
        &["invalid kernel flag:"],
        "kubernetes pkg/kubelet/cm/container_manager_linux.go",
    )],
    checks: &[Check::proves("kernel-settings", settings), RESTARTS],
    why: "with protectKernelDefaults the kubelet ends when one of six kernel settings is not as it wants it; another sysctl file sets it back",
    fix: "set the value in a file below /etc/sysctl.d that sorts last, and load it with `sysctl --system`",
    command: "sysctl --system",
    ..Cause::BLANK
};

fn settings(view: &View) -> Found {
    if view.kubelet["protectKernelDefaults"] != true {
        return Found::NotApplicable;
    }
    let mut evidence = Vec::new();
    let mut known = false;
    for (name, wanted) in WANTED {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let Some(value) = view.value(&path) else { continue };
        known = true;
        if value != *wanted {
            let found = Evidence::file(path, format!("{name} is {value}, the kubelet wants {wanted}"));
            evidence.push(match winner(view, name) {
                Some(file) => found.fix(format!("set {name} = {wanted} in {file}, then `sysctl --system`")),
                None => found.fix(format!("set {name} = {wanted} in /etc/sysctl.d/99-kubelet.conf, then `sysctl --system`")),
            });
        }
    }
    if known { Found::of(evidence) } else { Found::Unknown("the kernel's settings are not readable") }
}

/// The file that decides a setting: the last by name, and /etc before /usr for equal names.
fn winner(view: &View, name: &str) -> Option<String> {
    let sets = |text: &str| {
        text.lines().any(|line| line.split_once('=').is_some_and(|(key, _)| key.trim().replace('/', ".") == *name))
    };
    let folders = ["/usr/lib/sysctl.d", "/etc/sysctl.d"];
    let files = folders.iter().flat_map(|folder| view.files_in(folder)).filter(|(_, text)| sets(text));
    files.max_by_key(|(path, _)| path.rsplit('/').next()).map(|(path, _)| path.to_owned())
}
