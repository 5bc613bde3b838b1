//! The kubelet's effective settings: a flag over the drop-in directory (the later file wins)
//! over the config file over what is compiled in.

use serde_json::Value;

use super::snapshot::Snapshot;
use super::{shown_text, unit_file};
use crate::plan::kubelet::{CONFIG_DIR, ENVIRONMENT_PATH};
use crate::plan::kubelet_args::{VARIABLE, read_value, split_flag, split_words};
use crate::tree::Dialect;
use crate::yaml;

pub const UNIT: &str = "kubelet.service";
pub(super) const GATES: &str = "featureGates";

/// What the kubelet has compiled in for a setting.
#[derive(Debug)]
struct Compiled {
    field: &'static str,
    flag: &'static str,
    /// With a config file, as JSON text.
    default: &'static str,
    /// Without any config file the flags' own, older defaults hold.
    legacy: &'static str,
}

const fn compiled(
    field: &'static str,
    flag: &'static str,
    default: &'static str,
    legacy: &'static str,
) -> Compiled {
    Compiled { field, flag, default, legacy }
}

/// The settings that checks ask about.
static COMPILED: &[Compiled] = &[
    compiled("authentication.anonymous.enabled", "anonymous-auth", "false", "true"),
    compiled("authentication.x509.clientCAFile", "client-ca-file", "null", "null"),
    compiled("authorization.mode", "authorization-mode", r#""Webhook""#, r#""AlwaysAllow""#),
    compiled("eventRecordQPS", "event-qps", "50", "50"),
    compiled("featureGates.RotateKubeletServerCertificate", "feature-gates", "true", "true"),
    compiled("makeIPTablesUtilChains", "make-iptables-util-chains", "true", "true"),
    compiled("maxPods", "max-pods", "110", "110"),
    compiled("podPidsLimit", "pod-max-pids", "-1", "-1"),
    compiled("protectKernelDefaults", "protect-kernel-defaults", "false", "false"),
    compiled("readOnlyPort", "read-only-port", "0", "10255"),
    compiled("rotateCertificates", "rotate-certificates", "false", "false"),
    compiled("seccompDefault", "seccomp-default", "false", "false"),
    compiled("serverTLSBootstrap", "rotate-server-certificates", "false", "false"),
    compiled(
        "streamingConnectionIdleTimeout",
        "streaming-connection-idle-timeout",
        r#""4h0m0s""#,
        r#""4h0m0s""#,
    ),
    compiled("tlsCertFile", "tls-cert-file", "null", "null"),
    compiled("tlsCipherSuites", "tls-cipher-suites", "null", "null"),
    compiled("tlsMinVersion", "tls-min-version", "null", "null"),
    compiled("tlsPrivateKeyFile", "tls-private-key-file", "null", "null"),
];

/// Which layer decided a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    Flag,
    /// The path of the file.
    DropIn(String),
    File(String),
    Default,
    /// The default of a kubelet without a config file.
    Legacy,
}

/// A setting and who decided it.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub value: Value,
    pub layer: Layer,
    /// The same in words, with the flag's name or the file's path.
    pub origin: String,
}

/// The kubelet as one set of arguments makes it.
#[derive(Debug, Clone)]
pub struct Effective {
    pub arguments: Vec<String>,
    /// Where the arguments stand.
    pub source: String,
    /// Path of the config file; None when the kubelet has none.
    pub config: Option<String>,
    /// Config file and drop-ins, least important first.
    documents: Vec<(Layer, Value)>,
    /// Why the documents are not all known.
    hidden: Option<String>,
}

/// The arguments as the unit's files give them, and the file that they come from.
pub fn arguments(snapshot: &Snapshot) -> Result<(Vec<String>, String), String> {
    let files = unit_file::files(snapshot, UNIT);
    let lines = unit_file::values(snapshot, &files, "Service", "ExecStart");
    let Some(line) = lines.last() else {
        // A root without units is judged by the file that an image's unit reads.
        let text = snapshot.text(ENVIRONMENT_PATH)?;
        let text = text.ok_or("neither kubelet.service nor its environment file is there")?;
        let value = variable(&text, VARIABLE).unwrap_or_default();
        return Ok((split_words(&value), ENVIRONMENT_PATH.to_owned()));
    };
    let environment = environment(snapshot, &files);
    let from = environment.iter().find(|(_, path)| path == ENVIRONMENT_PATH);
    let source = from.map_or_else(|| files[0].clone(), |(_, path)| path.clone());
    let words = split_words(line).into_iter().skip(1);
    Ok((words.flat_map(|word| expand(&word, &environment)).collect(), source))
}

