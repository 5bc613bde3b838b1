//! What each Kubernetes minor knows: fields of KubeletConfiguration and kubelet flags.
//!
//! The two tables are generated (`cargo xtask kubelet-tables`) and reviewed by their diff. A
//! check says what the kubelet's strict decoder would say, before there is a kubelet, and with
//! the name that was probably meant.

use serde_json::{Map, Value};

use crate::nearest::nearest;

static FIELDS: &str = include_str!("kubelet_fields.tsv");
static FLAGS: &str = include_str!("kubelet_flags.tsv");

/// Something in `kubelet.config` that the kubelet would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldIssue {
    /// Keys from the top of KubeletConfiguration; list positions as numbers.
    pub path: Vec<String>,
    pub message: String,
    /// The name that was probably meant.
    pub suggestion: Option<String>,
}

/// What is known about a kubelet flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagInfo {
    pub name: &'static str,
    /// `bool`, `int`, `float`, `string`, `duration`, `list`, `map`; `-` when unknown.
    pub kind: &'static str,
    pub since: (u32, u32),
    /// First version without it.
    pub until: Option<(u32, u32)>,
    pub deprecated_since: Option<(u32, u32)>,
    /// The field of KubeletConfiguration that does the same.
    pub field: Option<&'static str>,
}

impl FlagInfo {
    /// True when the kubelet of this version takes the flag; None means any version.
    pub fn known_to(&self, version: Option<(u32, u32)>) -> bool {
        within(self.since, self.until, version)
    }
}

/// Finds a flag by its name without dashes in front. As in the kubelet, `_` reads as `-`.
pub fn flag(name: &str) -> Option<FlagInfo> {
    let name = name.replace('_', "-");
    flag_rows().find(|flag| flag.name == name)
}

/// The names of all flags, sorted.
pub fn flag_names() -> impl Iterator<Item = &'static str> {
    flag_rows().map(|flag| flag.name)
}

fn flag_rows() -> impl Iterator<Item = FlagInfo> {
    rows(FLAGS).filter_map(|columns| {
        let [name, kind, since, until, deprecated, field] = columns[..] else { return None };
        Some(FlagInfo {
            name,
            kind,
            since: version(since)?,
            until: version(until),
            deprecated_since: version(deprecated),
            field: Some(field).filter(|field| *field != "-"),
        })
    })
}

#[derive(Debug, Clone, Copy)]
struct FieldRow {
    path: &'static str,
    kind: &'static str,
    since: (u32, u32),
    until: Option<(u32, u32)>,
}

fn field_rows() -> impl Iterator<Item = FieldRow> {
    rows(FIELDS).filter_map(|columns| {
        let [path, kind, since, until] = columns[..] else { return None };
        Some(FieldRow { path, kind, since: version(since)?, until: version(until) })
    })
}

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// `1.34` as numbers; None for `-`.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The oldest and newest minor of the tables, from their head.
fn covered() -> ((u32, u32), (u32, u32)) {
    let head = FIELDS.lines().find_map(|line| line.strip_prefix("# minors "));
    let words = head.and_then(|range| range.split_once(" to "));
    let parsed = words.and_then(|(first, last)| Some((version(first)?, version(last)?)));
    parsed.unwrap_or(((1, 0), (1, u32::MAX)))
}

fn within(since: (u32, u32), until: Option<(u32, u32)>, wanted: Option<(u32, u32)>) -> bool {
    let Some(wanted) = wanted else { return true };
    let (oldest, newest) = covered();
    // A version outside of the tables counts as its nearest neighbour inside.
    let wanted = wanted.clamp(oldest, newest);
    since <= wanted && until.is_none_or(|until| wanted < until)
}

/// Finds what the kubelet of this version would refuse. Without a version every field of every
/// minor is accepted. All issues are found, in the order of the keys.
pub fn check_config(config: &Map<String, Value>, version: Option<(u32, u32)>) -> Vec<FieldIssue> {
    let mut check = Check { rows: field_rows().collect(), version, issues: Vec::new() };
    check.object(config, "", &[]);
    check.issues
}

struct Check {
    rows: Vec<FieldRow>,
    version: Option<(u32, u32)>,
    issues: Vec<FieldIssue>,
}

