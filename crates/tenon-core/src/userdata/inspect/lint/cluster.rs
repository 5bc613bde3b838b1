//! Rules about the cluster's values and who joins the node.

use super::super::node::Kind;
use super::super::settings::{key, shown};
use super::super::{certificate, settings::Settings};
use super::{Case, at};
use crate::codes::inspect::{U004, U005, U006, U007, U008, U022, U024};
use crate::config::grammar::decode_ca;
use crate::problem::Place;
use crate::userdata::{Family, Kind as Owner, Mode};

const LATER_CONFIGS: &str = "/etc/eks/nodeadm.d/";

const BOOTSTRAP: &str = "/etc/eks/bootstrap.sh";

/// What each family must be told to join.
const REQUIRED: &[(&str, &[&str])] = &[
    ("AmazonLinux2023", &["name", "endpoint", "certificateAuthority", "cidr"]),
    ("Bottlerocket", &["name", "endpoint", "certificateAuthority"]),
    ("AmazonLinux2", &["name"]),
    ("Ubuntu", &["name"]),
    ("Windows", &["name"]),
];

/// Families for which no fixes are made any more.
const ENDED: &[(&str, &str)] = &[
    ("AmazonLinux2", "EKS images of AmazonLinux2 ended with November 2025"),
    ("Ubuntu2004", "standard support of Ubuntu 20.04 ended with May 2025"),
];
/// The oldest Kubernetes that Tenon and EKS still know.
const OLDEST: (u32, u32) = (1, 29);

pub(super) fn check(case: &mut Case<'_>) {
    // EKS has no image of Ubuntu's: such a group is one with a custom image.
    match (case.target.kind, case.target.family) {
        (Owner::Managed, family) if !matches!(family, Family::Ubuntu { .. }) => managed(case),
        _ => required(case),
    }
    authority(case);
    wrong_program(case);
    set_twice(case);
    written_later(case);
    pod_limit(case);
    support(case);
}

fn is_set(settings: &Settings, names: &[&str]) -> bool {
    settings.values.contains_key(&key(names)) || settings.run_time.contains_key(&key(names))
}

fn required(case: &mut Case<'_>) {
    let family = case.target.family.name();
    let Some((_, names)) = REQUIRED.iter().find(|(prefix, _)| family.starts_with(prefix)) else {
        return;
    };
    // User data that carries the kubelet's own kubeconfig needs no other program's values.
    if case.nodes.iter().any(|(_, node)| node.kind == Kind::Kubeconfig) {
        return;
    }
    let bottlerocket = matches!(case.target.family, Family::Bottlerocket { .. });
    let core = case.document.core();
    if bottlerocket
        && core.document.as_ref().is_some_and(|document| document.get("settings").is_none())
    {
        case.error(&U004, "the document has no `settings`", case.place());
    }
    // A word that only the stack knows may be any of them.
    let open = is_set(case.settings, &["bootstrap", "arguments"]);
    for name in *names {
        if !is_set(case.settings, &["cluster", name]) && !open {
            let place = Place { path: format!("cluster.{name}"), ..case.place() };
            case.error(&U004, format!("the cluster's {name} is missing"), place);
        }
    }
    let outpost = case.settings.get(&["cluster", "outpost"]) == Some(&true.into());
    if outpost && !is_set(case.settings, &["cluster", "id"]) {
        let place = Place { path: "cluster.id".into(), ..case.place() };
        case.error(&U004, "a local cluster on Outposts needs the cluster's id", place);
    }
}

fn managed(case: &mut Case<'_>) {
    let settings = case.settings;
    let bottlerocket = matches!(case.target.family, Family::Bottlerocket { .. });
    if let Some((by, from)) = &settings.join {
        let place = Place { path: from.clone(), ..case.place() };
        case.error(&U006, format!("the user data joins the node with {by}; EKS does that"), place);
    }
    for (name, setting) in settings.below(&["cluster"]) {
        let name = name.join(".");
        if bottlerocket && !differs(case, &name, setting.value.as_str()) {
            continue;
        }
        let what = match bottlerocket {
            true => format!("the cluster's {name} differs from the cluster's own"),
            false => format!("the cluster's {name} is set; EKS adds it"),
        };
        let place = Place { path: format!("cluster.{name} in {}", setting.from), ..case.place() };
        case.error(&U006, what, place);
    }
}

