//! The words of each family for the same settings.

use serde_json::{Map, Value};

use super::{Key, Settings, key};
use crate::userdata::bottlerocket_map;

/// Fields of a NodeConfig that have a name of their own in the normal form.
const NODE_CONFIG: &[(&str, &[&str])] = &[
    ("spec.cluster.name", &["cluster", "name"]),
    ("spec.cluster.apiServerEndpoint", &["cluster", "endpoint"]),
    ("spec.cluster.certificateAuthority", &["cluster", "certificateAuthority"]),
    ("spec.cluster.cidr", &["cluster", "cidr"]),
    ("spec.cluster.id", &["cluster", "id"]),
    ("spec.cluster.enableOutpost", &["cluster", "outpost"]),
    ("spec.kubelet.maxPodsExpression", &["maxPodsExpression"]),
    ("spec.containerd.config", &["containerd", "config"]),
    ("spec.containerd.baseRuntimeSpec", &["containerd", "baseRuntimeSpec"]),
    ("spec.instance.localStorage", &["instanceStore"]),
    ("spec.instance.environment", &["environment"]),
    ("spec.featureGates", &["featureGates"]),
];

/// Bottlerocket's cluster keys under `settings.kubernetes`.
const BOTTLEROCKET: &[(&str, &[&str])] = &[
    ("cluster-name", &["cluster", "name"]),
    ("api-server", &["cluster", "endpoint"]),
    ("cluster-certificate", &["cluster", "certificateAuthority"]),
    ("max-pods", &["maxPods"]),
];

/// Options of `/etc/eks/bootstrap.sh`. The others are kept under their own name.
const BOOTSTRAP: &[(&str, &[&str])] = &[
    ("--apiserver-endpoint", &["cluster", "endpoint"]),
    ("--b64-cluster-ca", &["cluster", "certificateAuthority"]),
    ("--cluster-id", &["cluster", "id"]),
    ("--enable-local-outpost", &["cluster", "outpost"]),
    ("--service-ipv6-cidr", &["cluster", "cidr"]),
    ("--service-ipv4-cidr", &["cluster", "cidr"]),
    ("--dns-cluster-ip", &["clusterDns"]),
    ("--container-runtime", &["containerRuntime"]),
    ("--local-disks", &["instanceStore", "strategy"]),
];

/// Parameters of `Start-EKSBootstrap.ps1`, in lower case.
const WINDOWS: &[(&str, &[&str])] = &[
    ("eksclustername", &["cluster", "name"]),
    ("apiserverendpoint", &["cluster", "endpoint"]),
    ("base64clusterca", &["cluster", "certificateAuthority"]),
    ("servicecidr", &["cluster", "cidr"]),
    ("dnsclusterip", &["clusterDns"]),
    ("containerruntime", &["containerRuntime"]),
];

/// Variables of the environment files that eksctl and Tenon write.
const ENVIRONMENT: &[(&str, &[&str])] = &[
    ("API_SERVER_URL", &["cluster", "endpoint"]),
    ("B64_CLUSTER_CA", &["cluster", "certificateAuthority"]),
    ("CLUSTER_NAME", &["cluster", "name"]),
    ("CLUSTER_ID", &["cluster", "id"]),
    ("CLUSTER_DNS", &["clusterDns"]),
    ("CONTAINER_RUNTIME", &["containerRuntime"]),
    ("MAX_PODS", &["maxPods"]),
    ("MAX_PODS_CEILING", &["maxPodsCeiling"]),
    ("AWS_EKS_CLUSTER_NAME", &["cluster", "name"]),
    ("AWS_EKS_ENDPOINT", &["cluster", "endpoint"]),
    ("AWS_DEFAULT_REGION", &["region"]),
];

/// Sets values under the label of one part.
pub(super) struct Setter<'a> {
    pub(super) settings: &'a mut Settings,
    pub(super) from: &'a str,
}

