//! Every hash of this room, in hexadecimal: of content, of lists of fields, of whole plans.

use super::step::{Action, Plan};
use crate::config::{Hook, HookWork};
use crate::hex::sha256;
use serde_json::{Value, json};

/// Hash of a plan that is safe to print: secret content counts as a constant, so that nobody
/// can guess a weak secret by trying.
pub fn hash_public(plan: &Plan) -> String {
    plan_hash(plan, false)
}

/// Hash of a plan over everything, for the record alone.
pub fn hash_full(plan: &Plan) -> String {
    plan_hash(plan, true)
}

fn plan_hash(plan: &Plan, with_secrets: bool) -> String {
    let lasting = plan.steps.iter().filter(|step| is_lasting(&step.action));
    let mut steps: Vec<_> = lasting.map(|step| step.to_json(with_secrets)).collect();
    for step in &mut steps {
        // Reasons are words for people; other words do not make another plan.
        step["because"].take();
        if !with_secrets {
            drop_secret_length(step);
        }
    }
    let text = json!({"steps": steps, "diskIndexes": plan.disk_indexes}).to_string();
    format!("sha256:{}", sha256(text.as_bytes()))
}

/// The hash is that of the state to reach. What is done once on the way there (formatting a
/// disk, clearing up after an earlier config) is no longer planned in the next run, whose hash
/// must be the same.
fn is_lasting(action: &Action) -> bool {
    !matches!(
        action,
        Action::Remove(_) | Action::Discard { .. } | Action::Reload { .. } | Action::Program(_)
    )
}

/// The length of a secret narrows the guessing too.
fn drop_secret_length(step: &mut Value) {
    if step["secret"] == true {
        step["bytes"].take();
    }
}

/// The hash that stamps a hook which runs once per instance.
pub fn hook(hook: &Hook) -> String {
    let mut fields = Fields::default();
    fields.add(&hook.name);
    match &hook.work {
        HookWork::Argv(argv) => {
            argv.iter().fold(fields.add("argv"), |fields, word| fields.add(word))
        }
        HookWork::Script(script) => fields.add("script").add(script.expose()),
    };
    fields.hash()
}

/// Fields of a hash: each is led by its length, so that no two lists run together.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<u8>);

impl Fields {
    pub(super) fn add(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.0.extend((bytes.len() as u64).to_le_bytes());
        self.0.extend(bytes);
        self
    }

    pub(super) fn hash(&self) -> String {
        sha256(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_together() {
        let of = |words: &[&str]| {
            let mut fields = Fields::default();
            words.iter().fold(&mut fields, |fields, word| fields.add(word)).hash()
        };
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
    }
}
