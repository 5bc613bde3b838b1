//! The whole stage over a temporary root, with a real bus: reboots, misses, refusals, crashes.

use std::fs;
use std::path::Path;

use serde_json::json;
use tenon_core::stages::state::Status;

use super::super::bus::tests::{Bus, Script, no_bus};
use super::super::{Opened, Order, read_state};
use super::*;
use crate::cluster::fake::FakeApi;

const NEW: &str = "4593.2.0";
const UPDATING: &str = "  os: {update: {provider: update-engine}}\n";

struct Place {
    dir: tempfile::TempDir,
    root: Root,
}

impl Place {
    /// A first master whose kubelet and containerd only know their versions.
    fn new(more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let place = Place { dir, root };
        let config = "apiVersion: tenon.dev/v1alpha1\nkind: MachineConfig\nspec:\n  role: first-master\n  \
             cluster: {name: prod, endpoint: \"https://api.example:6443\", kubernetesVersion: v1.34.2}\n  \
             node: {name: cp-1, ip: 10.0.0.4}\n";
        place.put("etc/tenon/config.yaml", &format!("{config}{more}"));
        place.put("sys/fs/cgroup/cgroup.controllers", "");
        place.program("kubelet", "Kubernetes v1.34.2");
        place.program("containerd", "containerd example.org/containerd 1.7.20 abc");
        place.boot("boot-1", "4593.1.0");
        place
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, says: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = format!("usr/bin/{name}");
        self.put(&path, &format!("#!/bin/sh\necho {says}\n"));
        let path = self.dir.path().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn boot(&self, id: &str, os: &str) {
        self.put("proc/sys/kernel/random/boot_id", id);
        self.put("etc/os-release", &format!("ID=flatcar\nVERSION_ID={os}\n"));
    }

    fn run(&self) -> Result<(), Problem> {
        let mut work = Prepare::new(Environment::default());
        work.reboot_block = Duration::from_millis(50);
        work.input_wait = Duration::ZERO;
        work.api_pause = Duration::ZERO;
        let order = Order { stage: "prepare", config: paths::CONFIG.into(), forced: Vec::new() };
        match Run::open(&self.root, &order) {
            Ok(Opened::Run(stage)) => super::run(stage, &mut work),
            Ok(Opened::Done { .. }) => Ok(()),
            Err(super::super::Failure::Problem(problem)) => Err(problem),
            Err(super::super::Failure::Findings(list)) => Err(list[0].problem.clone()),
        }
    }

    fn status(&self) -> (Status, u64) {
        let state = read_state(&self.root).unwrap();
        (state.status("prepare"), state.reboots())
    }

    fn gate(&self) -> bool {
        self.root.exists(paths::KUBELET_ENV)
    }
}

fn updating(refused: bool) -> Script {
    Script {
        first: (5, "IDLE", ""),
        then: vec![(6, "DOWNLOADING", NEW), (6, "UPDATED_NEED_REBOOT", NEW)],
        reboot_refused: refused,
    }
}

fn slug(result: Result<(), Problem>) -> &'static str {
    result.map_or_else(|problem| problem.page.slug, |()| "done")
}

fn start(place: &Place, refused: bool) -> Bus {
    Bus::start(Path::new(place.dir.path()), updating(refused))
}

#[test]
fn the_gate_opens_after_the_reboot_that_an_update_needs() {
    if no_bus() {
        return;
    }
    let place = Place::new(UPDATING);
    let bus = start(&place, false);
    assert_eq!(slug(place.run()), "reboot-pending");
    assert!(!place.gate() && place.status() == (Status::Rebooting, 1));
    assert_eq!(bus.log(), ["AttemptUpdate", "Reboot"]);
    place.boot("boot-2", NEW);
    assert_eq!(slug(place.run()), "done");
    assert!(place.gate() && place.status() == (Status::Done, 1));
    assert_eq!(bus.log().len(), 2, "nothing is updated or rebooted again");
}

