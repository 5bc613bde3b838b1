//! The config as a document again: for `config dump`, `config convert`, the cache and the hash.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::redact::redact;
use super::schema::Kind;
use super::{
    Authenticator, AwsApi, Basis, Cap, Config, ConfigMode, DisabledMount, DiskStrategy,
    ExistingData, Fips, Flag, Hook, HookRun, HookWork, LocalStorage, MaxPods, MaxPodsMode, Mirror,
    NameRule, OnFailure, OnUnknown, build, fields,
};
use crate::hex::sha256;
use crate::words;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A config as a document of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Dumped {
    pub kind: Kind,
    pub document: Value,
    /// Paths of settings that the kind has no room for.
    pub lost: Vec<String>,
}

/// The config as a document of the kind asked for.
pub fn dump(config: &Config, kind: Kind) -> Dumped {
    let mut writer = Writer { kind, document: Map::new(), lost: Vec::new() };
    writer.put("apiVersion", json!(kind.api_version()));
    writer.put("kind", json!("NodeConfig"));
    writer.put("metadata", Value::Object(config.metadata.clone()));
    writer.cluster(config);
    writer.node(config);
    writer.kubelet(config);
    writer.containerd(config);
    writer.instance(config);
    writer.hooks(config);
    writer.put_unless("spec.aws.api", word(API, &config.aws_api), "ifNeeded");
    Dumped { kind, document: Value::Object(writer.document), lost: writer.lost }
}

/// The config as `node.eks.aws` if it fits, else as `tenon.dev`.
pub fn dump_best(config: &Config) -> Dumped {
    let compatible = dump(config, Kind::Eks);
    if compatible.lost.is_empty() { compatible } else { dump(config, Kind::Tenon) }
}

/// The hash that may be shown: equal configs have it equal, and no secret can be guessed from it.
pub fn public_hash(config: &Config) -> String {
    hash(&redact(&dump_best(config).document))
}

/// The hash of everything.
pub fn full_hash(config: &Config) -> String {
    hash(&dump_best(config).document)
}

fn hash(document: &Value) -> String {
    sha256(document.to_string().as_bytes())
}

/// Words of the documents and what they mean in the config.
type Words<T> = &'static [(&'static str, T)];

const API: Words<AwsApi> =
    &[("never", AwsApi::Never), ("ifNeeded", AwsApi::IfNeeded), ("verify", AwsApi::Verify)];
const NAME: Words<NameRule> = &[
    ("ec2-private-dns", NameRule::Ec2PrivateDns),
    ("instance-id", NameRule::InstanceId),
    ("hostname", NameRule::Hostname),
];
const AUTHENTICATOR: Words<Authenticator> =
    &[("aws", Authenticator::Aws), ("aws-iam-authenticator", Authenticator::AwsIamAuthenticator)];
const STRATEGY: Words<DiskStrategy> = &[
    ("RAID0", DiskStrategy::Raid0),
    ("RAID10", DiskStrategy::Raid10),
    ("Mount", DiskStrategy::Mount),
];
const MOUNT: Words<DisabledMount> = &[
    ("Containerd", DisabledMount::Containerd),
    ("PodLogs", DisabledMount::PodLogs),
    ("SOCI", DisabledMount::Soci),
    ("Kubelet", DisabledMount::Kubelet),
    ("All", DisabledMount::All),
];
const DATA: Words<ExistingData> =
    &[("keep", ExistingData::Keep), ("refuse", ExistingData::Refuse), ("wipe", ExistingData::Wipe)];

fn word<T: PartialEq>(words: Words<T>, value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
}

struct Writer {
    kind: Kind,
    document: Map<String, Value>,
    lost: Vec<String>,
}

impl Writer {
    /// Sets a field, unless its value is empty; notes it as lost if the kind does not have it.
    fn put(&mut self, path: &str, value: Value) {
        if is_empty(&value) {
            return;
        }
        if !fields::find(path).is_some_and(|field| field.in_kind(self.kind)) {
            return self.lost.push(path.to_owned());
        }
        let mut names: Vec<&str> = path.split('.').collect();
        let last = names.pop().unwrap_or(path);
        let mut object = &mut self.document;
        for name in names {
            let inner = object.entry(name).or_insert_with(|| json!({}));
            let Value::Object(inner) = inner else { return };
            object = inner;
        }
        object.insert(last.to_owned(), value);
    }

    fn put_unless(&mut self, path: &str, value: &str, default: &str) {
        if value != default {
            self.put(path, json!(value));
        }
    }

    fn put_true(&mut self, path: &str, value: bool) {
        if value {
            self.put(path, json!(true));
        }
    }

