//! KubeletConfiguration as a list of paths with types.
//!
//! Types of the table: `bool int32 int64 uint32 float string duration durationOrInt quantity
//! time object`, and `list<…>`, `map<…>` of them. The fields of a list's objects stand under
//! `name[]`.

use std::collections::BTreeMap;

use anyhow::bail;

use super::Sources;
use crate::go::{self, Declared, Field};

const ROOT: &str = "kubelet.KubeletConfiguration";

/// Types that read and write their own JSON, or come from packages not worth reading.
const LEAVES: [(&str, &str); 17] = [
    ("bool", "bool"),
    ("int", "int64"),
    ("int32", "int32"),
    ("int64", "int64"),
    ("uint32", "uint32"),
    ("float64", "float"),
    ("string", "string"),
    ("metav1.Duration", "duration"),
    ("logsapi.TimeOrMetaDuration", "durationOrInt"),
    ("metav1.Time", "time"),
    ("resource.Quantity", "quantity"),
    ("resource.QuantityValue", "quantity"),
    ("v1.ResourceName", "string"),
    ("v1.TaintEffect", "string"),
    ("types.UID", "string"),
    ("intstr.IntOrString", "string"),
    ("metav1.MicroTime", "time"),
];

/// Declared types by `package.Name`.
pub(crate) type Types = BTreeMap<String, Declared>;

/// Reads the declarations of the packages that KubeletConfiguration is made of.
pub(crate) fn types(sources: &Sources) -> anyhow::Result<Types> {
    let packages = [
        ("kubelet", sources.kubelet.join("config/v1beta1/types.go")),
        ("logsapi", sources.component_base.join("logs/api/v1/types.go")),
        ("tracingapi", sources.component_base.join("tracing/api/v1/types.go")),
        ("v1", sources.api.join("core/v1/types.go")),
    ];
    let mut types = Types::new();
    for (package, path) in packages {
        for (name, declared) in go::declarations(&go::read(&path)?) {
            types.insert(format!("{package}.{name}"), declared);
        }
    }
    let strings = ["apiVersion", "kind"].map(|name| Field {
        go_name: name.to_owned(),
        go_type: "string".to_owned(),
        json: name.to_owned(),
    });
    types.insert("metav1.TypeMeta".to_owned(), Declared::Struct(strings.to_vec()));
    Ok(types)
}

/// Every path of the configuration with its type, in the order of the declarations.
pub(crate) fn flatten(types: &Types) -> anyhow::Result<Vec<(String, String)>> {
    let mut rows = Vec::new();
    walk(types, ROOT, "", &mut rows)?;
    Ok(rows)
}

fn walk(
    types: &Types,
    name: &str,
    prefix: &str,
    rows: &mut Vec<(String, String)>,
) -> anyhow::Result<()> {
    let Some(Declared::Struct(fields)) = types.get(name) else {
        bail!("the type {name} is not declared where it is expected");
    };
    for field in fields.iter().filter(|field| field.json != "-") {
        let go_type = qualified(&field.go_type, name);
        if field.go_name.is_empty() && field.json.is_empty() {
            walk(types, &go_type, prefix, rows)?;
            continue;
        }
        let path = format!("{prefix}{}", field.json);
        let (kind, inner) = kind(types, &go_type)?;
        let below = if kind.starts_with("list<") { "[]." } else { "." };
        rows.push((path.clone(), kind));
        if let Some(inner) = inner {
            walk(types, &inner, &format!("{path}{below}"), rows)?;
        }
    }
    Ok(())
}

