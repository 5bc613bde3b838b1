//! What the renderer has no place for, taken out of the group.

use super::draft::Draft;
use crate::codes::userdata::NOT_AVAILABLE;
use crate::problem::Finding;
use crate::userdata::Group;
use crate::userdata::group::MaxPodsPolicy;

/// A field of the group as the renderer names it, the settings that it came from, and how it is
/// taken out.
type Loss = (&'static str, &'static [&'static str], fn(&mut Group));

const LOSSES: &[Loss] = &[
    ("preBootstrapCommands", &["preCommands"], |group| group.pre_commands.clear()),
    ("postBootstrapCommands", &["postCommands"], |group| group.post_commands.clear()),
    ("overrideBootstrapCommand", &["containerd"], |group| group.override_command = None),
    ("instanceStore", &["instanceStore"], |group| group.instance_store = None),
    ("maxPodsPerNode", &["maxPods"], |group| group.max_pods = None),
    ("maxPodsPolicy", &["maxPodsCeiling"], |group| {
        group.max_pods_policy = MaxPodsPolicy::Fixed;
        group.max_pods = None;
    }),
    ("maxPodsExpression", &["maxPodsExpression"], |group| group.max_pods_expression = None),
    ("clusterDNS", &["clusterDns"], |group| group.cluster_dns = None),
    ("kubeletExtraConfig", &["kubelet", "config"], |group| group.kubelet_config.clear()),
    ("kubelet", &["kubelet", "flags"], |group| group.kubelet_flags.clear()),
    ("containerdConfig", &["containerd", "config"], |group| group.containerd_config = None),
    ("featureGates", &["featureGates"], |group| group.feature_gates.clear()),
    ("environment", &["environment"], |group| group.environment.clear()),
    ("proxy", &["environment"], |group| group.proxy = None),
    ("files", &["files"], |group| group.files.clear()),
    ("bottlerocket", &["bottlerocket"], |group| group.bottlerocket.settings.clear()),
];

const KUBELET_FIELD: &str = "kubeletExtraConfig.";

/// Takes out every field that the findings say is not available. False when there is none, so
/// that something else is wrong.
pub(super) fn take_out(draft: &mut Draft, findings: &[Finding]) -> bool {
    let mut any = false;
    for finding in findings.iter().filter(|finding| finding.problem.page == &NOT_AVAILABLE) {
        let Some(place) = &finding.problem.place else { continue };
        any |= take_field(draft, &place.path, &finding.problem.what);
    }
    any
}

fn take_field(draft: &mut Draft, path: &str, reason: &str) -> bool {
    if let Some(field) = path.strip_prefix(KUBELET_FIELD) {
        let field = field.split('.').next().unwrap_or(field);
        draft.lose(&["kubelet", "config", field], reason);
        return draft.group.kubelet_config.remove(field).is_some();
    }
    let field = path.split('[').next().unwrap_or(path);
    // Not in the table is what the cluster is: a family without it cannot be its node.
    let Some((_, names, clear)) = LOSSES.iter().find(|(name, ..)| *name == field) else {
        return false;
    };
    draft.lose(names, reason);
    let before = draft.group.clone();
    clear(&mut draft.group);
    draft.group != before
}
