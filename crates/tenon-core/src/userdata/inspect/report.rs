//! What `inspect` says: the tree, then the settings, for each user data in the source.

use serde_json::{Value, json};

use super::node::Node;
use super::settings::{Command, Key, Settings, collect, key, shown};
use super::{certificate, redact};
use crate::problem::visible;

/// One user data of a source and what it sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<'a> {
    /// Where a template holds it; empty when the source is the user data itself.
    pub name: String,
    pub node: &'a Node,
    pub settings: Settings,
}

/// Everything that can be said about a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Report<'a> {
    pub root: &'a Node,
    pub documents: Vec<Document<'a>>,
}

/// Reads the settings of every user data in the tree.
pub fn report(root: &Node) -> Report<'_> {
    let documents = root.documents().into_iter().map(|node| Document {
        name: node.name.clone(),
        node,
        settings: collect(node),
    });
    Report { root, documents: documents.collect() }
}

impl Report<'_> {
    pub fn to_json(&self, show_secrets: bool) -> Value {
        let documents = self.documents.iter().map(|document| {
            json!({
                "name": document.name,
                "settings": settings_json(&document.settings, show_secrets),
            })
        });
        json!({"tree": self.root.to_json(), "documents": documents.collect::<Vec<_>>()})
    }

    /// The same for people.
    pub fn to_text(&self, show_secrets: bool) -> String {
        let mut out = self.root.outline();
        for document in &self.documents {
            let of = if document.name.is_empty() { "" } else { " of " };
            out.push_str(&format!("\nEffective settings{of}{}\n", document.name));
            out.push_str(&settings_text(&document.settings, show_secrets));
        }
        visible(&out)
    }
}

/// The settings, with the CA described instead of shown.
fn settings_json(settings: &Settings, show_secrets: bool) -> Value {
    let mut json = settings.to_json(show_secrets);
    if let Some(values) = json["values"].as_array_mut() {
        for value in values {
            if value["key"] == "cluster.certificateAuthority" {
                let authority = value["value"].as_str().and_then(certificate::describe);
                if let Some(authority) = authority {
                    value["value"] = authority.to_json();
                }
            }
        }
    }
    json
}

fn settings_text(settings: &Settings, show_secrets: bool) -> String {
    let mut rows: Vec<(String, String, String)> = Vec::new();
    for (name, setting) in &settings.values {
        let value = value_text(name, &setting.value, show_secrets);
        let mut from = setting.from.clone();
        if !setting.overrode.is_empty() {
            from.push_str(&format!(", overrides {}", setting.overrode.join(", ")));
        }
        rows.push((shown(name), value, from));
    }
    for (name, from) in &settings.run_time {
        rows.push((shown(name), "set at run time".into(), from.clone()));
    }
    rows.extend(command_rows("pre command", &settings.pre, show_secrets));
    rows.extend(command_rows("post command", &settings.post, show_secrets));
    for file in &settings.files {
        let mode = file.mode.as_deref().unwrap_or("-");
        let size = format!("{} bytes, mode {mode}", file.bytes.len());
        rows.push((format!("file {}", file.path), size, file.from.clone()));
    }
    for (program, from) in &settings.programs {
        rows.push(("program".into(), program.clone(), from.clone()));
    }
    for (address, from) in &settings.remote {
        rows.push(("remote".into(), address.clone(), from.clone()));
    }
    for signal in &settings.signals {
        rows.push(("signal".into(), signal.by.clone(), signal.from.clone()));
    }
    if let Some((by, from)) = &settings.join {
        rows.push(("join".into(), by.clone(), from.clone()));
    }
    if rows.is_empty() {
        return "  none\n".into();
    }
    rows.iter().map(|(name, value, from)| format!("  {name}: {value}  [{from}]\n")).collect()
}

fn command_rows(name: &str, commands: &[Command], show: bool) -> Vec<(String, String, String)> {
    let row = |command: &Command| {
        let first = command.shown_line(show);
        let text = format!("{first} ({} bytes)", command.text.len());
        (name.to_owned(), text, command.from.clone())
    };
    commands.iter().map(row).collect()
}

fn value_text(name: &Key, value: &Value, show_secrets: bool) -> String {
    if *name == key(&["cluster", "certificateAuthority"]) {
        return authority_text(value.as_str().unwrap_or_default());
    }
    match redact::value(name, value, show_secrets) {
        // A document inside a value, such as containerd's TOML, is shown by its size.
        Value::String(text) if text.trim_end().contains('\n') => {
            format!("{} lines, {} bytes", text.lines().count(), text.len())
        }
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn authority_text(encoded: &str) -> String {
    match certificate::describe(encoded) {
        Some(ca) => {
            let more = match ca.certificates {
                1 => String::new(),
                count => format!(", {count} certificates"),
            };
            format!("{}, expires {}, sha256 {}{more}", ca.subject, ca.expires, ca.sha256)
        }
        None => format!("not base64 of a certificate ({} characters)", encoded.len()),
    }
}
