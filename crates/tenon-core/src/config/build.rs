//! The merged tree becomes the [`Config`]: defaults, the conversion of `node.eks.aws`, types.
//!
//! The tree has been checked against the table, so a value that does not convert here has its
//! finding already and its default stands in.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::grammar;
use super::node::{Data, Document, Node as Tree};
use super::schema::Kind;
use super::{
    Authenticator, AwsApi, Basis, Cap, Cluster, Config, ConfigMode, Containerd, DisabledMount,
    DiskStrategy, ExistingData, Fips, Flag, Hook, HookRun, HookWork, Hooks, Instance, Kubelet,
    LocalStorage, MaxPods, MaxPodsMode, Mirror, NameRule, Node, OnFailure, OnUnknown, Outpost,
    Proxy, Registry, Reserved, Taint,
};
use crate::secret::Secret;

/// Builds the config from a merged tree.
pub fn build(tree: &Tree, documents: &[Document]) -> Config {
    let spec = View(Some(tree)).at("spec");
    // One compatible document makes the numbers compatible, unless they are set.
    let compatible = documents.iter().any(|document| document.kind == Kind::Eks);
    Config {
        metadata: View(Some(tree)).at("metadata").object(),
        aws_api: match spec.at("aws").at("api").text() {
            "never" => AwsApi::Never,
            "verify" => AwsApi::Verify,
            _ => AwsApi::IfNeeded,
        },
        cluster: cluster(spec.at("cluster")),
        node: node(spec),
        kubelet: kubelet(spec.at("kubelet"), documents, compatible),
        containerd: containerd(spec.at("containerd")),
        instance: instance(spec.at("instance")),
        hooks: hooks(spec.at("hooks")),
        fast_image_pull: spec.at("featureGates").at("FastImagePull").bool_or(false),
    }
}

/// A place in the tree that may be empty.
#[derive(Clone, Copy)]
pub struct View<'a>(pub Option<&'a Tree>);

impl<'a> View<'a> {
    pub fn at(self, key: &str) -> Self {
        View(self.0.and_then(|node| node.at(key)))
    }

    /// The text; empty when not set.
    pub fn text(self) -> &'a str {
        self.0.and_then(Tree::text).unwrap_or_default()
    }

    pub fn owned(self) -> String {
        self.text().to_owned()
    }

    pub fn non_empty(self) -> Option<String> {
        Some(self.owned()).filter(|text| !text.is_empty())
    }

    pub fn bool(self) -> Option<bool> {
        match self.0.map(|node| &node.data) {
            Some(Data::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    pub fn bool_or(self, default: bool) -> bool {
        self.bool().unwrap_or(default)
    }

    pub fn number(self) -> Option<u32> {
        match self.0.map(|node| &node.data) {
            Some(Data::Number(number)) => number.as_u64().and_then(|n| u32::try_from(n).ok()),
            _ => None,
        }
    }

    pub fn items(self) -> impl Iterator<Item = View<'a>> {
        self.0.map(Tree::list).unwrap_or_default().iter().map(|node| View(Some(node)))
    }

    pub fn texts(self) -> Vec<String> {
        self.items().map(View::owned).collect()
    }

    pub fn entries(self) -> impl Iterator<Item = (&'a String, View<'a>)> {
        let entries = self.0.and_then(Tree::map).into_iter().flatten();
        entries.map(|(key, node)| (key, View(Some(node))))
    }

    pub fn text_map(self) -> BTreeMap<String, String> {
        self.entries().map(|(key, value)| (key.clone(), value.owned())).collect()
    }

    pub fn object(self) -> Map<String, Value> {
        match self.0.map(Tree::to_value) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }
}

fn cluster(view: View<'_>) -> Cluster {
    let outpost = view.at("outpost");
    Cluster {
        name: view.at("name").owned(),
        api_server_endpoint: grammar::endpoint(view.at("apiServerEndpoint").text()).to_owned(),
        certificate_authority: grammar::decode_ca(view.at("certificateAuthority").text())
            .unwrap_or_default(),
        cidr: grammar::cidr(view.at("cidr").text()),
        id: view.at("id").owned(),
        enable_outpost: view.at("enableOutpost").bool(),
        outpost: Outpost {
            authenticator: match outpost.at("authenticator").text() {
                "aws-iam-authenticator" => Authenticator::AwsIamAuthenticator,
                _ => Authenticator::Aws,
            },
            pin_endpoint: outpost.at("pinEndpoint").bool_or(true),
        },
    }
}

fn node(spec: View<'_>) -> Node {
    let view = spec.at("node");
    let gate = spec.at("featureGates").at("InstanceIdNodeName").bool_or(false);
    Node {
        name: match view.at("name").text() {
            "instance-id" => NameRule::InstanceId,
            "hostname" => NameRule::Hostname,
            "" if gate => NameRule::InstanceId,
            _ => NameRule::Ec2PrivateDns,
        },
        labels: view.at("labels").text_map(),
        taints: view
            .at("taints")
            .items()
            .map(|taint| Taint {
                key: taint.at("key").owned(),
                value: taint.at("value").owned(),
                effect: taint.at("effect").owned(),
            })
            .collect(),
    }
}

fn kubelet(view: View<'_>, documents: &[Document], compatible: bool) -> Kubelet {
    Kubelet {
        config: view.at("config").object(),
        config_mode: match view.at("configMode").text() {
            "replace" => ConfigMode::Replace,
            _ => ConfigMode::Merge,
        },
        flags: view.at("flags").items().map(|flag| flag_of(flag, documents)).collect(),
        max_pods: max_pods(view, documents, compatible),
        reserved: reserved(view.at("reserved"), compatible),
    }
}

fn flag_of(view: View<'_>, documents: &[Document]) -> Flag {
    let text = view.owned();
    // A word that needs no quoting is the same argument either way; saying so keeps the two
    // kinds convertible into each other.
    let verbatim = needs_quoting(&text) && from_eks(view, documents);
    Flag { text, verbatim }
}

/// True when a flag could mean something else to a word splitter than it says.
pub fn needs_quoting(text: &str) -> bool {
    !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&b))
}

