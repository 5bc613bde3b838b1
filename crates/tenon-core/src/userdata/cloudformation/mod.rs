//! Stacks around user data: launch template, group, role, security groups, and signals that the
//! stack really waits for.

pub mod images;
pub mod launch_template;
mod managed;
mod network;
mod parameters;
mod role;
mod scaling;
mod text;

pub use text::Template;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::cluster::stand_in;
use super::group::Signal;
use super::{
    Cluster, Document, Group, Kind, Mode, Options, Rendered, has_error, render, secrets, size,
};
use crate::codes::userdata as pages;
use crate::problem::{Finding, Place, Problem};

/// Logical id of the Auto Scaling group, which the signals name.
pub const GROUP_ID: &str = "NodeGroup";
const DEFAULT_TIMEOUT: &str = "PT15M";

/// Choices about the stack.
#[derive(Debug, Clone, PartialEq)]
pub struct StackOptions {
    /// Finished user data instead of parameters for the cluster's values.
    pub baked: bool,
    pub signals: bool,
    pub signal_timeout: String,
    /// The image parameter has the published path as its default.
    pub image_default: bool,
    pub cni_policy: bool,
    pub access_entry: AccessEntry,
    /// Name of the stack, which baked user data must know to signal it.
    pub stack_name: Option<String>,
}

