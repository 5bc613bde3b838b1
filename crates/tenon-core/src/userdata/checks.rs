//! What the values of a group must look like, and which cluster facts a cell needs.

use super::cloudformation::images;
use super::family::{Cell, Family, Kind};
use super::group::Group;
use super::quote::{is_one_line, is_text};
use super::{Cluster, Options, availability, secrets};
use crate::codes::Page;
use crate::codes::userdata as pages;
use crate::config::grammar::{kubelet_may_set, label_key, label_value};
use crate::config::kubelet_table;
use crate::problem::{Finding, Problem};

const MOST_LABELS: usize = 256;
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Kubelet fields that the join itself sets.
pub const OWNED_FIELDS: [&str; 7] = [
    "kind",
    "apiVersion",
    "address",
    "clusterDomain",
    "authentication",
    "authorization",
    "serverTLSBootstrap",
];

/// The group with what follows from its source: the two labels of eksctl.
pub fn complete(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Group {
    let mut group = group.clone();
    if !options.eksctl_labels {
        return group;
    }
    let pairs = [
        ("alpha.eksctl.io/cluster-name", cluster.name.clone()),
        ("alpha.eksctl.io/nodegroup-name", Some(group.name.clone())),
    ];
    for (key, value) in pairs {
        let Some(value) = value else { continue };
        match group.labels.get(key) {
            Some(given) if *given != value => {
                let what = format!("the label {key} differs from the group's own name or cluster");
                let problem = Problem::new(&pages::TWO_VALUES, what).at(group.at("labels"));
                findings.push(Finding::error(problem));
            }
            _ => {
                group.labels.insert(key.to_owned(), value);
            }
        }
    }
    group
}

/// Checks the group, and the cluster as far as the cell needs it.
pub fn check(
    cluster: &Cluster,
    group: &Group,
    cell: Cell,
    options: &Options,
    findings: &mut Vec<Finding>,
) {
    check_labels(group, findings);
    check_taints(group, findings);
    check_texts(group, findings);
    check_flags(group, findings);
    check_kubelet_config(cluster, group, findings);
    availability::check(cluster, group, cell, options, findings);
    check_versions(cluster, group, findings);
    check_image(cluster, group, findings);
    secrets::check(group, options, findings);
    cluster.check(findings);
    cluster.require(needed(group, cell), findings);
}

/// The cluster facts that the cell writes.
fn needed(group: &Group, cell: Cell) -> &'static [&'static str] {
    const IDENTITY: &[&str] = &["name", "endpoint", "certificateAuthority"];
    const WHOLE: &[&str] = &["name", "endpoint", "certificateAuthority", "serviceCidr"];
    const FILES: &[&str] = &["name", "endpoint", "certificateAuthority", "region"];
    match cell {
        Cell::Settings => IDENTITY,
        Cell::SelfContained => FILES,
        Cell::TenonPart => WHOLE,
        _ if group.joined_by_eks() && !matches!(group.family, Family::Ubuntu { .. }) => &[],
        Cell::NodeConfig => WHOLE,
        Cell::BootstrapScript | Cell::ManagedScripts | Cell::PowerShell => IDENTITY,
        Cell::Unchanged => &[],
    }
}

pub(super) fn report(
    findings: &mut Vec<Finding>,
    page: &'static Page,
    group: &Group,
    field: &str,
    what: &str,
) {
    findings.push(Finding::error(Problem::new(page, what).at(group.at(field))));
}

fn check_labels(group: &Group, findings: &mut Vec<Finding>) {
    for (position, (key, value)) in group.labels.iter().enumerate() {
        // The key itself may be a misplaced secret, so its position stands for it unless it is
        // well formed.
        let field =
            if label_key(key) { format!("labels.{key}") } else { format!("labels[{position}]") };
        if !label_key(key) {
            report(findings, &pages::BAD_LABEL, group, &field, "the key is not a label key");
        } else if !kubelet_may_set(key) {
            let what = "the kubelet may not set this label on its own node";
            report(findings, &pages::RESERVED_LABEL, group, &field, what);
        }
        if !label_value(value) {
            report(findings, &pages::BAD_LABEL, group, &field, "the value is not a label value");
        }
    }
    if group.labels.len() > MOST_LABELS {
        report(findings, &pages::BAD_LABEL, group, "labels", "there are more than 256 labels");
    }
}

