//! The stages before an API server of our own making, and before files of somebody else.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_core::control_plane::{Component, MANIFESTS, Phase};
use tenon_core::kubeconfig::{Credential, Kubeconfig};
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;
use tenon_core::stages::paths;
use tenon_core::stages::state::Status;

use super::addons::{self, Options};
use super::{Bootstrap, pods};
use crate::cluster::fake::{FakeApi, Seen};
use crate::root::Root;
use crate::stages::{Failure, Opened, Order, Run, read_state};

const CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: {role}
  cluster: {name: lab, endpoint: \"https://127.0.0.1:1\", kubernetesVersion: v1.34.10, certificateAuthority: \"LS0t\"}
  node: {name: cp-1, ip: 127.0.0.1}
  bootstrapToken: {token: abcdef.0123456789abcdef}
";
const OBJECTS: &str = "apiVersion: lab.tenon.dev/v1
kind: Widget
metadata: {name: first, namespace: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
";
const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.lab.tenon.dev}
spec: {group: lab.tenon.dev}
";

/// A machine on a temporary root.
struct Desk {
    dir: tempfile::TempDir,
    root: Root,
}

impl Desk {
    fn new(role: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let desk = Desk { dir, root };
        let config = match role {
            "first-master" => CONFIG.replace(", certificateAuthority: \"LS0t\"", ""),
            _ => CONFIG.replace("LS0t", &authority()),
        };
        desk.put(paths::CONFIG, &config.replace("{role}", role));
        desk.put(paths::BOOT_ID, "boot-1\n");
        desk
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The administrator's way to a server.
    fn admin(&self, api: &FakeApi) {
        let token = Credential::Token(Secret::new("token"));
        let ca = api.authority.clone().into_bytes();
        let config = Kubeconfig::new("lab", &api.url, ca, "admin", token);
        self.put("/etc/kubernetes/admin.conf", &config.write());
        self.put(&paths::done("bootstrap"), "");
    }

    fn open(&self, stage: &'static str) -> Option<Box<Run<'_>>> {
        let order = Order { stage, config: paths::CONFIG.into(), forced: Vec::new() };
        match Run::open(&self.root, &order) {
            Ok(Opened::Run(run)) => Some(run),
            Ok(Opened::Done { .. }) => None,
            Err(Failure::Problem(problem)) => panic!("{problem}"),
            Err(Failure::Findings(findings)) => panic!("{:?}", findings[0].problem),
        }
    }

    fn addons(&self, options: &Options) -> Result<usize, Problem> {
        addons::run(self.open("addons").expect("the stage has work"), options)
    }

    fn bootstrap(&self) -> Result<Bootstrap, Problem> {
        let run = self.open("bootstrap").expect("the stage has work");
        Bootstrap::open(&run, Instant::now() + Duration::from_secs(1))
    }
}

fn authority() -> String {
    use base64::Engine as _;
    let made = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).unwrap();
    base64::engine::general_purpose::STANDARD.encode(made.cert.pem())
}

fn kinds(rows: &[(&str, &str, bool)]) -> (u16, Value) {
    let row = |(name, kind, namespaced): &(&str, &str, bool)| json!({"name": name, "kind": kind, "namespaced": namespaced});
    (200, json!({"resources": rows.iter().map(row).collect::<Vec<_>>()}))
}

/// A cluster with one node that knows the widget once its definition was applied.
fn cluster() -> FakeApi {
    let defined = AtomicBool::new(false);
    FakeApi::start(move |seen: &Seen| {
        let path = seen.path.split('?').next().unwrap();
        let missing = || (404, json!({"kind": "Status", "code": 404, "reason": "NotFound"}));
        if seen.method == "PATCH" {
            let is_definition = seen.body["kind"] == "CustomResourceDefinition";
            defined.fetch_or(is_definition, Ordering::Relaxed);
            return (200, seen.body.clone());
        }
        let ready = json!([{"type": "Ready", "status": "True"}]);
        match path {
            "/readyz" => (200, json!("ok")),
            "/api/v1/nodes" => (200, json!({"items": [{"status": {"conditions": ready}}]})),
            "/api/v1" => kinds(&[("namespaces", "Namespace", false), ("nodes", "Node", false)]),
            "/apis/apiextensions.k8s.io/v1" => {
                kinds(&[("customresourcedefinitions", "CustomResourceDefinition", false)])
            }
            path if path.starts_with("/apis/lab.tenon.dev") && !defined.load(Ordering::Relaxed) => {
                missing()
            }
            "/apis/lab.tenon.dev/v1" => kinds(&[("widgets", "Widget", true)]),
            path if path.contains("customresourcedefinitions") => {
                let established = json!([{"type": "Established", "status": "True"}]);
                (
                    200,
                    json!({"kind": "CustomResourceDefinition", "status": {"conditions": established}}),
                )
            }
            _ => (200, json!({"kind": "Any"})),
        }
    })
}

fn patches(api: &FakeApi) -> Vec<String> {
    let requests = api.requests();
    let only = requests.iter().filter_map(|request| request.strip_prefix("PATCH "));
    only.map(str::to_owned).collect()
}

#[test]
fn add_ons_are_applied_in_the_order_in_which_they_can_be() {
    let (desk, api) = (Desk::new("first-master"), cluster());
    desk.admin(&api);
    desk.put(&format!("{}/addons/10-objects.yaml", paths::ASSETS), OBJECTS);
    desk.put(&format!("{}/addons/20-kinds.yaml", paths::ASSETS), DEFINITION);
    desk.put(&format!("{}/addons/README.md", paths::ASSETS), "not a manifest");
    assert_eq!(desk.addons(&Options::default()).unwrap(), 3);
    let query = "?fieldManager=tenon-addons&force=false";
    let expected = [
        "/api/v1/namespaces/shop",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.lab.tenon.dev",
        "/apis/lab.tenon.dev/v1/namespaces/shop/widgets/first",
    ];
    assert_eq!(patches(&api), expected.map(|path| format!("{path}{query}")));
    assert!(desk.root.exists(&paths::done("addons")));
    assert!(desk.open("addons").is_none(), "a second run has nothing to do");
}

#[test]
fn a_bad_manifest_blocks_before_anything_is_asked() {
    let (desk, api) = (Desk::new("first-master"), cluster());
    desk.admin(&api);
    desk.put(&format!("{}/addons/10-good.yaml", paths::ASSETS), OBJECTS);
    desk.put(&format!("{}/addons/20-bad.yaml", paths::ASSETS), "kind: Only\n");
    let problem = desk.addons(&Options::default()).unwrap_err();
    assert_eq!((problem.page.slug, problem.exit()), ("bad-manifest", 3));
    assert!(problem.what.contains("20-bad.yaml"), "{}", problem.what);
    assert_eq!(api.requests(), Vec::<String>::new());
    assert_eq!(read_state(&desk.root).unwrap().status("addons"), Status::Blocked);
}

#[test]
fn add_ons_in_a_directory_below_are_not_left_out_in_silence() {
    let (desk, api) = (Desk::new("first-master"), cluster());
    desk.admin(&api);
    desk.put(&format!("{}/addons/10-good.yaml", paths::ASSETS), OBJECTS);
    desk.put(&format!("{}/addons/more/20-also.yaml", paths::ASSETS), OBJECTS);
    let problem = desk.addons(&Options::default()).unwrap_err();
    assert_eq!(problem.page.slug, "bad-manifest");
    assert!(problem.what.ends_with("addons/more is a directory"), "{}", problem.what);
    assert_eq!(api.requests(), Vec::<String>::new());
}

#[test]
fn a_field_of_another_manager_is_named_unless_force() {
    for (force, slug) in [(false, Some("field-owned-by-another")), (true, None)] {
        let desk = Desk::new("first-master");
        let api = FakeApi::start(|seen: &Seen| {
            let path = seen.path.split('?').next().unwrap();
            let ready = json!([{"type": "Ready", "status": "True"}]);
            match (seen.method.as_str(), path) {
                ("PATCH", _) if seen.path.contains("force=false") => (
                    409,
                    json!({"kind": "Status", "code": 409, "reason": "Conflict", "message": "owned",
                        "details": {"causes": [{"field": ".spec", "message": "conflict with \"kubectl\""}]}}),
                ),
                ("PATCH", _) => (200, seen.body.clone()),
                (_, "/api/v1/nodes") => {
                    (200, json!({"items": [{"status": {"conditions": ready}}]}))
                }
                (_, "/api/v1") => kinds(&[("namespaces", "Namespace", false)]),
                _ => (200, json!({"kind": "Any"})),
            }
        });
        desk.admin(&api);
        desk.put("/srv/one.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
        let options = Options { directory: Some("/srv".into()), force, no_wait: false };
        let result = desk.addons(&options);
        assert_eq!(result.as_ref().err().map(|problem| problem.page.slug), slug);
        if let Err(problem) = result {
            assert!(problem.details.iter().any(|line| line.contains("kubectl")), "{problem:?}");
            assert_eq!(problem.exit(), 3);
        }
    }
}

#[test]
fn add_ons_wait_for_the_stage_before_without_counting() {
    let desk = Desk::new("first-master");
    let problem = desk.addons(&Options::default()).unwrap_err();
    assert_eq!(problem.exit(), 9);
    let state = read_state(&desk.root).unwrap();
    assert_eq!(
        (state.status("addons"), state.attempts("addons", "bootstrap")),
        (Status::Waiting, 0)
    );
}

#[test]
fn only_the_first_master_starts_a_cluster() {
    let problem = Desk::new("worker").bootstrap().unwrap_err();
    assert_eq!((problem.page.slug, problem.exit()), ("not-the-first-master", 3));
    assert!(Desk::new("first-master").bootstrap().is_ok());
}

#[test]
fn a_static_pod_of_somebody_else_is_not_touched() {
    let desk = Desk::new("first-master");
    let bootstrap = desk.bootstrap().unwrap();
    let run = desk.open("bootstrap").unwrap();
    let path = format!("{MANIFESTS}/kube-scheduler.yaml");
    desk.put(&path, "kind: Pod\nmetadata: {name: mine}\n");
    let problem = pods::write(&bootstrap, &run, Phase::Final, &[Component::Scheduler]).unwrap_err();
    assert_eq!((problem.page.slug, problem.exit()), ("foreign-static-pod", 6));
    assert_eq!(desk.root.read_text(&path).unwrap().unwrap(), "kind: Pod\nmetadata: {name: mine}");
}

#[test]
fn an_older_static_pod_of_ours_is_replaced_and_nothing_stays_beside_it() {
    let desk = Desk::new("first-master");
    let bootstrap = desk.bootstrap().unwrap();
    let run = desk.open("bootstrap").unwrap();
    let path = format!("{MANIFESTS}/kube-scheduler.yaml");
    desk.put(&path, "metadata: {annotations: {tenon.dev/manifest: \"sha256:00\"}}\n");
    pods::write(&bootstrap, &run, Phase::Final, &[Component::Scheduler]).unwrap();
    let text = desk.root.read_text(&path).unwrap().unwrap();
    assert!(text.contains("kube-scheduler:v1.34.10"), "{text}");
    assert_eq!(desk.root.list(MANIFESTS).unwrap(), ["kube-scheduler.yaml"]);
    assert_eq!(desk.root.list("/etc/kubernetes").unwrap(), ["manifests"]);
}

/// Writes a CA that ended long ago, with its key.
fn put_expired_ca(desk: &Desk) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut wanted = rcgen::CertificateParams::new(vec!["kubernetes".to_owned()]).unwrap();
    wanted.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    wanted.distinguished_name.push(rcgen::DnType::CommonName, "kubernetes");
    wanted.not_before = rcgen::date_time_ymd(2001, 1, 1);
    wanted.not_after = rcgen::date_time_ymd(2002, 1, 1);
    desk.put("/etc/kubernetes/pki/ca.crt", &wanted.self_signed(&key).unwrap().pem());
    desk.put("/etc/kubernetes/pki/ca.key", &key.serialize_pem());
}

#[test]
fn an_expired_ca_blocks_and_is_kept() {
    let desk = Desk::new("first-master");
    put_expired_ca(&desk);
    let before = desk.root.read_text("/etc/kubernetes/pki/ca.crt").unwrap();
    let run = desk.open("bootstrap").unwrap();
    let problem = super::some_steps(run, Duration::from_secs(5), &["pki"]).unwrap_err();
    assert!(crate::stages::is_permanent(&problem), "{problem}");
    assert_eq!(read_state(&desk.root).unwrap().status("bootstrap"), Status::Blocked);
    assert_eq!(desk.root.read_text("/etc/kubernetes/pki/ca.crt").unwrap(), before);
    assert!(!desk.root.exists(MANIFESTS));
}

#[test]
fn a_cluster_in_etcds_directory_is_not_started_over() {
    let desk = Desk::new("first-master");
    desk.put("/var/lib/etcd/member/snap/db", "data");
    desk.put(&paths::done("prepare"), "");
    let run = desk.open("bootstrap").unwrap();
    let problem = super::some_steps(run, Duration::from_secs(5), &["claim"]).unwrap_err();
    assert_eq!((problem.page.slug, problem.exit()), ("etcd-data-exists", 12));
    assert_eq!(read_state(&desk.root).unwrap().output("bootstrap", "nonce"), None);
    assert!(desk.root.exists("/var/lib/etcd/member/snap/db"));
}

#[test]
fn a_claim_for_another_cluster_is_not_carried_on() {
    let desk = Desk::new("first-master");
    desk.put("/etc/kubernetes/pki/ca.crt", "of today");
    let mut run = desk.open("bootstrap").unwrap();
    for (key, value) in [("nonce", "n"), ("clusterId", "lab"), ("caDigest", "sha256:of-yesterday")]
    {
        run.set_output(key, value).unwrap();
    }
    let problem = super::some_steps(run, Duration::from_secs(5), &["claim"]).unwrap_err();
    assert_eq!((problem.page.slug, problem.exit()), ("claim-differs", 12));
}

#[test]
fn a_reset_keeps_the_claim_unless_it_wipes() {
    let desk = Desk::new("first-master");
    let mut run = desk.open("bootstrap").unwrap();
    run.set_output("nonce", "n").unwrap();
    let machine = run.machine.clone();
    drop(run);
    for (files, nonce) in [(false, Some("n")), (true, None)] {
        let wipe = crate::stages::report::Wipe { files, etcd: false };
        crate::stages::report::reset(&desk.root, &machine, "bootstrap", wipe).unwrap();
        let state = read_state(&desk.root).unwrap();
        assert_eq!(state.output("bootstrap", "nonce"), nonce);
        assert_eq!(state.status("bootstrap"), Status::Pending);
    }
}

#[test]
fn whoever_answers_at_the_endpoint_must_be_ours() {
    let api = FakeApi::start(|_: &Seen| (200, json!({"gitVersion": "v1.34.10"})));
    let desk = Desk::new("first-master");
    let config = CONFIG.replace(", certificateAuthority: \"LS0t\"", "");
    let config = config.replace("{role}", "first-master").replace("https://127.0.0.1:1", &api.url);
    desk.put(paths::CONFIG, &config);
    desk.put(&paths::done("prepare"), "");
    let claim = |desk: &Desk| {
        let run = desk.open("bootstrap").unwrap();
        super::some_steps(run, Duration::from_secs(5), &["claim"])
    };
    assert_eq!(claim(&desk).unwrap_err().page.slug, "cluster-exists", "nothing is claimed yet");
    let mut run = desk.open("bootstrap").unwrap();
    run.set_output("clusterId", "lab").unwrap();
    run.set_output("nonce", "n").unwrap();
    drop(run);
    assert_eq!(claim(&desk).unwrap_err().page.slug, "cluster-exists", "no CA proves it ours");
    desk.put("/etc/kubernetes/pki/ca.crt", &api.authority);
    claim(&desk).unwrap();
}

#[test]
fn a_node_may_lack_its_pod_network_and_nothing_else() {
    let node = |status: &str, message: &str| {
        let ready = json!({"type": "Ready", "status": status, "message": message});
        super::settle::node_verdict(&json!({"status": {"conditions": [ready]}})).is_ok()
    };
    let network =
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady";
    assert!(node("True", "kubelet is posting ready status"));
    assert!(node("False", network));
    assert!(!node("False", "PLEG is not healthy"));
    assert!(super::settle::node_verdict(&json!({})).is_err());
}
