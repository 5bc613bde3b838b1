//! The checked tree becomes the [`Machine`]: defaults and types.

use ipnet::IpNet;

use super::{
    Assets, BootstrapPhase, Cluster, ControlPlane, Encryption, ExternalEtcd, ExtraArgs, Images,
    Kubelet, Machine, Node, Os, Pki, Retire, Role, Runtime, Token,
};
use crate::bootstrap_token::discovery::CaHash;
use crate::config::Taint;
use crate::config::build::{View, proxy};
use crate::config::grammar;
use crate::secret::Secret;

/// Builds the machine from a checked tree; defaults stand in for what is not set.
pub fn build(spec: View<'_>) -> Machine {
    let starts = spec.at("role").text() == Role::FirstMaster.word();
    let role = if starts { Role::FirstMaster } else { Role::Worker };
    let kubelet = spec.at("kubelet");
    let runtime = spec.at("runtime");
    let token = spec.at("bootstrapToken");
    let or = |view: View<'_>, default: &str| view.non_empty().unwrap_or_else(|| default.into());
    Machine {
        role,
        cluster: cluster(spec.at("cluster")),
        node: node(spec.at("node")),
        kubelet: Kubelet {
            config: kubelet.at("config").object(),
            extra_args: kubelet.at("extraArgs").texts(),
            fail_cgroup_v1: kubelet.at("failCgroupV1").bool(),
        },
        runtime: Runtime {
            sysext: runtime.at("source").text() == "sysext",
            mappings: or(runtime.at("mappings"), "/etc/tenon/runtime-mappings.yaml"),
            catalogue: or(runtime.at("catalogue"), "/etc/tenon/extension-catalogue.yaml"),
        },
        token: token.at("token").non_empty().map(|text| Token {
            token: Secret::new(text),
            ttl_hours: token.at("ttlHours").number().unwrap_or(24),
        }),
        assets: assets(spec.at("assets")),
        os: os(spec.at("os")),
        control_plane: control_plane(spec.at("controlPlane")),
        pki: pki(spec.at("pki")),
        force_addons: spec.at("addons").at("force").bool_or(false),
        proxy: proxy(spec.at("proxy")),
        time_servers: spec.at("timeServers").texts(),
        ca_certificates: spec
            .at("caCertificates")
            .items()
            .filter_map(|view| grammar::decode_ca(view.text()))
            .collect(),
    }
}

fn cluster(view: View<'_>) -> Cluster {
    let cidrs = |name: &str| -> Vec<IpNet> {
        view.at(name).items().filter_map(|item| grammar::cidr(item.text())).collect()
    };
    let mut service_cidrs = cidrs("serviceCidrs");
    if service_cidrs.is_empty() {
        service_cidrs.extend(grammar::cidr("10.96.0.0/12"));
    }
    let version = view.at("kubernetesVersion").text();
    Cluster {
        name: view.at("name").owned(),
        id: view.at("id").non_empty().unwrap_or_else(|| view.at("name").owned()),
        endpoint: grammar::endpoint(view.at("endpoint").text()).to_owned(),
        certificate_authority: grammar::decode_ca(view.at("certificateAuthority").text())
            .unwrap_or_default(),
        ca_hash: CaHash::parse(view.at("caHash").text()).ok(),
        service_cidrs,
        pod_cidrs: cidrs("podCidrs"),
        dns_domain: view.at("dnsDomain").non_empty().unwrap_or_else(|| "cluster.local".into()),
        kubernetes_version: format!("v{}", version.trim_start_matches('v')),
    }
}

fn node(view: View<'_>) -> Node {
    let taint = |taint: View<'_>| Taint {
        key: taint.at("key").owned(),
        value: taint.at("value").owned(),
        effect: taint.at("effect").owned(),
    };
    Node {
        name: view.at("name").non_empty(),
        ip: view.at("ip").text().parse().ok(),
        labels: view.at("labels").text_map(),
        taints: view.at("taints").items().map(taint).collect(),
    }
}

fn assets(view: View<'_>) -> Assets {
    let endpoint = view.at("endpoint").non_empty();
    Assets {
        source: view.at("source").non_empty().unwrap_or_else(|| "none".into()),
        digest: view.at("digest").non_empty(),
        retire: match view.at("retire").text() {
            "truncate" => Retire::Truncate,
            "delete" => Retire::Delete,
            _ => Retire::Keep,
        },
        path_style: view.at("pathStyle").bool_or(endpoint.is_some()),
        endpoint,
        region: view.at("region").non_empty(),
        credentials_file: view.at("credentialsFile").non_empty(),
    }
}

fn os(view: View<'_>) -> Os {
    Os {
        update_engine: view.at("update").at("provider").text() == "update-engine",
        proceed_on_mismatch: view.at("update").at("onMismatch").text() == "proceed",
        updates_after: view.at("updates").at("afterBootstrap").text() == "os-default",
    }
}

fn control_plane(view: View<'_>) -> ControlPlane {
    let or = |view: View<'_>, default: &str| view.non_empty().unwrap_or_else(|| default.into());
    let etcd = view.at("etcd");
    let encryption = view.at("encryption");
    let mut resources = encryption.at("resources").texts();
    if resources.is_empty() {
        resources.push("secrets".into());
    }
    let images = view.at("images");
    let extra = |name: &str| view.at("extraArgs").at(name).text_map();
    ControlPlane {
        advertise_address: view.at("advertiseAddress").text().parse().ok(),
        extra_sans: view.at("extraSans").texts(),
        bootstrap_phase: match view.at("bootstrapPhase").text() {
            "loopback" => BootstrapPhase::Loopback,
            "direct" => BootstrapPhase::Direct,
            _ => BootstrapPhase::Auto,
        },
        etcd_data_dir: or(etcd.at("dataDir"), "/var/lib/etcd"),
        etcd_extra_sans: etcd.at("extraSans").texts(),
        external_etcd: external_etcd(etcd.at("external")),
        encryption: Encryption {
            provider: or(encryption.at("provider"), "secretbox"),
            resources,
            kms_endpoint: encryption.at("kmsEndpoint").non_empty(),
        },
        audit: or(view.at("audit"), "metadata"),
        images: Images {
            repository: or(images.at("repository"), "registry.k8s.io"),
            etcd_tag: images.at("etcdTag").non_empty(),
            digests: images.at("digests").text_map(),
        },
        extra_args: ExtraArgs {
            api_server: extra("apiServer"),
            controller_manager: extra("controllerManager"),
            scheduler: extra("scheduler"),
            etcd: extra("etcd"),
        },
        authorization_config: view.at("authorizationConfig").non_empty(),
        patches: view.at("patches").non_empty(),
    }
}

fn external_etcd(view: View<'_>) -> Option<ExternalEtcd> {
    let endpoints = view.at("endpoints").texts();
    (!endpoints.is_empty()).then(|| ExternalEtcd {
        endpoints,
        ca_file: view.at("caFile").owned(),
        cert_file: view.at("certFile").owned(),
        key_file: view.at("keyFile").owned(),
    })
}

fn pki(view: View<'_>) -> Pki {
    Pki {
        algorithm: view.at("algorithm").non_empty().unwrap_or_else(|| "ecdsa-p256".into()),
        ca_days: view.at("caDays").number().unwrap_or(3650),
        leaf_days: view.at("leafDays").number().unwrap_or(365),
        service_account_key: view.at("serviceAccountKey").non_empty(),
        csr_directory: view.at("csrDirectory").non_empty(),
    }
}