fn check_taints(group: &Group, findings: &mut Vec<Finding>) {
    for (index, taint) in group.taints.iter().enumerate() {
        let field = format!("taints[{index}]");
        let mut bad = |what: &str| report(findings, &pages::BAD_TAINT, group, &field, what);
        if !label_key(&taint.key) {
            bad("the key is not a taint key");
        }
        if !label_value(&taint.value) {
            bad("the value is not a taint value");
        }
        if !EFFECTS.contains(&taint.effect.as_str()) {
            bad("the effect is none of NoSchedule, PreferNoSchedule, NoExecute");
        }
        let same =
            |other: &crate::config::Taint| other.key == taint.key && other.effect == taint.effect;
        if group.taints[..index].iter().any(same) {
            bad("key and effect repeat an earlier taint");
        }
    }
    if group.taints.len() > MOST_LABELS {
        report(findings, &pages::BAD_TAINT, group, "taints", "there are more than 256 taints");
    }
}

/// Control characters, in one-line values and in free text.
fn check_texts(group: &Group, findings: &mut Vec<Finding>) {
    let name_fine = (1..=63).contains(&group.name.len())
        && group.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !name_fine {
        let what = "the name is not 1 to 63 letters, digits, `-`, `_` and `.`";
        report(findings, &pages::BAD_TEXT, group, "name", what);
    }
    for (field, text) in secrets::texts(group) {
        if !is_text(text) {
            let what = "the text holds a control character other than tab and line break";
            report(findings, &pages::BAD_TEXT, group, &field, what);
        }
    }
    let variables = group.proxy.as_ref().map(super::group::Proxy::variables).unwrap_or_default();
    for (key, value) in &variables {
        if !is_one_line(value) || value.contains(' ') {
            let what = format!("the value for {key} holds a blank or a control character");
            report(findings, &pages::BAD_TEXT, group, "proxy", &what);
        }
    }
    for (service, map) in &group.environment {
        for (key, value) in map {
            if super::quote::env::line(key, value).is_err() {
                let what =
                    "the variable's name is outside its grammar or its value has several lines";
                report(findings, &pages::BAD_TEXT, group, &format!("environment.{service}"), what);
            }
        }
    }
    for (index, file) in group.files.iter().enumerate() {
        if !is_file_path(&file.path) {
            let what = "the path is not absolute and plain, or lies outside /etc, /opt, /usr/local and /var/lib";
            report(findings, &pages::BAD_TEXT, group, &format!("files[{index}].path"), what);
        }
    }
}

/// Each flag is one word for everyone who splits it.
fn check_flags(group: &Group, findings: &mut Vec<Finding>) {
    for (index, flag) in group.kubelet_flags.iter().enumerate() {
        if !is_flag(flag) {
            let what = "the flag is not of the form --name=value, without blanks, quotes, backslashes or `$`";
            report(findings, &pages::BAD_TEXT, group, &format!("kubeletFlags[{index}]"), what);
        }
    }
}

pub fn is_flag(flag: &str) -> bool {
    let Some(rest) = flag.strip_prefix("--") else { return false };
    let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
    let name_fine = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    name_fine && value.bytes().all(|b| b.is_ascii_graphic() && !b"\"'\\$`".contains(&b))
}

/// Roots under which user data may place files of the user's.
const FILE_ROOTS: [&str; 4] = ["/etc/", "/opt/", "/usr/local/", "/var/lib/"];

fn is_file_path(path: &str) -> bool {
    let component = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.len() <= 255
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.@:+".contains(&b))
    };
    FILE_ROOTS.iter().any(|root| path.starts_with(root))
        && path.len() <= 4096
        && path[1..].split('/').all(component)
}

