//! The walk over the tree: each part gives what it sets.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::node::{Kind, Node};
use super::normal::Setter;
use super::scripts::{Joined, Shell, environment};
use super::{Command, File, Settings, key, powershell};

/// Scripts of ours and of eksctl; calling one is no command of the user.
const GENERATED: [&str; 3] =
    ["/var/lib/cloud/scripts/eksctl/", "/var/lib/cloud/scripts/tenon/", "/opt/tenon/"];

/// Paths under which a file is a KubeletConfiguration although nothing in it says so.
const KUBELET_JSON: [&str; 1] = ["/etc/eksctl/kubelet-extra.json"];

const CA_FILE: &str = "/ca.crt";

/// Reads the settings of one user data. A template holds several: see [`Node::documents`].
pub fn collect(node: &Node) -> Settings {
    let nodes = node.walk();
    let files: BTreeMap<&str, &Node> =
        nodes.iter().filter_map(|(_, node)| Some((node.path.as_deref()?, *node))).collect();
    let mut settings = Settings::default();
    let mut walk = Walk { settings: &mut settings, files: &files };
    nodes.iter().for_each(|(trail, node)| walk.node(trail, node));
    settings
}

struct Walk<'a> {
    settings: &'a mut Settings,
    files: &'a BTreeMap<&'a str, &'a Node>,
}

