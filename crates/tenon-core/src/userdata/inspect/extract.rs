//! The innermost parts as files, under names that cannot leave the directory they are put in.

use super::node::{Kind, Node};

/// One part with nothing around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Relative, of plain components.
    pub path: String,
    pub bytes: Vec<u8>,
    pub kind: &'static str,
}

const LONGEST_COMPONENT: usize = 100;

/// Ends of names by kind, for parts that have no path of their own.
const EXTENSIONS: &[(Kind, &str)] = &[
    (Kind::Script, "sh"),
    (Kind::Command, "sh"),
    (Kind::Boothook, "sh"),
    (Kind::CloudConfig, "cloud-config.yaml"),
    (Kind::NodeConfig, "yaml"),
    (Kind::TenonConfig, "yaml"),
    (Kind::Yaml, "yaml"),
    (Kind::Settings, "toml"),
    (Kind::PowerShell, "ps1"),
    (Kind::Batch, "bat"),
    (Kind::Ignition, "ign"),
    (Kind::Json, "json"),
    (Kind::Opaque, "bin"),
];

/// The innermost parts in order: content without layers, and the files that it writes.
pub fn pieces(root: &Node) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (trail, node) in root.walk() {
        if !is_innermost(node) {
            continue;
        }
        let wanted = match &node.path {
            Some(path) if !path.is_empty() => format!("files/{}", safe(path)),
            _ => format!("{}.{}", safe_name(&trail), extension(node.kind)),
        };
        let path = distinct(wanted, &pieces);
        pieces.push(Piece { path, bytes: node.bytes.clone(), kind: node.kind.name() });
    }
    pieces
}

/// True for what a reader wants to see: no encoding, no message, nothing that only embeds.
fn is_innermost(node: &Node) -> bool {
    let wraps = node.kind.is_layer()
        || node.kind.is_template()
        || matches!(node.kind, Kind::Mime | Kind::Empty | Kind::Command);
    let split = matches!(node.kind, Kind::PowerShell | Kind::Batch | Kind::Jinja)
        && !node.children.is_empty();
    !wraps && !split
}

fn extension(kind: Kind) -> &'static str {
    EXTENSIONS.iter().find(|(known, _)| *known == kind).map_or("txt", |(_, extension)| extension)
}

/// A path below the directory: `..`, empty and odd components are replaced.
fn safe(path: &str) -> String {
    let parts: Vec<String> = path
        .split(['/', '\\'])
        .filter(|part| !part.is_empty() && *part != ".")
        .map(component)
        .collect();
    if parts.is_empty() { "unnamed".into() } else { parts.join("/") }
}

fn safe_name(trail: &str) -> String {
    if trail.is_empty() { "user-data".into() } else { component(trail) }
}

fn component(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let mut name: String =
        text.chars().map(|c| if plain(c) { c } else { '-' }).take(LONGEST_COMPONENT).collect();
    if name.chars().all(|c| c == '.') {
        name = name.replace('.', "-");
    }
    name
}

/// Adds a number to a name that is taken, also one that is taken as a directory.
fn distinct(wanted: String, pieces: &[Piece]) -> String {
    let taken = |name: &str| {
        pieces.iter().any(|piece| {
            piece.path == name
                || piece.path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
                || name.strip_prefix(&piece.path).is_some_and(|rest| rest.starts_with('/'))
        })
    };
    if !taken(&wanted) {
        return wanted;
    }
    // A name that lies below another file moves aside as a whole.
    let flat = wanted.replace('/', "-");
    (2..).map(|number| format!("{flat}.{number}")).find(|name| !taken(name)).unwrap_or(flat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below() {
        for (path, expected) in [
            ("/etc/eksctl/kubelet.env", "etc/eksctl/kubelet.env"),
            ("../../etc/passwd", "--/--/etc/passwd"),
            ("/..", "--"),
            ("C:\\x\\..\\y", "C-/x/--/y"),
            ("a//./b", "a/b"),
            ("a\u{0}b\nc", "a-b-c"),
            ("", "unnamed"),
            ("...", "---"),
        ] {
            assert_eq!(safe(path), expected, "{path}");
        }
        assert!(safe(&"x".repeat(5000)).len() <= LONGEST_COMPONENT);
    }

    #[test]
    fn names_are_never_shared() {
        let piece = |path: &str| Piece { path: path.into(), bytes: Vec::new(), kind: "text" };
        let pieces = [piece("files/a"), piece("files/b/c")];
        assert_eq!(distinct("files/x".into(), &pieces), "files/x");
        assert_eq!(distinct("files/a".into(), &pieces), "files-a.2");
        assert_eq!(distinct("files/a/b".into(), &pieces), "files-a-b.2");
        assert_eq!(distinct("files/b".into(), &pieces), "files-b.2");
    }
}
