//! The field table of `kind: MachineConfig`, read by the same machinery as a node's config.

use crate::config::fields::{TAINT, bool, choice, items, object, text, texts};
use crate::config::grammar::Grammar as G;
use crate::config::schema::{Field, Free, Merge, Shape};

const fn int(name: &'static str, low: i64, high: i64, doc: &'static str) -> Field {
    Field::new(name, Shape::Int(low, high), doc)
}

const fn arguments(name: &'static str, doc: &'static str) -> Field {
    Field::new(name, Shape::Map(G::FlagName, &Shape::Text(G::Argument)), doc)
}

/// The words of `spec.role`.
pub const ROLES: &[&str] = &["first-master", "master", "control-plane", "worker", "etcd"];

/// The top of a document.
pub const DOCUMENT: &[Field] = &[
    choice("apiVersion", &["tenon.dev/v1alpha1"], "The one API group.")
        .example("apiVersion: tenon.dev/v1alpha1"),
    choice("kind", &["MachineConfig"], "Always `MachineConfig`.").example("kind: MachineConfig"),
    Field::new("metadata", Shape::Free(Free::Anything), "Names and annotations; unused.")
        .merge(Merge::KeysNonEmpty)
        .example("metadata: {name: cp-1}"),
    object("spec", SPEC, "What this machine shall become, stage by stage."),
];

const SPEC: &[Field] = &[
    choice("role", ROLES, "What the machine is: exactly one machine of a cluster is `first-master`. `master` (or `control-plane`) and `etcd` are refused by this version.")
        .required()
        .example("role: worker"),
    object("cluster", CLUSTER, "The cluster that the machine starts or joins."),
    object("node", NODE, "The Node object."),
    object("kubelet", KUBELET, "The kubelet."),
    object("runtime", RUNTIME, "Where the container runtime comes from."),
    object("bootstrapToken", TOKEN, "The token that a joining machine introduces itself with."),
    object("assets", ASSETS, "The bundle of cluster files and where it comes from."),
    object("os", OS, "The operating system and its updates."),
    object("controlPlane", CONTROL_PLANE, "The control plane, on machines that run one."),
    object("pki", PKI, "Certificates that Tenon makes."),
    object("addons", ADDONS, "Objects applied at the end."),
    object("proxy", PROXY, "Proxy of every service on the machine."),
    texts("timeServers", G::HostName, "Time servers of systemd-timesyncd.").example("timeServers: [ntp.corp.example]"),
    texts("caCertificates", G::CaBundle, "More CA certificates that the machine trusts: base64 of PEM.").example("caCertificates: [LS0tLS1CRUdJTi…]"),
];

const CLUSTER: &[Field] = &[
    text("name", G::ClusterName, "Name of the cluster.").required().example("name: prod"),
    text("id", G::ClusterId, "Id that bundles and claims carry.").default("the name").example("id: prod-7f3a"),
    text("endpoint", G::Endpoint, "URL under which every machine reaches the API servers.")
        .required()
        .example("endpoint: https://api.prod.example:6443"),
    text("certificateAuthority", G::CaBundle, "CA of the API server: base64 of PEM. A joining machine needs it: here, as pki/ca.crt of its bundle, or by its hash.")
        .example("certificateAuthority: LS0tLS1CRUdJTi…"),
    text("caHash", G::Sha256, "Hash of that CA's public key, instead of the CA: the machine then finds the cluster with its token.")
        .example("caHash: \"sha256:0f2e…\""),
    texts("serviceCidrs", G::Cidr, "Service ranges, one per address family; the tenth address of each is the cluster's DNS.")
        .default("[10.96.0.0/12]")
        .example("serviceCidrs: [10.96.0.0/12]"),
    texts("podCidrs", G::Cidr, "Pod ranges; when set, every node is given a part of them.").example("podCidrs: [10.244.0.0/16]"),
    text("dnsDomain", G::HostName, "Domain of the cluster.").default("cluster.local").example("dnsDomain: cluster.local"),
    text("kubernetesVersion", G::KubeVersion, "Version where no API server can be asked: the first master, and the fallback of the others.")
        .required()
        .example("kubernetesVersion: v1.34.2"),
];

const NODE: &[Field] = &[
    text("name", G::HostName, "Name of the Node.")
        .default("the host name of the machine")
        .example("name: cp-1"),
    text("ip", G::Address, "Address of the Node.")
        .default("the source address of the default route")
        .example("ip: 10.0.0.4"),
    Field::new(
        "labels",
        Shape::Map(G::LabelKey, &Shape::Text(G::LabelValue)),
        "Labels that the kubelet registers with.",
    )
    .example("labels: {team: web}"),
    items("taints", TAINT, &["key", "effect"], "Taints that the kubelet registers with.")
        .example("taints: [{key: dedicated, value: gpu, effect: NoSchedule}]"),
];