impl Check {
    fn issue(&mut self, path: &[String], message: impl Into<String>, suggestion: Option<String>) {
        self.issues.push(FieldIssue { path: path.to_vec(), message: message.into(), suggestion });
    }

    /// Checks the keys of an object whose fields stand under `prefix` in the table.
    fn object(&mut self, object: &Map<String, Value>, prefix: &str, at: &[String]) {
        for (key, value) in object {
            let at: Vec<String> = at.iter().cloned().chain([key.clone()]).collect();
            let path = format!("{prefix}{key}");
            let named: Vec<FieldRow> =
                self.rows.iter().filter(|row| row.path == path).copied().collect();
            let fitting = named.iter().find(|row| within(row.since, row.until, self.version));
            match (fitting, named.first()) {
                (Some(row), _) => self.value(value, row.kind, row.path, &at),
                (None, Some(row)) => self.issue(&at, outside(row, self.version), None),
                (None, None) => self.unknown(key, prefix, &at),
            }
        }
    }

    fn unknown(&mut self, key: &str, prefix: &str, at: &[String]) {
        let siblings = self.rows.iter().filter(|row| within(row.since, row.until, self.version));
        let siblings = siblings.filter_map(|row| row.path.strip_prefix(prefix));
        let siblings = siblings.filter(|name| !name.contains('.'));
        if let Some(name) = nearest(key, siblings) {
            let name = name.to_owned();
            return self.issue(at, "unknown field of KubeletConfiguration", Some(name));
        }
        let elsewhere = self.rows.iter().find(|row| row.path.rsplit('.').next() == Some(key));
        match elsewhere.map(|row| row.path.to_owned()) {
            Some(path) => {
                let message = "the field stands elsewhere in KubeletConfiguration";
                self.issue(at, message, Some(path));
            }
            None => self.issue(at, "unknown field of KubeletConfiguration", None),
        }
    }

    /// Checks a value against a type of the table. Null means "not set" to the kubelet.
    fn value(&mut self, value: &Value, kind: &str, path: &str, at: &[String]) {
        if value.is_null() {
            return;
        }
        if let Some(inner) = inside(kind, "list") {
            let Value::Array(items) = value else {
                return self.issue(at, "must be a list", None);
            };
            for (index, item) in items.iter().enumerate() {
                self.value(item, inner, &format!("{path}[]"), &deeper(at, index.to_string()));
            }
        } else if let Some(inner) = inside(kind, "map") {
            let Value::Object(entries) = value else {
                return self.issue(at, "must be a map", None);
            };
            for (key, entry) in entries {
                self.value(entry, inner, path, &deeper(at, key.clone()));
            }
        } else if kind == "object" {
            match value {
                Value::Object(object) => self.object(object, &format!("{path}."), at),
                _ => self.issue(at, "must be a map of fields", None),
            }
        } else if let Some(message) = scalar(value, kind) {
            self.issue(at, message, None);
        }
    }
}

fn deeper(at: &[String], step: String) -> Vec<String> {
    at.iter().cloned().chain([step]).collect()
}

/// `string` of `list<string>`.
fn inside<'a>(kind: &'a str, outer: &str) -> Option<&'a str> {
    kind.strip_prefix(outer)?.strip_prefix('<')?.strip_suffix('>')
}

/// Why a field is not there in this version.
fn outside(row: &FieldRow, version: Option<(u32, u32)>) -> String {
    let number = |(major, minor): (u32, u32)| format!("{major}.{minor}");
    let here = version.map(number).unwrap_or_default();
    match row.until {
        Some(until) if version >= Some(until) => {
            format!(
                "the field left KubeletConfiguration with {}, and this is {here}",
                number(until)
            )
        }
        _ => format!("the field exists since Kubernetes {}, and this is {here}", number(row.since)),
    }
}

/// What is wrong with a scalar of this type, if anything. Never repeats the value.
fn scalar(value: &Value, kind: &str) -> Option<&'static str> {
    match kind {
        "bool" => (!value.is_boolean()).then_some("must be true or false"),
        "string" => (!value.is_string()).then_some("must be text; put it in quotes"),
        "int32" => whole(value, i32::MIN.into(), i32::MAX.into()),
        "int64" => whole(value, i64::MIN, i64::MAX),
        "uint32" => whole(value, 0, u32::MAX.into()),
        "float" => (!value.is_number()).then_some("must be a number"),
        "duration" => duration(value),
        "durationOrInt" if value.is_i64() => None,
        "durationOrInt" => duration(value),
        "quantity" => quantity(value),
        "time" => (!value.is_string()).then_some("must be a time such as 2026-01-31T12:00:00Z"),
        _ => None,
    }
}

