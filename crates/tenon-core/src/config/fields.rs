//! The field table: every field of both document kinds, with its type, merge rule, default,
//! one line of documentation and an example.

use super::grammar::Grammar as G;
use super::schema::{Field, Free, Merge, Shape, Words};

pub(crate) const fn object(
    name: &'static str,
    fields: &'static [Field],
    doc: &'static str,
) -> Field {
    Field::new(name, Shape::Object(fields), doc)
}

pub(crate) const fn text(name: &'static str, grammar: G, doc: &'static str) -> Field {
    Field::new(name, Shape::Text(grammar), doc)
}

pub(crate) const fn texts(name: &'static str, grammar: G, doc: &'static str) -> Field {
    Field::new(name, Shape::Texts(grammar), doc)
}

pub(crate) const fn bool(name: &'static str, doc: &'static str) -> Field {
    Field::new(name, Shape::Bool, doc)
}

pub(crate) const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    doc: &'static str,
) -> Field {
    Field::new(name, Shape::Choice(Words::new(words)), doc)
}

pub(crate) const fn items(
    name: &'static str,
    fields: &'static [Field],
    identity: &'static [&'static str],
    doc: &'static str,
) -> Field {
    Field::new(name, Shape::Items(fields), doc).merge(Merge::Identity(identity))
}

/// The top of a document.
pub const DOCUMENT: &[Field] = &[
    choice(
        "apiVersion",
        &["node.eks.aws/v1alpha1", "tenon.dev/v1alpha1"],
        "Which kind of document this is; `tenon.dev` is a strict superset.",
    )
    .example("apiVersion: tenon.dev/v1alpha1"),
    choice("kind", &["NodeConfig"], "Always `NodeConfig`.").example("kind: NodeConfig"),
    Field::new(
        "metadata",
        Shape::Free(Free::Anything),
        "Names and annotations; kept by `config dump`, otherwise unused.",
    )
    .merge(Merge::KeysNonEmpty)
    .example("metadata: {name: web}"),
    object("spec", SPEC, "What this node shall be."),
];

const SPEC: &[Field] = &[
    object("aws", AWS, "When AWS may be asked.").tenon(),
    object("cluster", CLUSTER, "The cluster that the node joins."),
    object("node", NODE, "The Node object.").tenon(),
    object("kubelet", KUBELET, "The kubelet and its limits."),
    object("containerd", CONTAINERD, "The container runtime."),
    object("instance", INSTANCE, "Disks, environment and network of the machine."),
    object("hooks", HOOKS, "Programs of yours that run at fixed points.").tenon(),
    Field::new(
        "featureGates",
        Shape::Map(G::Gate, &Shape::Bool),
        "Switches that nodeadm names: `InstanceIdNodeName`, `FastImagePull`.",
    )
    .default("both false")
    .example("featureGates: {InstanceIdNodeName: true}"),
];

const AWS: &[Field] = &[
    choice("api", &["never", "ifNeeded", "verify"], "`never`: no call; `ifNeeded`: a call only when the config is incomplete and the metadata service cannot answer; `verify`: also compare the node name with EC2.")
        .tenon()
    .default("ifNeeded")
        .example("api: never"),
];

const CLUSTER: &[Field] = &[
    text("name", G::ClusterName, "Name of the EKS cluster.").required().example("name: prod"),
    text("apiServerEndpoint", G::Endpoint, "URL of the API server. One trailing slash is dropped; an IP address is accepted as host; a host outside ASCII is refused.")
        .default("asked from EKS if missing (see spec.aws.api)")
        .example("apiServerEndpoint: https://abc.gr7.eu-west-1.eks.amazonaws.com"),
    text("certificateAuthority", G::CaBundle, "CA of the API server: base64 of PEM certificates.")
        .default("asked from EKS if missing (see spec.aws.api)")
        .example("certificateAuthority: LS0tLS1CRUdJTi…"),
    text("cidr", G::Cidr, "Service range of the cluster; its tenth address is the cluster's DNS.")
        .default("asked from EKS if missing (see spec.aws.api)")
        .example("cidr: 10.100.0.0/16"),
    bool("enableOutpost", "The cluster is a local one on Outposts; needs `id`.")
        .merge(Merge::Latch)
        .example("enableOutpost: true"),
    text("id", G::ClusterId, "Id of a local cluster on Outposts.").example("id: 9f1c2b3d-1111-2222-3333-444455556666"),
    object("outpost", OUTPOST, "How a node on Outposts finds and authenticates to its cluster.").tenon(),
];

