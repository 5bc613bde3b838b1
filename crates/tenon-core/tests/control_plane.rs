//! Goldens of control planes: one file per minor version, and per option what differs from it.
//!
//! `cargo xtask bless` writes `tests/control-plane/` anew. The difference is read line by line.

#![expect(clippy::disallowed_methods, reason = "the harness reads and writes the golden files")]
#![expect(clippy::unwrap_used, reason = "a harness that cannot read its cases has nothing to say")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tenon_core::control_plane::audit::Audit;
use tenon_core::control_plane::cluster::{ExternalEtcd, LocalEtcd};
use tenon_core::control_plane::encryption::{Encryption, Provider};
use tenon_core::control_plane::objects::{BootstrapToken, objects};
use tenon_core::control_plane::patch::Patch;
use tenon_core::control_plane::{Cluster, Component, Etcd, Phase, files, manifests, patch};
use tenon_core::kube_version::{RELEASES, Version};
use tenon_core::secret::Secret;
use tenon_core::yaml;

fn cluster(minor: u32) -> Cluster {
    let release = RELEASES.iter().find(|release| release.minor == minor).unwrap();
    Cluster {
        name: "lab".into(),
        version: Version::new(1, minor, 2),
        node_name: "cp-1".into(),
        advertise_address: "10.0.0.4".parse().unwrap(),
        endpoint: "api.example:6443".into(),
        service_cidrs: vec!["10.96.0.0/16".parse().unwrap()],
        pod_cidrs: vec!["10.244.0.0/16".parse().unwrap()],
        dns_domain: "cluster.local".into(),
        image_repository: "registry.k8s.io".into(),
        images: BTreeMap::new(),
        etcd: Etcd::Local(LocalEtcd {
            version: Version::parse(release.etcd).unwrap(),
            tag: release.etcd.into(),
            data_dir: "/var/lib/etcd".into(),
            token: "lab-0123".into(),
        }),
        encryption: Encryption::secretbox(),
        audit: Audit::Metadata,
        authorization_config: None,
        signs_certificates: true,
        extra_args: BTreeMap::new(),
        proxy: BTreeMap::new(),
        ca_directories: Vec::new(),
    }
}

/// A change of the plain cluster of 1.34.
type Option_ = (&'static str, fn(&mut Cluster));

const OPTIONS: &[Option_] = &[
    ("ipv6", |cluster| {
        cluster.advertise_address = "fd00::4".parse().unwrap();
        cluster.endpoint = "[fd00::4]:6443".into();
        cluster.service_cidrs = vec!["fd00:1::/108".parse().unwrap()];
        cluster.pod_cidrs = vec!["fd00:2::/56".parse().unwrap()];
    }),
    ("dual-stack-without-pod-ranges", |cluster| {
        cluster.service_cidrs.push("fd00:1::/108".parse().unwrap());
        cluster.pod_cidrs.clear();
    }),
    ("external-etcd", |cluster| {
        cluster.etcd = Etcd::External(ExternalEtcd {
            endpoints: vec!["https://e1:2379".into(), "https://e2:2379".into()],
            ca_file: "/etc/etcd/ca.crt".into(),
            cert_file: "/etc/kubernetes/pki/apiserver-etcd-client.crt".into(),
            key_file: "/etc/kubernetes/pki/apiserver-etcd-client.key".into(),
        });
    }),
    ("etcd-3.5", |cluster| {
        let Etcd::Local(etcd) = &mut cluster.etcd else { unreachable!() };
        (etcd.version, etcd.tag) = (Version::new(3, 5, 16), "3.5.16-0".into());
    }),
    ("no-encryption-no-audit", |cluster| {
        cluster.encryption = Encryption::none();
        cluster.audit = Audit::None;
    }),
    ("aescbc-and-own-policy", |cluster| {
        let resources = vec!["secrets".into(), "configmaps".into()];
        cluster.encryption = Encryption { provider: Provider::AesCbc, resources };
        cluster.audit = Audit::Policy("kind: Policy\n".into());
    }),
    ("kms", |cluster| {
        cluster.encryption.provider = Provider::KmsV2 { endpoint: "unix:///run/kms/socket".into() };
    }),
    ("extra-args", |cluster| {
        let flag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let api =
            [flag("v", "4"), flag("enable-admission-plugins", "X"), flag("kubelet-client-key", "")];
        cluster.extra_args.insert(Component::ApiServer, api.into());
        cluster.extra_args.insert(Component::Etcd, [flag("quota-backend-bytes", "8")].into());
    }),
    ("mirror-and-digest", |cluster| {
        cluster.image_repository = "mirror.corp/k8s".into();
        cluster.images.insert(Component::Scheduler, "mirror.corp/s@sha256:00".into());
    }),
    ("proxy-and-trust", |cluster| {
        cluster.proxy.insert("HTTPS_PROXY".into(), "http://proxy.corp:3128".into());
        cluster.ca_directories = vec!["/usr/share/ca-certificates".into()];
    }),
    ("authorization-config", |cluster| {
        cluster.authorization_config = Some("/etc/kubernetes/authorization.yaml".into());
    }),
    ("external-ca", |cluster| cluster.signs_certificates = false),
];

/// Every file and object of a cluster, by name.
fn parts(cluster: &Cluster, patches: &[Patch]) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    for file in files(cluster, patches, Some(&[7; 32])).unwrap() {
        parts.insert(format!("{} {:o}", file.path, file.mode), file.body);
    }
    for manifest in manifests(cluster, Phase::Bootstrap, patches).unwrap() {
        let file = manifest.file();
        parts.insert(format!("{} {:o}", file.path, file.mode), file.body);
    }
    let token = BootstrapToken {
        id: "abcdef".into(),
        secret: Secret::new("0123456789abcdef"),
        expiration: "2026-11-16T18:00:00Z".into(),
    };
    for (number, object) in objects(cluster, "PEM\n", Some(&token)).iter().enumerate() {
        parts.insert(format!("object {:02}", number + 1), yaml::emit(object));
    }
    parts
}

