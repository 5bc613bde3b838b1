//! The container runtime is down or does not fit.

use super::*;
use crate::kube_version::Version;

const PATH: &str = "/etc/containerd/config.toml";

pub(super) static CAUSE: Cause = Cause {
    number: 22,
    slug: "containerd",
    title: "containerd is down, or its config does not work",
    step: Step::Containerd,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["validate CRI v1 runtime API for endpoint"], "kubernetes staging/src/k8s.io/cri-client/pkg/remote_runtime.go"),
        Signal::confirmed(Log::Kubelet, &["dial unix", "containerd.sock: connect:"], GO_NET),
        Signal::confirmed(Log::Containerd, &["failed to load TOML"], "containerd pull request 7174"),
    ],
    support: &[Signal::confirmed(Log::Kubelet, &["container runtime status check may not have completed yet"], "kubernetes pkg/kubelet/runtime.go")],
    checks: &[
        Check::proves("containerd-runs", runs),
        Check::proves("containerd-config", config),
        Check::proves("cgroup-driver", driver),
    ],
    why: "the kubelet does nothing without the runtime: it is not running, its config does not parse or has a schema that it does not know, its socket is elsewhere, or it uses another cgroup driver than the kubelet",
    fix: "mend the line of /etc/containerd/config.toml named in the evidence, or start the unit and read its journal",
    command: "journalctl -b -u containerd -n 50",
    ..Cause::BLANK
};

fn runs(view: &View) -> Found {
    let Some(unit) = view.unit("containerd.service") else {
        return Found::Unknown("the state of containerd is not known");
    };
    let down = matches!(unit.active.as_str(), "failed" | "inactive")
        || matches!(unit.load.as_str(), "not-found" | "masked")
        || unit.sub == "auto-restart" || unit.restarts > 3 && unit.active != "active";
    // Before the bootstrap nothing is expected to start it.
    match down && !is_unconfigured(view) {
        true => {
            let words = [&unit.load, &unit.active, &unit.result].map(String::as_str);
            let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
            Found::fail(Evidence::unit("containerd.service", words.join(", ")))
        }
        false => Found::Pass,
    }
}

fn config(view: &View) -> Found {
    let Some(text) = view.file(PATH) else { return Found::NotApplicable };
    let table = match text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count());
            let what = format!("line {}: {}", line.max(1), error.message());
            return Found::fail(Evidence::file(PATH, what));
        }
    };
    let schema = table.get("version").and_then(toml::Value::as_integer).unwrap_or(1);
    let daemon = view.file("/etc/eks/containerd-version.txt").and_then(Version::parse);
    match daemon {
        Some(version) if version.major < 2 && schema > 2 => Found::fail(Evidence::file(
            PATH,
            format!("schema {schema}, and containerd {version} knows up to 2"),
        )),
        _ => Found::Pass,
    }
}

/// Both must leave the control groups to systemd, or neither.
fn driver(view: &View) -> Found {
    let Some(text) = view.file(PATH) else { return Found::NotApplicable };
    let set = |line: &str| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "SystemdCgroup").then(|| value.trim() == "true")
    };
    let Some(systemd) = text.lines().find_map(set) else {
        return Found::Unknown("containerd's config does not name a cgroup driver");
    };
    let kubelet = view.flags.get("cgroup-driver").map(String::as_str);
    let kubelet = kubelet.or(view.kubelet["cgroupDriver"].as_str());
    match kubelet {
        Some(driver) if (driver == "systemd") != systemd => {
            let text = format!("SystemdCgroup = {systemd}, and the kubelet uses {driver}");
            let fix = format!("set SystemdCgroup = {} in {PATH} and restart containerd", driver == "systemd");
            Found::fail(Evidence::file(PATH, text).fix(fix))
        }
        _ => Found::Pass,
    }
}