const OUTPOST: &[Field] = &[
    choice(
        "authenticator",
        &["aws", "aws-iam-authenticator"],
        "Program that makes the kubelet's token.",
    )
    .tenon()
    .default("aws")
    .example("authenticator: aws-iam-authenticator"),
    bool(
        "pinEndpoint",
        "Keep the API server's addresses in /etc/hosts, for times without the Region.",
    )
    .tenon()
    .default("true")
    .example("pinEndpoint: false"),
];

const NODE: &[Field] = &[
    choice("name", &["ec2-private-dns", "instance-id", "hostname"], "Where the node's name comes from; set, it wins over featureGates.InstanceIdNodeName.")
        .tenon()
        .default("ec2-private-dns")
        .example("name: instance-id"),
    Field::new("labels", Shape::Map(G::LabelKey, &Shape::Text(G::LabelValue)), "Labels that the kubelet registers with; kubernetes.io keys only where NodeRestriction lets a kubelet set them.")
        .tenon()
        .example("labels: {team: web}"),
    items("taints", TAINT, &["key", "effect"], "Taints that the kubelet registers with.")
        .tenon()
        .example("taints: [{key: dedicated, value: gpu, effect: NoSchedule}]"),
];

/// Fields of one taint, also of a machine's config.
pub(crate) const TAINT: &[Field] = &[
    text("key", G::TaintKey, "Key of the taint.").tenon().required().example("key: dedicated"),
    text("value", G::LabelValue, "Value of the taint.").tenon().example("value: gpu"),
    choice(
        "effect",
        &["NoSchedule", "PreferNoSchedule", "NoExecute"],
        "What happens to pods that do not tolerate it.",
    )
    .tenon()
    .required()
    .example("effect: NoSchedule"),
];

const KUBELET: &[Field] = &[
    Field::new(
        "config",
        Shape::Free(Free::Kubelet),
        "KubeletConfiguration fields, laid over Tenon's own.",
    )
    .example("config: {shutdownGracePeriod: 30s}"),
    choice(
        "configMode",
        &["merge", "replace"],
        "`replace`: Tenon's own kubelet config keeps only what the node cannot run without.",
    )
    .tenon()
    .default("merge")
    .example("configMode: replace"),
    texts("flags", G::Flag, "Command line flags of the kubelet, placed last.")
        .merge(Merge::Append)
        .example("flags: [--v=2]"),
    text(
        "maxPodsExpression",
        G::Expression,
        "Pod limit as an expression over default_enis, ips_per_eni and max_pods.",
    )
    .example("maxPodsExpression: max_pods - 5"),
    object("maxPods", MAX_PODS, "How many pods the node runs.").tenon(),
    object("reserved", RESERVED, "What is kept for the system and the kubelet.").tenon(),
];

const MAX_PODS: &[Field] = &[
    choice("mode", &["eni", "fixed", "expression", "min"], "`eni`: from the instance type; `fixed`: `value`; `expression`; `min`: the smaller of `eni` and `value`.")
        .tenon()
        .default("eni")
        .example("mode: fixed"),
    Field::new("value", Shape::Int(1, 2_147_483_647), "The limit of `fixed` and `min`.").tenon().example("value: 110"),
    text("expression", G::Expression, "The expression of mode `expression`; also knows min() and max().")
        .tenon()
        .example("expression: max_pods - 5"),
    bool("prefixDelegation", "The CNI gives each network interface /28 prefixes.").tenon().default("false").example("prefixDelegation: true"),
    bool("customNetworking", "Pods do not use the primary interface.").tenon().default("false").example("customNetworking: true"),
    Field::new("maxEnis", Shape::Int(0, 1_000), "Upper bound on interfaces used for pods; 0 is none.").tenon().default("0").example("maxEnis: 2"),
    Field::new("cap", Shape::ChoiceOrInt(Words::new(&["auto", "none"])), "`auto`: with prefix delegation at most 110 pods up to 30 vCPUs, else 250.")
        .tenon()
        .default("auto; none when a node.eks.aws document is part of the config")
        .example("cap: 250"),
    choice("onUnknownInstance", &["default", "refuse"], "What to do with an instance type that no table knows: 110 pods and a warning, or an error.")
        .tenon()
        .default("default")
        .example("onUnknownInstance: refuse"),
];