impl Default for StackOptions {
    fn default() -> Self {
        StackOptions {
            baked: false,
            signals: true,
            signal_timeout: DEFAULT_TIMEOUT.into(),
            image_default: true,
            cni_policy: true,
            access_entry: AccessEntry::Auto,
            stack_name: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessEntry {
    /// When the cluster's authentication mode has access entries.
    Auto,
    Always,
    Never,
}

/// A template with the user data inside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    pub template: Template,
    pub user_data: Rendered,
    pub findings: Vec<Finding>,
    pub notes: Vec<String>,
}

/// What the parts of a template are made of.
struct Stack<'a> {
    cluster: &'a Cluster,
    group: &'a Group,
    options: &'a StackOptions,
    /// The user data as a value of the template; None when there is none.
    user_data: Option<Value>,
    /// Its text with references, to see which parameters it uses.
    text: String,
}

/// Makes the template of one group.
pub fn template(
    cluster: &Cluster,
    group: &Group,
    mode: Mode,
    options: &Options,
    stack: &StackOptions,
) -> Result<Made, Vec<Finding>> {
    let mut findings = Vec::new();
    check(cluster, group, stack, &mut findings);
    let prepared = prepare(cluster, group, stack);
    let known = if stack.baked { cluster.clone() } else { Cluster::parameters(cluster) };
    let rendered = match render(&known, &prepared, mode, options) {
        Ok(rendered) => rendered,
        Err(more) => {
            findings.extend(more);
            return Err(findings);
        }
    };
    check_size(&rendered, group, stack, &mut findings);
    if has_error(&findings) {
        return Err(findings);
    }
    let whole = Stack {
        cluster,
        group,
        options: stack,
        user_data: user_data(&rendered, stack),
        text: text::substitution(&rendered.document.text()),
    };
    let template = Template { sections: whole.sections() };
    findings.extend(rendered.findings.iter().cloned());
    let notes = rendered.notes.clone();
    Ok(Made { template, user_data: rendered, findings, notes })
}

/// The group with its signal and, where the stack has parameters, their stand-ins.
fn prepare(cluster: &Cluster, group: &Group, stack: &StackOptions) -> Group {
    let mut group = group.clone();
    if !stack.baked {
        group.name = stand_in("NodeGroupName");
    }
    if stack.signals && group.kind == Kind::SelfManaged {
        group.signal = Some(match stack.baked {
            false => Signal {
                stack: stand_in("StackName"),
                resource: GROUP_ID.into(),
                region: stand_in("Region"),
                timeout: stand_in("SignalTimeout"),
            },
            true => Signal {
                stack: stack.stack_name.clone().unwrap_or_default(),
                resource: GROUP_ID.into(),
                region: cluster.region.clone().unwrap_or_default(),
                timeout: stack.signal_timeout.clone(),
            },
        });
    }
    group
}

fn check(cluster: &Cluster, group: &Group, stack: &StackOptions, findings: &mut Vec<Finding>) {
    let mut error = |page, field: &str, what: &str| {
        findings.push(Finding::error(Problem::new(page, what).at(group.at(field))));
    };
    if images::architecture(group).is_none() {
        error(
            &pages::MIXED_ARCHITECTURES,
            "instanceTypes",
            "the instance types have different architectures",
        );
    }
    let by_eks = group.kind == Kind::Managed && images::managed_type(group).is_some();
    if group.ami.is_none() && !by_eks && images::parameter(cluster, group).is_none() {
        let version = cluster
            .version
            .map_or("an unknown version".to_owned(), |(major, minor)| format!("{major}.{minor}"));
        let what =
            format!("no image path for {} on Kubernetes {version}; set ami", group.family.name());
        error(&pages::NO_IMAGE_PATH, "ami", &what);
    }
    if secrets::texts(group).iter().any(|(_, text)| text::has_stand_in(text)) {
        error(
            &pages::BAD_TEXT,
            "",
            "a text of the group holds a word that stands for stack parameters",
        );
    }
    for (field, text) in secrets::texts(group) {
        if !stack.baked && !text::is_plain(text) {
            let what =
                "the text has a reference inside a reference, which Fn::Sub does not read safely";
            error(&pages::NEEDS_BAKED, &field, what);
        }
    }
    if group.kind == Kind::SelfManaged && stack.signals {
        let sizes = scaling::sizes(group);
        if sizes.max <= sizes.desired {
            let what =
                "maxSize is not above desiredCapacity, so a rolling update could never start";
            error(&pages::UPDATE_STUCK, "maxSize", what);
        }
        if stack.baked && (stack.stack_name.is_none() || cluster.region.is_none()) {
            let what = "baked user data must know the stack's name and region to signal it";
            let problem = Problem::new(&pages::NEEDS_BAKED, what)
                .at(Place::field("--stack-name"))
                .why("the node signals its stack by name, and a finished document cannot refer to the stack it is in")
                .fix("give --stack-name and --region, or use --no-signals");
            findings.push(Finding::error(problem));
        }
    }
    let count = scaling::tag_count(cluster, group);
    if count > scaling::MOST_TAGS {
        let what = format!("the group would have {count} tags");
        findings
            .push(Finding::error(Problem::new(&pages::TOO_MANY_TAGS, what).at(group.at("tags"))));
    }
}

/// With parameters the size is that of the longest values they may take.
fn check_size(
    rendered: &Rendered,
    group: &Group,
    stack: &StackOptions,
    findings: &mut Vec<Finding>,
) {
    if stack.baked {
        return;
    }
    let greatest = text::greatest_size(&rendered.document.text());
    if greatest > size::LIMIT {
        let what = format!(
            "{} of {} bytes with the longest permitted parameter values",
            size::thousands(greatest),
            size::thousands(size::LIMIT)
        );
        let problem = Problem::new(&pages::TOO_LARGE, what)
            .at(group.at(""))
            .fix("use --baked, which knows the values and may compress")
            .details(rendered.sizes().table());
        findings.push(Finding::error(problem));
    }
}

fn user_data(rendered: &Rendered, stack: &StackOptions) -> Option<Value> {
    if rendered.document == Document::Empty {
        return None;
    }
    let text = rendered.document.text();
    Some(match stack.baked {
        true => json!(STANDARD.encode(&rendered.bytes)),
        false => {
            // Without a reference there is nothing to substitute, and linters say so.
            let body = match text::has_stand_in(&text) {
                true => json!({"Fn::Sub": text::substitution(&text)}),
                false => json!(text),
            };
            json!({"Fn::Base64": body})
        }
    })
}

impl Stack<'_> {
    fn sections(&self) -> Vec<(&'static str, Value)> {
        let managed = self.group.kind != Kind::SelfManaged;
        let (resources, outputs) = match managed {
            true => (managed::resources(self), managed::outputs()),
            false => (self.resources(), self.outputs()),
        };
        let title = format!("{} nodes of an EKS cluster", self.group.family.name());
        vec![
            ("AWSTemplateFormatVersion", json!("2010-09-09")),
            ("Description", json!(title)),
            ("Parameters", Value::Object(parameters::all(self))),
            ("Conditions", Value::Object(parameters::conditions(self))),
            ("Resources", Value::Object(resources)),
            ("Outputs", Value::Object(outputs)),
        ]
    }

    fn resources(&self) -> Map<String, Value> {
        let mut resources = role::resources(self);
        resources.extend(network::resources(self));
        resources.insert("NodeLaunchTemplate".into(), self.launch_template());
        resources.insert(GROUP_ID.into(), scaling::group(self));
        resources
    }

    fn outputs(&self) -> Map<String, Value> {
        let outputs = [
            ("NodeAutoScalingGroup", json!({"Ref": GROUP_ID})),
            ("NodeInstanceRole", role::arn(self)),
            ("NodeLaunchTemplate", json!({"Ref": "NodeLaunchTemplate"})),
            ("NodeLaunchTemplateVersion", attribute("NodeLaunchTemplate", "LatestVersionNumber")),
            ("NodeSecurityGroup", json!({"Ref": "NodeSecurityGroup"})),
        ];
        let known = outputs.into_iter().filter(|(_, value)| !value.is_null());
        known.map(|(name, value)| (name.to_owned(), json!({"Value": value}))).collect()
    }