const KUBELET: &[Field] = &[
    Field::new(
        "config",
        Shape::Free(Free::Kubelet),
        "KubeletConfiguration fields, laid over Tenon's own.",
    )
    .example("config: {shutdownGracePeriod: 30s}"),
    texts("extraArgs", G::Flag, "Command line flags of the kubelet, placed last.")
        .example("extraArgs: [--v=2]"),
    bool("failCgroupV1", "Whether the kubelet refuses cgroup v1.")
        .default("the kubelet's own: true from 1.35 on")
        .example("failCgroupV1: false"),
];

const RUNTIME: &[Field] = &[
    choice("source", &["host", "sysext"], "`host`: containerd of the operating system, its version is only checked; `sysext`: installed as a system extension.")
        .default("host")
        .example("source: sysext"),
    text("mappings", G::FilePath, "RuntimeMappings document on the machine.").default("/etc/tenon/runtime-mappings.yaml").example("mappings: /etc/tenon/runtime-mappings.yaml"),
    text("catalogue", G::FilePath, "ExtensionCatalogue document on the machine.").default("/etc/tenon/extension-catalogue.yaml").example("catalogue: /etc/tenon/extension-catalogue.yaml"),
];

const TOKEN: &[Field] = &[
    text("token", G::BootstrapToken, "The token.")
        .sensitive()
        .example("token: abcdef.0123456789abcdef"),
    int("ttlHours", 1, 8760, "How long the token lives; in user data at most 24.")
        .default("24")
        .example("ttlHours: 8"),
];

const ASSETS: &[Field] = &[
    text(
        "source",
        G::AssetSource,
        "Where the bundle comes from; `push`: an installer copies it to /var/lib/tenon/incoming.",
    )
    .default("none")
    .example("source: s3://clusters/prod/bundle.tar.gz"),
    text("digest", G::Sha256, "Digest of the bundle's bundle.json; network sources need it.")
        .example("digest: \"sha256:9c1d…\""),
    text("key", G::Argument, "minisign public key; see ADR 0024.").example("key: RWQ…"),
    choice(
        "retire",
        &["keep", "truncate", "delete"],
        "What the cleanup does with the remote object.",
    )
    .default("keep")
    .example("retire: truncate"),
    text("endpoint", G::MirrorUrl, "Address of an S3-compatible store.")
        .default("AWS, by region")
        .example("endpoint: https://minio.corp.example:9000"),
    text("region", G::ClusterId, "Region that requests are signed for.")
        .default("AWS_REGION, else the metadata service's")
        .example("region: eu-west-1"),
    bool("pathStyle", "Address objects as ENDPOINT/BUCKET/KEY.")
        .default("true with `endpoint`")
        .example("pathStyle: true"),
    text(
        "credentialsFile",
        G::FilePath,
        "File with aws_access_key_id and aws_secret_access_key lines.",
    )
    .default("AWS_* variables, else the instance role")
    .example("credentialsFile: /etc/tenon/s3-credentials"),
];

const OS: &[Field] = &[
    object("update", OS_UPDATE, "The update before the node joins."),
    object("updates", OS_UPDATES, "Updates afterwards."),
];

const OS_UPDATE: &[Field] = &[
    choice(
        "provider",
        &["none", "update-engine", "rpm-ostree"],
        "Who updates the OS; `none` only reads a pending update.",
    )
    .default("none")
    .example("provider: update-engine"),
    choice(
        "onMismatch",
        &["block", "proceed"],
        "What to do when the reboot did not lead into the update.",
    )
    .default("block")
    .example("onMismatch: proceed"),
];

const OS_UPDATES: &[Field] = &[choice(
    "afterBootstrap",
    &["operator", "os-default"],
    "`operator`: reboots of the OS stay off; `os-default`: switched on again at the end.",
)
.default("operator")
.example("afterBootstrap: os-default")];

const CONTROL_PLANE: &[Field] = &[
    text("advertiseAddress", G::Address, "Address under which this API server is reached.").default("spec.node.ip").example("advertiseAddress: 10.0.0.4"),
    texts("extraSans", G::HostName, "More names in the API server's certificate.").example("extraSans: [api.corp.example]"),
    choice("form", &["static-pods", "self-hosted"], "`self-hosted` is refused by this version.").default("static-pods").example("form: static-pods"),
    choice("bootstrapPhase", &["auto", "loopback", "direct"], "`loopback`: a temporary control plane first; `direct`: without; `auto`: direct below 2 GiB of memory.")
        .default("auto")
        .example("bootstrapPhase: direct"),
    object("etcd", ETCD, "The cluster's store."),
    object("encryption", ENCRYPTION, "Encryption of Secrets at rest."),
    text("audit", G::Audit, "The API server's audit log.").default("metadata").example("audit: none"),
    object("images", IMAGES, "Where the images come from."),
    object("extraArgs", EXTRA_ARGS, "Flags by component; an empty value removes one."),
    text("authorizationConfig", G::FilePath, "AuthorizationConfiguration on the machine, instead of Node,RBAC.").example("authorizationConfig: /etc/kubernetes/authorization.yaml"),
    text("patches", G::FilePath, "Directory of patches named COMPONENT[N]+TYPE.").example("patches: /etc/tenon/patches"),
];