#[test]
fn a_refused_reboot_is_asked_for_three_times_and_then_blocks() {
    if no_bus() {
        return;
    }
    let place = Place::new(UPDATING);
    let bus = start(&place, true);
    for _ in 0..3 {
        assert_eq!(slug(place.run()), "reboot-pending");
    }
    assert_eq!(slug(place.run()), "reboot-refused");
    assert_eq!(bus.log().iter().filter(|call| *call == "refused").count(), 3);
    assert!(!place.gate() && place.status() == (Status::Blocked, 1));
    assert!(place.root.exists(paths::ISSUE));
    // A person reboots the machine; the stage goes on.
    place.boot("boot-2", NEW);
    assert_eq!(slug(place.run()), "done");
}

#[test]
fn the_old_slot_costs_one_more_reboot_and_never_a_third() {
    if no_bus() {
        return;
    }
    let place = Place::new(UPDATING);
    let bus = start(&place, false);
    assert_eq!(slug(place.run()), "reboot-pending");
    place.boot("boot-2", "4593.1.0");
    assert_eq!(slug(place.run()), "reboot-pending", "the update is done again");
    place.boot("boot-3", "4593.1.0");
    assert_eq!(slug(place.run()), "expectation-missed");
    assert_eq!(place.status(), (Status::Blocked, 2));
    assert_eq!(bus.log().iter().filter(|call| *call == "Reboot").count(), 2);
    let proceed = Place::new("  os: {update: {provider: update-engine, onMismatch: proceed}}\n");
    let _bus = start(&proceed, false);
    assert_eq!(slug(proceed.run()), "reboot-pending");
    proceed.boot("boot-2", "4593.1.0");
    assert_eq!(slug(proceed.run()), "done");
}

#[test]
fn no_reboot_when_nothing_changed_and_the_seeds_defect_is_gone() {
    let place = Place::new("");
    place.put("etc/kubernetes/kubelet.env", "FOREIGN=1\n");
    assert_eq!(slug(place.run()), "done");
    assert_eq!(place.status(), (Status::Done, 0));
    assert!(place.root.exists(FOREIGN), "a gate that was not ours was closed");
}

#[test]
fn a_kubelet_newer_than_the_cluster_and_a_wrong_runtime_are_refused() {
    for (kubelet, containerd, expected) in [
        ("Kubernetes v1.35.0", "containerd x 1.7.20", "version-skew"),
        ("Kubernetes v1.30.9", "containerd x 1.7.20", "version-skew"),
        ("Kubernetes v1.31.0", "containerd x 1.7.20", "done"),
        ("Kubernetes v1.34.2", "containerd x 1.5.0", "runtime-mismatch"),
    ] {
        let place = Place::new("");
        place.program("kubelet", kubelet);
        place.program("containerd", containerd);
        assert_eq!(slug(place.run()), expected, "{kubelet} {containerd}");
    }
}

#[test]
fn cgroup_v1_is_refused_where_the_kubelet_would() {
    for (version, more, expected) in [
        ("v1.35.1", "", "cgroup-v1-refused"),
        ("v1.35.1", "  kubelet: {failCgroupV1: false}\n", "done"),
        ("v1.34.2", "", "done"),
    ] {
        let place = Place::new(more);
        let config = fs::read_to_string(place.dir.path().join("etc/tenon/config.yaml")).unwrap();
        place.put("etc/tenon/config.yaml", &config.replace("v1.34.2", version));
        place.program("kubelet", &format!("Kubernetes {version}"));
        fs::remove_file(place.dir.path().join("sys/fs/cgroup/cgroup.controllers")).unwrap();
        assert_eq!(slug(place.run()), expected, "{version} {more}");
    }
}

/// A worker that was told of an API server.
fn worker(api: &FakeApi) -> Place {
    let place = Place::new("");
    let config = fs::read_to_string(place.dir.path().join("etc/tenon/config.yaml")).unwrap();
    let config =
        config.replace("first-master", "worker").replace("https://api.example:6443", &api.url);
    let more = "  bootstrapToken: {token: abcdef.0123456789abcdef}\n  assets: {source: push}\n";
    place.put("etc/tenon/config.yaml", &format!("{config}{more}"));
    place.put("etc/tenon/kubelet.default.env", "KUBERNETES_VERSION=v1.34.7\n");
    place
}