fn text(parts: &BTreeMap<String, String>) -> String {
    parts.iter().map(|(name, body)| format!("# {name}\n{body}---\n")).collect()
}

fn compare(name: &str, found: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane").join(name);
    if std::env::var("TENON_BLESS").is_ok() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, found).unwrap();
        return None;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    let line = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    (found != expected).then(|| format!("{name}: {line:?}"))
}

#[test]
fn every_minor_gives_its_files() {
    let differing: Vec<String> = RELEASES
        .iter()
        .filter_map(|release| {
            let parts = parts(&cluster(release.minor), &[]);
            compare(&format!("1.{}.yaml", release.minor), &text(&parts))
        })
        .collect();
    assert!(differing.is_empty(), "{differing:#?} (`cargo xtask bless` accepts)");
}

#[test]
fn every_option_changes_what_it_should() {
    let plain = parts(&cluster(34), &[]);
    let mut differing = Vec::new();
    for (name, change) in OPTIONS {
        let mut cluster = cluster(34);
        change(&mut cluster);
        let mut parts = parts(&cluster, &[]);
        let gone: Vec<_> = plain.keys().filter(|name| !parts.contains_key(*name)).collect();
        let gone: String = gone.iter().map(|name| format!("# {name} is gone\n")).collect();
        parts.retain(|name, body| plain.get(name) != Some(body));
        assert!(!parts.is_empty(), "{name} changes nothing");
        differing.extend(compare(&format!("{name}.yaml"), &(gone + &text(&parts))));
    }
    assert!(differing.is_empty(), "{differing:#?} (`cargo xtask bless` accepts)");
}

#[test]
fn a_patch_changes_its_component_alone() {
    let body = "metadata: {annotations: {team: web}}\nspec: {containers: [{name: kube-apiserver, resources: {requests: {cpu: 500m}}}]}\n";
    let patches = patch::read("kube-apiserver0+strategic.yaml", body).unwrap();
    let (plain, patched) = (parts(&cluster(34), &[]), parts(&cluster(34), &patches));
    let differing: Vec<_> =
        plain.iter().filter(|(name, body)| patched.get(*name) != Some(body)).collect();
    let names: Vec<_> = differing.iter().map(|(name, _)| name.as_str()).collect();
    let path = |name: &str| format!("/etc/kubernetes/manifests/{name}.yaml 600");
    assert_eq!(names, [path("bootstrap-kube-apiserver"), path("kube-apiserver")]);
    let text = &patched[names[1]];
    for line in [
        "    team: web",
        "          cpu: \"500m\"",
        "        - kube-apiserver",
        "  hostNetwork: true",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}
