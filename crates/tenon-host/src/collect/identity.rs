//! Which node it is, and which of its values must not be shown.

use std::collections::BTreeMap;
use std::time::Duration;

use tenon_core::collect::manifest::NodeIdentity;
use tenon_core::config::redact;
use tenon_core::decode::{self, Blob, Budget, Origin};
use tenon_core::facts::{Facts, Instance};
use tenon_core::plan::record::RECORD_PATH;

use super::source::{Answer, Source};
use crate::gather::environment::Environment;
use crate::gather::imds::{Imds, Options};
use crate::gather::{self, Wants};

/// The metadata service answers in milliseconds, or the node has a problem worth a bundle.
const PATIENCE: Duration = Duration::from_secs(3);
/// Documents of the node that may hold secrets in fields.
const DOCUMENTS: [&str; 2] = ["/etc/tenon", "/etc/eks/nodeadm.d"];
const CACHES: [&str; 2] = ["/run/eks/nodeadm/config.json", "/run/tenon/config.json"];
const DOCUMENT_CAP: u64 = 1 << 20;

/// What is known of the node before anything is collected.
#[derive(Debug, Default)]
pub struct Known {
    pub node: NodeIdentity,
    /// Name of the cluster, where the node's config tells it.
    pub cluster: String,
    /// None where the metadata service was not asked or did not answer.
    pub instance: Option<Instance>,
    /// Items made on the way: `facts.json`, `user-data`.
    pub given: BTreeMap<String, Vec<u8>>,
}

/// Finds out which node it is. Facts that were given spare the metadata service.
pub fn look(source: &Source, facts: Option<&Facts>) -> Known {
    let mut known = Known::default();
    if let Some(facts) = facts {
        known.take(facts);
    } else if source.is_live() {
        known.ask(source);
    }
    let text = |path: &str| source.read_text(path).known().unwrap_or_default();
    let node = &mut known.node;
    if node.instance_id.is_empty() {
        let record: serde_json::Value =
            serde_json::from_str(&text(RECORD_PATH)).unwrap_or_default();
        node.instance_id = record["instanceId"].as_str().unwrap_or_default().to_owned();
    }
    let named = CACHES.iter().find_map(|path| {
        let cache: serde_json::Value = serde_json::from_str(&text(path)).ok()?;
        cache["spec"]["cluster"]["name"].as_str().map(str::to_owned)
    });
    known.cluster = named.unwrap_or_default();
    let node = &mut known.node;
    let release = text("/etc/os-release");
    let field = |name: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    node.family = format!("{}{}", field("ID="), field("VERSION_ID="));
    node.boot_id = source.boot_id().known().unwrap_or_default();
    if node.arch.is_empty() {
        node.arch = text("/proc/sys/kernel/arch");
    }
    if node.kubernetes.is_empty() {
        node.kubernetes = text("/etc/eks/kubelet-version.txt");
    }
    known
}

impl Known {
    fn take(&mut self, facts: &Facts) {
        self.instance = Some(facts.instance.clone());
        self.node.instance_id.clone_from(&facts.instance.id);
        self.node.instance_type.clone_from(&facts.instance.instance_type);
        self.node.arch.clone_from(&facts.instance.architecture);
        self.node.kubernetes.clone_from(&facts.machine.kubelet_version);
        if let Ok(json) = serde_json::to_vec_pretty(facts) {
            self.given.insert("facts.json".to_owned(), json);
        }
    }

    /// Asks the metadata service. That it does not answer is for the bundle to show.
    fn ask(&mut self, source: &Source) {
        let environment = Environment::of_process();
        let Ok(mut options) = Options::new(&environment) else { return };
        options.patience.whole = PATIENCE;
        let Ok(first) = Imds::new(options).first_round(true) else { return };
        if let Some(user_data) = first.user_data {
            self.given.insert("user-data".to_owned(), user_data);
        }
        self.instance = Some(first.instance.clone());
        self.node.instance_id.clone_from(&first.instance.id);
        self.node.instance_type.clone_from(&first.instance.instance_type);
        let root = source.root_handle();
        let gathered =
            root.map(|root| gather::facts(root, first.instance, Wants::everything(), &environment));
        if let Some(Ok(facts)) = gathered {
            self.take(&facts);
        }
    }
}

/// The values of every secret field of the node's own configuration.
pub fn secrets(source: &Source, user_data: Option<&Vec<u8>>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(bytes) = user_data {
        let blob = Blob {
            source_index: 0,
            uri: String::new(),
            origin: Origin::Imds,
            bytes: bytes.clone(),
        };
        for part in decode::unwrap(&blob, &mut Budget::default()).parts {
            found.extend(redact::secrets_of(&part.text));
        }
    }
    let listed = DOCUMENTS.iter().flat_map(|place| {
        let names = source.list(place).known().unwrap_or_default();
        names.into_iter().map(move |name| format!("{place}/{name}"))
    });
    for path in listed {
        if let Answer::Known(bytes) = source.read(&path, DOCUMENT_CAP) {
            found.extend(redact::secrets_of(&String::from_utf8_lossy(&bytes)));
        }
    }
    for path in CACHES {
        let cache = source.read(path, DOCUMENT_CAP).known().unwrap_or_default();
        let cache: serde_json::Value = serde_json::from_slice(&cache).unwrap_or_default();
        // Beside the config a cache holds facts, which are no fields and no secrets.
        found.extend(redact::secrets_of(&serde_json::json!({"spec": cache["spec"]}).to_string()));
    }
    // Words that are settings would take half of the text with them.
    found.retain(|value| value.len() >= 6 && !value.starts_with('/'));
    found
}