/// True when the facts know better.
fn differs(case: &Case<'_>, name: &str, value: Option<&str>) -> bool {
    let Some(cluster) = &case.target.cluster else { return false };
    let fact = match name {
        "name" => &cluster.name,
        "endpoint" => &cluster.endpoint,
        "certificateAuthority" => &cluster.certificate_authority,
        _ => return false,
    };
    fact.is_some() && fact.as_deref() != value
}

fn authority(case: &mut Case<'_>) {
    let Some(text) = case.settings.text(&["cluster", "certificateAuthority"]) else { return };
    if text.contains("${") {
        return;
    }
    let place = Place { path: "cluster.certificateAuthority".into(), ..case.place() };
    let Some(authority) = certificate::describe(text) else {
        return case.error(&U005, "the CA is not base64 of PEM certificates", place);
    };
    if case.target.now.is_some_and(|now| authority.expires_unix < now) {
        let what = format!("the CA expired at {}", authority.expires);
        case.error(&U005, what, place.clone());
    }
    let facts = case.target.cluster.as_ref();
    let own = facts.and_then(|cluster| decode_ca(cluster.certificate_authority.as_deref()?));
    if own.is_some_and(|own| Some(own) != decode_ca(text)) {
        case.error(&U005, "the CA is not the one of the cluster", place);
    }
}

fn wrong_program(case: &mut Case<'_>) {
    let family = case.target.family;
    let join = case.settings.join.clone();
    if family == Family::AmazonLinux2023
        && let Some((by, from)) = join.as_ref().filter(|(by, _)| by == BOOTSTRAP)
    {
        let place = Place { path: from.clone(), ..case.place() };
        case.error(&U007, format!("{by} is not on the image of AmazonLinux2023"), place);
    }
    // An image that carries Tenon reads a NodeConfig, whatever its family.
    let tenon = case.target.mode == Some(Mode::Tenon);
    if tenon || !matches!(family, Family::AmazonLinux2 | Family::Ubuntu { .. }) {
        return;
    }
    for (trail, node) in case.nodes.clone() {
        if matches!(node.kind, Kind::NodeConfig | Kind::TenonConfig) && node.path.is_none() {
            let what = format!("{} has no nodeadm to read a NodeConfig", family.name());
            case.error(&U007, what, at(node, &trail, 0));
        }
    }
    if let Some((by, from)) = join.filter(|(by, _)| by == "nodeadm") {
        let place = Place { path: from, ..case.place() };
        case.error(&U007, format!("{by} is not on the image of {}", family.name()), place);
    }
}

fn set_twice(case: &mut Case<'_>) {
    for (name, setting) in &case.settings.values {
        let flag = name.starts_with(&key(&["kubelet", "flags"]));
        let what = if !setting.overrode.is_empty() {
            format!(
                "set more than once; {} wins over {}",
                setting.from,
                setting.overrode.join(", ")
            )
        } else if flag && setting.times > 1 {
            format!("the flag is given {} times", setting.times)
        } else {
            continue;
        };
        case.warn(&U008, what, Place { path: shown(name), ..case.place() });
    }
}

/// Newer images read NodeConfigs from this directory when scripts have ended.
fn written_later(case: &mut Case<'_>) {
    for (trail, node) in case.nodes.clone() {
        let script = matches!(node.kind, Kind::Script | Kind::Boothook | Kind::Command);
        if script && node.text().contains(LATER_CONFIGS) {
            let what = format!("the script writes to {LATER_CONFIGS}, which applies after these");
            case.note(&U008, what, at(node, &trail, 0));
        }
    }
}

fn pod_limit(case: &mut Case<'_>) {
    let wished = case.settings.get(&["maxPods"]).and_then(serde_json::Value::as_u64);
    let (Some(wished), Some(instance_type)) = (wished, &case.target.instance_type) else { return };
    let plain = crate::config::MaxPods::default();
    let Ok(found) = crate::max_pods::resolve(&plain, instance_type, None) else { return };
    let limit = found.std.filter(|_| found.known);
    if let Some(limit) = limit.filter(|limit| wished > u64::from(*limit)) {
        let what = format!("{wished} pods are more than the {limit} addresses of {instance_type}");
        case.warn(&U022, what, Place { path: "maxPods".into(), ..case.place() });
    }
}

fn support(case: &mut Case<'_>) {
    let family = case.target.family.name();
    if let Some((_, what)) = ENDED.iter().find(|(name, _)| *name == family) {
        case.note(&U024, *what, case.place());
    }
    if let Some(version) = case.target.version.filter(|version| *version < OLDEST) {
        let what = format!("Kubernetes {}.{} is at its end", version.0, version.1);
        case.note(&U024, what, case.place());
    }
}