/// The texts that variables are read from, with their paths; later ones win.
fn environment(snapshot: &Snapshot, files: &[String]) -> Vec<(String, String)> {
    let lines = unit_file::values(snapshot, files, "Service", "Environment");
    let lines = lines.iter().flat_map(|line| split_words(line)).collect::<Vec<_>>().join("\n");
    let mut found = vec![(lines, files.first().cloned().unwrap_or_default())];
    for path in unit_file::values(snapshot, files, "Service", "EnvironmentFile") {
        let path = path.trim_start_matches('-').to_owned();
        if let Ok(Some(text)) = snapshot.text(&path) {
            found.push((text, path));
        }
    }
    found
}

/// One word of a command line: `$NAME` becomes several, `${NAME}` stays one.
fn expand(word: &str, environment: &[(String, String)]) -> Vec<String> {
    let value = |name: &str| {
        let found = environment.iter().rev().find_map(|(text, _)| variable(text, name));
        found.unwrap_or_default()
    };
    if let Some(name) = word.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        return vec![value(name)];
    }
    match word.strip_prefix('$') {
        Some(name) => split_words(&value(name)),
        None => vec![word.to_owned()],
    }
}

/// The last value of a variable in an environment file.
fn variable(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        let value = line.trim().strip_prefix(name)?.strip_prefix('=')?;
        let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        // A value that begins and ends with quotes of different words is not quoted as a whole.
        let whole = quoted.filter(|inner| !inner.replace("\\\"", "").contains('"'));
        Some(read_value(whole.unwrap_or(value)))
    };
    text.lines().rev().find_map(value)
}

impl Effective {
    /// Reads the documents that these arguments name.
    pub fn of(snapshot: &Snapshot, arguments: Vec<String>, source: String) -> Self {
        let mut found =
            Effective { arguments, source, config: None, documents: Vec::new(), hidden: None };
        found.config = found.flag("config").filter(|path| !path.is_empty());
        if let Some(path) = found.config.clone() {
            found.read(snapshot, Layer::File(path));
        }
        let directory = found.drop_in_directory();
        let unlisted = directory.and_then(|directory| snapshot.unlisted.get(&directory));
        found.hidden = found.hidden.or_else(|| unlisted.cloned());
        for path in found.drop_ins(snapshot) {
            found.read(snapshot, Layer::DropIn(path));
        }
        found
    }

    /// The directory of drop-ins that the kubelet reads; None when it reads none.
    pub fn drop_in_directory(&self) -> Option<String> {
        let directory = self.flag("config-dir").filter(|path| !path.is_empty())?;
        Some(directory.trim_end_matches('/').to_owned())
    }

    /// The drop-ins that the kubelet reads, in its order.
    pub fn drop_ins(&self, snapshot: &Snapshot) -> Vec<String> {
        let Some(directory) = self.drop_in_directory() else { return Vec::new() };
        let names = snapshot.list(&directory).into_iter().filter(|name| name.ends_with(".conf"));
        names.map(|name| format!("{directory}/{name}")).collect()
    }

    /// Where a drop-in of ours has to stand.
    pub fn drop_in_home(&self) -> String {
        self.drop_in_directory().unwrap_or_else(|| CONFIG_DIR.to_owned())
    }

    fn read(&mut self, snapshot: &Snapshot, layer: Layer) {
        let (Layer::File(path) | Layer::DropIn(path)) = &layer else { return };
        let parsed = match snapshot.text(path) {
            Err(why) => Err(why),
            Ok(None) => Err(format!("{} does not exist", shown_text(path))),
            Ok(Some(text)) => match yaml::parse(&text) {
                Ok(trees) => Ok(trees.first().map(|tree| tree.to_json(Dialect::Yaml11))),
                Err(_) => Err(format!("{} is neither YAML nor JSON", shown_text(path))),
            },
        };
        match parsed {
            Ok(document) => self.documents.extend(document.map(|document| (layer, document))),
            Err(why) => _ = self.hidden.get_or_insert(why),
        }
    }

    /// The value of a flag; the last one wins. A flag without a value is `true`.
    pub fn flag(&self, name: &str) -> Option<String> {
        let mut found = None;
        for (index, argument) in self.arguments.iter().enumerate() {
            let Some((flag, value)) = split_flag(argument) else { continue };
            if flag.replace('_', "-") == name {
                let next = self.arguments.get(index + 1).filter(|next| !next.starts_with('-'));
                let given = value.map(str::to_owned).or_else(|| next.cloned());
                found = Some(given.unwrap_or_else(|| "true".to_owned()));
            }
        }
        found
    }

