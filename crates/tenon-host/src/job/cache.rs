//! The config cache on disk. A cache that cannot be used is no reason to fail: it is named and
//! left out.

use tenon_core::config::cache::{self, Cached};

use tenon_core::plan::hash_public;

use super::{Job, Prepared};
use crate::apply::{self, Lock};
use crate::root::Root;

/// No cache comes near this size.
const LARGEST: u64 = 8 << 20;

/// Reads the cache at a node path, if one was named and is usable.
pub(super) fn read(root: &Root, path: Option<&str>) -> Option<Cached> {
    let path = path?;
    let decoded = match root.read(path, LARGEST) {
        Ok(None) => return None,
        Ok(Some(bytes)) => cache::decode(&format!("file://{path}"), &bytes),
        Err(error) => Err(error.to_string()),
    };
    decoded.inspect_err(|why| tracing::warn!(path, why, "config cache ignored")).ok()
}

impl Job<'_> {
    /// Saves config and facts for the phases after this one. A cache that cannot be saved costs
    /// time later, so it is a warning.
    pub fn save_cache(&self, lock: &Lock, prepared: &Prepared) {
        let Some(path) = self.order.cache.as_deref() else { return };
        let hash = hash_public(&prepared.plan);
        let text = cache::encode(&prepared.loaded.config, &prepared.facts, &hash);
        if let Err(problem) = apply::store(self.root, lock, path, 0o600, text.as_bytes()) {
            tracing::warn!(path, why = %problem, "config cache not saved");
        }
    }
}
