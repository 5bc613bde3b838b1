//! The documents of a node, parsed: units, flags, configs, environment.

use std::collections::BTreeMap;

use serde_json::Value;

use super::snapshot::{Line, Snapshot, Unit};
use super::view::Endpoint;
use crate::tree::Dialect;
use crate::{words, yaml};

/// States of units: the manager's own, else what it wrote into the journal.
pub(super) fn units(node: &Snapshot, lines: &[&Line]) -> BTreeMap<String, Unit> {
    let mut units = node.units.clone();
    if !units.is_empty() {
        return units;
    }
    for line in lines.iter().filter(|line| line.identifier == "systemd" && !line.unit.is_empty()) {
        let unit = units.entry(line.unit.clone()).or_default();
        let message = line.message.as_str();
        if let Some((_, count)) = message.split_once("restart counter is at ") {
            unit.restarts = count.trim_end_matches('.').parse().unwrap_or(unit.restarts);
        } else if let Some((_, result)) = message.split_once("Failed with result '") {
            unit.active = "failed".into();
            unit.result = result.trim_end_matches("'.").trim_end_matches('\'').into();
        } else if message.starts_with("Started ") || message.starts_with("Finished ") {
            unit.active = "active".into();
        } else if message.starts_with("Starting ") {
            unit.active = "activating".into();
        }
        // Who was stopped is not told: the last lines of a volume are those of its shutdown.
    }
    units
}

pub(super) fn json(node: &Snapshot, path: &str) -> Value {
    let text = node.files.get(path);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// A JSON or YAML document.
pub(super) fn document(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let trees = yaml::parse(text).unwrap_or_default();
    trees.first().map(|tree| tree.to_json(Dialect::Yaml12)).unwrap_or_default()
}

/// The flags of the kubelet from its environment file and its unit.
pub(super) fn flags(node: &Snapshot) -> BTreeMap<String, String> {
    let mut flags = BTreeMap::new();
    let mut texts = Vec::new();
    for (path, text) in &node.files {
        let unit = path.contains("/kubelet.service");
        let environment =
            path.ends_with("/kubelet/environment") || path.ends_with("kubeadm-flags.env");
        if !unit && !environment {
            continue;
        }
        let argument = |line: &str| {
            let (key, value) = line.split_once('=')?;
            let key = key.trim();
            let wanted = key == "ExecStart" || key.ends_with("_ARGS") && !unit;
            wanted.then(|| value.replace("\\\\", "\\"))
        };
        let joined = text.replace("\\\n", " ");
        // What the unit says comes before what its variables add.
        let found: Vec<_> = joined.lines().filter_map(argument).collect();
        texts.splice(if unit { 0..0 } else { texts.len()..texts.len() }, found);
    }
    for text in texts {
        let words = words::split(text.trim_matches('"')).unwrap_or_default().words;
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--") else { continue };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => {
                    let next =
                        words.next_if(|next| !next.starts_with('-') && !next.starts_with('$'));
                    (flag, next.cloned().unwrap_or_else(|| "true".into()))
                }
            };
            flags.insert(name.to_owned(), value);
        }
    }
    flags
}

/// Where the kubelet's config is unless a flag says another place.
pub(super) const KUBELET_CONFIG: &str = "/etc/kubernetes/kubelet/config.json";

pub(super) fn kubelet_config(node: &Snapshot, flags: &BTreeMap<String, String>) -> Value {
    let path = flags.get("config").map_or(KUBELET_CONFIG, String::as_str);
    let mut config = node.files.get(path).map(|text| document(text)).unwrap_or_default();
    if let Some(folder) = flags.get("config-dir") {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let drop_ins = node.files.iter().filter(|(path, _)| path.starts_with(&prefix));
        for (_, text) in drop_ins {
            merge(&mut config, document(text));
        }
    }
    config
}

fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

const KUBECONFIGS: &[&str] = &[
    "/var/lib/kubelet/kubeconfig",
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/kubelet/bootstrap-kubeconfig",
];

/// The one that the flags name; before TLS bootstrap it is not there yet.
pub(super) fn kubeconfig_path(node: &Snapshot, flags: &BTreeMap<String, String>) -> String {
    let named = ["kubeconfig", "bootstrap-kubeconfig"].iter().filter_map(|name| flags.get(*name));
    let mut paths = named.map(String::as_str).chain(KUBECONFIGS.iter().copied());
    paths.find(|path| node.files.contains_key(*path)).unwrap_or(KUBECONFIGS[0]).to_owned()
}

pub(super) fn cluster_of(kubeconfig: &Value) -> &Value {
    &kubeconfig["clusters"][0]["cluster"]
}

/// The parts of an API server's address.
pub fn endpoint_of(url: &str) -> Option<Endpoint> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split('/').next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, if url.starts_with("https") { 443 } else { 80 }),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    (!host.is_empty()).then(|| Endpoint { url: url.to_owned(), host, port })
}

/// Variables of the kubelet's unit: the manager's defaults, its drop-ins, the proxy file.
pub(super) fn environment(node: &Snapshot) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let unit = |path: &str| path.contains("/kubelet.service") || path.contains("/system.conf.d/");
    for (_, text) in node.files.iter().filter(|(path, _)| unit(path)) {
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            if !matches!(key.trim(), "Environment" | "DefaultEnvironment") {
                continue;
            }
            let words = words::split(&value.replace("%%", "%")).unwrap_or_default().words;
            let pairs = words.iter().filter_map(|word| word.split_once('='));
            variables.extend(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
        }
    }
    let proxy = node.files.get("/etc/eks/proxy.env").map(String::as_str).unwrap_or_default();
    let pairs = proxy.lines().filter_map(|line| line.split_once('='));
    let pairs = pairs
        .map(|(key, value)| (key.trim().to_owned(), value.trim().trim_matches('"').to_owned()));
    for (key, value) in pairs {
        variables.entry(key).or_insert(value);
    }
    variables
}
