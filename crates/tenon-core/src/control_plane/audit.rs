//! The audit policy: what the API server writes down about requests.

use serde_json::json;

use crate::yaml;

pub const POLICY: &str = "/etc/kubernetes/audit/policy.yaml";
pub const LOG_DIRECTORY: &str = "/var/log/kubernetes/audit";
pub const LOG: &str = "/var/log/kubernetes/audit/audit.log";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audit {
    None,
    /// Who did what, without bodies.
    Metadata,
    /// The user's own policy.
    Policy(String),
}

impl Audit {
    /// The text of the policy, if anything is written down.
    pub fn policy(&self) -> Option<String> {
        match self {
            Audit::None => None,
            Audit::Metadata => Some(metadata()),
            Audit::Policy(text) => Some(text.clone()),
        }
    }
}

/// Drops what the machinery asks all day; keeps the rest without bodies, which may hold secrets.
fn metadata() -> String {
    let nodes = ["system:nodes"];
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version"]},
            {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
            {
                "level": "None", "userGroups": nodes, "verbs": ["get", "list", "watch"],
                "resources": [{"group": "", "resources": ["nodes", "nodes/status"]}],
            },
            {"level": "Metadata", "resources": [
                {"group": "", "resources": ["secrets", "configmaps"]},
                {"group": "authentication.k8s.io", "resources": ["tokenreviews"]},
            ]},
            {"level": "Metadata"},
        ],
    });
    yaml::emit(&policy)
}
