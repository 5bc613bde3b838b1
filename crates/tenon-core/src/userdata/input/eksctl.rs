//! eksctl's ClusterConfig: the cluster's own facts and every node group.

use std::collections::BTreeSet;

use serde_json::Value;

use super::eksctl_fields as known;
use super::reader::{Fields, Reader};
use super::version;
use crate::codes::userdata as pages;
use crate::config::Taint;
use crate::problem::{Finding, Problem};
use crate::tree::{Dialect, Tree, Written};
use crate::userdata::bottlerocket_map::from_json;
use crate::userdata::group::{Amount, Distribution, Launch, Volume};
use crate::userdata::{Cluster, Family, Group, IpFamily, Kind};

pub const API_VERSION: &str = "eksctl.io/v1alpha5";

/// What a ClusterConfig says.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterConfig {
    pub cluster: Cluster,
    /// Self-managed groups first, then managed ones, each in the order of the file.
    pub groups: Vec<Group>,
    pub notes: Vec<String>,
}

/// Reads a ClusterConfig; all findings at once.
pub fn read(text: &str, source: &str) -> Result<ClusterConfig, Vec<Finding>> {
    let mut reader = Reader::new(source);
    let config = reader.document(text).map(|tree| config(&mut reader, &tree));
    match config {
        Some(config) if reader.findings.is_empty() => Ok(config),
        _ => Err(reader.findings),
    }
}

fn config(reader: &mut Reader, tree: &Tree) -> ClusterConfig {
    let top = reader.fields(tree, "", &[known::TOP, known::TOP_IGNORED]);
    let kind = (reader.text(&top, "apiVersion"), reader.text(&top, "kind"));
    if kind != (Some(API_VERSION.into()), Some("ClusterConfig".into())) {
        let what = format!("not a ClusterConfig of {API_VERSION}");
        reader.report(&pages::BAD_INPUT, tree.span, "apiVersion", what);
    }
    let cluster = cluster(reader, &top);
    let mut groups = Vec::new();
    let mut notes = Vec::new();
    for (key, kind) in [("nodeGroups", Kind::SelfManaged), ("managedNodeGroups", Kind::Managed)] {
        for (path, item) in reader.items(&top, key) {
            groups.push(group(reader, &path, item, kind, &mut notes));
        }
    }
    check_names(reader, tree, &groups);
    ClusterConfig { cluster, groups, notes }
}

fn check_names(reader: &mut Reader, tree: &Tree, groups: &[Group]) {
    let mut seen = BTreeSet::new();
    for group in groups {
        if !seen.insert(group.name.as_str()) {
            let path = format!("{}.name", group.path);
            reader.report(&pages::TWO_VALUES, tree.span, &path, "two groups have the same name");
        }
    }
}

fn cluster(reader: &mut Reader, top: &Fields) -> Cluster {
    let mut cluster = Cluster::default();
    if let Some(metadata) = reader.inner(top, "metadata", &[known::METADATA]) {
        cluster.name = reader.required(&metadata, "name");
        cluster.region = reader.text(&metadata, "region");
        cluster.version =
            reader.parsed(&metadata, "version", "a version such as \"1.33\"", version);
        cluster.tags = reader.pairs(&metadata, "tags");
    }
    if let Some(network) = reader.inner(top, "kubernetesNetworkConfig", &[known::NETWORK]) {
        cluster.ip_family = reader.parsed(&network, "ipFamily", "IPv4 or IPv6", ip_family);
        cluster.service_cidr =
            reader.parsed(&network, "serviceIPv4CIDR", "a network", |text| text.parse().ok());
    }
    if let Some(outpost) = reader.inner(top, "outpost", &[known::OUTPOST]) {
        cluster.outpost = reader.text(&outpost, "controlPlaneOutpostARN").is_some();
    }
    cluster
}

fn ip_family(text: &str) -> Option<IpFamily> {
    match text.to_ascii_lowercase().as_str() {
        "ipv4" => Some(IpFamily::V4),
        "ipv6" => Some(IpFamily::V6),
        _ => None,
    }
}