fn check_kubelet_config(cluster: &Cluster, group: &Group, findings: &mut Vec<Finding>) {
    let config = &group.kubelet_config;
    if config.is_empty() {
        return;
    }
    for key in OWNED_FIELDS.iter().filter(|key| config.contains_key(**key)) {
        let field = format!("kubeletExtraConfig.{key}");
        report(
            findings,
            &pages::OWNED_KUBELET_FIELD,
            group,
            &field,
            &format!("{key} is set by the join"),
        );
    }
    for issue in kubelet_table::check_config(config, cluster.version) {
        if issue.path.first().is_some_and(|first| OWNED_FIELDS.contains(&first.as_str())) {
            continue;
        }
        let field = format!("kubeletExtraConfig.{}", issue.path.join("."));
        let mut problem = Problem::new(&pages::KUBELET_FIELD, issue.message).at(group.at(&field));
        if let Some(name) = issue.suggestion {
            problem = problem.fix(format!("did you mean `{name}`?"));
        }
        findings.push(Finding::error(problem));
    }
    let pods = config.get("maxPods").and_then(serde_json::Value::as_u64);
    if let (Some(inner), Some(outer)) = (pods, group.max_pods)
        && inner != u64::from(outer)
    {
        let what = "maxPods differs from the group's maxPodsPerNode";
        report(findings, &pages::TWO_VALUES, group, "kubeletExtraConfig.maxPods", what);
    }
    let inner =
        config.get("clusterDNS").map(|list| list == &serde_json::json!([group.cluster_dns]));
    if group.cluster_dns.is_some() && inner == Some(false) {
        let what = "clusterDNS differs from the group's own clusterDNS";
        report(findings, &pages::TWO_VALUES, group, "kubeletExtraConfig.clusterDNS", what);
    }
}

/// EKS has no managed Ubuntu type, so the image of such a group must be known.
fn check_image(cluster: &Cluster, group: &Group, findings: &mut Vec<Finding>) {
    let ubuntu = matches!(group.family, Family::Ubuntu { .. }) && group.kind == Kind::Managed;
    if ubuntu && group.ami.is_none() && images::parameter(cluster, group).is_none() {
        let name = group.family.name();
        let version =
            cluster.version.map(|(major, minor)| format!(" {major}.{minor}")).unwrap_or_default();
        let what = format!("no image path for {name} on Kubernetes{version}; set ami");
        report(findings, &pages::NO_IMAGE_PATH, group, "ami", &what);
    }
}

fn check_versions(cluster: &Cluster, group: &Group, findings: &mut Vec<Finding>) {
    let Some(version) = cluster.version else { return };
    let text = format!("{}.{}", version.0, version.1);
    let oldest = match group.family {
        Family::Windows { year: 2022, .. } => (1, 23),
        Family::Windows { year: 2025, .. } => (1, 35),
        _ => (0, 0),
    };
    let name = group.family.name();
    if version < oldest {
        let what =
            format!("{name} needs Kubernetes {}.{}, the cluster has {text}", oldest.0, oldest.1);
        report(findings, &pages::VERSION_GATE, group, "amiFamily", &what);
    }
    if group.family == Family::AmazonLinux2 && version > (1, 32) {
        let what = format!("there is no EKS image of AmazonLinux2 for Kubernetes {text}");
        let problem = Problem::new(&pages::VERSION_GATE, what)
            .at(group.at("amiFamily"))
            .fix("move to AmazonLinux2023");
        findings.push(Finding::warning(problem));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_one_word() {
        for flag in ["--v=4", "--node-labels=a=b,c=d", "--fail-swap-on"] {
            assert!(is_flag(flag), "{flag}");
        }
        for flag in ["-v", "--V=4", "--a=b c", "--a='b'", "--a=$(x)", "--a=b\\c", "--", "--a=b\nc"]
        {
            assert!(!is_flag(flag), "{flag:?}");
        }
    }

    #[test]
    fn files_stay_below_their_roots() {
        for path in ["/etc/x", "/var/lib/a/b.conf", "/opt/a@1"] {
            assert!(is_file_path(path), "{path}");
        }
        for path in ["etc/x", "/etc/../x", "/etc//x", "/root/x", "/etc/a b", "/etc/", "/etc/x\n"] {
            assert!(!is_file_path(path), "{path:?}");
        }
    }
}
