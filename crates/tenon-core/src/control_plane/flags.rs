//! The command line of each component: one table per component, then what depends on the phase,
//! the options and the version, then the user's own flags over all of it.

use std::collections::BTreeMap;

use super::cluster::{Cluster, Component, Etcd, ExternalEtcd, LocalEtcd, Phase, networks};
use super::{API_PORT, BOOTSTRAP_API_PORT, BOOTSTRAP_SECRETS, PKI, audit, encryption};
use crate::kube_version::ETCD_FEATURE_GATES;

/// Flags by name, so that a command line is sorted.
pub(super) type Flags = BTreeMap<String, String>;

/// The controller manager of the bootstrap phase, clear of the final one.
pub(super) const BOOTSTRAP_CONTROLLER_PORT: u16 = 10267;

/// Files of the API server below the PKI directory.
const API_SERVER_FILES: &[(&str, &str)] = &[
    ("client-ca-file", "ca.crt"),
    ("kubelet-client-certificate", "apiserver-kubelet-client.crt"),
    ("kubelet-client-key", "apiserver-kubelet-client.key"),
    ("proxy-client-cert-file", "front-proxy-client.crt"),
    ("proxy-client-key-file", "front-proxy-client.key"),
    ("requestheader-client-ca-file", "front-proxy-ca.crt"),
    ("service-account-key-file", "sa.pub"),
    ("service-account-signing-key-file", "sa.key"),
];