impl Setter<'_> {
    pub(super) fn set(&mut self, key: Key, value: Value) {
        self.settings.set(key, value, self.from);
    }

    /// Sets what the table has for a name; false when it has nothing.
    fn by_table(&mut self, table: &[(&str, &[&str])], name: &str, value: &Value) -> bool {
        let Some((_, names)) = table.iter().find(|(known, _)| *known == name) else { return false };
        self.set(key(names), normal(names, value));
        true
    }

    /// Reads a NodeConfig of either kind.
    pub(super) fn node_config(&mut self, document: &Value) {
        let spec = document.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        for (room, value) in &spec {
            match (room.as_str(), value) {
                ("kubelet", Value::Object(kubelet)) => self.node_config_kubelet(kubelet),
                ("node", Value::Object(node)) => self.tenon_node(node),
                (_, value) => self.walk(&format!("spec.{room}"), &mut vec![room.clone()], value),
            }
        }
    }

    fn node_config_kubelet(&mut self, kubelet: &Map<String, Value>) {
        for (name, value) in kubelet {
            match (name.as_str(), value) {
                ("config", Value::Object(config)) => self.kubelet_config(config),
                ("flags", Value::Array(flags)) => {
                    flags.iter().filter_map(Value::as_str).for_each(|flag| self.flag_line(flag));
                }
                _ => {
                    self.walk(&format!("spec.kubelet.{name}"), &mut key(&["kubelet", name]), value)
                }
            }
        }
    }

    /// `spec.node` of a Tenon config.
    fn tenon_node(&mut self, node: &Map<String, Value>) {
        for (name, value) in node {
            match (name.as_str(), value) {
                ("labels", Value::Object(labels)) => {
                    labels.iter().for_each(|(label, value)| self.label(label, &plain(value)));
                }
                ("taints", Value::Array(taints)) => self.taint_objects(taints),
                _ => self.walk("", &mut key(&["node", name]), value),
            }
        }
    }

    /// Sets every leaf below a field, under its normal name where it has one.
    fn walk(&mut self, path: &str, names: &mut Key, value: &Value) {
        if self.by_prefix(path, value) {
            return;
        }
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, value) in map {
                    names.push(name.clone());
                    self.walk(&format!("{path}.{name}"), names, value);
                    names.pop();
                }
            }
            _ => self.set(names.clone(), value.clone()),
        }
    }

    fn by_prefix(&mut self, path: &str, value: &Value) -> bool {
        let found = NODE_CONFIG.iter().find(|(known, _)| *known == path);
        let Some((_, names)) = found else { return false };
        self.leaves(&mut key(names), value);
        true
    }

    /// Sets every leaf of a tree.
    pub(super) fn leaves(&mut self, names: &mut Key, value: &Value) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, value) in map {
                    names.push(name.clone());
                    self.leaves(names, value);
                    names.pop();
                }
            }
            _ => {
                let shown: Vec<&str> = names.iter().map(String::as_str).collect();
                self.set(names.clone(), normal(&shown, value));
            }
        }
    }

    /// Reads a KubeletConfiguration or a part of one.
    pub(super) fn kubelet_config(&mut self, config: &Map<String, Value>) {
        for (name, value) in config {
            match (name.as_str(), value) {
                ("apiVersion" | "kind", _) => {}
                ("clusterDNS", Value::Array(addresses)) if addresses.len() == 1 => {
                    self.set(key(&["clusterDns"]), addresses[0].clone());
                }
                ("maxPods", value) => self.set(key(&["maxPods"]), value.clone()),
                ("registerWithTaints", Value::Array(taints)) => self.taint_objects(taints),
                _ => self.leaves(&mut key(&["kubelet", "config", name]), value),
            }
        }
    }

    fn taint_objects(&mut self, taints: &[Value]) {
        for taint in taints {
            let text = |name: &str| taint.get(name).and_then(Value::as_str).unwrap_or_default();
            self.taint(text("key"), text("value"), text("effect"));
        }
    }

    fn taint(&mut self, name: &str, value: &str, effect: &str) {
        self.set(key(&["taints", name, effect]), value.into());
    }

    fn label(&mut self, name: &str, value: &str) {
        self.set(key(&["labels", name]), value.into());
    }

    /// Reads one entry of flags, which may hold several words.
    pub(super) fn flag_line(&mut self, line: &str) {
        let words = crate::words::split(line).map(|words| words.words).unwrap_or_default();
        self.flags(&words);
    }

    /// Reads kubelet flags, `--name=value` or `--name value`.
    pub(super) fn flags(&mut self, words: &[String]) {
        let mut rest = words.iter().peekable();
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix("--") else { continue };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => {
                    let value = rest.next_if(|next| !next.starts_with("--")).cloned();
                    (flag, value.unwrap_or_else(|| "true".into()))
                }
            };
            self.flag(name, &value);
        }
    }

    fn flag(&mut self, name: &str, value: &str) {
        match name {
            "node-labels" => self.labels(value),
            "register-with-taints" => self.taints(value),
            "max-pods" => self.set(key(&["maxPods"]), number(value)),
            "cluster-dns" => self.set(key(&["clusterDns"]), value.into()),
            _ => self.set(key(&["kubelet", "flags", name]), value.into()),
        }
    }

    /// Reads `a=b,c=d`.
    pub(super) fn labels(&mut self, list: &str) {
        for label in list.split(',').filter(|label| !label.trim().is_empty()) {
            let (name, value) = label.split_once('=').unwrap_or((label, ""));
            self.label(name.trim(), value);
        }
    }

    /// Reads `key=value:Effect,…`.
    pub(super) fn taints(&mut self, list: &str) {
        for taint in list.split(',').filter(|taint| !taint.trim().is_empty()) {
            let (rest, effect) = taint.rsplit_once(':').unwrap_or((taint, ""));
            let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
            self.taint(name.trim(), value, effect);
        }
    }

    /// Reads Bottlerocket's settings.
    pub(super) fn bottlerocket(&mut self, document: &Value) {
        let settings = document.get("settings").and_then(Value::as_object);
        for (name, value) in settings.cloned().unwrap_or_default() {
            match (name.as_str(), &value) {
                ("kubernetes", Value::Object(kubernetes)) => {
                    self.bottlerocket_kubernetes(kubernetes)
                }
                _ => self.leaves(&mut key(&["bottlerocket", &name]), &value),
            }
        }
    }

    fn bottlerocket_kubernetes(&mut self, kubernetes: &Map<String, Value>) {
        for (name, value) in kubernetes {
            match (name.as_str(), value) {
                ("node-labels", Value::Object(labels)) => {
                    labels.iter().for_each(|(label, value)| self.label(label, &plain(value)));
                }
                ("node-taints", Value::Object(taints)) => self.bottlerocket_taints(taints),
                ("cluster-dns-ip", value) => {
                    let first = value.get(0).unwrap_or(value);
                    self.set(key(&["clusterDns"]), first.clone());
                }
                _ if self.by_table(BOTTLEROCKET, name, value) => {}
                _ => match bottlerocket_map::field(name) {
                    Some(field) => {
                        self.leaves(&mut key(&["kubelet", "config", field]), value);
                    }
                    None => self.leaves(&mut key(&["bottlerocket", "kubernetes", name]), value),
                },
            }
        }
    }

    /// `key = "value:Effect"`, or a list of such.
    fn bottlerocket_taints(&mut self, taints: &Map<String, Value>) {
        for (name, value) in taints {
            let one = std::slice::from_ref(value);
            for taint in value.as_array().map_or(one, Vec::as_slice) {
                let text = plain(taint);
                let (value, effect) = text.rsplit_once(':').unwrap_or((&text, ""));
                self.taint(name, value, effect);
            }
        }
    }

    /// Reads a variable of an environment file; false when the name means nothing here.
    pub(super) fn variable(&mut self, name: &str, value: &str) -> bool {
        if value.is_empty() {
            return ENVIRONMENT.iter().any(|(known, _)| *known == name);
        }
        match name {
            "NODE_LABELS" => self.labels(value),
            "NODE_TAINTS" => self.taints(value),
            "ENABLE_LOCAL_OUTPOST" => {
                self.set(key(&["cluster", "outpost"]), (value == "true").into())
            }
            _ => return self.by_table(ENVIRONMENT, name, &value.into()),
        }
        true
    }

    /// Reads one option of `bootstrap.sh`.
    pub(super) fn bootstrap_option(&mut self, option: &str, value: &str) {
        if option == "--kubelet-extra-args" {
            return self.flag_line(value);
        }
        if !self.by_table(BOOTSTRAP, option, &value.into()) {
            let name = option.trim_start_matches('-');
            self.set(key(&["bootstrap", name]), value.into());
        }
    }

    /// Reads one parameter of `Start-EKSBootstrap.ps1`.
    pub(super) fn windows_parameter(&mut self, parameter: &str, value: &str) {
        let name = parameter.to_ascii_lowercase();
        if name == "kubeletextraargs" {
            return self.flag_line(value);
        }
        if !self.by_table(WINDOWS, &name, &value.into()) {
            self.set(key(&["bootstrap", parameter]), value.into());
        }
    }
}

