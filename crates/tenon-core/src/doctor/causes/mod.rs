//! Every cause, one file each: mostly data. Texts and checks that several of them use stand here.

use super::check::{Check, Evidence, Found};
use super::judge::Cause;
use super::network;
use super::signal::{Log, Signal};
use super::snapshot::{Reach, Tcp, Trust};
use super::step::Step;
use super::view::View;

/// Declares the files and their list.
macro_rules! causes {
    ($($file:literal $name:ident),* $(,)?) => {
        $(#[path = $file] mod $name;)*
        /// Every cause, by number.
        pub static ALL: &[&Cause] = &[$(&$name::CAUSE),*];
    };
}

causes! {
    "01_no_access.rs" no_access,
    "02_wrong_groups.rs" wrong_groups,
    "03_node_name.rs" node_name,
    "04_no_private_dns.rs" no_private_dns,
    "05_cluster_name.rs" cluster_name,
    "06_wrong_endpoint.rs" wrong_endpoint,
    "07_wrong_ca.rs" wrong_ca,
    "08_api_unreachable.rs" api_unreachable,
    "09_dns.rs" dns,
    "10_services_unreachable.rs" services_unreachable,
    "11_no_profile.rs" no_profile,
    "12_missing_policy.rs" missing_policy,
    "13_sts_region.rs" sts_region,
    "14_metadata.rs" metadata,
    "15_clock.rs" clock,
    "16_proxy.rs" proxy,
    "17_user_data.rs" user_data,
    "18_units.rs" units,
    "19_boot_script.rs" boot_script,
    "20_kubelet_config.rs" kubelet_config,
    "21_kernel_defaults.rs" kernel_defaults,
    "22_containerd.rs" containerd,
    "23_pause_image.rs" pause_image,
    "24_swap.rs" swap,
    "25_cgroup_v1.rs" cgroup_v1,
    "26_cni.rs" cni,
    "27_subnet_full.rs" subnet_full,
    "28_version_skew.rs" version_skew,
    "29_certificates.rs" certificates,
    "30_selinux.rs" selinux,
    "31_hardening.rs" hardening,
    "32_fips.rs" fips,
    "33_throttled.rs" throttled,
    "34_disk_full.rs" disk_full,
    "35_links.rs" links,
    "36_architecture.rs" architecture,
    "37_node_object.rs" node_object,
    "38_ownership_tag.rs" ownership_tag,
    "39_ip_family.rs" ip_family,
    "40_going_away.rs" going_away,
    "41_api_overloaded.rs" api_overloaded,
    "42_intercepted.rs" intercepted,
    "43_port_taken.rs" port_taken,
}

const NODE_STATUS: &str = "kubernetes pkg/kubelet/kubelet_node_status.go";
const GO_NET: &str = "go src/net/net.go";
const GO_X509: &str = "go src/crypto/x509/verify.go";
const ERRORS: &str = "kubernetes staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go";
const CAPS: &str =
    "kubernetes staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go";

/// What a kubelet says whenever it cannot talk to the API server, whatever the reason.
const SYMPTOMS: &[Signal] = &[
    Signal::confirmed(
        Log::Kubelet,
        &["Failed to ensure lease exists, will retry"],
        "kubernetes staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go",
    ),
    Signal::confirmed(Log::Kubelet, &["Unable to register node with API server"], NODE_STATUS),
];

/// The manager starts a unit again that did not stay up.
const SYSTEMD_RESTART: Signal = Signal::confirmed(
    Log::Manager,
    &["kubelet.service", "Scheduled restart job"],
    "systemd src/core/service.c",
);

/// The kubelet dies again and again.
const RESTARTS: Check =
    Check::supports("kubelet-restarts", |view| restarts(view, "kubelet.service"));

/// A unit that its manager restarts or has given up on.
fn restarts(view: &View, name: &str) -> Found {
    let Some(unit) = view.unit(name) else {
        return Found::Unknown("the unit's state is not known");
    };
    let words = match unit.restarts {
        0 => unit.active.clone(),
        count => format!("{}, restarted {count} times", unit.active),
    };
    let dying = unit.active == "failed" || unit.restarts > 3 || unit.sub == "auto-restart";
    if dying { Found::fail(Evidence::unit(name, words)) } else { Found::Pass }
}

/// The request with the kubelet's own credentials was not accepted, although it arrived.
fn is_unauthorized(view: &View) -> bool {
    let probes = &view.node.probes;
    probes.authenticated.as_ref().is_some_and(|access| access.status == 401)
        && probes.credentials.as_ref().is_none_or(|credentials| credentials.usable)
}

/// The kubelet authenticates with a client certificate, not with a role.
fn has_certificate(view: &View) -> bool {
    let user = &view.kubeconfig["users"][0]["user"];
    user["client-certificate"].is_string() || user["client-certificate-data"].is_string()
}

/// Another cluster's name in the token than on the instance.
fn other_cluster(view: &View) -> Option<Evidence> {
    let used = view.cluster_name()?;
    let tags = view.node.probes.metadata.as_ref()?.tags.as_ref()?;
    let owned: Vec<_> =
        tags.iter().filter_map(|tag| tag.strip_prefix("kubernetes.io/cluster/")).collect();
    let differs = !owned.is_empty() && !owned.contains(&used);
    differs.then(|| {
        let names = owned.join(", ");
        Evidence::metadata(format!("the instance is tagged for {names}, the token is for {used}"))
            .fix(format!("set `spec.cluster.name` to {names}"))
    })
}

/// The state of a connection in words.
fn words(reach: &Reach) -> String {
    let tcp = match reach.tcp {
        Tcp::Connected => "connected",
        Tcp::Refused => "refused",
        Tcp::Reset => "reset",
        Tcp::Timeout => "no answer",
        Tcp::Unreachable => "no route",
        Tcp::NoAddress => "the name has no address",
        Tcp::ProxyRefused => "the proxy does not open the tunnel",
    };
    if reach.detail.is_empty() { tcp.to_owned() } else { format!("{tcp}: {}", reach.detail) }
}

/// A service of the cloud presents a certificate that nobody here trusts.
fn untrusted_service<'a>(view: &'a View) -> Option<(&'a str, &'a Reach)> {
    let services = view.node.probes.services.iter();
    let mut bad = services.filter(|(_, reach)| reach.trust == Some(Trust::UnknownAuthority));
    bad.next().map(|(name, reach)| (name.as_str(), reach))
}

/// The issuer at the end of a presented chain.
fn issuer(reach: &Reach) -> &str {
    reach.chain.last().map_or("unknown", |certificate| certificate.issuer.as_str())
}

/// True when every service of the cloud that was asked for has no address either.
fn nothing_resolves(view: &View) -> bool {
    let services = &view.node.probes.services;
    !services.is_empty() && services.values().all(|reach| reach.tcp == Tcp::NoAddress)
}

/// The API server answers on this machine, so the way to it works.
fn api_connects(view: &View) -> bool {
    network::passed(view).is_some_and(|step| step >= Step::Tcp)
}

/// True when the bootstrap has not written what the kubelet starts with. The image's own unit
/// may bring flags. What may not be read is not missing.
fn is_unconfigured(view: &View) -> bool {
    view.kubeconfig.is_null() && view.kubelet.is_null() && !view.hides_settings()
}