    fn cluster(&mut self, config: &Config) {
        let cluster = &config.cluster;
        self.put("spec.cluster.name", json!(cluster.name));
        self.put("spec.cluster.apiServerEndpoint", json!(cluster.api_server_endpoint));
        let ca = STANDARD.encode(&cluster.certificate_authority);
        self.put("spec.cluster.certificateAuthority", json!(ca));
        let cidr = cluster.cidr.map(|cidr| cidr.to_string()).unwrap_or_default();
        self.put("spec.cluster.cidr", json!(cidr));
        self.put("spec.cluster.id", json!(cluster.id));
        self.put("spec.cluster.enableOutpost", json!(cluster.enable_outpost));
        let authenticator = word(AUTHENTICATOR, &cluster.outpost.authenticator);
        self.put_unless("spec.cluster.outpost.authenticator", authenticator, "aws");
        if !cluster.outpost.pin_endpoint {
            self.put("spec.cluster.outpost.pinEndpoint", json!(false));
        }
    }

    fn node(&mut self, config: &Config) {
        let node = &config.node;
        match (self.kind, node.name) {
            (Kind::Eks, NameRule::InstanceId) => {
                self.put("spec.featureGates", json!({"InstanceIdNodeName": true}));
            }
            _ => self.put_unless("spec.node.name", word(NAME, &node.name), "ec2-private-dns"),
        }
        if config.fast_image_pull {
            let mut gates =
                self.document.get("spec").and_then(|spec| spec.get("featureGates")).cloned();
            let gates = gates.get_or_insert_with(|| json!({}));
            gates["FastImagePull"] = json!(true);
            self.put("spec.featureGates", gates.clone());
        }
        self.put("spec.node.labels", json!(node.labels));
        let taint = |taint: &super::Taint| {
            let mut item = json!({"key": taint.key, "effect": taint.effect});
            if !taint.value.is_empty() {
                item["value"] = json!(taint.value);
            }
            item
        };
        self.put("spec.node.taints", node.taints.iter().map(taint).collect());
    }

    fn kubelet(&mut self, config: &Config) {
        let kubelet = &config.kubelet;
        self.put("spec.kubelet.config", Value::Object(kubelet.config.clone()));
        if kubelet.config_mode == ConfigMode::Replace {
            self.put("spec.kubelet.configMode", json!("replace"));
        }
        self.flags(&kubelet.flags);
        self.max_pods(&kubelet.max_pods);
        let reserved = &kubelet.reserved;
        let (basis, default) = match self.kind {
            Kind::Eks => (reserved.basis, Basis::Computed),
            Kind::Tenon => (reserved.basis, Basis::Effective),
        };
        if basis != default {
            let name = if basis == Basis::Computed { "computed" } else { "effective" };
            self.put("spec.kubelet.reserved.basis", json!(name));
        }
        self.put("spec.kubelet.reserved.kube", json!(reserved.kube));
        self.put("spec.kubelet.reserved.system", json!(reserved.system));
        self.put("spec.kubelet.reserved.systemCPUs", json!(reserved.system_cpus));
    }

    /// Flags as the kind writes them: one argument each in `tenon.dev`, as written otherwise.
    fn flags(&mut self, flags: &[Flag]) {
        let mut list: Vec<String> = Vec::new();
        for (index, flag) in flags.iter().enumerate() {
            let plain = !build::needs_quoting(&flag.text);
            match (self.kind, flag.verbatim) {
                (Kind::Eks, false) if !plain => {
                    self.lost.push(format!("spec.kubelet.flags[{index}]"));
                }
                (Kind::Tenon, true) => match words::split(&flag.text) {
                    Ok(split) => list.extend(split.words),
                    Err(_) => self.lost.push(format!("spec.kubelet.flags[{index}]")),
                },
                _ => list.push(flag.text.clone()),
            }
        }
        self.put("spec.kubelet.flags", json!(list));
    }

    fn max_pods(&mut self, max_pods: &MaxPods) {
        let path = |name: &str| format!("spec.kubelet.maxPods.{name}");
        match &max_pods.mode {
            MaxPodsMode::Eni => {}
            MaxPodsMode::Fixed(value) | MaxPodsMode::Min(value) => {
                let fixed = matches!(max_pods.mode, MaxPodsMode::Fixed(_));
                self.put(&path("mode"), json!(if fixed { "fixed" } else { "min" }));
                self.put(&path("value"), json!(value));
            }
            MaxPodsMode::Expression { text, lenient: true } if self.kind == Kind::Eks => {
                self.put("spec.kubelet.maxPodsExpression", json!(text));
            }
            MaxPodsMode::Expression { text, .. } => {
                self.put(&path("mode"), json!("expression"));
                self.put(&path("expression"), json!(text));
            }
        }
        self.put_true(&path("prefixDelegation"), max_pods.prefix_delegation);
        self.put_true(&path("customNetworking"), max_pods.custom_networking);
        if max_pods.max_enis > 0 {
            self.put(&path("maxEnis"), json!(max_pods.max_enis));
        }
        let default = if self.kind == Kind::Eks { Cap::None } else { Cap::Auto };
        if max_pods.cap != default {
            let cap = match max_pods.cap {
                Cap::Auto => json!("auto"),
                Cap::None => json!("none"),
                Cap::At(limit) => json!(limit),
            };
            self.put(&path("cap"), cap);
        }
        if max_pods.on_unknown_instance == OnUnknown::Refuse {
            self.put(&path("onUnknownInstance"), json!("refuse"));
        }
    }