const RESERVED: &[Field] = &[
    choice("basis", &["effective", "computed"], "Pod limit that the memory reservation is computed from: the one in effect, or the formula's.")
        .tenon()
        .default("effective; computed when a node.eks.aws document is part of the config")
        .example("basis: computed"),
    Field::new("kube", Shape::Map(G::ReservedKey, &Shape::Text(G::Quantity)), "Replaces single values of kubeReserved.")
        .tenon()
        .example("kube: {cpu: 100m}"),
    Field::new("system", Shape::Map(G::ReservedKey, &Shape::Text(G::Quantity)), "systemReserved.")
        .tenon()
        .example("system: {memory: 200Mi}"),
    text("systemCPUs", G::CpuSet, "CPUs kept for the system.").tenon().example("systemCPUs: \"0-1\""),
];

const CONTAINERD: &[Field] = &[
    text("config", G::Toml, "containerd TOML, merged over Tenon's own.")
        .merge(Merge::Toml)
        .example("config: |\n  [metrics]\n  address = \"127.0.0.1:1338\""),
    Field::new(
        "baseRuntimeSpec",
        Shape::Free(Free::RuntimeSpec),
        "OCI runtime spec that every container starts from, merged over Tenon's own.",
    )
    .example(
        "baseRuntimeSpec: {process: {rlimits: [{type: RLIMIT_NOFILE, soft: 1024, hard: 4096}]}}",
    ),
    text("sandboxImage", G::Image, "Pause image.")
        .tenon()
        .default("localhost/kubernetes/pause:latest")
        .example("sandboxImage: registry.corp/pause:3.10"),
    items("registries", REGISTRY, &["host"], "One hosts.toml per entry.").tenon().example(
        "registries: [{host: docker.io, mirrors: [{url: \"https://mirror.corp/v2/hub\"}]}]",
    ),
];

const REGISTRY: &[Field] = &[
    text("host", G::RegistryHost, "Registry whose pulls are redirected: name[:port], or _default.")
        .tenon()
        .required()
        .example("host: docker.io"),
    Field::new("mirrors", Shape::Items(MIRROR), "Mirrors in order of preference.")
        .tenon()
        .example("mirrors: [{url: \"https://mirror.corp\"}]"),
];

const MIRROR: &[Field] = &[
    text("url", G::MirrorUrl, "URL of the mirror, without credentials.")
        .tenon()
        .required()
        .example("url: https://mirror.corp/v2/hub"),
    Field::new(
        "capabilities",
        Shape::Choices(Words::new(&["pull", "resolve", "push"])),
        "What the mirror is used for.",
    )
    .tenon()
    .default("[pull, resolve]")
    .example("capabilities: [pull]"),
    bool("overridePath", "The URL holds the whole path of the API.")
        .tenon()
        .default("false")
        .example("overridePath: true"),
    text("caFile", G::FilePath, "CA file for the mirror, on the node.")
        .tenon()
        .example("caFile: /etc/pki/mirror.pem"),
];

const INSTANCE: &[Field] = &[
    object("localStorage", LOCAL_STORAGE, "Instance store disks."),
    Field::new(
        "environment",
        Shape::Map(G::ServiceName, &Shape::Map(G::EnvKey, &Shape::Text(G::EnvValue))),
        "Variables per service; `default` means every service and Tenon itself.",
    )
    .sensitive()
    .example("environment: {kubelet: {GOMAXPROCS: \"2\"}}"),
    object("network", NETWORK, "Name resolution."),
    object(
        "proxy",
        PROXY,
        "Proxy of every daemon; the metadata service and the cluster are exempt.",
    )
    .tenon(),
    choice(
        "fips",
        &["auto", "require"],
        "`require`: refuse to run unless the kernel is in FIPS mode.",
    )
    .tenon()
    .default("auto")
    .example("fips: require"),
];

const LOCAL_STORAGE: &[Field] = &[
    Field::new(
        "strategy",
        Shape::Choice(Words { any_case: true, ..Words::new(&["RAID0", "RAID10", "Mount"]) }),
        "What to do with the disks; not set: nothing. Any letter case.",
    )
    .example("strategy: RAID0"),
    text("mountPath", G::MountPath, "Where the disks are mounted.")
        .default("/mnt/k8s-disks")
        .example("mountPath: /mnt/disks"),
    Field::new(
        "disabledMounts",
        Shape::Choices(Words {
            tenon: &["Kubelet", "All"],
            tolerated: true,
            ..Words::new(&["Containerd", "PodLogs", "SOCI"])
        }),
        "Directories that stay on the root disk.",
    )
    .example("disabledMounts: [PodLogs]"),
    choice("existingData", &["keep", "refuse", "wipe"], "What to do with a disk that holds data.")
        .tenon()
        .default("keep")
        .example("existingData: refuse"),
];