    /// The effective value of a setting; an error says why it cannot be known.
    pub fn get(&self, field: &str) -> Result<Setting, String> {
        let known = COMPILED.iter().find(|known| known.field == field);
        if let Some(value) = known.and_then(|known| self.by_flag(known)) {
            let flag = known.map_or("", |known| known.flag);
            let origin = format!("flag --{flag}, {}", self.source);
            return Ok(Setting { value, layer: Layer::Flag, origin });
        }
        if let Some(why) = &self.hidden {
            return Err(why.clone());
        }
        let pointer = format!("/{}", field.replace('.', "/"));
        let set = self.documents.iter().rev().find_map(|(layer, document)| {
            let value = document.pointer(&pointer).filter(|value| !value.is_null())?;
            Some((layer.clone(), value.clone()))
        });
        Ok(match set {
            Some((layer, value)) if !means_default(&value) => {
                let origin = match &layer {
                    Layer::DropIn(path) => format!("drop-in {}", shown_text(path)),
                    Layer::File(path) => format!("file {}", shown_text(path)),
                    _ => String::new(),
                };
                Setting { value, layer, origin }
            }
            _ => self.compiled_in(known),
        })
    }

    fn by_flag(&self, known: &Compiled) -> Option<Value> {
        let text = self.flag(known.flag)?;
        match known.field.split_once('.') {
            Some((GATES, gate)) => gate_in(&text, gate),
            _ if known.flag == "tls-cipher-suites" => {
                Some(text.split(',').map(|suite| suite.trim().to_owned()).collect())
            }
            _ => Some(scalar(&text)),
        }
    }

    fn compiled_in(&self, known: Option<&Compiled>) -> Setting {
        let (layer, text, origin) = match (&self.config, known) {
            (_, None) => (Layer::Default, "null", "compiled default"),
            (Some(_), Some(known)) => (Layer::Default, known.default, "compiled default"),
            (None, Some(known)) => {
                (Layer::Legacy, known.legacy, "default of a kubelet without a config file")
            }
        };
        let value = serde_json::from_str(text).unwrap_or(Value::Null);
        Setting { value, layer, origin: origin.to_owned() }
    }
}

/// In a file an empty text or a zero duration stands for the default; as a flag it does not.
fn means_default(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.is_empty() || duration_ms(text) == Some(0))
}

/// A flag's text as the type that it looks like.
fn scalar(text: &str) -> Value {
    serde_json::from_str(text)
        .ok()
        .filter(|value: &Value| value.is_boolean() || value.is_number())
        .unwrap_or_else(|| Value::from(text))
}

/// `A=true,B=false`
fn gate_in(text: &str, gate: &str) -> Option<Value> {
    let mut pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.rfind(|(name, _)| name.trim() == gate).map(|(_, value)| scalar(value.trim()))
}

