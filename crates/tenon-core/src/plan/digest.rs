//! One number for a whole plan: the same steps in the same order give the same hash anywhere.

use sha2::{Digest, Sha256};

use super::step::{Action, Plan, Step};
use crate::config::{Hook, HookWork};

/// Whether secret bytes take part in a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// For the 0600 record only: a published hash would let weak secrets be guessed.
    Counted,
    /// Replaced by a constant, safe to publish.
    Masked,
}

/// The hash of every step of the plan, in hex.
pub fn plan(plan: &Plan, secrets: Secrets) -> String {
    let mut hash = Hash::new();
    for step in &plan.steps {
        feed_step(&mut hash, step, secrets);
    }
    hash.hex()
}

/// sha256 in hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash that stamps a hook which runs once per instance.
pub fn hook(hook: &Hook) -> String {
    let mut hash = Hash::new();
    feed_hook(&mut hash, hook, Secrets::Counted);
    hash.hex()
}

/// A hash of fields: each is led by its length, so that no two lists run together.
pub(super) struct Hash(Sha256);

impl Hash {
    pub(super) fn new() -> Self {
        Hash(Sha256::new())
    }

    pub(super) fn field(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    fn list(&mut self, items: &[String]) -> &mut Self {
        self.field(items.len().to_le_bytes());
        items.iter().fold(self, |hash, item| hash.field(item))
    }

    pub(super) fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn feed_step(hash: &mut Hash, step: &Step, secrets: Secrets) {
    hash.field(format!("{:?}", step.phase));
    match &step.action {
        Action::Directory { path, mode } => {
            hash.field("directory").field(path).field(mode.to_le_bytes());
        }
        Action::File(file) => {
            let masked = file.secret && secrets == Secrets::Masked;
            let body: &[u8] = if masked { b"[redacted]" } else { &file.body };
            hash.field("file").field(&file.path).field(file.mode.to_le_bytes()).field(body);
            hash.field([u8::from(file.refuse_foreign), u8::from(file.keep_existing)]);
        }
        Action::Block(block) => {
            hash.field("block").field(&block.path).field(&block.name).list(&block.lines);
        }
        Action::Remove(removal) => {
            hash.field("remove").field(&removal.path).field(format!("{:?}", removal.proof));
        }
        Action::Reload { inputs } => {
            hash.field("reload").list(inputs);
        }
        Action::Unit(unit) => {
            hash.field("unit").field(&unit.name).field(format!("{:?}", unit.verb));
            hash.list(&unit.inputs).list(&unit.requires);
            hash.field(format!("{:?} {:?}", unit.ready, unit.deadline));
        }
        Action::Program(program) => {
            hash.field("program").list(&program.argv).field(format!("{:?}", program.timeout));
            hash.field(format!("{:?} {:?}", program.unless_exists, program.stdout_to));
            hash.field(format!("{:?} {:?}", program.stamp, program.unless_signature));
            hash.list(&program.when_changed);
        }
        Action::Link { path, target } => {
            hash.field("link").field(path).field(target);
        }
        Action::Bind(bind) => {
            hash.field("bind").field(&bind.at).field(&bind.source).field(&bind.unit);
            hash.list(&bind.owners);
        }
        Action::Hook { stage, hook } => {
            hash.field("hook").field(format!("{stage:?}"));
            feed_hook(hash, hook, secrets);
        }
    }
}

fn feed_hook(hash: &mut Hash, hook: &Hook, secrets: Secrets) {
    hash.field(&hook.name).field(format!("{:?}", hook.timeout));
    hash.field(format!("{:?} {:?}", hook.on_failure, hook.run));
    match &hook.work {
        HookWork::Argv(argv) => hash.field("argv").list(argv),
        HookWork::Script(_) if secrets == Secrets::Masked => hash.field("script"),
        HookWork::Script(script) => hash.field("script").field(script.expose()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::diff::tests::{file, plan_of};

    #[test]
    fn the_hash_follows_content_order_and_mode() {
        let (a, b) = (file("/etc/a", 0o644, "1"), file("/etc/b", 0o600, "2"));
        let of = |steps| plan(&plan_of(steps), Secrets::Counted);
        assert_eq!(of(vec![a.clone(), b.clone()]), of(vec![a.clone(), b.clone()]));
        assert_ne!(of(vec![a.clone(), b.clone()]), of(vec![b.clone(), a.clone()]));
        assert_ne!(of(vec![a.clone()]), of(vec![file("/etc/a", 0o600, "1")]));
        assert_ne!(of(vec![a]), of(vec![file("/etc/a", 0o644, "2")]));
        assert_eq!(sha256(b"").len(), 64);
        assert!(sha256(b"").starts_with("e3b0c442"));
    }

    #[test]
    fn a_published_hash_does_not_depend_on_secrets() {
        let with = |text: &str| {
            let mut step = file("/etc/a", 0o600, text);
            if let Action::File(file) = &mut step.action {
                file.secret = true;
            }
            plan_of(vec![step])
        };
        let (one, two) = (with("one"), with("two"));
        assert_eq!(plan(&one, Secrets::Masked), plan(&two, Secrets::Masked));
        assert_ne!(plan(&one, Secrets::Counted), plan(&two, Secrets::Counted));
    }
}
