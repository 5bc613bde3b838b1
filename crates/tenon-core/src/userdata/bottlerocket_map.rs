//! Fields of KubeletConfiguration as settings of Bottlerocket.

use serde_json::Value as Json;
use toml::{Table, Value};

/// How the value changes on the way.
#[derive(Clone, Copy)]
enum Shape {
    Same,
    /// A number that the setting wants as text.
    Text,
    /// A map of switches that becomes the list of those that are on.
    NamesOn,
    /// The list of NUMA nodes as tables by node.
    ReservedMemory,
}

/// Kubelet field and setting, where the name is not just spelled in another way.
const RENAMED: [(&str, &str, Shape); 11] = [
    ("registryPullQPS", "registry-qps", Shape::Same),
    ("registryBurst", "registry-burst", Shape::Same),
    ("eventRecordQPS", "event-qps", Shape::Same),
    ("kubeAPIQPS", "kube-api-qps", Shape::Same),
    ("kubeAPIBurst", "kube-api-burst", Shape::Same),
    ("shutdownGracePeriodCriticalPods", "shutdown-grace-period-for-critical-pods", Shape::Same),
    ("cpuManagerPolicyOptions", "cpu-manager-policy-options", Shape::NamesOn),
    ("cpuCFSQuota", "cpu-cfs-quota-enforced", Shape::Same),
    ("reservedMemory", "memory-manager-reserved-memory", Shape::ReservedMemory),
    ("imageGCHighThresholdPercent", "image-gc-high-threshold-percent", Shape::Text),
    ("imageGCLowThresholdPercent", "image-gc-low-threshold-percent", Shape::Text),
];

/// Fields whose setting is the same name in kebab-case.
const KEBAB: [&str; 21] = [
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMaxPodGracePeriod",
    "kubeReserved",
    "systemReserved",
    "allowedUnsafeSysctls",
    "eventBurst",
    "containerLogMaxSize",
    "containerLogMaxFiles",
    "containerLogMaxWorkers",
    "containerLogMonitorInterval",
    "cpuManagerPolicy",
    "cpuManagerReconcilePeriod",
    "memoryManagerPolicy",
    "topologyManagerPolicy",
    "topologyManagerScope",
    "shutdownGracePeriod",
    "seccompDefault",
    "podPidsLimit",
    "singleProcessOOMKill",
];

/// The setting under `settings.kubernetes` for a field; None when there is none.
pub fn setting(field: &str, value: &Json) -> Option<(String, Value)> {
    if let Some((_, name, shape)) = RENAMED.iter().find(|(known, _, _)| *known == field) {
        return Some(((*name).to_owned(), shaped(value, *shape)?));
    }
    KEBAB.contains(&field).then(|| Some((kebab(field), from_json(value)?)))?
}

/// The kubelet field for a setting, for reading settings back.
pub fn field(setting: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(_, name, _)| *name == setting).map(|(field, _, _)| *field);
    renamed.or_else(|| KEBAB.into_iter().find(|field| kebab(field) == setting))
}

fn shaped(value: &Json, shape: Shape) -> Option<Value> {
    match shape {
        Shape::Same => from_json(value),
        Shape::Text => Some(Value::from(match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        })),
        Shape::NamesOn => {
            let on =
                value.as_object()?.iter().filter(|(_, state)| **state == "true" || **state == true);
            Some(Value::Array(on.map(|(name, _)| Value::from(name.as_str())).collect()))
        }
        Shape::ReservedMemory => reserved_memory(value),
    }
}

fn reserved_memory(value: &Json) -> Option<Value> {
    let mut table = Table::new();
    for entry in value.as_array()? {
        let mut limits = from_json(&entry["limits"])?.as_table()?.clone();
        limits.insert("enabled".into(), Value::from(true));
        table.insert(entry["numaNode"].as_u64()?.to_string(), Value::Table(limits));
    }
    Some(Value::Table(table))
}

/// `singleProcessOOMKill` as `single-process-oom-kill`: a word starts at each capital that
/// follows a small letter or precedes one.
fn kebab(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let after_small = index > 0 && letters[index - 1].is_lowercase();
        let before_small =
            index > 0 && letters.get(index + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && (after_small || before_small) {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// A JSON value as TOML; None for null, which TOML lacks.
pub fn from_json(value: &Json) -> Option<Value> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64()?),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(list) => Value::Array(list.iter().map(from_json).collect::<Option<_>>()?),
        Json::Object(map) => {
            let pairs = map.iter().map(|(key, value)| Some((key.clone(), from_json(value)?)));
            Value::Table(pairs.collect::<Option<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_follow_the_table() {
        for (field_name, name) in [
            ("evictionHard", "eviction-hard"),
            ("singleProcessOOMKill", "single-process-oom-kill"),
            ("podPidsLimit", "pod-pids-limit"),
            ("kubeAPIQPS", "kube-api-qps"),
            ("cpuCFSQuota", "cpu-cfs-quota-enforced"),
        ] {
            let value = json!({});
            assert_eq!(setting(field_name, &value).unwrap().0, name);
            assert_eq!(field(name), Some(field_name));
        }
        assert_eq!(setting("volumePluginDir", &json!("/x")), None);
    }

    #[test]
    fn shapes_change_where_the_setting_wants_it() {
        let text = setting("imageGCHighThresholdPercent", &json!(85)).unwrap().1;
        assert_eq!(text, Value::from("85"));
        let on =
            setting("cpuManagerPolicyOptions", &json!({"full-pcpus-only": "true", "b": "false"}));
        assert_eq!(on.unwrap().1, Value::Array(vec![Value::from("full-pcpus-only")]));
        let memory = json!([{"numaNode": 0, "limits": {"memory": "1124Mi"}}]);
        let (_, value) = setting("reservedMemory", &memory).unwrap();
        assert_eq!(value["0"]["memory"].as_str(), Some("1124Mi"));
        assert_eq!(value["0"]["enabled"].as_bool(), Some(true));
    }
}