/// True when the value was written in a `node.eks.aws` document.
fn from_eks(view: View<'_>, documents: &[Document]) -> bool {
    view.0.is_some_and(|node| documents[node.origin.document].kind == Kind::Eks)
}

fn max_pods(kubelet: View<'_>, documents: &[Document], compatible: bool) -> MaxPods {
    let view = kubelet.at("maxPods");
    let defaults = MaxPods::default();
    MaxPods {
        mode: max_pods_mode(kubelet, documents),
        prefix_delegation: view.at("prefixDelegation").bool_or(false),
        custom_networking: view.at("customNetworking").bool_or(false),
        max_enis: view.at("maxEnis").number().unwrap_or(0),
        cap: match (view.at("cap").text(), view.at("cap").number()) {
            (_, Some(limit)) => Cap::At(limit),
            ("none", _) => Cap::None,
            ("auto", _) => Cap::Auto,
            _ if compatible => Cap::None,
            _ => defaults.cap,
        },
        on_unknown_instance: match view.at("onUnknownInstance").text() {
            "refuse" => OnUnknown::Refuse,
            _ => defaults.on_unknown_instance,
        },
    }
}

fn max_pods_mode(kubelet: View<'_>, documents: &[Document]) -> MaxPodsMode {
    let view = kubelet.at("maxPods");
    let outer = kubelet.at("maxPodsExpression");
    let value = view.at("value").number().unwrap_or(1);
    match view.at("mode").text() {
        "fixed" => MaxPodsMode::Fixed(value),
        "min" => MaxPodsMode::Min(value),
        "expression" => {
            MaxPodsMode::Expression { text: view.at("expression").owned(), lenient: false }
        }
        _ if !outer.text().is_empty() => {
            let lenient = from_eks(outer, documents);
            MaxPodsMode::Expression { text: outer.owned(), lenient }
        }
        _ => MaxPodsMode::Eni,
    }
}

fn reserved(view: View<'_>, compatible: bool) -> Reserved {
    Reserved {
        basis: match view.at("basis").text() {
            "effective" => Basis::Effective,
            "computed" => Basis::Computed,
            _ if compatible => Basis::Computed,
            _ => Basis::default(),
        },
        kube: view.at("kube").text_map(),
        system: view.at("system").text_map(),
        system_cpus: view.at("systemCPUs").non_empty(),
    }
}

