//! The kubelet's flags on Linux, from the calls that register them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;

use super::Sources;
use super::fields::{Types, json_path};
use crate::go;

pub(crate) struct Flag {
    pub(crate) name: String,
    /// `bool int float string duration list map`, or `-` for a flag copied from a library.
    pub(crate) kind: String,
    pub(crate) deprecated: bool,
    /// JSON path of the field that replaces it, or `-`.
    pub(crate) config: String,
}

/// Files of the options package that are not built on Linux.
const NOT_LINUX: [&str; 3] = ["globalflags_other.go", "osflags_windows.go", "options_test.go"];

/// Flags registered by the argument parser and by `verflag`, which these files do not show.
const BUILT_IN: [(&str, &str); 2] = [("help", "bool"), ("version", "string")];

/// What `Var` takes, told from the name of the wrapped value.
const WRAPPED: [(&str, &str); 8] = [
    ("MapStringString", "map"),
    ("MapStringBool", "map"),
    ("MultimapStringString", "map"),
    ("bindableNodeLabels", "map"),
    ("ReservedMemoryVar", "list"),
    ("TaintsVar", "list"),
    ("VModule", "list"),
    ("VerbosityLevel", "int"),
];

pub(crate) fn flags(sources: &Sources, types: &Types) -> anyhow::Result<Vec<Flag>> {
    let mut found: BTreeMap<String, Flag> = BTreeMap::new();
    for (name, kind) in BUILT_IN {
        let config = "-".to_owned();
        let flag = Flag { name: name.into(), kind: kind.into(), deprecated: false, config };
        found.insert(name.to_owned(), flag);
    }
    for path in option_files(sources)? {
        for flag in registered(&go::read(&path)?, "", types) {
            found.insert(flag.name.clone(), flag);
        }
    }
    let logging = go::read(&sources.component_base.join("logs/api/v1/options.go"))?;
    let options = go::read(&sources.kubernetes.join("cmd/kubelet/app/options/options.go"))?;
    for mut flag in registered(&logging, "Logging.", types) {
        // The kubelet registers these inside its set of config flags.
        flag.deprecated = !kept_flags(&options).contains(&flag.name);
        found.insert(flag.name.clone(), flag);
    }
    Ok(found.into_values().collect())
}

fn option_files(sources: &Sources) -> anyhow::Result<Vec<PathBuf>> {
    let directory = sources.kubernetes.join("cmd/kubelet/app/options");
    let entries =
        std::fs::read_dir(&directory).with_context(|| format!("listing {directory:?}"))?;
    let mut files = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".go") && !NOT_LINUX.contains(&name.as_str()) {
            files.push(directory.join(name));
        }
    }
    // Until 1.34 the runtime's flags stood in a package of their own.
    let runtime = sources.kubernetes.join("pkg/kubelet/config/flags.go");
    files.extend(runtime.is_file().then_some(runtime));
    files.sort();
    Ok(files)
}

/// Flags that one file registers. `prefix` is the Go path of the struct it calls `c`.
fn registered(text: &str, prefix: &str, types: &Types) -> Vec<Flag> {
    let kept = kept_flags(text);
    let config_part = text.find("func AddKubeletConfigFlags").unwrap_or(text.len());
    let marked = marked_deprecated(text);
    let mut flags = Vec::new();
    for (at, method, arguments) in calls(text) {
        let Some((name, kind)) = name_and_kind(&method, &arguments, text) else { continue };
        let in_config = at > config_part && !kept.contains(&name);
        let deprecated = method == "registerDeprecated" || marked.contains(&name) || in_config;
        let config = config_field(&arguments[0], prefix, types);
        flags.push(Flag { name, kind, deprecated, config });
    }
    flags
}

/// Calls that register a flag: place, method, arguments.
fn calls(text: &str) -> Vec<(usize, String, Vec<String>)> {
    let mut calls = Vec::new();
    for (open, _) in text.match_indices('(') {
        let before = &text[..open];
        let start = before
            .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '.')
            .map_or(0, |place| place + 1);
        let callee = &before[start..];
        let declares = before[..start].ends_with("func ");
        let method = match callee.strip_prefix("fs.") {
            Some(method) if method.ends_with("Var") || method.ends_with("VarP") => method,
            None if !declares && REGISTER.contains(&callee) => callee,
            _ => continue,
        };
        if !method.contains('.') {
            calls.push((start, method.to_owned(), go::arguments(&text[open + 1..])));
        }
    }
    calls
}

