//! Hashes of content and of lists of fields, in hexadecimal.

use super::hash::hex_digest;
use crate::config::{Hook, HookWork};

/// sha256 of some bytes.
pub fn sha256(bytes: &[u8]) -> String {
    hex_digest(bytes)
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
        hex_digest(&self.0)
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
        assert!(sha256(b"").starts_with("e3b0c442"));
    }
}
