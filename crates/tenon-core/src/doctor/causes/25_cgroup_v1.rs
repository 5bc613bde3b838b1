//! The machine booted with the old control groups.

use super::*;
use crate::kube_version::Version;

/// From here on the kubelet refuses version 1 unless told otherwise.
const REFUSED_SINCE: Version = Version::new(1, 35, 0);

pub(super) static CAUSE: Cause = Cause {
    number: 25,
    slug: "cgroup-v1",
    title: "the host uses cgroup v1, which this kubelet refuses",
    step: Step::Kernel,
    signals: &[
        Signal::confirmed(
            Log::Kubelet,
            &["kubelet is configured to not run on a host using cgroup v1"],
            "kubernetes pkg/kubelet/cm/container_manager_linux.go",
        )
        .since(1, 31),
    ],
    checks: &[Check::proves("cgroup-version", version), RESTARTS],
    why: "the kernel's command line asks for the old hierarchy, or the image is too old for the new one",
    fix: "boot with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: false in `spec.kubelet.config`",
    command: "stat -fc %T /sys/fs/cgroup",
    ..Cause::BLANK
};

fn version(view: &View) -> Found {
    let Some(names) = view.names("/sys/fs/cgroup").filter(|names| !names.is_empty()) else {
        return Found::Unknown("/sys/fs/cgroup is not readable");
    };
    if names.iter().any(|name| name == "cgroup.controllers") {
        return Found::Pass;
    }
    let refuses = match view.kubelet["failCgroupV1"].as_bool() {
        Some(refuses) => refuses,
        None => view.kubelet_version().is_some_and(|version| version >= REFUSED_SINCE),
    };
    match refuses {
        true => Found::fail(Evidence::file("/sys/fs/cgroup", "is a hierarchy of version 1")),
        false => Found::NotApplicable,
    }
}