fn containerd(view: View<'_>) -> Containerd {
    Containerd {
        config: view.at("config").owned(),
        base_runtime_spec: view.at("baseRuntimeSpec").object(),
        sandbox_image: view.at("sandboxImage").non_empty(),
        registries: view.at("registries").items().map(registry).collect(),
    }
}

fn registry(view: View<'_>) -> Registry {
    let mirror = |mirror: View<'_>| {
        let capabilities = mirror.at("capabilities").texts();
        Mirror {
            url: mirror.at("url").owned(),
            capabilities: match capabilities.is_empty() {
                true => vec!["pull".into(), "resolve".into()],
                false => capabilities,
            },
            override_path: mirror.at("overridePath").bool_or(false),
            ca_file: mirror.at("caFile").non_empty(),
        }
    };
    Registry {
        host: view.at("host").owned(),
        mirrors: view.at("mirrors").items().map(mirror).collect(),
    }
}

fn instance(view: View<'_>) -> Instance {
    let variables = |(service, map): (&String, View<'_>)| {
        let map = map.entries().map(|(key, value)| (key.clone(), Secret::new(value.text())));
        (service.clone(), map.collect())
    };
    let network = view.at("network");
    Instance {
        local_storage: local_storage(view.at("localStorage")),
        environment: view.at("environment").entries().map(variables).collect(),
        nameservers: network.at("nameservers").texts(),
        domains: network.at("domains").texts(),
        proxy: proxy(view.at("proxy")),
        fips: match view.at("fips").text() {
            "require" => Fips::Require,
            _ => Fips::Auto,
        },
    }
}

pub fn proxy(view: View<'_>) -> Option<Proxy> {
    let proxy = Proxy {
        http: view.at("http").non_empty().map(Secret::new),
        https: view.at("https").non_empty().map(Secret::new),
        no_proxy: view.at("noProxy").texts(),
    };
    (proxy.http.is_some() || proxy.https.is_some()).then_some(proxy)
}

fn local_storage(view: View<'_>) -> LocalStorage {
    let defaults = LocalStorage::default();
    let mount_path = view.at("mountPath").non_empty();
    LocalStorage {
        strategy: match view.at("strategy").text() {
            "RAID0" => Some(DiskStrategy::Raid0),
            "RAID10" => Some(DiskStrategy::Raid10),
            "Mount" => Some(DiskStrategy::Mount),
            _ => None,
        },
        mount_path: mount_path.map_or(defaults.mount_path, |path| grammar::normal_path(&path)),
        disabled_mounts: view.at("disabledMounts").items().filter_map(disabled_mount).collect(),
        existing_data: match view.at("existingData").text() {
            "refuse" => ExistingData::Refuse,
            "wipe" => ExistingData::Wipe,
            _ => defaults.existing_data,
        },
    }
}

fn disabled_mount(view: View<'_>) -> Option<DisabledMount> {
    Some(match view.text() {
        "Containerd" => DisabledMount::Containerd,
        "PodLogs" => DisabledMount::PodLogs,
        "SOCI" => DisabledMount::Soci,
        "Kubelet" => DisabledMount::Kubelet,
        "All" => DisabledMount::All,
        _ => return None,
    })
}

fn hooks(view: View<'_>) -> Hooks {
    let list = |name: &str| view.at(name).items().map(hook).collect();
    Hooks {
        pre_bootstrap: list("preBootstrap"),
        post_config: list("postConfig"),
        post_join: list("postJoin"),
    }
}

/// How long a hook may run when it does not say.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(60);

fn hook(view: View<'_>) -> Hook {
    let argv = view.at("argv").texts();
    Hook {
        name: view.at("name").owned(),
        work: match argv.is_empty() {
            true => HookWork::Script(Secret::new(view.at("script").text())),
            false => HookWork::Argv(argv),
        },
        timeout: grammar::duration(view.at("timeout").text()).unwrap_or(HOOK_TIMEOUT),
        on_failure: match view.at("onFailure").text() {
            "warn" => OnFailure::Warn,
            _ => OnFailure::Abort,
        },
        run: match view.at("run").text() {
            "everyBoot" => HookRun::EveryBoot,
            _ => HookRun::OncePerInstance,
        },
    }
}