/// The key that an option of `bootstrap.sh` sets, for values that a script decides.
pub(super) fn bootstrap_key(option: &str) -> Key {
    let known = BOOTSTRAP.iter().find(|(name, _)| *name == option);
    let name = option.trim_start_matches('-');
    known.map_or_else(|| key(&["bootstrap", name]), |(_, names)| key(names))
}

/// The same for a parameter of `Start-EKSBootstrap.ps1`.
pub(super) fn windows_key(parameter: &str) -> Key {
    let known = WINDOWS.iter().find(|(name, _)| parameter.eq_ignore_ascii_case(name));
    known.map_or_else(|| key(&["bootstrap", parameter]), |(_, names)| key(names))
}

/// The value in the type that the normal form has for the key.
fn normal(names: &[&str], value: &Value) -> Value {
    match (names, value) {
        (["maxPods" | "maxPodsCeiling"], Value::String(text)) => number(text),
        (["cluster", "outpost"], Value::String(text)) => (text == "true").into(),
        (["instanceStore", "strategy"], Value::String(text)) => strategy(text),
        _ => value.clone(),
    }
}

/// Strategies are written in any letter case; the normal form has one.
fn strategy(text: &str) -> Value {
    let known = ["RAID0", "RAID10", "Mount"];
    let found = known.into_iter().find(|name| name.eq_ignore_ascii_case(text));
    found.unwrap_or(text).into()
}