fn group(
    reader: &mut Reader,
    path: &str,
    tree: &Tree,
    kind: Kind,
    notes: &mut Vec<String>,
) -> Group {
    let own = match kind {
        Kind::SelfManaged => [known::SELF_MANAGED, known::SELF_MANAGED_IGNORED],
        _ => [known::MANAGED, &[]],
    };
    let fields = reader.fields(tree, path, &[known::GROUP, known::GROUP_IGNORED, own[0], own[1]]);
    let (family, ami) = image(reader, &fields, tree);
    let custom = kind == Kind::Managed && ami.is_some();
    if fields.has("launchTemplate") {
        let what = "the group uses an existing launch template";
        reader.report(
            &pages::EXISTING_TEMPLATE,
            tree.span,
            &format!("{path}.launchTemplate"),
            what,
        );
    }
    let mut group = Group {
        name: reader.required(&fields, "name").unwrap_or_default(),
        path: path.to_owned(),
        family,
        kind: if custom { Kind::ManagedCustom } else { kind },
        ami,
        instance_types: instance_types(reader, &fields),
        labels: reader.pairs(&fields, "labels"),
        taints: taints(reader, &fields, kind),
        max_pods: reader.number(&fields, "maxPodsPerNode").filter(|pods| *pods > 0),
        cluster_dns: reader
            .parsed(&fields, "clusterDNS", "an IP address", |text| text.parse().ok()),
        container_runtime: reader.text(&fields, "containerRuntime"),
        pre_commands: reader.texts(&fields, "preBootstrapCommands"),
        override_command: reader.text(&fields, "overrideBootstrapCommand"),
        launch: launch(reader, &fields, notes),
        ..Group::default()
    };
    match reader.json(&fields, "kubeletExtraConfig") {
        Some(Value::Object(map)) => group.kubelet_config = map,
        Some(_) => reader.report(
            &pages::BAD_VALUE,
            tree.span,
            &format!("{path}.kubeletExtraConfig"),
            "kubeletExtraConfig is not a map",
        ),
        None => {}
    }
    bottlerocket(reader, &fields, tree, &mut group);
    group
}

/// Family and image id. An id alone does not tell the family.
fn image(reader: &mut Reader, fields: &Fields, tree: &Tree) -> (Family, Option<String>) {
    let name = reader.text(fields, "amiFamily");
    let family = match name.as_deref().map(Family::parse) {
        Some(Ok(family)) => family,
        Some(Err(problem)) => {
            let path = format!("{}.amiFamily", fields.path);
            let (page, fix) = (problem.page, problem.fix_text().to_owned());
            reader.report(page, tree.span, &path, problem.what.clone());
            if let Some(finding) = reader.findings.last_mut() {
                finding.problem = finding.problem.clone().fix(fix);
            }
            Family::default()
        }
        None => Family::default(),
    };
    let ami = reader
        .text(fields, "ami")
        .filter(|ami| !["auto", "auto-ssm", "static"].contains(&ami.as_str()));
    let path = format!("{}.ami", fields.path);
    if ami.as_deref().is_some_and(|ami| !is_image_id(ami)) {
        reader.report(
            &pages::BAD_VALUE,
            tree.span,
            &path,
            "`ami` is neither an image id, auto nor auto-ssm",
        );
    }
    if ami.is_some() && name.is_none() {
        let what = "the group names an image and not its family";
        reader.report(&pages::FAMILY_NEEDED, tree.span, &path, what);
    }
    (family, ami)
}

