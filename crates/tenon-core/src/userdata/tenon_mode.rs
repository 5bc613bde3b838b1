//! Mode `tenon`: the user data is a config for the `tenon` of the image.

use serde_json::{Map, Value, json};

use super::document::{Ignition, IgnitionUnit, NodeFile};
use super::group::MaxPodsPolicy;
use super::mime_write::{self, Part};
use super::{Cluster, Document, Draft, Group, Options, al2023, self_contained, signal};
use crate::problem::Finding;
use crate::yaml;

const CONFIG_PATH: &str = "/etc/tenon/config.yaml";
const SIGNAL_UNIT: &str = "tenon-signal.service";

pub(crate) fn draft(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<Draft> {
    let own_kind = options.tenon_part || group.family.has_ignition();
    // The project's kind has a field for taints.
    let options =
        &Options { taints_in_config: options.taints_in_config && !own_kind, ..options.clone() };
    let spec = al2023::spec(cluster, group, options, findings);
    let (media_type, text) = match own_kind {
        true => (mime_write::TENON_CONFIG, tenon_document(spec, group)),
        false => (mime_write::NODE_CONFIG, al2023::document(spec)),
    };
    let document = match group.family.has_ignition() {
        true => ignition(group, text),
        false => {
            let mut parts = al2023::pre_parts(group);
            parts.push(Part::new(media_type, text, "config"));
            parts.extend(signal_part(group));
            Document::Mime(parts)
        }
    };
    let note = "the image must contain tenon and its unit, which does the join".to_owned();
    Some(Draft { document, notes: vec![note] })
}

/// The project's own kind: what NodeConfig says, with labels and taints as data, the pod
/// ceiling as a mode, and hooks for what runs after the join.
fn tenon_document(mut spec: Map<String, Value>, group: &Group) -> String {
    let mut node = Map::new();
    if !group.labels.is_empty() {
        node.insert("labels".into(), json!(group.labels));
    }
    if !group.taints.is_empty() {
        node.insert("taints".into(), al2023::taint_objects(group));
    }
    if !node.is_empty() {
        spec.insert("node".into(), Value::Object(node));
    }
    if let Some(Value::Object(kubelet)) = spec.get_mut("kubelet") {
        own_kubelet(kubelet, group);
        if kubelet.is_empty() {
            spec.remove("kubelet");
        }
    }
    let hooks = hooks(group);
    if !hooks.is_empty() {
        spec.insert("hooks".into(), json!({"postJoin": hooks}));
    }
    yaml::emit(&json!({"apiVersion": "tenon.dev/v1alpha1", "kind": "NodeConfig", "spec": spec}))
}

fn own_kubelet(kubelet: &mut Map<String, Value>, group: &Group) {
    match group.kubelet_flags.is_empty() {
        true => kubelet.remove("flags"),
        false => kubelet.insert("flags".into(), json!(group.kubelet_flags)),
    };
    if let (MaxPodsPolicy::Min, Some(most)) = (group.max_pods_policy, group.max_pods) {
        kubelet.remove("maxPodsExpression");
        kubelet.insert("maxPods".into(), json!({"mode": "min", "value": most}));
    }
}

fn hooks(group: &Group) -> Vec<Value> {
    let numbered = group.post_commands.iter().enumerate();
    numbered
        .map(|(index, text)| json!({"name": format!("post-{index:02}"), "argv": ["/bin/bash", "-c", text]}))
        .collect()
}

/// The signal is a unit, not a hook: hooks after the join do not run when the join fails.
fn signal_part(group: &Group) -> Option<Part> {
    let unit = signal::tenon_unit(group.signal.as_ref()?);
    let file = NodeFile::new(format!("/etc/systemd/system/{SIGNAL_UNIT}"), 0o644, unit);
    let start = format!("systemctl daemon-reload\nsystemctl start --no-block {SIGNAL_UNIT}\n");
    Some(Part::script(&signal::install_script(&[file], &start), "signal unit"))
}

/// On Ignition images the config is a file and two units of the image are enabled.
fn ignition(group: &Group, text: String) -> Document {
    let mut files = vec![NodeFile::new(CONFIG_PATH, 0o600, text)];
    let mut units: Vec<_> = ["tenon-init.service", "kubelet.service"]
        .map(|name| IgnitionUnit { name: name.to_owned(), enabled: true, ..Default::default() })
        .into();
    if !group.pre_commands.is_empty() {
        files.extend(al2023::script_files("pre", &group.pre_commands));
        units.insert(0, self_contained::pre_unit(group, "tenon-init.service"));
    }
    if let Some(wish) = &group.signal {
        units.push(IgnitionUnit {
            name: SIGNAL_UNIT.to_owned(),
            enabled: true,
            contents: Some(signal::tenon_unit(wish)),
            ..Default::default()
        });
    }
    Document::Ignition(Ignition { files, units })
}
