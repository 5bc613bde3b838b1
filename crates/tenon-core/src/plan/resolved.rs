//! Name servers and search domains for systemd-resolved.

use super::node::Node;
use super::step::FileBody;
use super::{Draft, Owner};

pub(crate) const PATH: &str = "/run/systemd/resolved.conf.d/40-eks.conf";

/// Plans the drop-in, if the config asks for servers or domains.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    let instance = &node.config.instance;
    let lines = [("DNS", &instance.nameservers), ("Domains", &instance.domains)];
    let set: String = lines
        .iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(key, values)| format!("{key}={}\n", values.join(" ")))
        .collect();
    if !set.is_empty() {
        let file = FileBody::new(PATH, 0o644, format!("[Resolve]\n{set}"));
        draft.file(Owner::Node, file, "spec.instance.network");
    }
}
