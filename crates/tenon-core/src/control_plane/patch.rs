//! The user's patches: files named `<component>[n]+<type>.yaml` (or `.json`), applied in the order
//! of their names.
//!
//! `merge` is RFC 7386, `json` RFC 6902. `strategic` is a merge in which the lists of a pod that
//! have a key (containers, volumes, …) are merged item by item; of its directives only
//! `$patch: delete` on such an item is known, others are refused.

use serde_json::{Map, Value};

use crate::codes::control_plane as pages;
use crate::problem::{Place, Problem};
use crate::tree::Dialect;
use crate::yaml;

/// One document of a patch file.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// Name of the component.
    pub target: String,
    pub kind: Kind,
    /// The file, for messages.
    pub file: String,
    pub body: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Strategic,
    Merge,
    Json,
}

/// What can be patched.
pub const TARGETS: &[&str] =
    &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// The keys of the lists that a strategic merge knows.
const LIST_KEYS: &[(&str, &str)] = &[
    ("containers", "name"),
    ("initContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("volumeMounts", "mountPath"),
    ("ports", "containerPort"),
];
const DIRECTIVE: &str = "$patch";

/// Reads a patch file: its name says what it changes and how, its text holds one document or more.
pub fn read(file: &str, text: &str) -> Result<Vec<Patch>, Problem> {
    let (target, kind) = parse_name(file).ok_or_else(|| {
        let what = format!("`{file}` is not named after what it patches");
        Problem::new(&pages::BAD_PATCH_NAME, what)
    })?;
    let place = Place { source: file.to_owned(), ..Place::default() };
    let trees = yaml::parse(text).map_err(|syntax| syntax.problem(&place, text))?;
    let bodies = trees.iter().map(|tree| tree.to_json(Dialect::Yaml12));
    let patch = |body| Patch { target: target.into(), kind, file: file.into(), body };
    Ok(bodies.filter(|body| !body.is_null()).map(patch).collect())
}

/// `kube-apiserver0+merge.yaml` → the component and `merge`.
fn parse_name(file: &str) -> Option<(&'static str, Kind)> {
    let stem = file.strip_suffix(".yaml").or_else(|| file.strip_suffix(".json"))?;
    let (target, kind) = stem.split_once('+').unwrap_or((stem, "strategic"));
    let kind = match kind {
        "strategic" => Kind::Strategic,
        "merge" => Kind::Merge,
        "json" => Kind::Json,
        _ => return None,
    };
    let is_target = |name: &&&str| {
        target
            .strip_prefix(**name)
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphanumeric()))
    };
    TARGETS.iter().find(is_target).map(|name| (*name, kind))
}

/// Changes a document as a patch says.
pub fn apply(patch: &Patch, document: &mut Value) -> Result<(), Problem> {
    let done = match patch.kind {
        Kind::Merge => {
            merge(document, &patch.body);
            Ok(())
        }
        Kind::Strategic => strategic(document, &patch.body),
        Kind::Json => operations(document, &patch.body),
    };
    done.map_err(|cause| {
        let what = format!("`{}` does not apply to {}", patch.file, patch.target);
        Problem::new(&pages::BAD_PATCH, what).cause(cause)
    })
}

fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was just made an object")
}

/// RFC 7386: null removes, objects are merged, all else replaces.
fn merge(document: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *document = patch.clone();
        return;
    };
    let fields = as_map(document);
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), change);
        }
    }
}

fn strategic(document: &mut Value, patch: &Value) -> Result<(), String> {
    let Value::Object(changes) = patch else {
        *document = patch.clone();
        return Ok(());
    };
    if let Some(name) = changes.keys().find(|name| name.starts_with('$')) {
        return Err(format!("the directive `{name}` is not known here"));
    }
    let fields = as_map(document);
    for (name, change) in changes {
        let key = LIST_KEYS.iter().find(|(list, _)| list == name).map(|(_, key)| *key);
        match (change, key) {
            (Value::Null, _) => drop(fields.remove(name)),
            (Value::Array(items), Some(key)) => {
                merge_list(fields.entry(name).or_insert(Value::Array(Vec::new())), items, key)?;
            }
            _ => strategic(fields.entry(name).or_insert(Value::Null), change)?,
        }
    }
    Ok(())
}

fn merge_list(list: &mut Value, items: &[Value], key: &str) -> Result<(), String> {
    let Value::Array(list) = list else { return Err("a list is patched that is none".into()) };
    for item in items {
        let found = list.iter().position(|other| !item[key].is_null() && other[key] == item[key]);
        if item[DIRECTIVE] == "delete" {
            found.map(|index| list.remove(index));
            continue;
        }
        match found {
            Some(index) => strategic(&mut list[index], item)?,
            None if item[key].is_null() => return Err(format!("an item of a list has no `{key}`")),
            None => list.push(item.clone()),
        }
    }
    Ok(())
}

/// RFC 6902.
fn operations(document: &mut Value, patch: &Value) -> Result<(), String> {
    let Value::Array(operations) = patch else {
        return Err("it is not a list of operations".into());
    };
    for (number, operation) in operations.iter().enumerate() {
        operate(document, operation)
            .map_err(|cause| format!("operation {}: {cause}", number + 1))?;
    }
    Ok(())
}

fn operate(document: &mut Value, operation: &Value) -> Result<(), String> {
    let text = |name: &str| operation[name].as_str().ok_or(format!("`{name}` is missing"));
    let path = text("path")?;
    let absent = || "nothing is at that path".to_owned();
    match text("op")? {
        "add" => put(document, path, operation["value"].clone()),
        "remove" => take(document, path).map(drop).ok_or_else(absent),
        "replace" => {
            *document.pointer_mut(path).ok_or_else(absent)? = operation["value"].clone();
            Ok(())
        }
        "move" => {
            let value = take(document, text("from")?).ok_or_else(absent)?;
            put(document, path, value)
        }
        "copy" => {
            let value = document.pointer(text("from")?).cloned().ok_or_else(absent)?;
            put(document, path, value)
        }
        "test" => {
            let same = document.pointer(path) == Some(&operation["value"]);
            same.then_some(()).ok_or_else(|| "the tested value is another".to_owned())
        }
        _ => Err("`op` is none of add, remove, replace, move, copy and test".into()),
    }
}

/// The parent of a path and its last part, unescaped.
fn parent<'v>(document: &'v mut Value, path: &str) -> Option<(&'v mut Value, String)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((document.pointer_mut(parent)?, name.replace("~1", "/").replace("~0", "~")))
}

fn put(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parent, name) = parent(document, path).ok_or("nothing is above that path")?;
    match parent {
        Value::Object(fields) => drop(fields.insert(name, value)),
        Value::Array(items) if name == "-" => items.push(value),
        Value::Array(items) => {
            let index = name.parse().ok().filter(|index| *index <= items.len());
            items.insert(index.ok_or("the index is beyond the list")?, value);
        }
        _ => return Err("a plain value is above that path".into()),
    }
    Ok(())
}

fn take(document: &mut Value, path: &str) -> Option<Value> {
    let (parent, name) = parent(document, path)?;
    match parent {
        Value::Object(fields) => fields.remove(&name),
        Value::Array(items) => {
            let index = name.parse().ok().filter(|index| *index < items.len())?;
            Some(items.remove(index))
        }
        _ => None,
    }
}