/// A Go duration such as `4h0m0s` in milliseconds; None for other text.
pub fn duration_ms(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    if text == "0" {
        return Some(0);
    }
    let (mut rest, mut sum) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, factor) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
        sum = sum.checked_add(number.checked_mul(*factor)?)?;
        rest = &rest[unit.len()..];
    }
    (!text.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checks::snapshot::{Look, Seen};

    fn file(text: &str) -> Look {
        Look::There(Seen { body: text.as_bytes().to_vec(), ..Seen::default() })
    }

    fn node(arguments: &str, config: &str, drop_ins: &[(&str, &str)]) -> Effective {
        let mut snapshot = Snapshot::default();
        snapshot.files.insert("/c".into(), file(config));
        let names = drop_ins.iter().map(|(name, _)| (*name).to_owned()).collect();
        snapshot.lists.insert("/d".into(), names);
        for (name, text) in drop_ins {
            snapshot.files.insert(format!("/d/{name}"), file(text));
        }
        let words = arguments.split_whitespace().map(str::to_owned).collect();
        Effective::of(&snapshot, words, "here".into())
    }

    #[test]
    fn a_flag_beats_a_drop_in_beats_the_file_beats_the_default() {
        let late = ("90.conf", r#"{"readOnlyPort": 3}"#);
        let early = ("10.conf", r#"{"readOnlyPort": 2, "podPidsLimit": 7}"#);
        let ignored = ("99.json", r#"{"readOnlyPort": 9}"#);
        let file = r#"{"readOnlyPort": 1, "maxPods": 17}"#;
        let all = [early, late, ignored];
        for (arguments, drop_ins, expected) in [
            ("--config=/c --config-dir=/d --read-only-port=4", &all[..], 4),
            ("--config=/c --config-dir=/d --read-only-port 5", &all, 5),
            ("--config=/c --config-dir=/d", &all, 3),
            ("--config=/c --config-dir=/d", &all[..1], 2),
            ("--config=/c", &all, 1),
            ("", &[], 10255),
        ] {
            let found = node(arguments, file, drop_ins).get("readOnlyPort").unwrap();
            assert_eq!(found.value, json!(expected), "{arguments}");
        }
        let found = node("--config=/c --config-dir=/d", file, &all);
        assert_eq!(found.get("podPidsLimit").unwrap().origin, "drop-in /d/10.conf");
        assert_eq!(found.get("maxPods").unwrap().layer, Layer::File("/c".into()));
        assert_eq!(found.get("seccompDefault").unwrap().layer, Layer::Default);
    }

    #[test]
    fn zero_in_a_file_is_the_default_and_as_a_flag_is_zero() {
        let field = "streamingConnectionIdleTimeout";
        for zero in ["\"0s\"", "\"0\"", "\"0h0m0s\""] {
            let text = format!(r#"{{"{field}": {zero}}}"#);
            let found = node("--config=/c", &text, &[]).get(field).unwrap();
            assert_eq!((found.value, found.layer), (json!("4h0m0s"), Layer::Default), "{zero}");
        }
        let arguments = "--config=/c --streaming-connection-idle-timeout=0";
        let found = node(arguments, "{}", &[]).get(field).unwrap();
        assert_eq!((found.value, found.layer), (json!(0), Layer::Flag));
    }

    #[test]
    fn without_a_config_file_the_legacy_defaults_hold() {
        for (field, with, without) in [
            ("authentication.anonymous.enabled", json!(false), json!(true)),
            ("authorization.mode", json!("Webhook"), json!("AlwaysAllow")),
            ("readOnlyPort", json!(0), json!(10255)),
        ] {
            assert_eq!(node("--config=/c", "{}", &[]).get(field).unwrap().value, with, "{field}");
            let found = node("--v=2", "{}", &[]).get(field).unwrap();
            assert_eq!((found.value, found.layer), (without, Layer::Legacy), "{field}");
        }
    }

    #[test]
    fn gates_are_taken_one_by_one() {
        let field = "featureGates.RotateKubeletServerCertificate";
        let file = r#"{"featureGates": {"RotateKubeletServerCertificate": false}}"#;
        let with = |flags: &str| node(&format!("--config=/c {flags}"), file, &[]).get(field);
        assert_eq!(with("").unwrap().value, json!(false));
        assert_eq!(with("--feature-gates=Other=true").unwrap().value, json!(false));
        let flags = "--feature-gates=Other=true,RotateKubeletServerCertificate=true";
        assert_eq!(with(flags).unwrap().layer, Layer::Flag);
    }

    #[test]
    fn a_bare_truth_flag_is_true_and_a_broken_file_is_unknown() {
        let found = node("--anonymous-auth --config=/c", "{}", &[]);
        assert_eq!(found.get("authentication.anonymous.enabled").unwrap().value, json!(true));
        let broken = node("--config=/c", "{", &[]);
        assert!(broken.get("readOnlyPort").unwrap_err().contains("/c"));
        let absent = node("--config=/none", "{}", &[]);
        assert!(absent.get("readOnlyPort").is_err());
    }

    #[test]
    fn drop_ins_that_cannot_be_listed_leave_the_settings_unknown() {
        let mut snapshot = Snapshot::default();
        snapshot.files.insert("/c".into(), file("{}"));
        snapshot.lists.insert("/d".into(), Vec::new());
        snapshot.unlisted.insert("/d".into(), "permission denied".into());
        let words = ["--config=/c", "--config-dir=/d"].map(str::to_owned).to_vec();
        let found = Effective::of(&snapshot, words, "here".into());
        assert_eq!(found.get("readOnlyPort").unwrap_err(), "permission denied");
    }

    #[test]
    fn the_units_own_words_are_expanded() {
        let mut snapshot = Snapshot::default();
        let unit = "[Service]\nEnvironmentFile=-/etc/eks/kubelet/environment\nEnvironment=A=x\n\
                    ExecStart=/usr/bin/kubelet --v=2 $NODEADM_KUBELET_ARGS ${A}\n";
        snapshot.files.insert("/etc/systemd/system/kubelet.service".into(), file(unit));
        let text = "NODEADM_KUBELET_ARGS=--a=1 \"--b=x y\"\n";
        snapshot.files.insert(ENVIRONMENT_PATH.into(), file(text));
        let (words, source) = arguments(&snapshot).unwrap();
        assert_eq!(words, ["--v=2", "--a=1", "--b=x y", "x"]);
        assert_eq!(source, ENVIRONMENT_PATH);
    }

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, ms) in [
            ("4h0m0s", Some(14_400_000)),
            ("0s", Some(0)),
            ("250ms", Some(250)),
            ("", None),
            ("5", None),
            ("4 h", None),
            ("secret", None),
        ] {
            assert_eq!(duration_ms(text), ms, "{text}");
        }
    }
}
