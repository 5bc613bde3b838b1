//! The config cache: what the last config phase decided, for the phases after it.
//!
//! One line of JSON in nodeadm's own form plus a `tenon` key, so that either program reads the
//! other's file.

use serde_json::{Value, json};

use super::dump::{self, dump_best};
use super::schema::Kind;
use super::{Config, Options, dump::Dumped, load};
use crate::decode::Part;
use crate::facts::Facts;
use crate::problem::Place;

/// The schema of the `tenon` key that this binary writes and reads.
pub const SCHEMA: u64 = 1;

/// A cache that was read.
#[derive(Clone, PartialEq)]
pub struct Cached {
    /// Where it was read from.
    pub uri: String,
    /// The merged config as a document.
    document: Value,
    /// Instance that it was written on; empty if it does not say.
    pub instance_id: String,
    /// The facts of that run; None when nodeadm wrote the cache.
    pub facts: Option<Facts>,
    pub plan_hash: Option<String>,
    pub status: Status,
}

/// What nodeadm keeps of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    pub region: String,
    pub instance_type: String,
    pub availability_zone: String,
    pub mac: String,
    pub private_dns_name: String,
    pub sandbox_image: String,
    pub kubelet_version: String,
}

impl std::fmt::Debug for Cached {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Cached({}, {})", self.uri, self.instance_id)
    }
}

impl Cached {
    /// The cached config as one more part of the chain.
    pub(super) fn part(&self, index: usize) -> Part {
        let place = Place { source_index: index, source: self.uri.clone(), ..Place::default() };
        Part { place, media_type: None, text: self.document.to_string() }
    }

    /// True when a config equals the cached one. Comments and order in the documents do not
    /// count, only what they mean.
    pub fn holds(&self, config: &Config) -> bool {
        let options = Options { cached: Some(self), partial: true };
        load(&[], options).is_ok_and(|cached| cached.config == *config)
    }
}

/// Writes the cache of a run: one line.
pub fn encode(config: &Config, facts: &Facts, plan_hash: &str) -> String {
    let Dumped { document, .. } = dump_best(config);
    // What nodeadm reads is its own form; settings it has no field for stay in `tenon`.
    let compatible = dump::dump(config, Kind::Eks).document;
    let instance = &facts.instance;
    let cache = json!({
        "metadata": config.metadata,
        "spec": compatible.get("spec").cloned().unwrap_or_else(|| json!({})),
        "status": {
            "instance": {
                "id": instance.id,
                "region": instance.region,
                "type": instance.instance_type,
                "availabilityZone": instance.availability_zone,
                "mac": instance.mac,
                "privateDnsName": instance.private_dns_name.clone().unwrap_or_default(),
            },
            "default": {"sandboxImage": config.containerd.sandbox_image.clone().unwrap_or_default()},
            "kubeletVersion": facts.machine.kubelet_version,
        },
        "tenon": {
            "schema": SCHEMA,
            "config": document,
            "facts": facts,
            "planHash": plan_hash,
        },
    });
    format!("{cache}\n")
}

/// Reads a cache, Tenon's or nodeadm's. The error says in words why it cannot be used.
pub fn decode(uri: &str, bytes: &[u8]) -> Result<Cached, String> {
    let cache: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is not JSON: {}", kind_of(&error)))?;
    let text =
        |path: &str| cache.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let status = Status {
        region: text("/status/instance/region"),
        instance_type: text("/status/instance/type"),
        availability_zone: text("/status/instance/availabilityZone"),
        mac: text("/status/instance/mac"),
        private_dns_name: text("/status/instance/privateDnsName"),
        sandbox_image: text("/status/default/sandboxImage"),
        kubelet_version: text("/status/kubeletVersion"),
    };
    let instance_id = text("/status/instance/id");
    let (document, facts, plan_hash) = match cache.get("tenon") {
        Some(tenon) => own(tenon)?,
        None => (peer(&cache)?, None, None),
    };
    Ok(Cached { uri: uri.into(), document, instance_id, facts, plan_hash, status })
}

/// The position of a JSON error without the text around it.
fn kind_of(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

type Own = (Value, Option<Facts>, Option<String>);

fn own(tenon: &Value) -> Result<Own, String> {
    let schema = tenon.get("schema").and_then(Value::as_u64);
    if schema != Some(SCHEMA) {
        return Err(format!("its schema is not {SCHEMA}, which this version reads"));
    }
    let document = tenon.get("config").filter(|config| config.is_object());
    let document = document.ok_or("it holds no config")?.clone();
    let facts = tenon.get("facts").cloned().map(serde_json::from_value);
    let facts = facts.transpose().map_err(|_| "its facts are not of this schema")?;
    let plan_hash = tenon.get("planHash").and_then(Value::as_str).map(str::to_owned);
    Ok((document, facts, plan_hash))
}

/// nodeadm's form has no head; its spec is that of `node.eks.aws`.
fn peer(cache: &Value) -> Result<Value, String> {
    let spec = cache.get("spec").filter(|spec| spec.is_object()).ok_or("it holds no spec")?;
    let mut document = json!({
        "apiVersion": Kind::Eks.api_version(),
        "kind": "NodeConfig",
        "spec": spec,
    });
    if let Some(Value::Object(metadata)) = cache.get("metadata")
        && !metadata.is_empty()
    {
        document["metadata"] = json!(metadata);
    }
    Ok(document)
}