impl Walk<'_> {
    fn node(&mut self, trail: &str, node: &Node) {
        let from = label(trail, node);
        if let Some(path) = &node.path {
            self.settings.files.push(File {
                path: path.clone(),
                mode: node.mode.clone(),
                bytes: node.bytes.clone(),
                from: trail.to_owned(),
                in_script: node.name.starts_with("line "),
            });
            self.file(path, node, &from);
        }
        match (node.kind, &node.document) {
            (Kind::NodeConfig | Kind::TenonConfig, Some(document)) => {
                self.set(&from).node_config(document);
            }
            (Kind::Settings, Some(document)) => self.bottlerocket(document, &from),
            (Kind::KubeletConfiguration, Some(Value::Object(config))) => {
                self.set(&from).kubelet_config(config);
            }
            (Kind::Kubeconfig, Some(document)) => self.kubeconfig(document, &from),
            (Kind::Ignition, Some(document)) => self.ignition(document, &from),
            (Kind::Script | Kind::Boothook | Kind::Command, _) if node.path.is_none() => {
                self.script(node, &from);
            }
            (Kind::PowerShell, _) if node.children.is_empty() => self.powershell(node, &from),
            (Kind::Include, _) => self.remote(&node.text(), &from),
            _ => {}
        }
    }

    fn set<'b>(&'b mut self, from: &'b str) -> Setter<'b> {
        Setter { settings: self.settings, from }
    }

    fn remote(&mut self, text: &str, from: &str) {
        for address in super::scripts::addresses(text) {
            self.settings.remote.entry(address).or_insert_with(|| from.to_owned());
        }
    }

    /// What a file sets by its place or kind.
    fn file(&mut self, path: &str, node: &Node, from: &str) {
        match node.kind {
            Kind::EnvFile => {
                for (name, value) in environment(&node.text()) {
                    self.set(from).variable(&name, &value);
                }
            }
            Kind::Unit => self.unit(&node.text(), from),
            Kind::Json | Kind::Yaml if KUBELET_JSON.contains(&path) => {
                if let Some(Value::Object(config)) = &node.document {
                    self.set(from).kubelet_config(config);
                }
            }
            Kind::Text if path.ends_with(CA_FILE) && node.text().contains("-----BEGIN CERT") => {
                use base64::Engine;
                let text = base64::engine::general_purpose::STANDARD.encode(&node.bytes);
                let authority = key(&["cluster", "certificateAuthority"]);
                self.set(from).set(authority, text.into());
            }
            _ => {}
        }
    }

    /// Flags of the kubelet's command line; words with a variable in them are not known here.
    fn unit(&mut self, text: &str, from: &str) {
        let joined = text.replace("\\\n", " ");
        for line in joined.lines().filter_map(|line| line.trim().strip_prefix("ExecStart=")) {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            if words.first().is_some_and(|program| program.ends_with("/kubelet")) {
                let known = words.into_iter().skip(1).filter(|word| !word.contains('$'));
                self.set(from).flags(&known.collect::<Vec<_>>());
            }
        }
    }

    fn bottlerocket(&mut self, document: &Value, from: &str) {
        self.set(from).bottlerocket(document);
        let signals = document.pointer("/settings/cloudformation/should-signal");
        if signals == Some(&Value::Bool(true)) {
            let by = "settings.cloudformation".to_owned();
            self.settings.signals.push(super::Signal { by, from: from.to_owned() });
        }
    }

    fn kubeconfig(&mut self, document: &Value, from: &str) {
        let cluster =
            |name: &str| document.pointer(&format!("/clusters/0/cluster/{name}")).cloned();
        for (field, name) in
            [("server", "endpoint"), ("certificate-authority-data", "certificateAuthority")]
        {
            if let Some(value) = cluster(field) {
                self.set(from).set(key(&["cluster", name]), value);
            }
        }
    }

    /// Further configs that Ignition fetches.
    fn ignition(&mut self, document: &Value, from: &str) {
        let text = document.pointer("/ignition/config").map(Value::to_string).unwrap_or_default();
        self.remote(&text, from);
    }

    fn script(&mut self, node: &Node, from: &str) {
        let text = node.text();
        if !is_shell(&text) {
            self.remote(&text, from);
            return self.command(text, from, self.settings.join.is_some());
        }
        let before = self.settings.join.is_some();
        let joined = Shell { settings: self.settings, files: self.files }.follow(&text, from);
        match joined {
            Some(Joined { own_lines: Some(lines) }) => self.around(&text, lines, from),
            Some(Joined { own_lines: None }) => {}
            None if GENERATED.iter().any(|path| text.trim_start().starts_with(path)) => {}
            None => self.command(text, from, before),
        }
    }

    fn powershell(&mut self, node: &Node, from: &str) {
        let text = node.text();
        let before = self.settings.join.is_some();
        match powershell::follow(&text, from, self.settings) {
            Some(lines) => self.around(&text, lines, from),
            None => self.command(text, from, before),
        }
    }

    /// Splits a script at the call that joins the node.
    fn around(&mut self, text: &str, (first, last): (u32, u32), from: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let cut = |from: u32, to: usize| {
            let from = (from as usize).min(lines.len());
            lines[from..to.clamp(from, lines.len())].join("\n")
        };
        let before = cut(0, (first as usize).saturating_sub(1));
        let after = cut(last, lines.len());
        if has_work(&before) {
            self.settings.pre.push(Command { from: from.to_owned(), text: before + "\n" });
        }
        if has_work(&after) {
            let head = lines.first().filter(|line| line.starts_with("#!"));
            let head = head.map(|line| format!("{line}\n")).unwrap_or_default();
            let text = format!("{head}{after}\n");
            self.settings.post.push(Command { from: from.to_owned(), text });
        }
    }

    fn command(&mut self, text: String, from: &str, after_join: bool) {
        let commands = if after_join { &mut self.settings.post } else { &mut self.settings.pre };
        if has_work(&text) {
            commands.push(Command { from: from.to_owned(), text });
        }
    }
}

/// How a part is called where its values are shown.
fn label(trail: &str, node: &Node) -> String {
    let own = match (&node.path, trail.is_empty()) {
        (Some(path), _) if !path.is_empty() => path.clone(),
        (_, true) => node.kind.name().to_owned(),
        _ => trail.to_owned(),
    };
    match &node.media_type {
        Some(media) if node.path.is_none() => format!("{own} ({media})"),
        _ => own,
    }
}

/// True for a script that a shell runs.
fn is_shell(text: &str) -> bool {
    let Some(line) = text.trim_start().strip_prefix("#!") else { return true };
    let line = line.lines().next().unwrap_or_default();
    line.split_whitespace().any(|word| {
        matches!(word.rsplit('/').next(), Some("sh" | "bash" | "dash" | "ash" | "zsh" | "ksh"))
    })
}

/// True when lines do more than prepare the shell.
fn has_work(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| {
        let idle = line.is_empty() || line.starts_with('#') || line.starts_with("set ");
        let variable = line.to_ascii_lowercase().contains("$eksbootstrapscriptfile =");
        !idle && !variable
    })
}
