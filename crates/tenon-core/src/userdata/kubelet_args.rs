//! Labels and taints as arguments of the kubelet.

use super::Group;

/// `a=b,c=d`, sorted by key.
pub fn labels(group: &Group) -> String {
    let pairs: Vec<_> = group.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// `k=v:Effect,…`, in the user's order.
pub fn taints(group: &Group) -> String {
    let taints = group.taints.iter();
    let list: Vec<_> =
        taints.map(|taint| format!("{}={}:{}", taint.key, taint.value, taint.effect)).collect();
    list.join(",")
}

/// The flags for both, each present only with content.
pub fn flags(group: &Group) -> Vec<String> {
    let (labels, taints) = (labels(group), taints(group));
    let pairs = [("--node-labels", labels), ("--register-with-taints", taints)];
    let present = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    present.map(|(flag, value)| format!("{flag}={value}")).collect()
}