    fn containerd(&mut self, config: &Config) {
        let containerd = &config.containerd;
        self.put("spec.containerd.config", json!(containerd.config));
        let spec = Value::Object(containerd.base_runtime_spec.clone());
        self.put("spec.containerd.baseRuntimeSpec", spec);
        self.put("spec.containerd.sandboxImage", json!(containerd.sandbox_image));
        let registry = |registry: &super::Registry| {
            let mirrors: Vec<Value> = registry.mirrors.iter().map(mirror).collect();
            json!({"host": registry.host, "mirrors": mirrors})
        };
        self.put(
            "spec.containerd.registries",
            containerd.registries.iter().map(registry).collect(),
        );
    }

    fn instance(&mut self, config: &Config) {
        let instance = &config.instance;
        self.local_storage(&instance.local_storage);
        let environment: Map<String, Value> = instance
            .environment
            .iter()
            .map(|(service, variables)| {
                let pairs =
                    variables.iter().map(|(key, value)| (key.clone(), json!(value.expose())));
                (service.clone(), Value::Object(pairs.collect()))
            })
            .collect();
        self.put("spec.instance.environment", Value::Object(environment));
        self.put("spec.instance.network.nameservers", json!(instance.nameservers));
        self.put("spec.instance.network.domains", json!(instance.domains));
        if let Some(proxy) = &instance.proxy {
            let url = |secret: &Option<crate::secret::Secret>| {
                json!(secret.as_ref().map(|secret| secret.expose()))
            };
            self.put("spec.instance.proxy.http", url(&proxy.http));
            self.put("spec.instance.proxy.https", url(&proxy.https));
            self.put("spec.instance.proxy.noProxy", json!(proxy.no_proxy));
        }
        if instance.fips == Fips::Require {
            self.put("spec.instance.fips", json!("require"));
        }
    }

    fn local_storage(&mut self, storage: &LocalStorage) {
        let path = |name: &str| format!("spec.instance.localStorage.{name}");
        let strategy = storage.strategy.map(|strategy| word(STRATEGY, &strategy));
        self.put(&path("strategy"), json!(strategy));
        let default = LocalStorage::default().mount_path;
        self.put_unless(&path("mountPath"), &storage.mount_path, &default);
        let (mounts, unknown): (Vec<&str>, Vec<&str>) = storage
            .disabled_mounts
            .iter()
            .map(|mount| word(MOUNT, mount))
            .partition(|name| self.kind == Kind::Tenon || !["Kubelet", "All"].contains(name));
        self.put(&path("disabledMounts"), json!(mounts));
        self.lost.extend(unknown.iter().map(|name| format!("{}: {name}", path("disabledMounts"))));
        self.put_unless(&path("existingData"), word(DATA, &storage.existing_data), "keep");
    }

    fn hooks(&mut self, config: &Config) {
        let hooks = &config.hooks;
        self.put("spec.hooks.preBootstrap", hooks.pre_bootstrap.iter().map(hook).collect());
        self.put("spec.hooks.postConfig", hooks.post_config.iter().map(hook).collect());
        self.put("spec.hooks.postJoin", hooks.post_join.iter().map(hook).collect());
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn mirror(mirror: &Mirror) -> Value {
    let mut item = json!({"url": mirror.url, "capabilities": mirror.capabilities});
    if mirror.override_path {
        item["overridePath"] = json!(true);
    }
    if let Some(file) = &mirror.ca_file {
        item["caFile"] = json!(file);
    }
    item
}

fn duration(length: Duration) -> String {
    match length.subsec_millis() {
        0 => format!("{}s", length.as_secs()),
        _ => format!("{}ms", length.as_millis()),
    }
}

fn hook(hook: &Hook) -> Value {
    let mut item = json!({"name": hook.name});
    match &hook.work {
        HookWork::Argv(argv) => item["argv"] = json!(argv),
        HookWork::Script(script) => item["script"] = json!(script.expose()),
    }
    if hook.timeout != build::HOOK_TIMEOUT {
        item["timeout"] = json!(duration(hook.timeout));
    }
    if hook.on_failure == OnFailure::Warn {
        item["onFailure"] = json!("warn");
    }
    if hook.run == HookRun::EveryBoot {
        item["run"] = json!("everyBoot");
    }
    item
}
