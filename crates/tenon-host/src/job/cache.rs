//! The config cache on disk. A cache that cannot be used is no reason to fail: it is named and
//! left out.

use tenon_core::config::cache::{self, Cached};

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
