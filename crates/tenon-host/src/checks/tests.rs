use std::fs;
use std::path::Path;
use std::time::Duration;

use tenon_core::checks::mend::Mending;
use tenon_core::checks::{Family, State};
use tenon_core::hex::sha256;
use tenon_core::plan::diff;
use tenon_core::plan::record::{FileMark, Generation, RECORD_PATH, Record, SCHEMA, UnitMark};

use super::*;
use crate::apply::Lock;

const ENVIRONMENT: &str = "/etc/eks/kubelet/environment";

/// A node of one file, its record, and a kubelet that was started after it was written.
struct Node {
    dir: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        let node = Node { dir: tempfile::tempdir().unwrap() };
        let environment = "NODEADM_KUBELET_ARGS=--config=/none\n";
        node.write(ENVIRONMENT, environment, 0o600);
        let mut record = Record {
            schema: SCHEMA,
            instance_id: "i-1".into(),
            generation: 1,
            ..Record::default()
        };
        let mark = FileMark { sha256: sha256(environment.as_bytes()), mode: 0o600 };
        record.files.insert(ENVIRONMENT.into(), mark);
        let inputs = vec![ENVIRONMENT.to_owned(), "/etc/systemd/system/kubelet.service.d/".into()];
        let tree = apply::look_at_recorded(&node.root(), &record).unwrap();
        let input_hash = diff::input_hash(&inputs, &tree);
        record.units.insert("kubelet.service".into(), UnitMark { input_hash, inputs });
        node.record(&record);
        node
    }

    fn root(&self) -> Root {
        Root::open(self.dir.path()).unwrap()
    }

    fn write(&self, path: &str, text: &str, mode: u32) {
        let path = self.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(&path, mode).unwrap();
    }

    fn record(&self, record: &Record) {
        self.write(RECORD_PATH, &String::from_utf8(record.encode()).unwrap(), 0o600);
    }

    /// A kubelet that was started at a time in seconds since 1970.
    fn run_kubelet(&self, started: u64) {
        self.write("/proc/stat", &format!("btime {started}\n"), 0o444);
        self.write("/proc/7/comm", "kubelet\n", 0o444);
        self.write("/proc/7/cmdline", "/usr/bin/kubelet\0--config=/none\0", 0o444);
        let zeros = vec!["0"; 40].join(" ");
        self.write("/proc/7/stat", &format!("7 (kubelet) S {zeros}\n"), 0o444);
    }

    fn drift(&self) -> Vec<Finding> {
        let eyes = Eyes::on_root(self.dir.path()).unwrap();
        let known = known(eyes.root(), Wanted::default()).unwrap();
        Examination::begin(&eyes).unwrap().drift(&known)
    }
}

fn states(findings: &[Finding]) -> Vec<(&str, State)> {
    findings.iter().map(|finding| (finding.id.as_str(), finding.state)).collect()
}

#[test]
fn a_node_without_a_config_is_compared_with_its_record_and_says_what_is_missing() {
    let found = Node::new().drift();
    assert_eq!(states(&found), [("drift-files", State::Pass), ("drift-plan", State::Unknown)]);
}

#[test]
fn a_kubelet_older_than_its_files_is_found_unless_their_content_is_the_same() {
    let node = Node::new();
    node.run_kubelet(1000);
    assert!(!states(&node.drift()).contains(&("drift-restart", State::Fail)));
    node.write("/etc/systemd/system/kubelet.service.d/9.conf", "[Service]\n", 0o600);
    let found = node.drift();
    assert!(states(&found).contains(&("drift-restart", State::Fail)), "{found:?}");
    let restart = found.iter().find(|finding| finding.id == "drift-restart").unwrap();
    assert!(restart.actual.contains("9.conf") && restart.remedy.contains("systemctl restart"));
    node.run_kubelet(4_000_000_000);
    assert!(!states(&node.drift()).contains(&("drift-restart", State::Fail)));
}

#[test]
fn a_run_that_never_came_to_its_record_is_found() {
    let node = Node::new();
    let record = apply::load_record(&node.root()).unwrap();
    let saved = Generation {
        schema: SCHEMA,
        number: 1,
        instance_id: "i-1".into(),
        record,
        files: [].into(),
    };
    node.write(&Generation::path(1), &String::from_utf8(saved.encode()).unwrap(), 0o600);
    assert!(states(&node.drift()).contains(&("drift-generation", State::Fail)));
}

#[test]
fn a_place_without_a_node_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let eyes = Eyes::on_root(dir.path()).unwrap();
    assert_eq!(Examination::begin(&eyes).err().unwrap().exit(), 5);
    assert_eq!(Eyes::on_root(Path::new("/none/such")).unwrap_err().exit(), 5);
}

#[test]
fn runtime_says_that_nothing_runs_in_a_directory() {
    let node = Node::new();
    let eyes = Eyes::on_root(node.dir.path()).unwrap();
    let known = Known::Not("no config".into());
    let found = Examination::begin(&eyes).unwrap().runtime(&known);
    assert!(states(&found).contains(&("runtime", State::NotApplicable)), "{found:?}");
    assert!(found.iter().all(|finding| finding.family == Family::Runtime));
}