    fn launch_template(&self) -> Value {
        let values = launch_template::Values {
            image: self.image(),
            instance_type: Some(json!({"Ref": "InstanceType"})),
            key_name: Some(self.key_name()),
            security_groups: self.security_groups(json!({"Ref": "NodeSecurityGroup"})),
            instance_profile: Some(json!({"Arn": role::profile_arn(self)})),
            hop_limit: json!({"Ref": "HttpPutResponseHopLimit"}),
            volume_gib: json!({"Ref": "VolumeSize"}),
            user_data: self.user_data.clone(),
            tags: self.tags(),
        };
        let data = launch_template::data(self.group, values);
        json!({"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}})
    }

    fn security_groups(&self, own: Value) -> Vec<Value> {
        let given = self.group.launch.security_groups.iter().map(|id| json!(id));
        std::iter::once(own).chain(given).collect()
    }

    fn key_name(&self) -> Value {
        json!({"Fn::If": ["HasKeyName", {"Ref": "KeyName"}, {"Ref": "AWS::NoValue"}]})
    }

    /// The image of the group: an id, or the published parameter.
    fn image(&self) -> Option<Value> {
        Some(match self.published_image() {
            Some(_) => {
                json!({"Fn::If": ["HasImageId", {"Ref": "ImageId"}, {"Ref": "ImageIdSsmParameter"}]})
            }
            None => json!({"Ref": "ImageId"}),
        })
    }

    /// The published path, when the group names no image itself.
    fn published_image(&self) -> Option<String> {
        match self.group.ami {
            Some(_) => None,
            None => images::parameter(self.cluster, self.group),
        }
    }

    /// The cluster's name: a parameter, or the name itself.
    fn cluster_name(&self) -> Value {
        match self.options.baked {
            true => json!(self.cluster.name),
            false => json!({"Ref": "ClusterName"}),
        }
    }

    /// Text with `${ClusterName}` and `${NodeGroupName}`.
    fn sub(&self, text: &str) -> Value {
        match self.options.baked {
            true => {
                let name = self.cluster.name.clone().unwrap_or_default();
                let done = text
                    .replace("${ClusterName}", &name)
                    .replace("${NodeGroupName}", &self.group.name);
                if done.contains("${") { json!({"Fn::Sub": done}) } else { json!(done) }
            }
            false => json!({"Fn::Sub": text}),
        }
    }

    /// Tags of everything the template makes: the cluster's and the group's.
    fn tags(&self) -> Vec<Value> {
        let mut tags = self.cluster.tags.clone();
        tags.extend(self.group.launch.tags.clone());
        let own = [("Name", "${ClusterName}-${NodeGroupName}")];
        let own = own.into_iter().filter(|(key, _)| !tags.contains_key(*key));
        let mut list: Vec<_> =
            own.map(|(key, value)| json!({"Key": key, "Value": self.sub(value)})).collect();
        list.push(
            json!({"Key": self.sub("kubernetes.io/cluster/${ClusterName}"), "Value": "owned"}),
        );
        list.extend(tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})));
        list
    }
}

fn attribute(resource: &str, name: &str) -> Value {
    json!({"Fn::GetAtt": [resource, name]})
}

/// `LaunchTemplateData` alone, with values in place of parameters.
pub fn launch_template_data(cluster: &Cluster, group: &Group, rendered: &Rendered) -> Value {
    let image = group.ami.clone().or_else(|| {
        let path = images::parameter(cluster, group)?;
        Some(format!("resolve:ssm:{path}"))
    });
    let launch = &group.launch;
    let managed = group.kind == Kind::Managed && images::managed_type(group).is_some();
    let name = format!("{}-{}", cluster.name.as_deref().unwrap_or_default(), group.name);
    let mut tags: std::collections::BTreeMap<_, _> = cluster.tags.clone();
    tags.insert("Name".into(), name);
    tags.extend(launch.tags.clone());
    let profile = launch.instance_profile_arn.as_ref().filter(|_| group.kind == Kind::SelfManaged);
    let values = launch_template::Values {
        image: image.filter(|_| !managed).map(Value::from),
        instance_type: group
            .instance_types
            .first()
            .filter(|_| group.kind == Kind::SelfManaged)
            .map(|name| json!(name)),
        key_name: launch.key_name.as_ref().map(|name| json!(name)),
        security_groups: launch.security_groups.iter().map(|id| json!(id)).collect(),
        instance_profile: profile.map(|arn| json!({"Arn": arn})),
        hop_limit: json!(launch_template::hop_limit(group)),
        volume_gib: json!(launch_template::volume_gib(group)),
        user_data: (rendered.document != Document::Empty)
            .then(|| json!(STANDARD.encode(&rendered.bytes))),
        tags: tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect(),
    };
    launch_template::data(group, values)
}

#[cfg(test)]
mod tests;