/// The table's name for a Go type, and the struct below it if there is one.
fn kind(types: &Types, go_type: &str) -> anyhow::Result<(String, Option<String>)> {
    if let Some((_, kind)) = LEAVES.iter().find(|(name, _)| *name == go_type) {
        return Ok(((*kind).to_owned(), None));
    }
    if let Some(inner) = go_type.strip_prefix('*') {
        return kind(types, inner);
    }
    if let Some(inner) = go_type.strip_prefix("[]") {
        let (inner, below) = kind(types, inner)?;
        return Ok((format!("list<{inner}>"), below));
    }
    if let Some((_, inner)) = go_type.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        let (inner, below) = kind(types, inner)?;
        if below.is_some() {
            bail!("a map of structs ({go_type}) is new: teach the table about it");
        }
        return Ok((format!("map<{inner}>"), None));
    }
    match types.get(go_type) {
        Some(Declared::Struct(_)) => Ok(("object".to_owned(), Some(go_type.to_owned()))),
        Some(Declared::Same(other)) => kind(types, &qualified(other, go_type)),
        None => bail!("the Go type {go_type} is new: teach the table about it"),
    }
}

/// Puts the package of `owner` before a local type name, below pointers, slices and maps.
fn qualified(go_type: &str, owner: &str) -> String {
    if let Some(inner) = go_type.strip_prefix('*') {
        return format!("*{}", qualified(inner, owner));
    }
    if let Some(inner) = go_type.strip_prefix("[]") {
        return format!("[]{}", qualified(inner, owner));
    }
    if let Some((key, inner)) = go_type.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        return format!("map[{key}]{}", qualified(inner, owner));
    }
    let local = go_type.starts_with(|first: char| first.is_ascii_uppercase());
    match (local, owner.split_once('.')) {
        (true, Some((package, _))) => format!("{package}.{go_type}"),
        _ => go_type.to_owned(),
    }
}

/// The JSON path of a Go path such as `Authentication.X509.ClientCAFile`, if it is a field.
pub(crate) fn json_path(types: &Types, go_path: &str) -> Option<String> {
    let mut owner = ROOT.to_owned();
    let mut path: Vec<String> = Vec::new();
    for go_name in go_path.split('.') {
        match member(types, &owner, go_name) {
            Some((json, go_type)) => {
                path.push(json);
                owner = go_type.trim_start_matches('*').to_owned();
            }
            // `SyncFrequency.Duration`: the wrapped value of a leaf.
            None if go_name == "Duration" => break,
            None => return None,
        }
    }
    Some(path.join("."))
}

fn member(types: &Types, owner: &str, go_name: &str) -> Option<(String, String)> {
    let Declared::Struct(fields) = types.get(owner)? else { return None };
    let own = fields.iter().find(|field| field.go_name == go_name && field.json != "-");
    if let Some(field) = own.filter(|field| field.json != "Duration") {
        return Some((field.json.clone(), qualified(&field.go_type, owner)));
    }
    let inlined = fields.iter().filter(|field| field.go_name.is_empty());
    inlined.into_iter().find_map(|field| member(types, &qualified(&field.go_type, owner), go_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Types {
        let text = "type KubeletConfiguration struct {\n\tMaxPods int32 `json:\"maxPods,omitempty\"`\n\
            \tSync metav1.Duration `json:\"syncFrequency\"`\n\tAuth *Auth `json:\"auth\"`\n\
            \tHeld []Held `json:\"held\"`\n\tEvict map[string]string `json:\"evict\"`\n}\n\
            type Auth struct {\n\tMode Mode `json:\"mode\"`\n}\ntype Mode string\n\
            type Held struct {\n\tNode int32 `json:\"node\"`\n}\n";
        let declared = go::declarations(text).into_iter();
        declared.map(|(name, declared)| (format!("kubelet.{name}"), declared)).collect()
    }

    #[test]
    fn nested_types_become_paths() {
        let rows = flatten(&example()).unwrap();
        let rows: Vec<_> = rows.iter().map(|(path, kind)| (path.as_str(), kind.as_str())).collect();
        let expected = [
            ("maxPods", "int32"),
            ("syncFrequency", "duration"),
            ("auth", "object"),
            ("auth.mode", "string"),
            ("held", "list<object>"),
            ("held[].node", "int32"),
            ("evict", "map<string>"),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn go_paths_become_json_paths() {
        let types = example();
        assert_eq!(json_path(&types, "Auth.Mode").as_deref(), Some("auth.mode"));
        assert_eq!(json_path(&types, "Sync.Duration").as_deref(), Some("syncFrequency"));
        assert_eq!(json_path(&types, "Nothing"), None);
    }
}