const ETCD: &[Field] = &[
    object("external", ETCD_EXTERNAL, "An etcd that Tenon does not run."),
    text("dataDir", G::FilePath, "Directory of the local member.")
        .default("/var/lib/etcd")
        .example("dataDir: /var/lib/etcd"),
    texts("extraSans", G::HostName, "More names in the member's certificates.")
        .example("extraSans: [etcd-1.example]"),
];

const ETCD_EXTERNAL: &[Field] = &[
    texts("endpoints", G::Endpoint, "URLs of the members.")
        .example("endpoints: [\"https://10.0.0.9:2379\"]"),
    text("caFile", G::FilePath, "CA of the members.").example("caFile: /etc/tenon/etcd/ca.crt"),
    text("certFile", G::FilePath, "Client certificate.")
        .example("certFile: /etc/tenon/etcd/client.crt"),
    text("keyFile", G::FilePath, "Key of the client certificate.")
        .example("keyFile: /etc/tenon/etcd/client.key"),
];

const ENCRYPTION: &[Field] = &[
    choice("provider", &["none", "secretbox", "aescbc", "kms-v2"], "Cipher of new values.")
        .default("secretbox")
        .example("provider: aescbc"),
    texts("resources", G::ClusterId, "What is encrypted.")
        .default("[secrets]")
        .example("resources: [secrets, configmaps]"),
    text("kmsEndpoint", G::ClusterId, "Socket of the KMS plugin.")
        .example("kmsEndpoint: unix:///run/kms.sock"),
];

const IMAGES: &[Field] = &[
    text("repository", G::Image, "Registry and path in front of the image names.")
        .default("registry.k8s.io")
        .example("repository: mirror.corp/k8s"),
    text("etcdTag", G::ClusterId, "Tag of the etcd image.")
        .default("by Kubernetes version")
        .example("etcdTag: 3.6.5-0"),
    Field::new(
        "digests",
        Shape::Map(G::FlagName, &Shape::Text(G::Sha256)),
        "Digest per component, pinned.",
    )
    .example("digests: {kube-apiserver: \"sha256:…\"}"),
];

const EXTRA_ARGS: &[Field] = &[
    arguments("apiServer", "Flags of kube-apiserver.").example("apiServer: {v: \"2\"}"),
    arguments("controllerManager", "Flags of kube-controller-manager.")
        .example("controllerManager: {v: \"2\"}"),
    arguments("scheduler", "Flags of kube-scheduler.").example("scheduler: {v: \"2\"}"),
    arguments("etcd", "Flags of etcd.").example("etcd: {quota-backend-bytes: \"8589934592\"}"),
];

const PKI: &[Field] = &[
    choice("algorithm", &["ecdsa-p256", "ecdsa-p384"], "Algorithm of new keys.")
        .default("ecdsa-p256")
        .example("algorithm: ecdsa-p384"),
    int("caDays", 1, 36_500, "Lifetime of a new CA.").default("3650").example("caDays: 3650"),
    int("leafDays", 1, 3650, "Lifetime of a new certificate.")
        .default("365")
        .example("leafDays: 365"),
    text(
        "serviceAccountKey",
        G::FilePath,
        "Key that signs service account tokens, in place of a new one.",
    )
    .example("serviceAccountKey: /etc/tenon/sa.key"),
    text("csrDirectory", G::FilePath, "Where requests go when the CA's key is elsewhere.")
        .example("csrDirectory: /var/lib/tenon/csr"),
];

const ADDONS: &[Field] = &[bool("force", "Take fields over that another manager owns.")
    .default("false")
    .example("force: true")];

const PROXY: &[Field] = &[
    text("http", G::ProxyUrl, "Proxy for http.")
        .sensitive()
        .example("http: http://proxy.corp:3128"),
    text("https", G::ProxyUrl, "Proxy for https.")
        .sensitive()
        .example("https: http://proxy.corp:3128"),
    texts("noProxy", G::NoProxy, "Hosts, suffixes, IPs and CIDRs reached directly.")
        .example("noProxy: [.corp]"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fields::all_in;

    #[test]
    fn every_leaf_has_words_and_an_example() {
        for (path, field) in all_in(DOCUMENT) {
            assert!(!field.doc.is_empty(), "{path}");
            if field.children().is_empty() {
                assert!(field.example.starts_with(field.name), "{path}");
            }
        }
    }
}
