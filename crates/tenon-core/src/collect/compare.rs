//! Two nodes side by side: what differs between their bundles.
//!
//! Logs differ always and say little; settings that differ are the usual answer to "why does
//! that one work and this one not?".

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::manifest::Manifest;

/// Items whose lines are compared as a set of settings.
const SETTINGS: &[&str] = &["kernel/sysctls.txt", "kernel/modules.txt", "system/packages-rpm.txt"];
/// Lines shown of one item.
const MOST_LINES: usize = 40;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The item, or the field of the node's identity.
    pub subject: String,
    pub left: Option<String>,
    pub right: Option<String>,
}

/// True for an item whose content is a setting rather than a story.
pub fn is_setting(path: &str) -> bool {
    let story = path.ends_with(".log") || path.starts_with("pods/") || path.starts_with("logs/");
    let config = ["identity/", "bootstrap/", "kubelet/", "containerd/", "cni/", "security/"]
        .iter()
        .any(|group| path.starts_with(group));
    let named = SETTINGS.contains(&path)
        || [
            "system/units.json",
            "kernel/version",
            "kernel/command-line",
            "network/resolv-conf",
            "network/hosts",
            "network/proxy-settings",
        ]
        .iter()
        .any(|item| path.starts_with(item));
    !story && (config || named) && !path.starts_with("identity/run.")
}

/// Differences of the two identities and of the statuses of their items.
pub fn manifests(left: &Manifest, right: &Manifest) -> Vec<Difference> {
    let mut found = Vec::new();
    let fields = |manifest: &Manifest| -> BTreeMap<String, String> {
        let value = serde_json::to_value(&manifest.node).unwrap_or_default();
        let fields = value.as_object().cloned().unwrap_or_default();
        fields.into_iter().map(|(name, value)| (format!("node.{name}"), text(&value))).collect()
    };
    differ(&fields(left), &fields(right), &mut found);
    let statuses = |manifest: &Manifest| -> BTreeMap<String, String> {
        let items = manifest.items.iter().filter(|item| is_setting(&item.path));
        items.map(|item| (item.path.clone(), item.status.name().to_owned())).collect()
    };
    differ(&statuses(left), &statuses(right), &mut found);
    found
}

/// Differences of one item's two contents: by unit for the list of units, else by line.
pub fn contents(path: &str, left: &str, right: &str) -> Vec<Difference> {
    let mut found = Vec::new();
    if path == "system/units.json" {
        differ(&units(left), &units(right), &mut found);
    } else {
        let lines = |text: &'_ str| -> BTreeSet<String> {
            text.lines().map(|line| line.trim_end().to_owned()).collect()
        };
        let (left, right) = (lines(left), lines(right));
        found.extend(left.difference(&right).map(|line| Difference {
            subject: path.to_owned(),
            left: Some(line.clone()),
            right: None,
        }));
        found.extend(right.difference(&left).map(|line| Difference {
            subject: path.to_owned(),
            left: None,
            right: Some(line.clone()),
        }));
    }
    found.truncate(MOST_LINES);
    found
}

/// The state of each unit in a few words.
fn units(json: &str) -> BTreeMap<String, String> {
    let list: Value = serde_json::from_str(json).unwrap_or_default();
    let units = list["units"].as_array().cloned().unwrap_or_default();
    let states = units.iter().filter_map(|unit| {
        let state = ["load", "active", "sub", "enabled"].map(|field| text(&unit[field]));
        Some((format!("unit {}", unit["name"].as_str()?), state.join(" ")))
    });
    states.collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn differ(
    left: &BTreeMap<String, String>,
    right: &BTreeMap<String, String>,
    found: &mut Vec<Difference>,
) {
    let names: BTreeSet<_> = left.keys().chain(right.keys()).collect();
    for name in names {
        let (left, right) = (left.get(name), right.get(name));
        if left != right {
            found.push(Difference {
                subject: name.clone(),
                left: left.cloned(),
                right: right.cloned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_from_stories() {
        for path in ["kubelet/config/config.json", "kernel/sysctls.txt", "system/units.json"] {
            assert!(is_setting(path), "{path}");
        }
        for path in
            ["kubelet/journal.log", "pods/coredns/0.log", "system/uptime.txt", "identity/run.json"]
        {
            assert!(!is_setting(path), "{path}");
        }
    }

    #[test]
    fn lines_and_units_are_compared() {
        let found = contents("kernel/sysctls.txt", "a = 1\nb = 2\n", "b = 2\na = 3\n");
        let sides: Vec<_> =
            found.iter().map(|it| (it.left.as_deref(), it.right.as_deref())).collect();
        assert_eq!(sides, [(Some("a = 1"), None), (None, Some("a = 3"))]);
        let units =
            |active: &str| format!(r#"{{"units":[{{"name":"k.service","active":"{active}"}}]}}"#);
        let found = contents("system/units.json", &units("active"), &units("failed"));
        assert_eq!(found[0].subject, "unit k.service");
        assert!(contents("system/units.json", &units("x"), &units("x")).is_empty());
    }
}
