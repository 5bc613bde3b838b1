//! The plan's hash: equal for equal plans, on any machine.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::step::Plan;

/// Hash that is safe to print: secret content counts as a constant, so that nobody can guess a
/// weak secret by trying.
pub fn hash_public(plan: &Plan) -> String {
    hash(plan, false)
}

/// Hash over everything, for the record alone.
pub fn hash_full(plan: &Plan) -> String {
    hash(plan, true)
}

fn hash(plan: &Plan, with_secrets: bool) -> String {
    let mut steps: Vec<_> = plan.steps.iter().map(|step| step.to_json(with_secrets)).collect();
    for step in &mut steps {
        // Reasons are words for people; other words do not make another plan.
        step["because"].take();
        if !with_secrets {
            drop_secret_length(step);
        }
    }
    let text = json!({"steps": steps, "diskIndexes": plan.disk_indexes}).to_string();
    format!("sha256:{}", hex_digest(text.as_bytes()))
}

/// The length of a secret narrows the guessing too.
fn drop_secret_length(step: &mut Value) {
    if step["secret"] == true {
        step["bytes"].take();
    }
}

/// sha256 in hexadecimal.
pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
