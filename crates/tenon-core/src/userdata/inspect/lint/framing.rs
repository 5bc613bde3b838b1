//! Rules about formats, sizes, encodings, messages and stacks.

use serde_json::Value;

use super::super::node::{Kind, Node};
use super::super::settings::Settings;
use super::{Case, Finding, Level, at};
use crate::codes::inspect::{U001, U002, U003, U011, U012, U023, U025};
use crate::decode::Framing;
use crate::problem::{Place, Problem};
use crate::userdata::size::{LIMIT, thousands};
use crate::userdata::{Family, Kind as Owner};

/// What cloud-init takes as user data.
const CLOUD_INIT: &[Kind] = &[
    Kind::Empty,
    Kind::Mime,
    Kind::CloudConfig,
    Kind::CloudConfigArchive,
    Kind::Boothook,
    Kind::Script,
    Kind::Include,
    Kind::PartHandler,
    Kind::Jinja,
];

const FRAMING: &[(Framing, &str)] = &[
    (Framing::NoBlankLine, "content follows its headers without a blank line"),
    (Framing::NoBoundary, "the boundary that the message names never comes"),
    (Framing::IndentedBoundary, "the boundary lines are indented, so none of them counts"),
    (Framing::NoClosingBoundary, "the message has no closing delimiter"),
    (Framing::TwoContentTypes, "there are two Content-Type headers"),
    (Framing::UnquotedBoundary, "the boundary has special characters and no quotes"),
];

pub(super) fn check(case: &mut Case<'_>) {
    format(case);
    size(case);
    encodings(case);
    message(case);
    script_order(case);
}

fn reads(family: Family, kind: Kind) -> bool {
    match family {
        Family::AmazonLinux2023 => {
            CLOUD_INIT.contains(&kind) || matches!(kind, Kind::NodeConfig | Kind::TenonConfig)
        }
        Family::AmazonLinux2 | Family::Ubuntu { .. } => CLOUD_INIT.contains(&kind),
        Family::Bottlerocket { .. } => matches!(kind, Kind::Settings | Kind::Empty),
        Family::Windows { .. } => {
            matches!(kind, Kind::PowerShell | Kind::Batch | Kind::LaunchTasks | Kind::Empty)
        }
        Family::Flatcar | Family::FedoraCoreOs => matches!(kind, Kind::Ignition | Kind::Empty),
        Family::Custom => true,
    }
}

fn format(case: &mut Case<'_>) {
    let (kind, family) = (case.document.core().kind, case.target.family);
    if !reads(family, kind) {
        let what = format!("{} does not read {} as user data", family.name(), kind.name());
        case.error(&U001, what, case.place());
    }
}

/// What EC2 counts: the bytes below base64 and quotes.
fn payload(node: &Node) -> &Node {
    match (node.kind, node.children.first()) {
        (Kind::Base64 | Kind::Quoted, Some(inner)) => payload(inner),
        _ => node,
    }
}

fn size(case: &mut Case<'_>) {
    let bytes = payload(case.document).bytes.len();
    let text = format!("{} of {} bytes", thousands(bytes), thousands(LIMIT));
    if bytes > LIMIT {
        case.error(&U002, format!("the user data is too large: {text}"), case.place());
    } else if bytes * 4 > LIMIT * 3 {
        case.note(&U002, format!("the user data is nearly full: {text}"), case.place());
    }
}

fn encodings(case: &mut Case<'_>) {
    let layers = &case.document.core().place.layers;
    let count = |name: &str| layers.iter().filter(|layer| *layer == name).count();
    let (gzip, base64) = (count("gzip"), count("base64"));
    if base64 > 1 {
        case.error(&U003, "the text is base64 twice; EC2 removes one layer", case.place());
    }
    let family = case.target.family;
    let reader = match family {
        Family::Windows { .. } => Some("EC2Launch"),
        Family::Flatcar | Family::FedoraCoreOs => Some("Ignition"),
        _ if case.target.kind == Owner::Managed => Some("EKS, which merges managed user data,"),
        _ => None,
    };
    if let (Some(reader), true) = (reader, gzip > 0) {
        case.error(&U003, format!("{reader} does not expand gzip"), case.place());
    }
}

fn message(case: &mut Case<'_>) {
    for (trail, node) in case.nodes.clone() {
        for fault in &node.framing {
            let what = FRAMING.iter().find(|(known, _)| known == fault).map(|(_, what)| *what);
            case.error(&U011, what.unwrap_or_default(), at(node, &trail, 0));
        }
        let script = node.kind == Kind::Script && node.path.is_none();
        if script && !node.bytes.starts_with(b"#!") {
            let what = "the script does not start with an interpreter line";
            case.error(&U012, what, at(node, &trail, 1));
        }
    }
}

/// cloud-init runs scripts by name: the written order holds only if the names keep it.
fn script_order(case: &mut Case<'_>) {
    for (trail, node) in case.nodes.clone() {
        if node.kind != Kind::Mime {
            continue;
        }
        let mut last = String::new();
        for (index, part) in node.children.iter().enumerate() {
            if part.core().kind != Kind::Script {
                continue;
            }
            let name = part.filename.clone().unwrap_or_else(|| format!("part-{:03}", index + 1));
            if name < last {
                let what = "the part's name sorts before that of an earlier part, so it runs first";
                let trail = if trail.is_empty() { &part.name } else { &trail };
                case.warn(&U025, what, at(part, trail, 0));
            }
            last = last.max(name);
        }
    }
}

/// A stack that waits and nodes that signal belong together.
pub(super) fn signals(root: &Node, settings: &[Settings]) -> Option<Finding> {
    let core = root.core();
    if core.kind != Kind::CloudFormation || settings.is_empty() {
        return None;
    }
    let waits = core.document.as_ref().is_some_and(waits);
    let sends = settings.iter().any(|settings| !settings.signals.is_empty());
    let what = match (waits, sends) {
        (false, true) => "the nodes send a signal that no resource waits for",
        (true, false) => "a resource waits for signals that no node sends",
        _ => return None,
    };
    let place = Place { path: "Resources".into(), ..core.place.clone() };
    Some(Finding { level: Level::Warning, problem: Problem::new(&U023, what).at(place) })
}

fn waits(template: &Value) -> bool {
    let template = template.get("TemplateBody").unwrap_or(template);
    let resources = template.get("Resources").and_then(Value::as_object);
    resources.into_iter().flatten().any(|(_, resource)| {
        let waits = "/UpdatePolicy/AutoScalingRollingUpdate/WaitOnResourceSignals";
        let waits = resource.pointer(waits).is_some_and(|value| *value == true || *value == "true");
        waits || resource.pointer("/CreationPolicy/ResourceSignal").is_some()
    })
}
