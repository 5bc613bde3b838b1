//! The config cache on disk. A cache that cannot be used is no reason to fail: it is named and
//! left out.

use tenon_core::config::cache::{self, Cached};
use tenon_core::plan::hash_public;
use tenon_core::problem::Problem;

use super::{Job, Prepared};
use crate::apply::{self, Lock};
use crate::root::Root;

/// No cache comes near this size.
const LARGEST: u64 = 8 << 20;

/// Reads the cache at a node path. One that cannot be used is named in the log.
pub fn read(root: &Root, path: &str) -> Option<Cached> {
    let decoded = match root.read(path, LARGEST) {
        Ok(None) => return None,
        Ok(Some(bytes)) => cache::decode(&format!("file://{path}"), &bytes),
        Err(error) => Err(error.to_string()),
    };
    decoded.inspect_err(|why| tracing::warn!(path, why, "config cache ignored")).ok()
}

impl Job<'_> {
    /// Forgets a cache of another machine, as in an image baked from a used node.
    pub(super) fn drop_foreign_cache(&mut self) -> Result<(), Problem> {
        let Some(cached) = &self.cached else { return Ok(()) };
        let (of, uri) = (cached.instance_id.clone(), cached.uri.clone());
        let here = self.instance_id()?;
        if of != here {
            let why = format!("it is of {of}, this instance is {here}");
            tracing::warn!(path = uri, why, "config cache ignored");
            self.cached = None;
        }
        Ok(())
    }

    /// Saves config and facts for the phases after this one. A cache that cannot be saved costs
    /// time later, so it is a warning.
    pub fn save_cache(&self, lock: &Lock, prepared: &Prepared) {
        let Some(path) = self.order.cache.as_deref() else { return };
        let Prepared { loaded, facts, plan, .. } = prepared;
        let name = &plan.summary.node_name;
        let text = cache::encode(&loaded.config, facts, name, &hash_public(plan));
        if let Err(problem) = apply::store(self.root, lock, path, 0o600, text.as_bytes()) {
            tracing::warn!(path, why = %problem, "config cache not saved");
        }
    }
}