fn number(text: &str) -> Value {
    text.trim().parse::<u64>().map_or_else(|_| text.into(), Value::from)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;
    use serde_json::json;

    fn read(work: impl FnOnce(&mut Setter<'_>)) -> Vec<String> {
        let mut settings = Settings::default();
        work(&mut Setter { settings: &mut settings, from: "x" });
        settings.values.iter().map(|(key, s)| format!("{}={}", shown(key), s.value)).collect()
    }

    #[test]
    fn every_family_says_the_same() {
        let expected = [
            "cluster.endpoint=\"https://e\"",
            "cluster.name=\"c\"",
            "clusterDns=\"10.0.0.10\"",
            "kubelet.config.evictionHard.\"memory.available\"=\"5%\"",
            "labels.a=\"b\"",
            "maxPods=20",
            "taints.k.NoSchedule=\"v\"",
        ];
        let node_config = json!({"spec": {
            "cluster": {"name": "c", "apiServerEndpoint": "https://e"},
            "kubelet": {
                "config": {"clusterDNS": ["10.0.0.10"], "maxPods": 20,
                    "evictionHard": {"memory.available": "5%"}},
                "flags": ["--node-labels=a=b", "--register-with-taints=k=v:NoSchedule"],
            },
        }});
        assert_eq!(read(|setter| setter.node_config(&node_config)), expected);
        let toml = json!({"settings": {"kubernetes": {
            "cluster-name": "c", "api-server": "https://e", "cluster-dns-ip": "10.0.0.10",
            "max-pods": 20, "node-labels": {"a": "b"}, "node-taints": {"k": "v:NoSchedule"},
            "eviction-hard": {"memory.available": "5%"},
        }}});
        assert_eq!(read(|setter| setter.bottlerocket(&toml)), expected);
    }

    #[test]
    fn options_and_variables_have_normal_names() {
        let options = [
            ("--apiserver-endpoint", "https://e"),
            ("--kubelet-extra-args", "--node-labels=a=b,c=d --max-pods 5 --v=2"),
            ("--local-disks", "raid0"),
            ("--pause-container-version", "3.5"),
        ];
        let seen = read(|setter| {
            options.iter().for_each(|(option, value)| setter.bootstrap_option(option, value));
        });
        assert_eq!(
            seen,
            [
                "bootstrap.pause-container-version=\"3.5\"",
                "cluster.endpoint=\"https://e\"",
                "instanceStore.strategy=\"RAID0\"",
                "kubelet.flags.v=\"2\"",
                "labels.a=\"b\"",
                "labels.c=\"d\"",
                "maxPods=5",
            ]
        );
        let seen = read(|setter| {
            assert!(setter.variable("NODE_TAINTS", "a=b:NoSchedule,c:NoExecute"));
            assert!(setter.variable("MAX_PODS", ""));
            assert!(!setter.variable("PATH", "/bin"));
            setter.windows_parameter("EKSClusterName", "c");
        });
        assert_eq!(
            seen,
            ["cluster.name=\"c\"", "taints.a.NoSchedule=\"b\"", "taints.c.NoExecute=\"\""]
        );
    }

    #[test]
    fn repeated_taint_keys_stay_apart() {
        let toml = json!({"settings": {"kubernetes": {
            "node-taints": {"k": ["a:NoSchedule", "b:NoExecute"]}}}});
        let seen = read(|setter| setter.bottlerocket(&toml));
        assert_eq!(seen, ["taints.k.NoExecute=\"b\"", "taints.k.NoSchedule=\"a\""]);
    }
}