const API_SERVER: &[(&str, &str)] = &[
    ("allow-privileged", "true"),
    ("authorization-mode", "Node,RBAC"),
    ("enable-admission-plugins", "NodeRestriction"),
    ("enable-bootstrap-token-auth", "true"),
    ("kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname"),
    ("requestheader-allowed-names", "front-proxy-client"),
    ("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
    ("requestheader-group-headers", "X-Remote-Group"),
    ("requestheader-username-headers", "X-Remote-User"),
];

const CONTROLLER_MANAGER_FILES: &[(&str, &str)] = &[
    ("client-ca-file", "ca.crt"),
    ("requestheader-client-ca-file", "front-proxy-ca.crt"),
    ("root-ca-file", "ca.crt"),
    ("service-account-private-key-file", "sa.key"),
];

const CONTROLLER_MANAGER: &[(&str, &str)] = &[
    ("bind-address", "127.0.0.1"),
    ("controllers", "*,bootstrapsigner,tokencleaner"),
    ("leader-elect", "true"),
    ("use-service-account-credentials", "true"),
];

const SCHEDULER: &[(&str, &str)] = &[("bind-address", "127.0.0.1"), ("leader-elect", "true")];

/// Files of etcd below `pki/etcd`.
const ETCD_FILES: &[(&str, &str)] = &[
    ("cert-file", "server.crt"),
    ("key-file", "server.key"),
    ("trusted-ca-file", "ca.crt"),
    ("peer-cert-file", "peer.crt"),
    ("peer-key-file", "peer.key"),
    ("peer-trusted-ca-file", "ca.crt"),
];

const ETCD: &[(&str, &str)] =
    &[("client-cert-auth", "true"), ("peer-client-cert-auth", "true"), ("snapshot-count", "10000")];

const AUDIT: &[(&str, &str)] = &[
    ("audit-policy-file", audit::POLICY),
    ("audit-log-path", audit::LOG),
    ("audit-log-maxage", "30"),
    ("audit-log-maxbackup", "10"),
    ("audit-log-maxsize", "100"),
];

const ENCRYPTION: &[(&str, &str)] = &[
    ("encryption-provider-config", encryption::CONFIG),
    ("encryption-provider-config-automatic-reload", "true"),
];

/// The flags of a component in a phase.
pub(super) fn flags(cluster: &Cluster, component: Component, phase: Phase) -> Flags {
    let mut flags = match component {
        Component::Etcd => etcd(cluster),
        Component::ApiServer => api_server(cluster, phase),
        Component::ControllerManager => controller_manager(cluster, phase),
        Component::Scheduler => client("scheduler.conf", SCHEDULER),
    };
    for (name, value) in cluster.extra_args.get(&component).into_iter().flatten() {
        if value.is_empty() {
            flags.remove(name);
        } else {
            flags.insert(name.clone(), value.clone());
        }
    }
    flags
}

/// The command line: the program, then its flags.
pub(super) fn command(component: Component, flags: &Flags) -> Vec<String> {
    let words = flags.iter().map(|(name, value)| format!("--{name}={value}"));
    std::iter::once(component.name().to_owned()).chain(words).collect()
}

fn add(flags: &mut Flags, rows: &[(&str, &str)]) {
    flags.extend(rows.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
}

fn add_files(flags: &mut Flags, directory: &str, rows: &[(&str, &str)]) {
    let path = |file: &str| format!("{directory}/{file}");
    flags.extend(rows.iter().map(|(name, file)| ((*name).to_owned(), path(file))));
}

fn set(flags: &mut Flags, name: &str, value: impl Into<String>) {
    flags.insert(name.to_owned(), value.into());
}

fn api_server(cluster: &Cluster, phase: Phase) -> Flags {
    let mut flags = Flags::new();
    add(&mut flags, API_SERVER);
    add_files(&mut flags, PKI, API_SERVER_FILES);
    set(&mut flags, "advertise-address", cluster.advertise_address.to_string());
    set(&mut flags, "service-cluster-ip-range", networks(&cluster.service_cidrs));
    let issuer = format!("https://kubernetes.default.svc.{}", cluster.dns_domain);
    set(&mut flags, "service-account-issuer", issuer);
    if cluster.authorization_config.is_some() {
        flags.remove("authorization-mode");
    }
    flags.extend(options(cluster));
    add_etcd_client(&mut flags, cluster);
    add_listener(&mut flags, phase);
    flags
}

/// Flags of the API server that follow from options which kubeadm does not have; it must be told
/// of them, or its next upgrade would drop them.
pub(super) fn options(cluster: &Cluster) -> Flags {
    let mut flags = Flags::new();
    if let Some(file) = &cluster.authorization_config {
        set(&mut flags, "authorization-config", file);
    }
    if cluster.audit.policy().is_some() {
        add(&mut flags, AUDIT);
    }
    if cluster.encryption.is_on() {
        add(&mut flags, ENCRYPTION);
    }
    flags
}

/// How the API server reaches its data.
fn add_etcd_client(flags: &mut Flags, cluster: &Cluster) {
    let (servers, ca, cert, key) = match &cluster.etcd {
        Etcd::Local(_) => (
            Cluster::url(cluster.loopback(), 2379),
            format!("{PKI}/etcd/ca.crt"),
            format!("{PKI}/apiserver-etcd-client.crt"),
            format!("{PKI}/apiserver-etcd-client.key"),
        ),
        Etcd::External(ExternalEtcd { endpoints, ca_file, cert_file, key_file }) => {
            (endpoints.join(","), ca_file.clone(), cert_file.clone(), key_file.clone())
        }
    };
    set(flags, "etcd-servers", servers);
    set(flags, "etcd-cafile", ca);
    set(flags, "etcd-certfile", cert);
    set(flags, "etcd-keyfile", key);
}

/// Where the API server listens, and with which certificate.
fn add_listener(flags: &mut Flags, phase: Phase) {
    let files = [("tls-cert-file", "apiserver.crt"), ("tls-private-key-file", "apiserver.key")];
    match phase {
        Phase::Final => {
            set(flags, "secure-port", API_PORT.to_string());
            add_files(flags, PKI, &files);
        }
        Phase::Bootstrap => {
            set(flags, "bind-address", "127.0.0.1");
            set(flags, "secure-port", BOOTSTRAP_API_PORT.to_string());
            // It must never be an endpoint of the `kubernetes` Service.
            set(flags, "endpoint-reconciler-type", "none");
            add_files(flags, BOOTSTRAP_SECRETS, &files);
        }
    }
}

/// Flags of a component that is a client of the API.
fn client(kubeconfig: &str, rows: &[(&str, &str)]) -> Flags {
    client_at(&format!("/etc/kubernetes/{kubeconfig}"), rows)
}

fn client_at(kubeconfig: &str, rows: &[(&str, &str)]) -> Flags {
    let mut flags = Flags::new();
    add(&mut flags, rows);
    for name in ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"] {
        set(&mut flags, name, kubeconfig);
    }
    flags
}

fn controller_manager(cluster: &Cluster, phase: Phase) -> Flags {
    let kubeconfig = "controller-manager.conf";
    let mut flags = match phase {
        Phase::Final => client(kubeconfig, CONTROLLER_MANAGER),
        Phase::Bootstrap => {
            client_at(&format!("{BOOTSTRAP_SECRETS}/{kubeconfig}"), CONTROLLER_MANAGER)
        }
    };
    add_files(&mut flags, PKI, CONTROLLER_MANAGER_FILES);
    set(&mut flags, "cluster-name", &cluster.name);
    if phase == Phase::Bootstrap {
        set(&mut flags, "secure-port", BOOTSTRAP_CONTROLLER_PORT.to_string());
    }
    // Without its key a CA certificate is of no use here: an outside signer does the work.
    if cluster.signs_certificates {
        let files =
            [("cluster-signing-cert-file", "ca.crt"), ("cluster-signing-key-file", "ca.key")];
        add_files(&mut flags, PKI, &files);
    }
    if !cluster.pod_cidrs.is_empty() {
        set(&mut flags, "allocate-node-cidrs", "true");
        set(&mut flags, "cluster-cidr", networks(&cluster.pod_cidrs));
        set(&mut flags, "service-cluster-ip-range", networks(&cluster.service_cidrs));
    }
    flags
}

fn etcd(cluster: &Cluster) -> Flags {
    let Etcd::Local(LocalEtcd { version, data_dir, token, .. }) = &cluster.etcd else {
        return Flags::new();
    };
    let mut flags = Flags::new();
    add(&mut flags, ETCD);
    add_files(&mut flags, &format!("{PKI}/etcd"), ETCD_FILES);
    let (client, peer) = (
        Cluster::url(cluster.advertise_address, 2379),
        Cluster::url(cluster.advertise_address, 2380),
    );
    set(&mut flags, "name", &cluster.node_name);
    set(&mut flags, "data-dir", data_dir);
    set(&mut flags, "initial-cluster-token", token);
    set(&mut flags, "initial-cluster", format!("{}={peer}", cluster.node_name));
    set(
        &mut flags,
        "listen-client-urls",
        format!("{},{client}", Cluster::url(cluster.loopback(), 2379)),
    );
    set(&mut flags, "listen-metrics-urls", cluster.etcd_metrics_url());
    set(&mut flags, "advertise-client-urls", client);
    set(&mut flags, "listen-peer-urls", peer.clone());
    set(&mut flags, "initial-advertise-peer-urls", peer);
    if ETCD_FEATURE_GATES.is_open(*version) {
        add(
            &mut flags,
            &[
                ("feature-gates", "InitialCorruptCheck=true"),
                ("watch-progress-notify-interval", "5s"),
            ],
        );
    } else {
        add(
            &mut flags,
            &[
                ("experimental-initial-corrupt-check", "true"),
                ("experimental-watch-progress-notify-interval", "5s"),
            ],
        );
    }
    flags
}
