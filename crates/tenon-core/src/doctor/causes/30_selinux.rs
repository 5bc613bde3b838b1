//! SELinux denies what containers need.

use super::*;

const PACKAGES: &str = "/usr/share/selinux/packages";

pub(super) static CAUSE: Cause = Cause {
    number: 30,
    slug: "selinux",
    title: "SELinux denies the runtime or the kubelet",
    step: Step::Kernel,
    signals: &[Signal::tentative(Log::Kernel, &["avc:", "denied"])],
    checks: &[Check::proves("container-policy", policy), Check::supports("selinux-enforcing", enforcing)],
    why: "SELinux enforces a policy that does not know containers, or files have the wrong context",
    fix: "install container-selinux into the image and relabel: `restorecon -R /var/lib/containerd /var/lib/kubelet /opt/cni`",
    command: "ausearch -m avc -ts boot",
    ..Cause::BLANK
};

fn is_enforcing(view: &View) -> bool {
    view.value("/sys/fs/selinux/enforce") == Some("1")
}

fn enforcing(view: &View) -> Found {
    match is_enforcing(view) {
        true => Found::fail(Evidence::file("/sys/fs/selinux/enforce", "enforcing")),
        false => Found::Pass,
    }
}

fn policy(view: &View) -> Found {
    if !is_enforcing(view) {
        return Found::NotApplicable;
    }
    match view.names(PACKAGES) {
        None => Found::Unknown("the policy packages are not known"),
        Some(names) if names.iter().any(|name| name.starts_with("container.pp")) => Found::Pass,
        Some(_) => Found::fail(Evidence::file(PACKAGES, "enforcing, and there is no policy for containers")),
    }
}
