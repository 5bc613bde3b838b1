//! Which fields of a group a cell of the matrix has a place for.

use super::checks::report;
use super::family::{Cell, Family, Kind};
use super::group::{Group, MaxPodsPolicy};
use super::{Cluster, Options};
use crate::codes::userdata as pages;
use crate::config::DiskStrategy;
use crate::problem::{Finding, Problem};

/// Where a field may stand.
struct Situation<'a> {
    family: Family,
    kind: Kind,
    cell: Cell,
    group: &'a Group,
    cluster: &'a Cluster,
    options: &'a Options,
}

/// One field: whether the group sets it, whether the cell has a place for it, and what to use
/// where it has not.
struct Rule {
    field: &'static str,
    is_set: fn(&Situation) -> bool,
    has_place: fn(&Situation) -> bool,
    instead: &'static str,
}

/// True where the document is a NodeConfig or Tenon's own kind.
fn is_node_config(s: &Situation) -> bool {
    matches!(s.cell, Cell::NodeConfig | Cell::TenonPart)
}

/// True on a managed group with an EKS image, where EKS writes the join.
fn eks_joins(s: &Situation) -> bool {
    s.kind == Kind::Managed && !matches!(s.family, Family::Ubuntu { .. })
}

fn raid0(s: &Situation) -> bool {
    s.group.instance_store.as_ref().is_some_and(|store| store.strategy == DiskStrategy::Raid0)
}

