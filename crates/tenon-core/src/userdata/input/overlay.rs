//! Wishes that a ClusterConfig cannot hold, keyed by the group's name.

use super::reader::{Fields, Reader};
use crate::codes::userdata as pages;
use crate::config::DiskStrategy;
use crate::problem::{Finding, Place, Problem};
use crate::tree::{Tree, Written};
use crate::userdata::Group;
use crate::userdata::group::{CredentialHelper, ExtraFile, InstanceStore, MaxPodsPolicy, Proxy};

const GROUP: &[&str] = &[
    "postBootstrapCommands",
    "instanceStore",
    "proxy",
    "reboot",
    "credentialHelper",
    "files",
    "maxPodsPolicy",
    "containerdConfig",
    "featureGates",
];
const STORE: &[&str] = &["strategy", "mountPath", "disabledMounts"];
const PROXY: &[&str] = &["http", "https", "noProxy"];
const FILE: &[&str] = &["path", "mode", "content"];

/// Adds the overlay's wishes to the groups that it names.
pub fn apply(text: &str, source: &str, groups: &mut [Group]) -> Result<(), Vec<Finding>> {
    let mut reader = Reader::new(source);
    let Some(tree) = reader.document(text) else { return Err(reader.findings) };
    let Written::Map(entries) = &tree.value else {
        reader.report(&pages::BAD_INPUT, tree.span, "", "the overlay is not a map of group names");
        return Err(reader.findings);
    };
    for entry in entries {
        match groups.iter_mut().find(|group| group.name == entry.key) {
            Some(group) => wishes(&mut reader, &entry.key, &entry.value, group),
            None => {
                let place = Place {
                    source: source.to_owned(),
                    path: entry.key.clone(),
                    ..Place::default()
                };
                let problem = Problem::new(
                    &pages::NO_SUCH_GROUP,
                    "the overlay names a group that does not exist",
                )
                .at(place);
                reader.findings.push(Finding::error(problem));
            }
        }
    }
    if reader.findings.is_empty() { Ok(()) } else { Err(reader.findings) }
}

fn wishes(reader: &mut Reader, name: &str, tree: &Tree, group: &mut Group) {
    let fields = reader.fields(tree, name, &[GROUP]);
    group.post_commands = reader.texts(&fields, "postBootstrapCommands");
    group.containerd_config = reader.text(&fields, "containerdConfig");
    let policy = reader.parsed(&fields, "maxPodsPolicy", "fixed or min", |text| match text {
        "fixed" => Some(MaxPodsPolicy::Fixed),
        "min" => Some(MaxPodsPolicy::Min),
        _ => None,
    });
    group.max_pods_policy = policy.unwrap_or_default();
    let helper = reader.parsed(
        &fields,
        "credentialHelper",
        "aws-iam-authenticator, aws or tenon",
        CredentialHelper::parse,
    );
    group.credential_helper = helper.unwrap_or_default();
    group.reboot_before_join = reader
        .parsed(&fields, "reboot", "before-join", |text| (text == "before-join").then_some(true))
        .is_some();
    for (gate, text) in reader.pairs(&fields, "featureGates") {
        match text.as_str() {
            "true" | "false" => {
                group.feature_gates.insert(gate, text == "true");
            }
            _ => reader.report(
                &pages::BAD_VALUE,
                tree.span,
                &format!("{name}.featureGates"),
                "a feature gate is true or false",
            ),
        }
    }
    store(reader, &fields, group);
    proxy(reader, &fields, group);
    for (path, item) in reader.items(&fields, "files") {
        let file = reader.fields(item, &path, &[FILE]);
        let mode = reader.parsed(&file, "mode", "an octal mode such as \"0644\"", |text| {
            u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777)
        });
        group.files.push(ExtraFile {
            path: reader.required(&file, "path").unwrap_or_default(),
            mode: mode.unwrap_or(0o644),
            content: reader.text(&file, "content").unwrap_or_default(),
        });
    }
}

fn store(reader: &mut Reader, fields: &Fields, group: &mut Group) {
    let Some(store) = reader.inner(fields, "instanceStore", &[STORE]) else { return };
    let strategy = reader.parsed(&store, "strategy", "RAID0, RAID10 or Mount", |text| {
        match text.to_ascii_uppercase().as_str() {
            "RAID0" => Some(DiskStrategy::Raid0),
            "RAID10" => Some(DiskStrategy::Raid10),
            "MOUNT" => Some(DiskStrategy::Mount),
            _ => None,
        }
    });
    group.instance_store = strategy.map(|strategy| InstanceStore {
        strategy,
        mount_path: reader.text(&store, "mountPath"),
        disabled_mounts: reader.texts(&store, "disabledMounts"),
    });
}

fn proxy(reader: &mut Reader, fields: &Fields, group: &mut Group) {
    let Some(proxy) = reader.inner(fields, "proxy", &[PROXY]) else { return };
    group.proxy = Some(Proxy {
        http: reader.text(&proxy, "http"),
        https: reader.text(&proxy, "https"),
        no_proxy: reader.texts(&proxy, "noProxy"),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_reach_their_group() {
        let mut groups = [Group { name: "a".into(), ..Group::default() }];
        let text = "a:\n  postBootstrapCommands: [echo hi]\n  maxPodsPolicy: min\n  reboot: before-join\n  instanceStore: {strategy: raid0}\n  proxy: {https: \"http://p:3128\", noProxy: [.corp]}\n  files: [{path: /etc/x, mode: \"0600\", content: hi}]\n";
        apply(text, "overlay.yaml", &mut groups).unwrap();
        let [group] = &groups;
        assert_eq!(group.post_commands, ["echo hi"]);
        assert!(group.reboot_before_join && group.max_pods_policy == MaxPodsPolicy::Min);
        assert_eq!(group.files[0].mode, 0o600);
        assert_eq!(group.proxy.as_ref().unwrap().variables().len(), 2);
    }

    #[test]
    fn unknown_groups_and_fields_are_refused() {
        for text in ["b: {}", "a: {postBootstrapCommand: [x]}", "a: {reboot: later}", "[]"] {
            let mut groups = [Group { name: "a".into(), ..Group::default() }];
            assert!(apply(text, "x", &mut groups).is_err(), "{text}");
        }
    }
}
