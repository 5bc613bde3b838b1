//! Documents of other projects inside a config: read as they are, checked against their own
//! tables of names.

use std::collections::BTreeMap;

use serde_json::Number;

use super::fields::join;
use super::grammar::{Fault, control_name};
use super::kubelet_table;
use super::node::{Data, Node, Origin};
use super::read::Reader;
use super::schema::Free;
use crate::codes::config as pages;
use crate::nearest::nearest;
use crate::tree::{Meaning, Span, Tree, Written};

/// Names of the OCI runtime spec that a node's base spec may set: object, then its fields.
const RUNTIME_NAMES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "annotations",
            "domainname",
            "hooks",
            "hostname",
            "linux",
            "mounts",
            "ociVersion",
            "process",
            "root",
        ],
    ),
    (
        "process",
        &[
            "apparmorProfile",
            "args",
            "capabilities",
            "commandLine",
            "consoleSize",
            "cwd",
            "env",
            "execCPUAffinity",
            "ioPriority",
            "noNewPrivileges",
            "oomScoreAdj",
            "rlimits",
            "scheduler",
            "selinuxLabel",
            "terminal",
            "user",
        ],
    ),
    ("process.capabilities", &["ambient", "bounding", "effective", "inheritable", "permitted"]),
    ("process.user", &["additionalGids", "gid", "uid", "umask", "username"]),
    ("root", &["path", "readonly"]),
    (
        "linux",
        &[
            "cgroupsPath",
            "devices",
            "gidMappings",
            "intelRdt",
            "maskedPaths",
            "memoryPolicy",
            "mountLabel",
            "namespaces",
            "netDevices",
            "personality",
            "readonlyPaths",
            "resources",
            "rootfsPropagation",
            "seccomp",
            "sysctl",
            "timeOffsets",
            "uidMappings",
        ],
    ),
    (
        "linux.resources",
        &[
            "blockIO",
            "cpu",
            "devices",
            "hugepageLimits",
            "memory",
            "network",
            "pids",
            "rdma",
            "unified",
        ],
    ),
];

/// Reads a free-form object.
pub fn read(
    reader: &mut Reader<'_>,
    tree: &Tree,
    key: Span,
    free: Free,
    path: &str,
) -> Option<Node> {
    let Written::Map(_) = &tree.value else {
        let what = "is no object; it takes an object";
        reader.report(&Fault::error(&pages::WRONG_TYPE, what), tree.span, path);
        return None;
    };
    let node = value(reader, tree, key, path)?;
    match free {
        Free::Kubelet => kubelet(reader, &node, path),
        Free::RuntimeSpec => runtime_spec(reader, &node, path),
        Free::Anything => {}
    }
    Some(node)
}

fn value(reader: &mut Reader<'_>, tree: &Tree, key: Span, path: &str) -> Option<Node> {
    let origin = Origin { document: reader.index, span: tree.span, key };
    let data = match &tree.value {
        Written::List(items) => {
            let read = |(index, item): (usize, &Tree)| {
                value(reader, item, item.span, &format!("{path}[{index}]"))
            };
            Data::List(items.iter().enumerate().filter_map(read).collect())
        }
        Written::Map(entries) => {
            let mut map = BTreeMap::new();
            for entry in entries {
                let below = join(path, &entry.key);
                characters(reader, &entry.key, entry.key_span, &below);
                let node = value(reader, &entry.value, entry.key_span, &below);
                map.extend(node.map(|node| (entry.key.clone(), node)));
            }
            Data::Map(map)
        }
        Written::Scalar(_) => scalar(reader, tree, path)?,
    };
    Some(Node::new(data, origin))
}

fn scalar(reader: &mut Reader<'_>, tree: &Tree, path: &str) -> Option<Data> {
    Some(match reader.meaning(tree)? {
        Meaning::Null => Data::Null,
        Meaning::Bool(value) => Data::Bool(value),
        Meaning::Int(value) => Data::Number(value.into()),
        Meaning::Uint(value) => Data::Number(value.into()),
        Meaning::Float(value) => match Number::from_f64(value) {
            Some(number) => Data::Number(number),
            None => {
                let what = "is a number that JSON cannot hold";
                reader.report(&Fault::error(&pages::WRONG_TYPE, what), tree.span, path);
                return None;
            }
        },
        Meaning::Text(text) => {
            characters(reader, &text, tree.span, path);
            Data::Text(text)
        }
    })
}

/// Refuses control characters other than line breaks and tabs, in keys and in values.
fn characters(reader: &mut Reader<'_>, text: &str, span: Span, path: &str) {
    if let Some(c) = text.chars().find(|c| c.is_ascii_control() && !"\n\t\r".contains(*c)) {
        let what = format!("holds the control character {}", control_name(c));
        reader.report(&Fault::error(&pages::CONTROL_CHARACTER, what), span, path);
    }
}

/// Checks names and types of KubeletConfiguration. The kubelet's version is a fact and comes
/// later; here a field passes if any supported version has it.
fn kubelet(reader: &mut Reader<'_>, node: &Node, path: &str) {
    let value = node.to_value();
    let Some(map) = value.as_object() else { return };
    for issue in kubelet_table::check_config(map, None) {
        let found = issue.path.iter().try_fold(node, |node, key| node.step(key));
        let place = found.map_or(node.origin, |found| found.origin);
        let fault = Fault::tolerated(
            &pages::UNKNOWN_KUBELET_FIELD,
            format!("is refused by the kubelet: {}", issue.message),
        );
        let fault = match issue.suggestion {
            Some(name) => fault.fix(format!("did you mean `{name}`?")),
            None => fault,
        };
        reader.report(&fault, place.key, &below(path, &issue.path));
    }
}

fn below(path: &str, keys: &[String]) -> String {
    keys.iter().fold(path.to_owned(), |path, key| join(&path, key))
}

fn runtime_spec(reader: &mut Reader<'_>, node: &Node, path: &str) {
    for (object, names) in RUNTIME_NAMES {
        let Some(entries) = node.find(object).and_then(Node::map) else { continue };
        for (name, entry) in entries.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
            let fault =
                Fault::tolerated(&pages::UNKNOWN_RUNTIME_FIELD, "is not in the OCI runtime spec");
            let fault = match nearest(name, names.iter().copied()) {
                Some(known) => fault.fix(format!("did you mean `{known}`?")),
                None => fault,
            };
            reader.report(&fault, entry.origin.key, &join(&parent(path, object), name));
        }
    }
}

fn parent(path: &str, object: &str) -> String {
    if object.is_empty() { path.to_owned() } else { format!("{path}.{object}") }
}
