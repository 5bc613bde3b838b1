//! The OCI spec that every container starts from.

use serde_json::{Map, Value, json};

use super::json_text::{Json, object, pretty};
use super::node::Node;
use super::step::FileBody;
use super::{Draft, Owner};

pub(crate) const PATH: &str = "/etc/containerd/base-runtime-spec.json";

const CAPABILITIES: [&str; 14] = [
    "CAP_AUDIT_WRITE",
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_MKNOD",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_RAW",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
];

/// Plans the spec: the default, or the user's fields laid over it.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    let user = &node.config.containerd.base_runtime_spec;
    let file = FileBody::new(PATH, 0o644, text(user));
    draft.file(Owner::Containerd, file, "limits and mounts of every container");
}

/// The two forms are equal to nodeadm's files to the last byte: its default is a file with one
/// object in its own order, its merged document is encoded and ends without a newline.
pub(crate) fn text(user: &Map<String, Value>) -> String {
    let mut spec = default_spec();
    if user.is_empty() {
        let mut spec = Json::from(spec);
        order_rlimit(&mut spec);
        return pretty(&spec, 2) + "\n";
    }
    merge_over(&mut spec, &Value::Object(user.clone()));
    pretty(&Json::from(spec), 4)
}

/// Objects merge key by key; everything else replaces, null included.
fn merge_over(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge_over(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

fn order_rlimit(spec: &mut Json) {
    let rlimit = object([
        ("type", "RLIMIT_NOFILE".into()),
        ("soft", Json::from(json!(65536))),
        ("hard", Json::from(json!(1048576))),
    ]);
    if let Some(place) = at(spec, "process").and_then(|process| at(process, "rlimits")) {
        *place = Json::List(vec![rlimit]);
    }
}

fn at<'a>(json: &'a mut Json, key: &str) -> Option<&'a mut Json> {
    match json {
        Json::Object(pairs) => pairs.iter_mut().find(|(name, _)| name == key).map(|(_, json)| json),
        _ => None,
    }
}

fn default_spec() -> Value {
    let namespaces = ["ipc", "mount", "network", "pid", "uts"].map(|kind| json!({"type": kind}));
    json!({
        "ociVersion": "1.1.0",
        "root": {"path": "rootfs"},
        "process": {
            "cwd": "/",
            "noNewPrivileges": true,
            "user": {"uid": 0, "gid": 0},
            "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 65536, "hard": 1048576}],
            "capabilities": {
                "bounding": CAPABILITIES,
                "effective": CAPABILITIES,
                "permitted": CAPABILITIES,
            },
        },
        "mounts": [
            mount("/dev", "tmpfs", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
            mount("/dev/mqueue", "mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
            mount("/dev/pts", "devpts", "devpts",
                &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]),
            mount("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"]),
            mount("/sys", "sysfs", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
        ],
        "linux": {
            "namespaces": namespaces,
            "resources": {"devices": [{"allow": false, "access": "rwm"}]},
            "maskedPaths": [
                "/proc/acpi",
                "/proc/asound",
                "/proc/kcore",
                "/proc/keys",
                "/proc/latency_stats",
                "/proc/sched_debug",
                "/proc/scsi",
                "/proc/timer_list",
                "/proc/timer_stats",
                "/sys/firmware",
            ],
            "readonlyPaths":
                ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    })
}

fn mount(destination: &str, kind: &str, source: &str, options: &[&str]) -> Value {
    json!({"destination": destination, "type": kind, "source": source, "options": options})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_has_its_own_layout() {
        let text = text(&Map::new());
        assert!(
            text.starts_with("{\n  \"linux\": {\n    \"maskedPaths\": [\n      \"/proc/acpi\",\n")
        );
        assert!(text.contains("{\n        \"type\": \"RLIMIT_NOFILE\",\n        \"soft\": 65536,\n        \"hard\": 1048576\n      }"));
        assert!(text.ends_with("  \"root\": {\n    \"path\": \"rootfs\"\n  }\n}\n"));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), default_spec());
    }

    #[test]
    fn user_fields_merge_and_lists_replace() {
        let user = json!({"linux": {"maskedPaths": []}, "process": {"cwd": null}, "x": {"y": 0}});
        let text = text(user.as_object().unwrap());
        assert!(!text.ends_with('\n') && text.starts_with("{\n    \"linux\""));
        let merged: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(merged["linux"]["maskedPaths"], json!([]));
        assert_eq!(merged["linux"]["readonlyPaths"], default_spec()["linux"]["readonlyPaths"]);
        assert_eq!(merged["process"]["cwd"], Value::Null);
        assert_eq!(merged["x"]["y"], 0);
    }
}
