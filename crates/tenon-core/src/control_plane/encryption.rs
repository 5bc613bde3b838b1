//! Secrets at rest: the API server's encryption config.
//!
//! The first provider writes, all of them read; `identity` stays last so that what was written
//! before can still be read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::yaml;

pub const DIRECTORY: &str = "/etc/kubernetes/encryption";
pub const CONFIG: &str = "/etc/kubernetes/encryption/config.yaml";

/// How values are encrypted before they reach etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    pub provider: Provider,
    /// `secrets`, `configmaps`, `things.example.com`.
    pub resources: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    None,
    Secretbox,
    AesCbc,
    /// An outside plugin on a socket: `unix:///run/kms/socket`.
    KmsV2 {
        endpoint: String,
    },
}

impl Encryption {
    pub fn none() -> Self {
        Encryption { provider: Provider::None, resources: Vec::new() }
    }

    /// Secrets with secretbox, as a new cluster has it.
    pub fn secretbox() -> Self {
        Encryption { provider: Provider::Secretbox, resources: vec!["secrets".into()] }
    }

    pub fn is_on(&self) -> bool {
        self.provider != Provider::None
    }

    /// True when the key lies in the config file and must be made once.
    pub fn needs_key(&self) -> bool {
        matches!(self.provider, Provider::Secretbox | Provider::AesCbc)
    }

    /// Where the plugin's socket lies.
    pub(super) fn socket_directory(&self) -> Option<&str> {
        let Provider::KmsV2 { endpoint } = &self.provider else { return None };
        let path = endpoint.strip_prefix("unix://")?;
        path.rsplit_once('/').map(|(directory, _)| directory)
    }
}

/// The file of the API server; None without encryption or without the key that it needs.
pub fn config(encryption: &Encryption, key: Option<&[u8; 32]>) -> Option<String> {
    let provider = provider(&encryption.provider, key)?;
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{
            "resources": encryption.resources,
            "providers": [provider, {"identity": {}}],
        }],
    });
    Some(yaml::emit(&config))
}

fn provider(provider: &Provider, key: Option<&[u8; 32]>) -> Option<Value> {
    let keys = || Some(json!({"keys": [{"name": "key1", "secret": STANDARD.encode(key?)}]}));
    match provider {
        Provider::None => None,
        Provider::Secretbox => Some(json!({"secretbox": keys()?})),
        Provider::AesCbc => Some(json!({"aescbc": keys()?})),
        Provider::KmsV2 { endpoint } => Some(json!({
            "kms": {"apiVersion": "v2", "name": "kms", "endpoint": endpoint, "timeout": "3s"},
        })),
    }
}