fn whole(value: &Value, least: i64, most: i64) -> Option<&'static str> {
    match value.as_i64() {
        Some(number) if (least..=most).contains(&number) => None,
        Some(_) => Some("the number is outside of the range of the field"),
        None if value.is_string() => Some("must be a whole number, without quotes"),
        None => Some("must be a whole number"),
    }
}

fn duration(value: &Value) -> Option<&'static str> {
    let fits = value.as_str().is_some_and(is_duration);
    (!fits).then_some("must be a duration in text, such as 30s, 5m0s or 1h30m")
}

/// A duration as Go reads it: sign, then numbers with units, or a bare zero.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let whole = !rest.is_empty();
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        let points = digits.matches('.').count();
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        if points > 1 || digits.len() == points || !UNITS.contains(&&after[..unit]) {
            return false;
        }
        rest = &after[unit..];
    }
    whole
}

fn quantity(value: &Value) -> Option<&'static str> {
    let fits = value.is_number() || value.as_str().is_some_and(is_quantity);
    (!fits).then_some("must be a quantity such as 100m, 512Mi or 1Gi")
}

/// A quantity as Kubernetes reads it: a number, then a unit or a decimal exponent.
fn is_quantity(text: &str) -> bool {
    const UNITS: [&str; 15] =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (digits, unit) = unsigned.split_at(end);
    let points = digits.matches('.').count();
    let number = points <= 1 && digits.len() > points;
    let exponent = unit.strip_prefix(['e', 'E']).is_some_and(|power| power.parse::<i32>().is_ok());
    number && (UNITS.contains(&unit) || unit == "Ei" || exponent)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(config: Value, version: Option<(u32, u32)>) -> Vec<(String, String, Option<String>)> {
        let Value::Object(config) = config else { panic!("not an object") };
        let issues = check_config(&config, version).into_iter();
        issues.map(|issue| (issue.path.join("."), issue.message, issue.suggestion)).collect()
    }

    #[test]
    fn a_usual_config_passes() {
        let config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "maxPods": 58,
            "shutdownGracePeriod": "2m30s",
            "evictionHard": {"memory.available": "100Mi"},
            "kubeReserved": {"cpu": "100m"},
            "featureGates": {"SomeGate": true},
            "logging": {"verbosity": 2, "flushFrequency": 5_000_000_000_i64},
            "authentication": {"x509": {"clientCAFile": "/ca"}, "webhook": {"cacheTTL": "2m0s"}},
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-2Mi": 4}}],
            "registerWithTaints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            "clusterDNS": ["10.0.0.10"],
            "memoryThrottlingFactor": 0.9,
            "podPidsLimit": null,
        });
        for minor in 29..=36 {
            assert_eq!(check(config.clone(), Some((1, minor))), [], "1.{minor}");
        }
        assert_eq!(check(config, None), []);
    }

    #[test]
    fn unknown_names_get_a_suggestion() {
        for (config, path, suggestion) in [
            (json!({"maxPod": 1}), "maxPod", Some("maxPods")),
            (json!({"maxpods": 1}), "maxpods", Some("maxPods")),
            (json!({"authentication": {"webook": {}}}), "authentication.webook", Some("webhook")),
            (
                json!({"clientCAFile": "x"}),
                "clientCAFile",
                Some("authentication.x509.clientCAFile"),
            ),
            (
                json!({"reservedMemory": [{"numaNod": 0}]}),
                "reservedMemory.0.numaNod",
                Some("numaNode"),
            ),
            (json!({"somethingElse": 1}), "somethingElse", None),
        ] {
            let issues = check(config, None);
            assert_eq!(issues.len(), 1, "{issues:?}");
            assert_eq!(issues[0].0, path);
            assert_eq!(issues[0].2.as_deref(), suggestion, "{path}");
        }
    }

    #[test]
    fn wrong_types_are_named() {
        for (config, path, message) in [
            (json!({"maxPods": "58"}), "maxPods", "must be a whole number, without quotes"),
            (json!({"maxPods": 1.5}), "maxPods", "must be a whole number"),
            (json!({"maxPods": 3_000_000_000_i64}), "maxPods", "outside of the range"),
            (json!({"failSwapOn": "false"}), "failSwapOn", "true or false"),
            (json!({"syncFrequency": 60}), "syncFrequency", "a duration in text"),
            (json!({"syncFrequency": "60"}), "syncFrequency", "a duration in text"),
            (json!({"kubeReserved": {"cpu": 1}}), "kubeReserved.cpu", "put it in quotes"),
            (json!({"kubeReserved": "cpu=1"}), "kubeReserved", "must be a map"),
            (json!({"clusterDNS": "10.0.0.10"}), "clusterDNS", "must be a list"),
            (json!({"clusterDNS": [1]}), "clusterDNS.0", "must be text"),
            (json!({"authentication": true}), "authentication", "a map of fields"),
            (json!({"featureGates": {"A": "true"}}), "featureGates.A", "true or false"),
            (json!({"logging": {"verbosity": -1}}), "logging.verbosity", "outside of the range"),
            (
                json!({"reservedMemory": [{"limits": {"memory": "much"}}]}),
                "reservedMemory.0.limits.memory",
                "must be a quantity",
            ),
        ] {
            let issues = check(config, None);
            assert_eq!(issues.len(), 1, "{path}: {issues:?}");
            assert_eq!(issues[0].0, path);
            assert!(issues[0].1.contains(message), "{path}: {}", issues[0].1);
        }
    }

    #[test]
    fn fields_belong_to_versions() {
        let config = json!({"crashLoopBackOff": {"maxContainerRestartPeriod": "10s"}});
        assert_eq!(check(config.clone(), None), []);
        assert_eq!(check(config.clone(), Some((1, 32))), []);
        assert_eq!(check(config.clone(), Some((1, 99))), []);
        let issues = check(config, Some((1, 31)));
        assert_eq!(issues[0].1, "the field exists since Kubernetes 1.32, and this is 1.31");
    }

    #[test]
    fn all_issues_are_found() {
        let config = json!({"maxPods": "1", "nope": 1, "podsPerCore": true});
        assert_eq!(check(config, None).len(), 3);
    }

    #[test]
    fn durations_and_quantities_as_kubernetes_reads_them() {
        for good in ["0", "30s", "1h30m", "-1.5h", "300ms", ".5s", "1m0.5s", "10µs"] {
            assert!(is_duration(good), "{good}");
        }
        for bad in ["", "30", "s", "1d", "1.2.3s", ".s", "1h 30m", "-"] {
            assert!(!is_duration(bad), "{bad}");
        }
        for good in ["1", "100m", "512Mi", "1.5Gi", "1e3", "1E-2", "-5k", ".5", "2Ei", "3E"] {
            assert!(is_quantity(good), "{good}");
        }
        for bad in ["", "Mi", "1mi", "1 Gi", "1.2.3", "1ee3", "1Kib"] {
            assert!(!is_quantity(bad), "{bad}");
        }
    }

    #[test]
    fn flags_are_found_with_their_field() {
        let max_pods = flag("max-pods").unwrap();
        assert_eq!((max_pods.kind, max_pods.field), ("int", Some("maxPods")));
        assert_eq!(max_pods.deprecated_since, Some((1, 29)));
        let pause = flag("pod_infra_container_image").unwrap();
        assert_eq!(pause.until, Some((1, 35)));
        assert!(pause.known_to(Some((1, 34))) && !pause.known_to(Some((1, 35))));
        assert!(flag("node-labels").unwrap().deprecated_since.is_none());
        assert_eq!(flag("no-such-flag"), None);
    }

    #[test]
    fn the_tables_are_whole() {
        let fields = field_rows().count();
        let flags = flag_rows().count();
        let lines = |table: &str| table.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!((fields, flags), (lines(FIELDS), lines(FLAGS)));
        assert!(fields > 150 && flags > 140, "{fields} {flags}");
        assert_eq!(covered(), ((1, 29), (1, 36)));
        let names: Vec<_> = flag_names().collect();
        assert!(names.is_sorted());
        for row in flag_rows().filter_map(|flag| flag.field) {
            assert!(field_rows().any(|field| field.path == row), "{row}");
        }
    }
}