/// `ami-` and 8 to 17 hexadecimal digits.
pub fn is_image_id(text: &str) -> bool {
    text.strip_prefix("ami-").is_some_and(|digits| {
        (8..=17).contains(&digits.len())
            && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

fn instance_types(reader: &mut Reader, fields: &Fields) -> Vec<String> {
    let mut types: Vec<String> =
        reader.text(fields, "instanceType").into_iter().filter(|name| name != "mixed").collect();
    types.extend(reader.texts(fields, "instanceTypes"));
    if let Some(mixed) = reader.inner(fields, "instancesDistribution", &[known::DISTRIBUTION]) {
        types.extend(reader.texts(&mixed, "instanceTypes"));
    }
    types.dedup();
    types
}

/// A list of objects, or, in self-managed groups, `key: "value:Effect"`.
fn taints(reader: &mut Reader, fields: &Fields, kind: Kind) -> Vec<Taint> {
    let Some((_, tree)) = reader.tree(fields, "taints") else { return Vec::new() };
    if let (Written::Map(_), Kind::SelfManaged) = (&tree.value, kind) {
        let pairs = reader.pairs(fields, "taints");
        return pairs.into_iter().map(|(key, text)| taint_of(key, &text)).collect();
    }
    let mut taints = Vec::new();
    for (path, item) in reader.items(fields, "taints") {
        let taint = reader.fields(item, &path, &[known::TAINT]);
        taints.push(Taint {
            key: reader.required(&taint, "key").unwrap_or_default(),
            value: reader.text(&taint, "value").unwrap_or_default(),
            effect: reader.required(&taint, "effect").unwrap_or_default(),
        });
    }
    taints
}

fn taint_of(key: String, text: &str) -> Taint {
    let (value, effect) = text.rsplit_once(':').unwrap_or(("", text));
    Taint { key, value: value.to_owned(), effect: effect.to_owned() }
}

fn bottlerocket(reader: &mut Reader, fields: &Fields, tree: &Tree, group: &mut Group) {
    let Some(inner) = reader.inner(fields, "bottlerocket", &[known::BOTTLEROCKET]) else { return };
    group.bottlerocket.enable_admin_container = reader.flag(&inner, "enableAdminContainer");
    let Some((path, settings)) = reader.tree(&inner, "settings") else { return };
    // The API of Bottlerocket is YAML 1.2 on its way through eksctl's file.
    match from_json(&settings.to_json(Dialect::Yaml12)) {
        Some(toml::Value::Table(table)) => group.bottlerocket.settings = table,
        _ => reader.report(
            &pages::BAD_VALUE,
            tree.span,
            &path,
            "bottlerocket.settings is not a map without nulls",
        ),
    }
}

fn launch(reader: &mut Reader, fields: &Fields, notes: &mut Vec<String>) -> Launch {
    let mut launch = Launch {
        min_size: reader.number(fields, "minSize"),
        max_size: reader.number(fields, "maxSize"),
        desired_capacity: reader.number(fields, "desiredCapacity"),
        volume: volume(reader, fields),
        tags: reader.pairs(fields, "tags"),
        propagate_tags: reader.flag(fields, "propagateASGTags").unwrap_or(false),
        suspended_processes: reader.texts(fields, "asgSuspendProcesses"),
        max_instance_lifetime: reader.number(fields, "maxInstanceLifetime"),
        spot: reader.flag(fields, "spot").unwrap_or(false),
        disable_pod_imds: reader.flag(fields, "disablePodIMDS").unwrap_or(false),
        efa: reader.flag(fields, "efaEnabled").unwrap_or(false),
        cpu_credits: reader.text(fields, "cpuCredits"),
        enclave: reader.flag(fields, "enclaveEnabled").unwrap_or(false),
        detailed_monitoring: reader.flag(fields, "enableDetailedMonitoring").unwrap_or(false),
        release_version: reader.text(fields, "releaseVersion"),
        subnets: reader.texts(fields, "subnets"),
        ..Launch::default()
    };
    for (path, item) in reader.items(fields, "additionalVolumes") {
        let inner = reader.fields(item, &path, &[known::VOLUME]);
        launch.additional_volumes.push(volume(reader, &inner));
    }
    access(reader, fields, &mut launch, notes);
    capacity(reader, fields, &mut launch);
    launch
}

fn volume(reader: &mut Reader, fields: &Fields) -> Volume {
    Volume {
        name: reader.text(fields, "volumeName"),
        size_gib: reader.number(fields, "volumeSize"),
        kind: reader.text(fields, "volumeType"),
        iops: reader.number(fields, "volumeIOPS"),
        throughput: reader.number(fields, "volumeThroughput"),
        kms_key: reader.text(fields, "volumeKmsKeyID"),
        snapshot: reader.text(fields, "snapshotID"),
    }
}

/// Keys, roles, security groups.
fn access(reader: &mut Reader, fields: &Fields, launch: &mut Launch, notes: &mut Vec<String>) {
    if let Some(ssh) = reader.inner(fields, "ssh", &[known::SSH]) {
        launch.key_name = reader.text(&ssh, "publicKeyName");
        if ssh.has("enableSsm") || ssh.has("enableSSM") {
            notes.push(format!(
                "{}.ssh.enableSsm has no effect: the agent is part of the images",
                fields.path
            ));
        }
    }
    if let Some(iam) = reader.inner(fields, "iam", &[known::IAM]) {
        launch.instance_role_arn = reader.text(&iam, "instanceRoleARN");
        launch.instance_profile_arn = reader.text(&iam, "instanceProfileARN");
        launch.policy_arns = reader.texts(&iam, "attachPolicyARNs");
    }
    if let Some(groups) = reader.inner(fields, "securityGroups", &[known::SECURITY_GROUPS]) {
        launch.security_groups = reader.texts(&groups, "attachIDs");
    }
}

/// Where instances come from and how many may be missing.
fn capacity(reader: &mut Reader, fields: &Fields, launch: &mut Launch) {
    if let Some(update) = reader.inner(fields, "updateConfig", &[known::UPDATE]) {
        let count = reader.number(&update, "maxUnavailable").map(Amount::Count);
        launch.max_unavailable = count
            .or_else(|| reader.number(&update, "maxUnavailablePercentage").map(Amount::Percent));
    }
    if let Some(mixed) = reader.inner(fields, "instancesDistribution", &[known::DISTRIBUTION]) {
        launch.distribution = Some(Distribution {
            on_demand_base: reader.number(&mixed, "onDemandBaseCapacity"),
            on_demand_percent: reader.number(&mixed, "onDemandPercentageAboveBaseCapacity"),
            spot_strategy: reader.text(&mixed, "spotAllocationStrategy"),
            spot_pools: reader.number(&mixed, "spotInstancePools"),
            max_price: reader.text(&mixed, "maxPrice"),
        });
    }
    if let Some(placement) = reader.inner(fields, "placement", &[known::PLACEMENT]) {
        launch.placement_group = reader.text(&placement, "groupName");
    }
    if let Some(reservation) = reader.inner(fields, "capacityReservation", &[known::RESERVATION])
        && let Some(target) =
            reader.inner(&reservation, "capacityReservationTarget", &[known::RESERVATION_TARGET])
    {
        launch.capacity_reservation_id = reader.text(&target, "capacityReservationID");
    }
    if let Some(repair) = reader.inner(fields, "nodeRepairConfig", &[known::REPAIR]) {
        launch.node_repair = reader.flag(&repair, "enabled");
    }
    if let Some(market) = reader.inner(fields, "instanceMarketOptions", &[known::MARKET]) {
        launch.spot |= reader.text(&market, "marketType").as_deref() == Some("spot");
    }
}

/// The group of this name, or the only one.
pub fn select<'a>(groups: &'a [Group], name: Option<&str>) -> Result<&'a Group, Problem> {
    let found = match name {
        Some(name) => groups.iter().find(|group| group.name == name),
        None if groups.len() == 1 => groups.first(),
        None => None,
    };
    found.ok_or_else(|| {
        let names: Vec<_> = groups.iter().map(|group| format!("`{}`", group.name)).collect();
        let what = match name {
            Some(_) => "no group has that name".to_owned(),
            None => format!("the file has {} groups", groups.len()),
        };
        Problem::new(&pages::NO_SUCH_GROUP, what).details([format!("groups: {}", names.join(", "))])
    })
}

#[cfg(test)]
#[path = "eksctl_tests.rs"]
mod tests;
