//! The config cache: what the last config phase decided, for the phases after it.
//!
//! One line of JSON in nodeadm's own form plus a `tenon` key, so that either program reads the
//! other's file.

use serde_json::{Map, Value, json};

use super::dump::{self, dump_best};
use super::schema::Kind;
use super::{Config, NameRule, Options, PAUSE_IMAGE, dump::Dumped, load};
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
    /// Instance that it was written on.
    pub instance_id: String,
    /// The facts of that run; None when nodeadm wrote the cache.
    pub facts: Option<Facts>,
    /// EC2's name of the instance, when it was asked. Everything else that nodeadm keeps about
    /// the instance is one request to the metadata service away.
    pub private_dns_name: Option<String>,
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
        // Tenon wrote the merged config, which may be one that no single document can say again:
        // its parts were of both kinds.
        if self.document == dump_best(config).document {
            return true;
        }
        let options = Options { cached: Some(self), partial: true };
        load(&[], options).is_ok_and(|cached| cached.config == *config)
    }
}

/// Writes the cache of a run: one line. nodeadm takes the node's name and the pause image from
/// it, so both are told even where Tenon needs no such note.
pub fn encode(config: &Config, facts: &Facts, node_name: &str, plan_hash: &str) -> String {
    let Dumped { document, .. } = dump_best(config);
    // What nodeadm reads is its own form; settings it has no field for stay in `tenon`.
    let compatible = dump::dump(config, Kind::Eks).document;
    // What the last run left is read from its record, never from here.
    let facts = Facts { last_run: None, ..facts.clone() };
    let instance = &facts.instance;
    let private_dns_name = match config.node.name {
        NameRule::Ec2PrivateDns => node_name,
        _ => instance.private_dns_name.as_deref().unwrap_or_default(),
    };
    let sandbox_image = config.containerd.sandbox_image.as_deref().unwrap_or(PAUSE_IMAGE);
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
                "privateDnsName": private_dns_name,
            },
            "default": {"sandboxImage": sandbox_image},
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
    let text = |name: &str| {
        let value = cache.pointer(&format!("/status/instance/{name}")).and_then(Value::as_str);
        value.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let (document, facts) = match cache.get("tenon") {
        Some(tenon) => own(tenon)?,
        None => (peer(&cache)?, None),
    };
    Ok(Cached {
        uri: uri.into(),
        document,
        instance_id: text("id").ok_or("it does not say on which instance it was written")?,
        facts,
        private_dns_name: text("privateDnsName"),
    })
}

/// The position of a JSON error without the text around it.
fn kind_of(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

fn own(tenon: &Value) -> Result<(Value, Option<Facts>), String> {
    let schema = tenon.get("schema").and_then(Value::as_u64);
    if schema != Some(SCHEMA) {
        return Err(format!("its schema is not {SCHEMA}, which this version reads"));
    }
    let document = tenon.get("config").filter(|config| config.is_object());
    let document = document.ok_or("it holds no config")?.clone();
    let facts = tenon.get("facts").cloned().map(serde_json::from_value);
    let facts = facts.transpose().map_err(|_| "its facts are not of this schema")?;
    Ok((document, facts))
}

/// nodeadm's form has no head; its spec is that of `node.eks.aws`.
fn peer(cache: &Value) -> Result<Value, String> {
    let spec = cache.get("spec").filter(|spec| spec.is_object()).ok_or("it holds no spec")?;
    let mut document = json!({
        "apiVersion": Kind::Eks.api_version(),
        "kind": "NodeConfig",
        "spec": spec,
    });
    // nodeadm writes a `creationTimestamp` of null that nobody asked for.
    let metadata = cache.get("metadata").and_then(Value::as_object).into_iter().flatten();
    let given: Map<String, Value> = metadata
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !given.is_empty() {
        document["metadata"] = Value::Object(given);
    }
    Ok(document)
}
