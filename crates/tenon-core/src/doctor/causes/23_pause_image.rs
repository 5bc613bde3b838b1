//! No pod can start without its sandbox image.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 23,
    slug: "pause-image",
    title: "the sandbox (pause) image is not available",
    step: Step::Containerd,
    signals: &[
        Signal::confirmed(Log::Containerd, &["failed to get sandbox image"], "containerd internal/cri/server/podsandbox/sandbox_run.go"),
        Signal::confirmed(Log::Kubelet, &["failed to get sandbox image"], "containerd internal/cri/server/podsandbox/sandbox_run.go"),
    ],
    support: &[Signal::confirmed(Log::Kubelet, &["Failed to create sandbox for pod"], "kubernetes pkg/kubelet/kuberuntime/kuberuntime_sandbox.go")],
    checks: &[Check::supports("sandbox-reference", reference)],
    why: "every pod begins with the sandbox image; the reference in containerd's config is neither in the local store nor can it be pulled",
    fix: "import the cached image of the node's image, or set `spec.containerd.sandboxImage` to one that can be pulled",
    command: "ctr -n k8s.io images import /etc/eks/pause.tar",
    ..Cause::BLANK
};

/// The reference, and whether the image brings an archive for it.
fn reference(view: &View) -> Found {
    let path = "/etc/containerd/config.toml";
    let Some(text) = view.file(path) else { return Found::Unknown("containerd's config is not readable") };
    let value = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let named = matches!(key.trim(), "sandbox" | "sandbox_image");
        named.then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    };
    let Some(image) = text.lines().find_map(value) else { return Found::NotApplicable };
    let cached = view.names("/etc/eks").is_some_and(|names| names.iter().any(|name| name == "pause.tar"));
    match (image.starts_with("localhost/"), cached) {
        (true, true) => Found::Pass,
        (true, false) => Found::fail(Evidence::file(path, format!("{image}, and there is no /etc/eks/pause.tar to import it from"))),
        (false, true) => Found::fail(Evidence::file(path, format!("{image} must be pulled, although /etc/eks/pause.tar is here"))),
        (false, false) => Found::fail(Evidence::file(path, format!("{image} must be pulled"))),
    }
}