#[test]
fn without_a_client_certificate_the_kubelet_is_not_asked() {
    let node = Node::new();
    node.write(ENVIRONMENT, "NODEADM_KUBELET_ARGS=--config=/c --node-ip=127.0.0.1\n", 0o600);
    node.write("/c", "{}", 0o600);
    let eyes = Eyes::on_root(node.dir.path()).unwrap();
    let mut examination = Examination::begin(&eyes).unwrap();
    let why = examination.judge(&configz::access).err().unwrap();
    assert!(why.contains("client certificate"), "{why}");
}

#[test]
fn what_was_mended_is_not_drift_and_is_mended_once() {
    let node = Node::new();
    let (root, path) = (node.root(), "/etc/kubernetes/kubelet/config.json.d/99-x.conf");
    let lock = Lock::take(&root, Duration::ZERO).unwrap();
    let write = |path: &str, text: &str| tenon_core::checks::mend::Write {
        path: path.into(),
        body: text.as_bytes().to_vec(),
        is_new: true,
        because: String::new(),
    };
    let mending = Mending {
        dresses: [(
            ENVIRONMENT.to_owned(),
            tenon_core::checks::mend::Dress { mode: Some(0o400), to_root: false },
        )]
        .into(),
        writes: vec![write(path, "{}"), write(ENVIRONMENT, "NODEADM_KUBELET_ARGS=--v=2\n")],
        refused: Vec::new(),
    };
    apply::mend(&root, &lock, &mending).unwrap();
    let record = apply::load_record(&root).unwrap().unwrap();
    assert_eq!(record.files[ENVIRONMENT].mode, 0o400);
    let found = node.drift();
    assert!(states(&found).contains(&("drift-files", State::Pass)), "{found:?}");
    let mode = fs::metadata(node.dir.path().join(&path[1..])).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
}

macro_rules! golden {
    ($path:literal) => {
        include_str!(concat!("../../../../golden/plain/expect/", $path))
    };
}

/// Files of the golden node `plain`, with the modes that Tenon gives them.
const COLLECTED: [(&str, u32, &str); 4] = [
    (ENVIRONMENT, 0o600, golden!("etc/eks/kubelet/environment")),
    ("/etc/kubernetes/kubelet/config.json", 0o600, golden!("etc/kubernetes/kubelet/config.json")),
    ("/etc/kubernetes/pki/ca.crt", 0o644, golden!("etc/kubernetes/pki/ca.crt")),
    ("/var/lib/kubelet/kubeconfig", 0o666, "<redacted>"),
];

/// A bundle of those files, as `tenon logs collect` packs one.
fn bundle(path: &Path) {
    let item = |(index, (source, mode, body)): (usize, &(&str, u32, &str))| {
        serde_json::json!({
            "id": index.to_string(), "group": "kubelet", "path": format!("kubelet/{index}"),
            "source": source, "status": "ok", "bytes": body.len(), "originalBytes": body.len(),
            "ms": 0, "redactions": 0,
            "node": {"kind": "file", "mode": mode, "uid": 0, "gid": 0, "size": body.len()},
        })
    };
    let items: Vec<_> = COLLECTED.iter().enumerate().map(item).collect();
    let manifest = serde_json::json!({
        "schema": "tenon.logs/1", "tool": {"version": "", "commit": ""},
        "node": {"instanceId": "i-1", "type": "", "family": "", "arch": "", "kubernetes": "",
                 "bootId": ""},
        "started": "", "elapsedMs": 0, "options": {}, "items": items,
        "totals": {"items": 4, "bytes": 0, "compressedBytes": 0, "redactions": 0},
    });
    let file = fs::File::create(path).unwrap();
    let packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let mut archive = ::tar::Builder::new(packed);
    let mut add = |name: &str, body: &str| {
        let mut header = ::tar::Header::new_ustar();
        header.set_size(body.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, name, body.as_bytes()).unwrap();
    };
    add("manifest.json", &manifest.to_string());
    for (index, (_, _, body)) in COLLECTED.iter().enumerate() {
        add(&format!("kubelet/{index}"), body);
    }
    archive.into_inner().unwrap().finish().unwrap();
}

#[test]
fn a_bundle_is_judged_as_far_as_it_can_tell() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("node.tar.gz");
    bundle(&path);
    let eyes = Eyes::on_bundle(&path).unwrap();
    let mut examination = Examination::begin(&eyes).unwrap();
    let found = examination.cis(Profile::find("eks-1.8").unwrap());
    for (id, state) in [
        ("eks-3.1.1", State::Fail),
        ("eks-3.1.3", State::Pass),
        ("eks-3.2.1", State::Pass),
        ("eks-3.2.3", State::Pass),
        ("extra-parents", State::Unknown),
    ] {
        assert!(states(&found).contains(&(id, state)), "{id} {found:?}");
    }
    let known = known(eyes.root(), Wanted::default()).unwrap();
    let found = examination.drift(&known);
    assert_eq!(states(&found), [("drift-record", State::Unknown)]);
    assert_eq!(states(&known.findings()), [("config", State::Unknown)]);
    assert!(Eyes::on_bundle(Path::new("/none/such")).is_err());
}
