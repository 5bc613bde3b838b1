//! Settings into a group and a cluster.

use serde_json::{Map, Value, json};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::lint::insert;
use super::super::settings::{Command, File, Key, Setting, Settings, key, shown};
use super::{Entry, Fate, Target};
use crate::config::{DiskStrategy, Taint};
use crate::userdata::checks::OWNED_FIELDS;
use crate::userdata::group::{ExtraFile, InstanceStore, MaxPodsPolicy};
use crate::userdata::quote::shell;
use crate::userdata::{Cluster, Family, Group, IpFamily, Mode};

/// Paths that Tenon and eksctl write themselves; the target's own files stand for them.
const GENERATED: [&str; 9] = [
    "/etc/eksctl/",
    "/etc/tenon/",
    "/opt/tenon/",
    "/var/lib/cloud/scripts/eksctl/",
    "/var/lib/cloud/scripts/tenon/",
    "/etc/systemd/system/tenon-",
    "/etc/systemd/system/kubelet.service.d/10-tenon",
    "/etc/systemd/system/kubelet.service.d/10-eksclt",
    "/etc/systemd/system/kubelet.service.d/90-tenon",
];

/// Options of the old bootstrap program that say nothing any more.
const OBSOLETE: &[(&str, &str)] = &[
    ("docker-config-json", "dockerd runs no nodes any more"),
    ("enable-docker-bridge", "dockerd runs no nodes any more"),
    ("aws-api-retry-attempts", "no API call is needed to join"),
    ("mount-bpf-fs", "the system mounts it"),
    ("arguments", "a script decides it when it runs"),
];

/// What is to be rendered, and what became of each setting so far.
pub(super) struct Draft {
    pub(super) cluster: Cluster,
    pub(super) group: Group,
    entries: Vec<(Key, Fate, String)>,
    /// The `spec` of a NodeConfig with what a group has no field for.
    left_over: Map<String, Value>,
}

impl Draft {
    pub(super) fn new(settings: &Settings, target: Target, facts: &Cluster) -> Self {
        let group = Group {
            name: "converted".into(),
            family: target.family,
            kind: target.kind,
            ..Group::default()
        };
        let cluster = facts.clone();
        let mut draft = Draft { cluster, group, entries: Vec::new(), left_over: Map::new() };
        let mut ordered: Vec<_> = settings.values.iter().collect();
        ordered.sort_by_key(|(_, setting)| setting.order);
        for (name, setting) in ordered {
            let (fate, reason) = draft.setting(name, setting, target);
            draft.entries.push((name.clone(), fate, reason.to_owned()));
        }
        for name in settings.run_time.keys() {
            let reason = "a script decides it when it runs".to_owned();
            draft.entries.push((name.clone(), Fate::NeedsReview, reason));
        }
        draft.write_left_over();
        draft.commands(settings, target);
        draft.files(&settings.files, target);
        draft.signals(settings);
        draft
    }

    /// The account in order of the settings' names.
    pub(super) fn account(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self
            .entries
            .iter()
            .map(|(key, fate, reason)| Entry {
                setting: shown(key),
                fate: *fate,
                reason: reason.clone(),
            })
            .collect();
        entries.sort_by(|a, b| a.setting.cmp(&b.setting));
        entries
    }

    /// Changes the fate of every setting below some names.
    pub(super) fn lose(&mut self, names: &[&str], reason: &str) {
        let prefix = key(names);
        for (key, fate, why) in &mut self.entries {
            if key.starts_with(&prefix) && *fate != Fate::Lost {
                *fate = Fate::Lost;
                reason.clone_into(why);
            }
        }
    }

    fn setting(&mut self, name: &Key, setting: &Setting, target: Target) -> (Fate, &'static str) {
        let names: Vec<&str> = name.iter().map(String::as_str).collect();
        let value = &setting.value;
        let generated = is_generated(&setting.from);
        match &names[..] {
            ["kubelet", "flags", _] if generated => (Fate::Mapped, "the join sets it"),
            ["cluster", field] => self.cluster_field(field, value),
            ["region"] => {
                self.cluster.region = text(value);
                (Fate::Carried, "")
            }
            ["labels", label] => {
                self.group.labels.insert((*label).to_owned(), text(value).unwrap_or_default());
                (Fate::Carried, "")
            }
            ["taints", taint, effect] => {
                let (key, effect) = ((*taint).to_owned(), (*effect).to_owned());
                self.group.taints.push(Taint {
                    key,
                    value: text(value).unwrap_or_default(),
                    effect,
                });
                (Fate::Carried, "")
            }
            ["maxPods" | "maxPodsCeiling"] => self.pods(names[0], value),
            ["maxPodsExpression"] => {
                self.group.max_pods_expression = text(value);
                (Fate::Carried, "")
            }
            ["clusterDns"] => {
                self.group.cluster_dns = value.as_str().and_then(|text| text.parse().ok());
                known(self.group.cluster_dns.is_some(), "it is not an address")
            }
            ["containerRuntime"] => known(value == "containerd", "only containerd runs nodes"),
            ["kubelet", ..] => self.kubelet(&names, name, value, target),
            ["instanceStore", field] => self.instance_store(field, value),
            ["featureGates", gate] => {
                let state = value.as_bool();
                self.group.feature_gates.extend(state.map(|state| ((*gate).to_owned(), state)));
                known(state.is_some(), "a gate is true or false")
            }
            ["environment", service, variable] => {
                let service = self.group.environment.entry((*service).to_owned()).or_default();
                service.insert((*variable).to_owned(), text(value).unwrap_or_default());
                (Fate::Carried, "")
            }
            ["containerd", "config"] => {
                self.group.containerd_config = text(value);
                (Fate::Carried, "")
            }
            ["bottlerocket", ..] => self.bottlerocket(&name[1..], value),
            ["bootstrap", option] => self.bootstrap(option, value),
            _ => self.left_over(name, value, target),
        }
    }

