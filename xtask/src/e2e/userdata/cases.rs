//! What is put before the readers: every group of the fixture, in every mode it has.

use std::fs;

use anyhow::{Context, anyhow};
use serde_json::Value;
use tenon_core::userdata::cloudformation::{self, StackOptions};
use tenon_core::userdata::group::Signal;
use tenon_core::userdata::input::{cluster_json, eksctl, overlay};
use tenon_core::userdata::{Cluster, Document, Group, Kind, Mode, Options, family, render};

use super::super::Lab;

pub struct Case {
    pub name: String,
    pub document: Document,
    pub bytes: Vec<u8>,
}

pub struct Stack {
    pub name: String,
    pub json: String,
    pub yaml: String,
    /// The JSON without a default for the image, which a local stand-in does not know.
    pub deployed: String,
    /// What the launch template must hold after substitution.
    pub user_data: Vec<u8>,
}

fn told(findings: Vec<tenon_core::problem::Finding>) -> anyhow::Error {
    let texts: Vec<_> = findings.iter().map(|finding| finding.problem.render("error")).collect();
    anyhow!("{}", texts.concat())
}

/// The fixture's cluster and groups.
pub fn described(lab: &Lab) -> anyhow::Result<(Cluster, Vec<Group>)> {
    let directory = lab.repository.join("e2e/userdata");
    let read =
        |path: &str| fs::read_to_string(directory.join(path)).with_context(|| path.to_owned());
    let facts = cluster_json::read(&read("../../docs/examples/cluster.json")?, "cluster.json")
        .map_err(told)?;
    let config = eksctl::read(&read("cluster.yaml")?, "cluster.yaml").map_err(told)?;
    let mut groups = config.groups;
    overlay::apply(&read("overlay.yaml")?, "overlay.yaml", &mut groups).map_err(told)?;
    let cluster = Cluster { region: config.cluster.region, tags: config.cluster.tags, ..facts };
    Ok((cluster, groups))
}

pub fn all(lab: &Lab) -> anyhow::Result<Vec<Case>> {
    let (cluster, groups) = described(lab)?;
    let mut cases = Vec::new();
    for group in &groups {
        for (mode_name, mode) in Mode::ALL {
            if family::cell(group.family, group.kind, mode).is_err() {
                continue;
            }
            let mut group = group.clone();
            suit(&mut group, mode);
            let options = Options {
                eksctl_labels: true,
                tenon_part: mode == Mode::Tenon,
                ..Options::default()
            };
            let rendered = render(&cluster, &group, mode, &options).map_err(told)?;
            let name = format!("{}-{mode_name}", group.name);
            cases.push(Case { name, document: rendered.document, bytes: rendered.bytes });
        }
    }
    Ok(cases)
}

/// Leaves out what the mode has no place for, and adds a signal where one goes.
fn suit(group: &mut Group, mode: Mode) {
    if mode == Mode::SelfContained {
        (group.instance_store, group.proxy) = (None, None);
    }
    if group.kind == Kind::SelfManaged {
        group.signal = Some(Signal {
            stack: "my-stack".into(),
            resource: "NodeGroup".into(),
            region: "us-west-2".into(),
            timeout: "PT15M".into(),
        });
    }
}

pub fn stacks(lab: &Lab) -> anyhow::Result<Vec<Stack>> {
    let (cluster, groups) = described(lab)?;
    let mut stacks = Vec::new();
    for group in &groups {
        let mode = group.family.default_mode();
        for baked in [false, true] {
            if !baked && group.family.has_ignition() {
                continue;
            }
            let options = Options { eksctl_labels: true, ..Options::default() };
            let stack = StackOptions {
                baked,
                stack_name: Some("my-stack".into()),
                ..StackOptions::default()
            };
            let made =
                cloudformation::template(&cluster, group, mode, &options, &stack).map_err(told)?;
            let plain = StackOptions { image_default: false, ..stack };
            let deployed =
                cloudformation::template(&cluster, group, mode, &options, &plain).map_err(told)?;
            let user_data = match baked {
                true => made.user_data.bytes.clone(),
                false => substituted(&cluster, group, &made.user_data.document.text()).into_bytes(),
            };
            stacks.push(Stack {
                name: format!("{}-{}", group.name, if baked { "baked" } else { "parameters" }),
                json: made.template.json(),
                yaml: made.template.yaml(),
                deployed: deployed.template.json(),
                user_data,
            });
        }
    }
    Ok(stacks)
}

/// The text with the values that the parameters have by default.
fn substituted(cluster: &Cluster, group: &Group, text: &str) -> String {
    use tenon_core::userdata::cluster::stand_in;
    let cidr = cluster.service_cidr.map(|cidr| cidr.to_string());
    let values = [
        ("ClusterName", cluster.name.clone()),
        ("ClusterEndpoint", cluster.endpoint.clone()),
        ("ClusterCertificateAuthority", cluster.certificate_authority.clone()),
        ("ServiceCidr", cidr),
        ("NodeGroupName", Some(group.name.clone())),
        ("StackName", Some("my-stack".into())),
        ("Region", Some("us-west-2".into())),
        ("SignalTimeout", Some("PT15M".into())),
    ];
    values.into_iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&stand_in(name), &value.unwrap_or_default())
    })
}

impl Case {
    /// Every script that the document carries.
    pub fn scripts(&self) -> Vec<String> {
        let parts = match &self.document {
            Document::Mime(parts) => parts.iter().map(|part| part.body.clone()).collect(),
            _ => Vec::new(),
        };
        let files = self.document.files().iter().map(|file| file.content.clone());
        let bash = |text: &String| text.starts_with("#!/bin/bash") || text.starts_with("#!/bin/sh");
        parts.into_iter().chain(files).filter(bash).collect()
    }

    /// What cloud-init must see, where it is the reader.
    pub fn cloud_init_parts(&self) -> Option<Vec<(String, String)>> {
        match &self.document {
            Document::CloudConfig(config) => {
                Some(vec![("text/cloud-config".into(), config.text())])
            }
            Document::Mime(parts) => Some(
                parts.iter().map(|part| (part.media_type.clone(), part.body.clone())).collect(),
            ),
            _ => None,
        }
    }

    pub fn is_ignition(&self) -> bool {
        matches!(self.document, Document::Ignition(_))
    }

    pub fn is_powershell(&self) -> bool {
        matches!(self.document, Document::PowerShell(_))
    }

    /// The settings as JSON, where they are TOML.
    pub fn settings(&self) -> Option<Value> {
        match &self.document {
            Document::Toml(table) => serde_json::to_value(table).ok(),
            _ => None,
        }
    }

    pub fn node_configs(&self) -> Vec<String> {
        let Document::Mime(parts) = &self.document else { return Vec::new() };
        let own = parts.iter().filter(|part| part.media_type == "application/node.eks.aws");
        own.map(|part| part.body.clone()).collect()
    }

    /// Whole units by name; a drop-in stands in a unit of its own.
    pub fn units(&self) -> Vec<(String, String)> {
        let files = self
            .document
            .files()
            .iter()
            .filter(|file| file.path.starts_with("/etc/systemd/system/"));
        let mut units: Vec<_> = files
            .filter_map(|file| {
                let name = file.path.rsplit('/').next()?;
                name.ends_with(".service").then(|| (name.to_owned(), file.content.clone()))
            })
            .collect();
        if let Document::Ignition(ignition) = &self.document {
            let whole = ignition
                .units
                .iter()
                .filter_map(|unit| Some((unit.name.clone(), unit.contents.clone()?)));
            units.extend(whole);
        }
        units
    }
}