const NETWORK: &[Field] = &[
    texts("nameservers", G::Nameserver, "DNS servers of systemd-resolved.")
        .example("nameservers: [10.0.0.2]"),
    texts("domains", G::Domain, "Search domains; a leading ~ makes a routing domain.")
        .example("domains: [corp.example]"),
];

const PROXY: &[Field] = &[
    text("http", G::ProxyUrl, "Proxy for http.")
        .tenon()
        .sensitive()
        .example("http: http://proxy.corp:3128"),
    text("https", G::ProxyUrl, "Proxy for https.")
        .tenon()
        .sensitive()
        .example("https: http://proxy.corp:3128"),
    texts(
        "noProxy",
        G::NoProxy,
        "Hosts, suffixes, IPs and CIDRs reached directly; the necessary ones are added.",
    )
    .tenon()
    .example("noProxy: [.corp]"),
];

const HOOKS: &[Field] = &[
    items("preBootstrap", HOOK, &["name"], "Before facts are gathered.").tenon(),
    items("postConfig", HOOK, &["name"], "After the files are written.").tenon(),
    items("postJoin", HOOK, &["name"], "After the kubelet is healthy.").tenon(),
];

const HOOK: &[Field] = &[
    text("name", G::HookName, "Unique in its list.").tenon().required().example("name: vpn"),
    texts("argv", G::Argument, "Program and arguments; the program is an absolute path.")
        .tenon()
        .example("argv: [/opt/vpn/up]"),
    text("script", G::Script, "Shell text, run with /bin/sh -eu; instead of argv.")
        .tenon()
        .sensitive()
        .example("script: |\n  sysctl -w vm.max_map_count=262144"),
    text("timeout", G::Duration, "At most 15m.").tenon().default("60s").example("timeout: 2m"),
    choice("onFailure", &["abort", "warn"], "Stop the run, or go on.")
        .tenon()
        .default("abort")
        .example("onFailure: warn"),
    choice("run", &["oncePerInstance", "everyBoot"], "How often.")
        .tenon()
        .default("oncePerInstance")
        .example("run: everyBoot"),
];

/// Finds a field of a node's config by its path: `spec.kubelet.maxPods`.
pub fn find(path: &str) -> Option<&'static Field> {
    find_in(DOCUMENT, path)
}

/// Finds a field of a table by its path.
pub fn find_in(mut fields: &'static [Field], path: &str) -> Option<&'static Field> {
    let mut found = None;
    for name in path.split('.') {
        found = fields.iter().find(|field| field.name == name);
        fields = found?.children();
    }
    found
}

/// Every field of a node's config with its path, parents before children.
pub fn all() -> Vec<(String, &'static Field)> {
    all_in(DOCUMENT)
}

/// Every field of a table with its path, parents before children.
pub fn all_in(fields: &'static [Field]) -> Vec<(String, &'static Field)> {
    fn walk(fields: &'static [Field], above: &str, list: &mut Vec<(String, &'static Field)>) {
        for field in fields {
            let path = join(above, field.name);
            list.push((path.clone(), field));
            walk(field.children(), &path, list);
        }
    }
    let mut list = Vec::new();
    walk(fields, "", &mut list);
    list
}

/// `above.name`, or `name` at the top.
pub fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leaf_has_words_and_an_example() {
        for (path, field) in all() {
            assert!(!field.doc.is_empty(), "{path}");
            if field.children().is_empty() {
                assert!(field.example.starts_with(field.name), "{path}");
            }
        }
    }

    #[test]
    fn below_a_tenon_field_everything_is_tenon_only() {
        for (path, field) in all() {
            let above = all().into_iter().find(|(other, _)| {
                path.rsplit_once('.').is_some_and(|(parent, _)| parent == other)
            });
            let parent_is_tenon = above.is_some_and(|(_, parent)| parent.tenon_only);
            assert!(!parent_is_tenon || field.tenon_only, "{path}");
        }
    }

    #[test]
    fn finds_fields_through_objects_and_lists() {
        assert_eq!(find("spec.kubelet.maxPods").unwrap().name, "maxPods");
        assert_eq!(find("spec.hooks.postJoin.argv").unwrap().name, "argv");
        assert!(find("spec.kubelt").is_none());
    }
}