    fn cluster_field(&mut self, field: &str, value: &Value) -> (Fate, &'static str) {
        let text = text(value);
        match field {
            "name" => self.cluster.name = text,
            "endpoint" => self.cluster.endpoint = text,
            "certificateAuthority" => self.cluster.certificate_authority = text,
            "id" => self.cluster.id = text,
            "outpost" => self.cluster.outpost = value == &Value::Bool(true),
            "cidr" => {
                self.cluster.service_cidr = text.and_then(|text| text.parse().ok());
                return known(self.cluster.service_cidr.is_some(), "it is not a range");
            }
            _ => return (Fate::Lost, "no family has such a value"),
        }
        (Fate::Carried, "")
    }

    fn pods(&mut self, name: &str, value: &Value) -> (Fate, &'static str) {
        self.group.max_pods = value.as_u64().and_then(|pods| u32::try_from(pods).ok());
        if name == "maxPodsCeiling" {
            self.group.max_pods_policy = MaxPodsPolicy::Min;
        }
        known(self.group.max_pods.is_some(), "it is not a number of pods")
    }

    fn kubelet(
        &mut self,
        names: &[&str],
        key: &Key,
        value: &Value,
        target: Target,
    ) -> (Fate, &'static str) {
        match names {
            [_, "config", field, ..] if OWNED_FIELDS.contains(field) => {
                (Fate::Mapped, "the join sets it")
            }
            [_, "config", ..] => {
                insert(&mut self.group.kubelet_config, &key[2..], value.clone());
                let other =
                    matches!(target.family, Family::Bottlerocket { .. } | Family::Windows { .. });
                (if other { Fate::Mapped } else { Fate::Carried }, "")
            }
            [_, "flags", flag] => {
                let value = text(value).unwrap_or_default();
                self.group.kubelet_flags.push(format!("--{flag}={value}"));
                (Fate::Carried, "")
            }
            _ => self.left_over(key, value, target),
        }
    }

    fn instance_store(&mut self, field: &str, value: &Value) -> (Fate, &'static str) {
        let store = self.group.instance_store.get_or_insert(InstanceStore {
            strategy: DiskStrategy::Raid0,
            mount_path: None,
            disabled_mounts: Vec::new(),
        });
        match (field, value) {
            ("strategy", Value::String(name)) => {
                let strategies = [
                    ("RAID0", DiskStrategy::Raid0),
                    ("RAID10", DiskStrategy::Raid10),
                    ("Mount", DiskStrategy::Mount),
                ];
                let found = strategies.into_iter().find(|(known, _)| known == name);
                store.strategy = found.map_or(store.strategy, |(_, strategy)| strategy);
                known(found.is_some(), "it is none of RAID0, RAID10 and Mount")
            }
            ("mountPath", Value::String(path)) => {
                store.mount_path = Some(path.clone());
                (Fate::Carried, "")
            }
            ("disabledMounts", Value::Array(mounts)) => {
                store.disabled_mounts = mounts.iter().filter_map(text).collect();
                (Fate::Carried, "")
            }
            _ => (Fate::Lost, "no family has such a value"),
        }
    }

    fn bottlerocket(&mut self, names: &[String], value: &Value) -> (Fate, &'static str) {
        let mut tree = Map::new();
        insert(&mut tree, names, value.clone());
        match toml::Table::try_from(tree) {
            Ok(table) => {
                crate::toml_text::merge_over(&mut self.group.bottlerocket.settings, table);
                (Fate::Carried, "")
            }
            Err(_) => (Fate::Lost, "TOML has no such value"),
        }
    }

    fn bootstrap(&mut self, option: &str, value: &Value) -> (Fate, &'static str) {
        let obsolete = OBSOLETE.iter().find(|(name, _)| *name == option);
        match (option, value.as_str(), obsolete) {
            ("ip-family", Some(family), _) => {
                self.cluster.ip_family =
                    Some(if family == "ipv6" { IpFamily::V6 } else { IpFamily::V4 });
                (Fate::Mapped, "the cluster's service range says it")
            }
            ("use-max-pods", Some("true"), _) => (Fate::Mapped, "the node computes its limit"),
            ("use-max-pods", ..) => (Fate::Mapped, "the fixed limit says it"),
            (_, _, Some((_, reason))) => (Fate::Lost, reason),
            _ => (Fate::Lost, "no family has such an option any more"),
        }
    }