/// Functions of the options package that copy a flag of a library.
const REGISTER: [&str; 3] = ["register", "registerDeprecated", "pflagRegister"];

fn name_and_kind(method: &str, arguments: &[String], text: &str) -> Option<(String, String)> {
    if REGISTER.contains(&method) {
        let name = literal(arguments.get(2)?, text)?;
        return Some((name.replace('_', "-"), "-".to_owned()));
    }
    let name = literal(arguments.get(1)?, text)?;
    let kind = match method.trim_end_matches('P').trim_end_matches("Var") {
        "" => wrapped(&arguments[0]),
        "Bool" => "bool",
        "Int" | "Int32" | "Int64" => "int",
        "Float64" => "float",
        "Duration" => "duration",
        "StringSlice" => "list",
        _ => "string",
    };
    Some((name, kind.to_owned()))
}

fn wrapped(value: &str) -> &'static str {
    WRAPPED.iter().find(|(part, _)| value.contains(part)).map_or("string", |(_, kind)| kind)
}

/// The value of a string literal, or of a constant that the same file declares.
fn literal(argument: &str, text: &str) -> Option<String> {
    let quoted = |text: &str| {
        let inner = text.trim().strip_prefix('"')?;
        inner.split_once('"').map(|(value, _)| value.to_owned())
    };
    quoted(argument).or_else(|| {
        let constant = argument.chars().all(|c| c.is_ascii_alphanumeric()).then_some(argument)?;
        let declared = text.lines().find_map(|line| line.trim().strip_prefix(constant))?;
        quoted(declared.trim().strip_prefix('=')?)
    })
}

/// Names in the map of config flags that stay.
fn kept_flags(text: &str) -> Vec<String> {
    let Some((_, map)) = text.split_once("notDeprecated := map[string]bool{") else {
        return Vec::new();
    };
    let body = map.split_once('}').map_or("", |(body, _)| body);
    body.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn marked_deprecated(text: &str) -> Vec<String> {
    let marks = text.split("MarkDeprecated(\"").skip(1);
    marks.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

fn config_field(argument: &str, prefix: &str, types: &Types) -> String {
    let field = argument.split_once("&c.").map(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        &rest[..end.unwrap_or(rest.len())]
    });
    field.and_then(|path| json_path(types, &format!("{prefix}{path}"))).unwrap_or("-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
func (f *KubeletFlags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.NodeIP, "node-ip", f.NodeIP, "an (address), of the node")
	fs.DurationVar(&f.MinimumGCAge.Duration, "minimum-ttl", f.MinimumGCAge.Duration, "x")
	fs.MarkDeprecated("minimum-ttl", "gone soon")
	registerDeprecated(global, local, "boot_id_file", deprecated)
}
const (
	FreqName = "freq"
)
func AddKubeletConfigFlags(fs *pflag.FlagSet) {
	notDeprecated := map[string]bool{
		"v": true,
	}
	fs.VarP(VerbosityLevelPflag(&c.Verbosity), "v", "v", "y")
	fs.Int32Var(&c.MaxPods, "max-pods", c.MaxPods, "z")
	fs.BoolVar(&c.Freq, FreqName, c.Freq, "z")
}
"#;

    #[test]
    fn registrations_become_flags() {
        let flags = registered(TEXT, "", &Types::new());
        let rows: Vec<_> =
            flags.iter().map(|f| (f.name.as_str(), f.kind.as_str(), f.deprecated)).collect();
        let expected = [
            ("node-ip", "string", false),
            ("minimum-ttl", "duration", true),
            ("boot-id-file", "-", true),
            ("v", "int", false),
            ("max-pods", "int", true),
            ("freq", "bool", true),
        ];
        assert_eq!(rows, expected);
    }
}