fn send_bundle(place: &Place, api: &FakeApi) {
    place.put("var/lib/tenon/assets/pki/ca.crt", &api.authority);
    place.put("var/lib/tenon/done/assets", "");
}

#[test]
fn a_worker_waits_for_its_bundle_and_holds_no_admin_credential() {
    let api = FakeApi::start(|_| (503, json!({})));
    let place = worker(&api);
    assert_eq!(slug(place.run()), "waiting-for-inputs");
    assert_eq!(read_state(&place.root).unwrap().attempts("prepare", "inputs"), 0);
    send_bundle(&place, &api);
    assert_eq!(slug(place.run()), "done");
    let state = read_state(&place.root).unwrap();
    assert_eq!(state.output("prepare", "versionSource"), Some("default"));
    assert_eq!(state.output("prepare", "kubernetesVersion"), Some("v1.34.7"));
    let path = place.dir.path().join("etc/kubernetes/bootstrap-kubelet.conf");
    assert!(fs::read_to_string(path).unwrap().contains("abcdef.0123456789abcdef"));
    let files = place.root.list("/etc/kubernetes").unwrap();
    assert!(
        !files.iter().any(|name| name.contains("admin") || name == "kubelet.conf"),
        "{files:?}"
    );
    let text = fs::read_to_string(place.dir.path().join("var/lib/tenon/state.json")).unwrap();
    assert!(!text.contains("0123456789abcdef"), "no secret in the state");
}

#[test]
fn a_worker_finds_its_cluster_with_token_and_hash_alone() {
    use crate::cluster::fake::{cluster, pin, signed_info};
    let ((api, data), (other, _)) = (cluster(), cluster());
    *data.lock().unwrap() = signed_info(&api.authority, &api.url);
    let place = worker(&api);
    let config = fs::read_to_string(place.dir.path().join("etc/tenon/config.yaml")).unwrap();
    let config = config.replace("  assets: {source: push}\n", "");
    let pinned =
        |hash: String| config.replace("name: prod,", &format!("name: prod, caHash: \"{hash}\","));
    place.put("etc/tenon/config.yaml", &config);
    assert_eq!(slug(place.run()), "machine-incomplete");
    place.put("etc/tenon/config.yaml", &pinned(pin(&other).to_string()));
    assert_eq!(slug(place.run()), "untrusted-cluster");
    assert!(!place.root.exists(paths::DISCOVERED_CA));
    place.put("etc/tenon/config.yaml", &pinned(pin(&api).to_string()));
    assert_eq!(slug(place.run()), "done");
    let path = place.dir.path().join("etc/kubernetes/bootstrap-kubelet.conf");
    let text = fs::read_to_string(path).unwrap();
    let found = tenon_core::kubeconfig::read(&text, "x").unwrap();
    let authority = api.authority.into_bytes();
    let inline = tenon_core::kubeconfig::Material::Inline(authority.clone());
    let file = place.root.read("/etc/kubernetes/pki/ca.crt", 1 << 20).unwrap();
    assert!(found.authority == Some(inline) || file == Some(authority), "{found:?}");
}

#[test]
fn the_running_cluster_decides_version_and_runtimes() {
    let mappings = "kind: RuntimeMappings\nkubernetes: {\"1.35\": {containerd: [\"1.7\"]}}\n";
    let api = FakeApi::start(move |seen| match seen.path.as_str() {
        "/version" => (200, json!({"gitVersion": "v1.35.3+build"})),
        _ => (200, json!({"data": {"mappings.yaml": mappings}})),
    });
    let place = worker(&api);
    send_bundle(&place, &api);
    assert_eq!(slug(place.run()), "done");
    let state = read_state(&place.root).unwrap();
    assert_eq!(state.output("prepare", "versionSource"), Some("api"));
    assert_eq!(state.output("prepare", "containerdWanted"), Some("1.7"));
    let tokens: Vec<_> =
        api.seen.lock().unwrap().iter().map(|seen| seen.authorization.clone()).collect();
    assert!(tokens.iter().all(|token| token == "Bearer abcdef.0123456789abcdef"), "{tokens:?}");
}