    /// Fields of a NodeConfig that a group does not have go into a document of their own.
    fn left_over(&mut self, key: &Key, value: &Value, target: Target) -> (Fate, &'static str) {
        let reads = target.family == Family::AmazonLinux2023 && target.mode == Mode::Native;
        if !reads || key.len() < 2 {
            return (Fate::Lost, "the target has no place for it");
        }
        insert(&mut self.left_over, key, value.clone());
        (Fate::Carried, "in a NodeConfig of its own")
    }

    fn write_left_over(&mut self) {
        if !self.left_over.is_empty() {
            let document = json!({
                "apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": self.left_over,
            });
            self.group.override_command = Some(crate::yaml::emit(&document));
        }
    }

    fn commands(&mut self, settings: &Settings, target: Target) {
        for (list, name) in [(&settings.pre, "preCommands"), (&settings.post, "postCommands")] {
            for (index, command) in list.iter().enumerate() {
                let entry = vec![name.to_owned(), format!("{} ({})", index + 1, command.from)];
                let (fate, reason) = self.command(command, name == "preCommands", settings, target);
                self.entries.push((entry, fate, reason.to_owned()));
            }
        }
    }

    fn command(
        &mut self,
        command: &Command,
        pre: bool,
        settings: &Settings,
        target: Target,
    ) -> (Fate, &'static str) {
        let powershell = settings.join.as_ref().is_some_and(|(by, _)| by.ends_with(".ps1"));
        if powershell != target.family.is_windows() {
            return (Fate::Lost, "a script of one system does not run on the other");
        }
        let list = if pre { &mut self.group.pre_commands } else { &mut self.group.post_commands };
        list.push(command.text.clone());
        let moved = settings.join.as_ref().is_some_and(|(by, _)| by == "/etc/eks/bootstrap.sh")
            && target.family == Family::AmazonLinux2023;
        match moved {
            true => (Fate::NeedsReview, "the image has other packages and another order"),
            false => (Fate::Carried, ""),
        }
    }

    /// Files of the user's: as files where the target takes them, else written by a script.
    fn files(&mut self, files: &[File], target: Target) {
        let own = |file: &&File| !file.in_script && !is_generated(&file.path);
        for file in files.iter().filter(own) {
            let entry = key(&["files", &file.path]);
            let (fate, reason) = self.file(file, target);
            self.entries.push((entry, fate, reason.to_owned()));
        }
    }

    fn file(&mut self, file: &File, target: Target) -> (Fate, &'static str) {
        let mode = file.mode.as_deref().and_then(|mode| u32::from_str_radix(mode, 8).ok());
        let mode = mode.unwrap_or(0o644) & 0o7777;
        let native = matches!(target.family, Family::AmazonLinux2 | Family::Ubuntu { .. });
        let takes = target.mode == Mode::SelfContained || native && target.mode == Mode::Native;
        match std::str::from_utf8(&file.bytes) {
            Ok(content) if takes => {
                let (path, content) = (file.path.clone(), content.to_owned());
                self.group.files.push(ExtraFile { path, mode, content });
                (Fate::Carried, "")
            }
            _ if target.family.has_cloud_init() => {
                self.group.pre_commands.push(writing_script(file, mode));
                (Fate::Mapped, "a script writes it")
            }
            _ => (Fate::Lost, "the target takes no files"),
        }
    }

    fn signals(&mut self, settings: &Settings) {
        let bottlerocket = |by: &str| by.starts_with("settings.");
        for signal in settings.signals.iter().filter(|signal| !bottlerocket(&signal.by)) {
            let reason =
                "it names its stack; `tenon cloudformation` writes signal and policy".into();
            self.entries.push((key(&["signal", &signal.by]), Fate::NeedsReview, reason));
        }
    }
}

fn is_generated(path: &str) -> bool {
    GENERATED.iter().any(|known| path.starts_with(known))
        || path == "/etc/systemd/system/kubelet.service"
}

/// A script that writes a file; the content is data, not text of the script.
fn writing_script(file: &File, mode: u32) -> String {
    let path = shell::literal(&file.path);
    let content = STANDARD.encode(&file.bytes);
    format!(
        "#!/bin/bash\nset -o errexit\nmkdir -p -- \"$(dirname -- {path})\"\n\
         echo {content} | base64 -d > {path}\nchmod {mode:04o} {path}\n"
    )
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Carried, unless the value has the wrong form.
fn known(fine: bool, reason: &'static str) -> (Fate, &'static str) {
    if fine { (Fate::Carried, "") } else { (Fate::Lost, reason) }
}