/// The availability table of the specification.
static RULES: &[Rule] = &[
    Rule {
        field: "preBootstrapCommands",
        is_set: |s| !s.group.pre_commands.is_empty(),
        has_place: |s| {
            s.cell != Cell::Settings
                || s.group
                    .pre_commands
                    .iter()
                    .all(|text| super::bottlerocket::api_call(text).is_some())
        },
        instead: "use settings, or commands that are plain apiclient calls",
    },
    Rule {
        field: "overrideBootstrapCommand",
        is_set: |s| s.group.override_command.is_some(),
        has_place: |s| match s.cell {
            Cell::NodeConfig | Cell::BootstrapScript => true,
            Cell::ManagedScripts | Cell::PowerShell => s.kind != Kind::Managed,
            Cell::SelfContained => s.family.has_cloud_init(),
            _ => false,
        },
        instead: "use preBootstrapCommands, or a self-managed group",
    },
    Rule {
        field: "postBootstrapCommands",
        is_set: |s| !s.group.post_commands.is_empty(),
        has_place: |s| match s.cell {
            Cell::NodeConfig | Cell::BootstrapScript | Cell::SelfContained => true,
            Cell::ManagedScripts | Cell::PowerShell => s.kind != Kind::Managed,
            Cell::TenonPart => s.options.tenon_part || s.family.has_ignition(),
            _ => false,
        },
        instead: "run them from a DaemonSet, or use --part tenon in mode tenon",
    },
    Rule {
        field: "instanceStore",
        is_set: |s| s.group.instance_store.is_some(),
        has_place: |s| match (s.cell, s.family) {
            (Cell::NodeConfig | Cell::TenonPart, _) => true,
            (Cell::BootstrapScript, Family::AmazonLinux2) | (Cell::Settings, _) => raid0(s),
            (Cell::ManagedScripts, _) => raid0(s) && s.kind != Kind::Managed,
            _ => false,
        },
        instead: "use RAID0 on AmazonLinux2023, AmazonLinux2 or Bottlerocket, or prepare the disks in preBootstrapCommands",
    },
    Rule {
        field: "kubernetesNetworkConfig.ipFamily IPv6",
        is_set: |s| s.cluster.is_ipv6(),
        has_place: |s| !s.family.is_windows(),
        instead: "use an IPv4 cluster for Windows nodes",
    },
    Rule {
        field: "local cluster on Outposts",
        is_set: |s| s.cluster.outpost,
        has_place: |s| {
            is_node_config(s) || (s.family == Family::AmazonLinux2 && s.cell != Cell::SelfContained)
        },
        instead: "use AmazonLinux2023",
    },
    Rule {
        field: "maxPodsPerNode",
        is_set: |s| s.group.max_pods.is_some(),
        has_place: |s| !(s.family.is_windows() && s.kind == Kind::Managed),
        instead: "use a custom image or a self-managed group",
    },
    Rule {
        field: "maxPodsPolicy min",
        is_set: |s| s.group.max_pods_policy == MaxPodsPolicy::Min,
        has_place: |s| is_node_config(s) || s.cell == Cell::SelfContained,
        instead: "use AmazonLinux2023, mode self-contained or mode tenon",
    },
    Rule {
        field: "maxPodsExpression",
        is_set: |s| s.group.max_pods_expression.is_some(),
        has_place: is_node_config,
        instead: "use maxPodsPerNode",
    },
    Rule {
        field: "clusterDNS",
        is_set: |s| s.group.cluster_dns.is_some(),
        has_place: |s| !eks_joins(s),
        instead: "use a custom image or a self-managed group",
    },
    Rule {
        field: "kubeletExtraConfig",
        is_set: |s| !s.group.kubelet_config.is_empty(),
        has_place: |s| match s.cell {
            Cell::ManagedScripts | Cell::PowerShell => s.kind != Kind::Managed,
            _ => true,
        },
        instead: "use AmazonLinux2023, a custom image or a self-managed group",
    },
    Rule {
        field: "kubelet flags",
        is_set: |s| !s.group.kubelet_flags.is_empty(),
        has_place: |s| s.cell != Cell::Settings && (is_node_config(s) || !eks_joins(s)),
        instead: "use kubeletExtraConfig",
    },
    Rule {
        field: "containerdConfig",
        is_set: |s| s.group.containerd_config.is_some(),
        has_place: is_node_config,
        instead: "write the file in preBootstrapCommands",
    },
    Rule {
        field: "featureGates",
        is_set: |s| !s.group.feature_gates.is_empty(),
        has_place: is_node_config,
        instead: "use AmazonLinux2023 or mode tenon",
    },
    Rule {
        field: "environment",
        is_set: |s| !s.group.environment.is_empty(),
        has_place: is_node_config,
        instead: "write a drop-in in preBootstrapCommands",
    },
    Rule {
        field: "proxy",
        is_set: |s| s.group.proxy.is_some(),
        has_place: |s| is_node_config(s) || s.cell == Cell::Settings,
        instead: "write the drop-ins in preBootstrapCommands",
    },
    Rule {
        field: "reboot",
        is_set: |s| s.group.reboot_before_join,
        has_place: |s| s.cell == Cell::SelfContained,
        instead: "use mode self-contained",
    },
    Rule {
        field: "files",
        is_set: |s| !s.group.files.is_empty(),
        has_place: |s| matches!(s.cell, Cell::BootstrapScript | Cell::SelfContained),
        instead: "write them in preBootstrapCommands",
    },
    Rule {
        field: "bottlerocket",
        is_set: |s| {
            !s.group.bottlerocket.settings.is_empty()
                || s.group.bottlerocket.enable_admin_container.is_some()
        },
        has_place: |s| s.cell == Cell::Settings,
        instead: "use amiFamily Bottlerocket",
    },
    Rule {
        field: "signal",
        is_set: |s| s.group.signal.is_some(),
        has_place: |s| s.kind == Kind::SelfManaged,
        instead: "use a self-managed group (EKS watches the nodes of managed ones)",
    },
];

/// Finds the fields that the cell has no place for.
pub fn check(
    cluster: &Cluster,
    group: &Group,
    cell: Cell,
    options: &Options,
    findings: &mut Vec<Finding>,
) {
    let situation =
        Situation { family: group.family, kind: group.kind, cell, group, cluster, options };
    for rule in
        RULES.iter().filter(|rule| (rule.is_set)(&situation) && !(rule.has_place)(&situation))
    {
        let managed =
            if eks_joins(&situation) { " in a managed group on an EKS image" } else { "" };
        let what = format!(
            "{} is not available on {}{managed}; {}",
            rule.field,
            group.family.name(),
            rule.instead
        );
        let field = rule.field.split(' ').next().unwrap_or_default();
        let problem =
            Problem::new(&pages::NOT_AVAILABLE, what).at(group.at(field)).fix(rule.instead);
        findings.push(Finding::error(problem));
    }
    if group.container_runtime.as_deref().is_some_and(|runtime| runtime != "containerd") {
        let what = "containerRuntime is not containerd, the only runtime since Kubernetes 1.24";
        report(findings, &pages::BAD_VALUE, group, "containerRuntime", what);
    }
}
