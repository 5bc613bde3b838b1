//! What systemd is asked to do, in order: reload, resolver, containerd, kubelet.

use std::time::Duration;

use serde_json::Value;

use super::baked::PAUSE_ARCHIVE;
use super::node::Node;
use super::step::{Action, FileBody, Program, Ready, Step, Unit, UnitVerb};
use super::{Draft, Owner};
use super::{
    containerd, credential_provider, environment, kubeconfig, kubelet, kubelet_args, registries,
    resolved, runtime_spec, soci,
};

/// A link added after this file exists belongs to the VPC CNI (`tenon net udev`).
pub(crate) const MARKER_PATH: &str = "/run/nodeadm/init";
const PAUSE_STAMP: &str = "/run/tenon/pause-imported";
const HEALTH_PORT: u16 = 10248;

/// True for files that systemd reads as units or as its own settings.
pub(crate) fn needs_reload(path: &str) -> bool {
    let roots = ["/etc/systemd/system/", "/run/systemd/system/", "/etc/systemd/system.conf.d/"];
    roots.iter().any(|root| path.starts_with(root))
}

/// Plans one reload for all unit files of the config phase, then the resolver's restart.
pub(crate) fn reload(draft: &mut Draft) {
    let inputs = draft.planned().into_iter().filter(|path| needs_reload(path)).collect();
    draft.add(Owner::Node, Step::config(Action::Reload { inputs }, "unit files changed"));
    let resolver = Unit {
        name: "systemd-resolved.service".into(),
        verb: UnitVerb::RestartOnChange,
        inputs: vec![resolved::PATH.into()],
        deadline: Duration::from_secs(15),
        ready: Ready::Job,
        requires: Vec::new(),
    };
    draft.add(Owner::Node, Step::config(Action::Unit(resolver), "name servers changed"));
}

/// Plans the mark that the node runs.
pub(crate) fn marker(draft: &mut Draft) {
    let file = FileBody::new(MARKER_PATH, 0o644, "");
    draft.add(Owner::Node, Step::run(Action::File(file), "the run phase has begun"));
}

/// Plans the daemons.
pub(crate) fn start(node: &Node, draft: &mut Draft) {
    if node.soci {
        draft.add(Owner::Containerd, unit(soci_unit(), "featureGates.FastImagePull"));
    }
    let migrated = draft.planned().contains(containerd::MIGRATION_INPUT);
    draft.add(Owner::Containerd, unit(containerd_unit(node, migrated), "runs the containers"));
    if node.soci && node.facts.machine.pause_archive {
        let import = Action::Program(pause_import());
        draft.add(Owner::Containerd, Step::run(import, "the sandbox image, for the snapshotter"));
    }
    draft.add(Owner::Kubelet, unit(kubelet_unit(node), "joins the cluster"));
}

fn unit(unit: Unit, because: &str) -> Step {
    Step::run(Action::Unit(unit), because)
}

fn soci_unit() -> Unit {
    let inputs = [soci::CONFIG_PATH, "/etc/systemd/system/soci-snapshotter.service.d/"];
    daemon(soci::UNIT, 60, &inputs, Ready::Job, &[])
}

fn containerd_unit(node: &Node, migrated: bool) -> Unit {
    let hosts: Vec<String> =
        node.config.containerd.registries.iter().map(registries::path).collect();
    let mut inputs =
        vec![containerd::PATH, runtime_spec::PATH, "/etc/systemd/system/containerd.service.d/"];
    inputs.extend(hosts.iter().map(String::as_str));
    inputs.extend(migrated.then_some(containerd::MIGRATION_INPUT));
    if node.soci {
        inputs.push(soci::CONFIG_PATH);
    }
    let requires: &[&str] = if node.soci { &[soci::UNIT] } else { &[] };
    daemon("containerd.service", 90, &inputs, Ready::Job, requires)
}

fn kubelet_unit(node: &Node) -> Unit {
    let config_dir = format!("{}/", kubelet::CONFIG_DIR);
    // On Outposts the kubelet writes its kubeconfig itself; only the bootstrap one is ours.
    let kubeconfig = match node.cluster.outpost {
        Some(_) => kubeconfig::BOOTSTRAP_PATH,
        None => kubeconfig::PATH,
    };
    let inputs = [
        kubelet::CONFIG_PATH,
        &config_dir,
        kubelet::ENVIRONMENT_PATH,
        kubeconfig,
        kubelet::CA_PATH,
        credential_provider::CONFIG_PATH,
        "/etc/systemd/system/kubelet.service.d/",
    ];
    daemon("kubelet.service", 60, &inputs, kubelet_ready(node), &["containerd.service"])
}

fn daemon(name: &str, seconds: u64, inputs: &[&str], ready: Ready, requires: &[&str]) -> Unit {
    let shared = [environment::MANAGER_PATH, environment::PROXY_PATH];
    Unit {
        name: name.into(),
        verb: UnitVerb::EnsureFresh,
        inputs: inputs.iter().chain(&shared).map(|path| (*path).to_owned()).collect(),
        deadline: Duration::from_secs(seconds),
        ready,
        requires: requires.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The user may have moved the health port, or switched it off.
fn kubelet_ready(node: &Node) -> Ready {
    let config = &node.config.kubelet.config;
    let flag = |name| kubelet_args::value_of(&node.arguments, name);
    let port = flag("healthz-port").map(|text| text.parse().ok()).unwrap_or_else(|| {
        let value = config.get("healthzPort").and_then(Value::as_u64);
        u16::try_from(value.unwrap_or(HEALTH_PORT.into())).ok()
    });
    let address = flag("healthz-bind-address")
        .or_else(|| config.get("healthzBindAddress").and_then(Value::as_str))
        .unwrap_or("127.0.0.1");
    let is_local = ["127.0.0.1", "0.0.0.0", "::"].contains(&address);
    match port {
        Some(port) if port > 0 && is_local => Ready::KubeletHealth { port },
        _ => Ready::StableActive,
    }
}

/// The image's cached sandbox lies in another snapshotter than the one now in use.
fn pause_import() -> Program {
    let argv =
        "ctr -n k8s.io images import --snapshotter soci --discard-unpacked-layers=false --local";
    let mut argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
    argv.push(PAUSE_ARCHIVE.into());
    Program {
        argv,
        timeout: Duration::from_secs(60),
        unless_exists: Some(PAUSE_STAMP.into()),
        stamp: true,
        ..Program::default()
    }
}
