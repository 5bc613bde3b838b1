//! What user data makes of a node, in one normal form for every family.
//!
//! Parts are taken in the order in which they take effect. A later value replaces an earlier
//! one, and every value knows the part that set it and the parts that it overrode.

mod collect;
mod normal;
mod powershell;
mod scripts;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::redact;
pub use collect::collect;

/// Characters of a command that are shown.
const LONGEST_LINE: usize = 120;

/// The names on the way to a value: `["cluster", "name"]`, `["labels", "team.io/name"]`.
pub type Key = Vec<String>;

/// Everything that user data says, in order of its key.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    pub values: BTreeMap<Key, Setting>,
    /// Keys that a script sets when it runs, with the part of the script.
    pub run_time: BTreeMap<Key, String>,
    pub pre: Vec<Command>,
    pub post: Vec<Command>,
    pub files: Vec<File>,
    /// Programs that scripts call, with the part that calls them first.
    pub programs: BTreeMap<String, String>,
    /// Addresses that scripts and configs name, with the part that names them first.
    pub remote: BTreeMap<String, String>,
    pub signals: Vec<Signal>,
    /// What joins the node: the program's name and its part.
    pub join: Option<(String, String)>,
    /// Number of the last value that was set.
    last: usize,
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub value: Value,
    pub from: String,
    /// The parts whose different values it replaced, oldest first.
    pub overrode: Vec<String>,
    /// How often it was set, equal values included.
    pub times: usize,
    /// Its place among all settings, in the order in which they took effect.
    pub order: usize,
}

/// Something that runs before or after the node joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub from: String,
    pub text: String,
}

/// A file that ends up on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub mode: Option<String>,
    pub bytes: Vec<u8>,
    pub from: String,
    /// A script carries it; it goes where the script goes.
    pub in_script: bool,
}

/// A report to a stack that waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    pub by: String,
    pub from: String,
}

/// The line of a string in PowerShell text that is never closed.
pub(super) fn powershell_open_quote(text: &str) -> Option<u32> {
    powershell::parse(text).open
}

/// Makes a key of names.
pub fn key(names: &[&str]) -> Key {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A key as text; names that are not plain words stand in quotes.
pub fn shown(key: &Key) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = |name: &String| match !name.is_empty() && name.chars().all(plain) {
        true => name.clone(),
        false => format!("\"{}\"", name.replace('"', "\\\"")),
    };
    key.iter().map(name).collect::<Vec<_>>().join(".")
}

impl Settings {
    pub fn get(&self, names: &[&str]) -> Option<&Value> {
        self.values.get(&key(names)).map(|setting| &setting.value)
    }

    pub fn text(&self, names: &[&str]) -> Option<&str> {
        self.get(names).and_then(Value::as_str)
    }

    /// Every value whose key starts with these names, with the rest of its key.
    pub fn below(&self, names: &[&str]) -> impl Iterator<Item = (&[String], &Setting)> {
        let prefix = key(names);
        let length = prefix.len();
        self.values
            .iter()
            .filter(move |(key, _)| key.len() > length && key.starts_with(&prefix))
            .map(move |(key, setting)| (&key[length..], setting))
    }

    /// Sets a value; what it replaces is remembered.
    pub(super) fn set(&mut self, key: Key, value: Value, from: &str) {
        self.run_time.remove(&key);
        let before = self.values.remove(&key);
        self.last += 1;
        let (from, order) = (from.to_owned(), self.last);
        let mut setting = Setting { value, from, overrode: Vec::new(), times: 1, order };
        if let Some(before) = before {
            setting.overrode = before.overrode;
            setting.times += before.times;
            if before.value != setting.value {
                setting.overrode.push(before.from);
            }
        }
        self.values.insert(key, setting);
    }

    /// Notes that a script decides a value when it runs.
    pub(super) fn set_at_run_time(&mut self, key: Key, from: &str) {
        if !self.values.contains_key(&key) {
            self.run_time.insert(key, from.to_owned());
        }
    }

    /// The settings as JSON, secrets hidden unless they are asked for.
    pub fn to_json(&self, show_secrets: bool) -> Value {
        let values = self.values.iter().map(|(key, setting)| {
            let value = redact::value(key, &setting.value, show_secrets);
            let mut json = json!({"key": shown(key), "value": value, "from": setting.from});
            if !setting.overrode.is_empty() {
                json["overrode"] = json!(setting.overrode);
            }
            json
        });
        let run_time = self.run_time.iter();
        json!({
            "values": values.collect::<Vec<_>>(),
            "setAtRunTime": run_time
                .map(|(key, from)| json!({"key": shown(key), "from": from}))
                .collect::<Vec<_>>(),
            "preCommands": commands_json(&self.pre, show_secrets),
            "postCommands": commands_json(&self.post, show_secrets),
            "files": self.files.iter().map(|file| json!({
                "path": file.path, "mode": file.mode, "bytes": file.bytes.len(), "from": file.from,
            })).collect::<Vec<_>>(),
            "programs": self.programs.keys().collect::<Vec<_>>(),
            "remote": self.remote.keys().collect::<Vec<_>>(),
            "signals": self.signals.iter().map(|signal| json!({
                "by": signal.by, "from": signal.from,
            })).collect::<Vec<_>>(),
            "join": self.join.as_ref().map(|(by, from)| json!({"by": by, "from": from})),
        })
    }
}

fn commands_json(commands: &[Command], show_secrets: bool) -> Vec<Value> {
    let command = |command: &Command| {
        let first = command.shown_line(show_secrets);
        json!({"from": command.from, "firstLine": first, "bytes": command.text.len()})
    };
    commands.iter().map(command).collect()
}

impl Command {
    /// The first line that does something.
    pub fn first_line(&self) -> &str {
        let mut lines = self.text.lines().map(str::trim);
        let says = |line: &&str| !line.is_empty() && !line.starts_with('#');
        lines.find(says).unwrap_or_default()
    }

    /// The same as it may be shown: secrets hidden first, then cut where it gets long.
    pub fn shown_line(&self, show_secrets: bool) -> String {
        let line = redact::line(self.first_line(), show_secrets);
        let cut: String = line.chars().take(LONGEST_LINE).collect();
        if cut.len() < line.len() { format!("{cut}…") } else { cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_values_win_and_remember() {
        let mut settings = Settings::default();
        let name = || key(&["cluster", "name"]);
        settings.set_at_run_time(name(), "part 0");
        settings.set(name(), json!("a"), "part 1");
        settings.set(name(), json!("a"), "part 2");
        settings.set(name(), json!("b"), "part 3");
        settings.set_at_run_time(name(), "part 4");
        let setting = &settings.values[&name()];
        assert_eq!((setting.value.as_str(), setting.from.as_str()), (Some("b"), "part 3"));
        assert_eq!((&setting.overrode[..], setting.times), (&["part 2".to_owned()][..], 3));
        assert!(settings.run_time.is_empty());
    }

    #[test]
    fn keys_show_odd_names_in_quotes() {
        assert_eq!(shown(&key(&["labels", "a.b/c"])), "labels.\"a.b/c\"");
        assert_eq!(shown(&key(&["kubelet", "config", "max-pods_2"])), "kubelet.config.max-pods_2");
    }
}