#[test]
fn the_runtimes_directory_is_emptied_only_for_our_own_reboot() {
    let place = Place::new("");
    place.put("var/lib/containerd/meta.db", "x");
    place.put("var/lib/tenon/pending/runtime-reset", "{\"reboot\": \"other\"}");
    assert_eq!(runtime::reset(&place.root).unwrap_err().exit(), 12);
    assert!(place.root.exists("/var/lib/containerd/meta.db"));
    let id = |state: &mut tenon_core::stages::state::State| {
        state.set_output("prepare", reboot::REBOOT_ID, "ours");
    };
    super::super::update(&place.root, id).unwrap();
    place.put("var/lib/tenon/pending/runtime-reset", "{\"reboot\": \"ours\"}");
    assert_eq!(runtime::reset(&place.root).unwrap(), ["/var/lib/containerd"]);
    assert!(!place.root.exists("/var/lib/containerd") && !place.root.exists(paths::RUNTIME_RESET));
    assert_eq!(runtime::reset(&place.root).unwrap(), Vec::<String>::new());
}

/// A catalogue with one image for any OS, which lies on the machine itself.
fn with_extension(place: &Place, version: &str) {
    let body = format!("image of {version}");
    place.put("srv/containerd.raw", &body);
    let digest = tenon_core::hex::sha256(body.as_bytes());
    let architecture = runtime::os(&place.root).architecture;
    place.put(
        "etc/tenon/extension-catalogue.yaml",
        &format!("kind: ExtensionCatalogue\nimages: [{{name: containerd, version: {version}, architecture: {architecture}, os: {{id: _any}}, url: \"file:/srv/containerd.raw\", size: {}, sha256: \"{digest}\"}}]\n", body.len()),
    );
}

#[test]
fn a_changed_runtime_with_state_reboots_and_is_reset_before_it_runs() {
    if no_bus() {
        return;
    }
    let place = Place::new("  runtime: {source: sysext}\n");
    let _bus = start(&place, false);
    with_extension(&place, "2.1.9");
    place.put("var/lib/containerd/meta.db", "of 1.7");
    assert_eq!(slug(place.run()), "reboot-pending");
    let link = disk::read_link(&place.root, "/etc/extensions/containerd.raw").unwrap();
    assert!(link.starts_with("/opt/extensions/containerd/containerd-2.1.9-"), "{link}");
    let state = read_state(&place.root).unwrap();
    assert_eq!(state.reboot().unwrap().expect, [("containerd".to_owned(), "2.1.9".to_owned())]);
    place.boot("boot-2", "4593.1.0");
    place.program("containerd", "containerd x v2.1.9 abc");
    assert_eq!(slug(place.run()), "unit-failed", "the reset comes first");
    assert_eq!(runtime::reset(&place.root).unwrap(), ["/var/lib/containerd"]);
    assert_eq!(slug(place.run()), "done");
    assert_eq!(read_state(&place.root).unwrap().output("prepare", "containerd"), Some("2.1.9"));
}

#[test]
fn the_same_runtime_version_needs_no_reboot_and_a_wrong_digest_stops() {
    let place = Place::new("  runtime: {source: sysext}\n");
    with_extension(&place, "1.7.20");
    place.put("var/lib/containerd/meta.db", "x");
    assert_eq!(slug(place.run()), "done");
    assert_eq!(place.status(), (Status::Done, 0));
    let place = Place::new("  runtime: {source: sysext}\n");
    with_extension(&place, "2.1.9");
    place.put("srv/containerd.raw", "exchanged");
    assert_eq!(slug(place.run()), "wrong-extension");
    assert!(!place.root.exists("/etc/extensions/containerd.raw"));
}
