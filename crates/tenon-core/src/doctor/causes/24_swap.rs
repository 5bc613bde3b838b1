//! Swap is on and the kubelet does not want it.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 24,
    slug: "swap-on",
    title: "swap is on and the kubelet is not configured for it",
    step: Step::Kubelet,
    signals: &[Signal::confirmed(
        Log::Kubelet,
        &["running with swap on is not supported"],
        "kubernetes pkg/kubelet/cm/container_manager_linux.go",
    )],
    checks: &[Check::proves("swap", swap), RESTARTS],
    why: "with failSwapOn, which is the default, the kubelet ends when the machine has swap",
    fix: "`swapoff -a` and remove swap from /etc/fstab, or set failSwapOn: false with a swapBehavior in `spec.kubelet.config`",
    command: "swapoff -a",
    ..Cause::BLANK
};

fn swap(view: &View) -> Found {
    let Some(text) = view.file("/proc/swaps") else { return Found::Unknown("/proc/swaps is not readable") };
    if view.hides_settings() {
        return Found::Unknown("the kubelet's settings may not be read");
    }
    if is_unconfigured(view) {
        return Found::NotApplicable;
    }
    let flag = view.flags.get("fail-swap-on").map(|value| value == "false");
    let allowed = flag.unwrap_or(view.kubelet["failSwapOn"] == false);
    match text.lines().nth(1).and_then(|line| line.split_whitespace().next()) {
        Some(device) if !allowed => Found::fail(Evidence::file("/proc/swaps", format!("{device} is in use, and failSwapOn is not false"))),
        _ => Found::Pass,
    }
}
